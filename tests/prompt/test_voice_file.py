"""Voice files: what is written is read again, and what is no voice file is refused."""

import json

import numpy as np
import pytest
from safetensors.numpy import save

from dia_demo.errors import InputError, RunError
from dia_demo.prompt.codes import pack_codes, unpack_codes
from dia_demo.prompt.voice_file import RECORDING, SUFFIX, VoiceFile, checked_name

CODES = np.random.default_rng(0).integers(0, 256, (120, 4)).astype(np.int16)
VOICE = VoiceFile(
    name="Anna",
    codes=CODES,
    transcript="[S1] Hello there.",
    codec="ab" * 16,
    sample_rate=16000,
    fps=40.0,
    model="nano",
    seed=7,
    settings={"temperature": 0.5},
    created="2026-11-27T08:00:00+00:00",
)


def metadata_of(path) -> dict:
    data = path.read_bytes()
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]


def written(tmp_path, codes=CODES, **changes):
    """A voice file with some of its metadata changed; None leaves an entry out."""
    VOICE.write(path := tmp_path / f"voice{SUFFIX}")
    metadata = {k: v for k, v in (metadata_of(path) | changes).items() if v is not None}
    path.write_bytes(save({"codes": codes}, metadata))
    return path


def test_a_voice_is_read_as_it_was_written(tmp_path):
    read = VoiceFile.read(VOICE.write(tmp_path / f"a{SUFFIX}"))
    assert np.array_equal(read.codes, CODES) and read.codes.dtype == np.int16
    assert {**vars(read), "codes": None} == {**vars(VOICE), "codes": None}
    assert read.speakers == (1,) and read.seconds == pytest.approx(3.0)


def test_a_voice_without_a_date_gets_today(tmp_path):
    path = VoiceFile(**{**vars(VOICE), "created": "", "source": RECORDING}).write(tmp_path / "a")
    assert VoiceFile.read(path).created.startswith("20")


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"format": "2"}, "newer version"),
        ({"transcript": None}, "is not a voice file"),
        ({"transcript": "[S1]"}, "transcript"),
        ({"transcript": "[S1] a" + "b" * 3000}, "transcript"),
        ({"name": "../../etc/passwd"}, "may not contain"),
        ({"name": ""}, "name"),
        ({"sample_rate": "0"}, "rates"),
        ({"frames_per_second": "nan"}, "rates"),
        ({"seed": "seven"}, "damaged"),
        ({"settings": "[]"}, "settings"),
        ({"settings": "[" * 50_000}, "damaged"),
        ({"consent": None}, "consent"),
        ({"consent": "x" * 501}, "too long"),
        ({"source": "radio"}, "source"),
    ],
)
def test_damaged_metadata_is_refused(tmp_path, changes, said):
    with pytest.raises(InputError, match=said):
        VoiceFile.read(written(tmp_path, **changes))


@pytest.mark.parametrize(
    "codes",
    [
        CODES.astype(np.int32),
        CODES[0],
        CODES[:0],
        -CODES - 1,
        np.zeros((3, 65), np.int16),
    ],
    ids=["int32", "one frame", "empty", "negative", "65 channels"],
)
def test_codes_of_another_kind_are_refused(tmp_path, codes):
    with pytest.raises(InputError, match="damaged voice file"):
        VoiceFile.read(written(tmp_path, codes))


def test_other_files_are_refused(tmp_path):
    (tmp_path / "noise").write_bytes(b"RIFF" + bytes(range(256)) * 4)
    (tmp_path / "weights").write_bytes(save({"weight": np.zeros((2, 2), np.float32)}))
    (tmp_path / "cut").write_bytes(VOICE.write(tmp_path / "whole").read_bytes()[:-10])
    (tmp_path / "large").write_bytes(bytes(11 * 10**6))
    for name in ("noise", "weights", "cut"):
        with pytest.raises(InputError, match="not a voice file"):
            VoiceFile.read(tmp_path / name)
    with pytest.raises(InputError, match="too large"):
        VoiceFile.read(tmp_path / "large")
    (tmp_path / "large").write_bytes(bytes(2 * 10**6))
    with pytest.raises(InputError, match="at most 1 MB"):
        VoiceFile.read(tmp_path / "large")
    with pytest.raises(InputError, match="no voice file"):
        VoiceFile.read(tmp_path / "missing")


def test_a_voice_that_cannot_be_written_says_why(tmp_path):
    with pytest.raises(RunError, match="Anna could not be saved"):
        VOICE.write(tmp_path / "no folder" / "a")


def test_a_voice_becomes_that_of_the_other_speaker():
    assert VOICE.extract_speaker(2).transcript == "[S2] Hello there."
    both = VoiceFile(**{**vars(VOICE), "transcript": "[S1] Hi. [S2] Hello."})
    assert both.speakers == (1, 2)
    with pytest.raises(InputError, match="two speakers"):
        both.extract_speaker(1)


def test_names_are_one_line_and_no_path():
    assert checked_name("  Anna \n of  York ") == "Anna of York"
    for name in ("", "a/b", "a\\b", "S2=Ben", "Anna, Ben", "-o", ".hidden", "x" * 61):
        with pytest.raises(InputError):
            checked_name(name)


def test_codes_are_packed_and_unpacked():
    assert np.array_equal(unpack_codes(pack_codes(CODES)), CODES)
    assert len(pack_codes(CODES)) < 2 * CODES.nbytes


@pytest.mark.parametrize("text", [None, 3, "", "4:", "4:AAAA", "x" * 100, pack_codes(CODES)[:-8]])
def test_damaged_codes_are_refused(text):
    with pytest.raises(InputError, match="damaged"):
        unpack_codes(text)

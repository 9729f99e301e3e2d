"""Uploaded clips: what can be compared is, as it sounds; anything else is refused in a sentence."""

from __future__ import annotations

import stat
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dia_demo.errors import InputError
from dia_demo.services.listening import archive
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.rebuild import rebuild_plan
from dia_demo.services.listening.uploads.folder import read_folder
from dia_demo.services.listening.uploads.make import (
    compare_clips,
    opened_clips,
    remarks_on,
    stored_bytes,
)
from dia_demo.services.listening.uploads.packed import unpack_clips
from tests.helpers.comparisons import HEARD, clips_of

RATE = 16_000
SYSTEMS, SENTENCES = ("alpha", "beta"), ("001", "002")


def tone(seconds: float = 1.0, level: float = 0.2, hertz: float = 300.0, rate: int = RATE):
    """A tone that swells, so that its place in time can be found."""
    at = np.arange(int(seconds * rate)) / rate
    return (level * np.sin(2 * np.pi * hertz * at) * np.linspace(0.2, 1, len(at))).astype("float32")


def write(folder: Path, name: str, wave=None, rate: int = RATE) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, tone() if wave is None else wave, rate)


@pytest.fixture
def clips(tmp_path):
    """Two systems with two sentences."""
    folder = tmp_path / "clips"
    for number, system in enumerate(SYSTEMS):
        for sentence in SENTENCES:
            wave = tone(level=0.1 + 0.3 * number, hertz=300 + 200 * number)
            write(folder, f"{system}/{sentence}.wav", wave)
    return folder


def zipped(folder: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                packed.write(file, file.relative_to(folder.parent))
    return path


def test_clips_are_heard_as_they_are(clips, synthesis, tmp_path, monkeypatch):
    monkeypatch.setattr(synthesis, "stream_together", None)
    comparison = compare_clips(tmp_path / "dir", "preference", read_folder(clips), synthesis)
    assert not comparison.is_unblinded and len(comparison.plan.trials) == len(SENTENCES)
    for trial in comparison.plan.trials:
        comparison.vote(trial.id, "A", HEARD)
    assert comparison.result().names == ("system alpha", "system beta")
    for pair in comparison.revealed_pairs():
        heard = [wave for wave, _ in clips_of(comparison)[pair.trial.id]]
        for clip, side in enumerate(pair.heard):
            system, sentence = SYSTEMS["AB".index(side)], SENTENCES[pair.trial.script]
            original, _ = soundfile.read(clips / system / f"{sentence}.wav")
            assert np.corrcoef(heard[clip].astype(float), original)[0, 1] > 0.999
        levels = [np.sqrt(np.mean(wave.astype(float) ** 2)) for wave in heard]
        assert levels[0] == pytest.approx(levels[1], rel=0.05), "equal levels"


def test_a_zip_is_read_as_its_folder(clips, synthesis, tmp_path):
    (clips / "text").mkdir()
    (clips / "text" / "001.txt").write_text("The first sentence.")
    (clips / ".DS_Store").write_text("x")
    path = zipped(clips, tmp_path / "clips.zip")
    with opened_clips(path) as packed, opened_clips(clips) as loose:
        assert (packed.systems, packed.sentences) == (loose.systems, loose.sentences)
        assert packed.texts == loose.texts == ("The first sentence.", "002")
        comparison = compare_clips(tmp_path / "dir", "abx", packed, synthesis)
        size = sum(f.stat().st_size for f in (tmp_path / "dir").rglob("*.wav"))
        assert size <= 1.5 * stored_bytes(packed)
    assert comparison.plan.kind == "abx" and all(t.made for t in comparison.plan.trials)


def test_other_rates_and_stereo_are_heard_at_one_rate(clips, synthesis, tmp_path):
    write(clips, "beta/001.wav", np.stack([tone(rate=24_000)] * 2, axis=1), 24_000)
    folder = read_folder(clips)
    comparison = compare_clips(tmp_path / "dir", "preference", folder, synthesis)
    assert {rate for pair in clips_of(comparison).values() for _, rate in pair} == {24_000}
    assert [remark[:12] for remark in remarks_on(folder)] == ["Clips of 16,", "Stereo clips"]


def test_uploaded_clips_are_never_generated(clips, synthesis, tmp_path):
    comparison = compare_clips(tmp_path / "dir", "preference", read_folder(clips), synthesis)
    with pytest.raises(InputError, match="were uploaded"):
        rebuild_plan(comparison.plan)
    comparison.remove_sound()
    again = Comparison.open(comparison.folder)
    *_, ended = again.run(synthesis, threading.Event())
    assert ended.pairs_made == 0 and "uploaded" in ended.failures[0]


def remove(name):
    return lambda folder: (folder / name).unlink()


BAD_FOLDERS = {
    "one system": (lambda f: [path.unlink() for path in (f / "beta").iterdir()], "2 to 6 systems"),
    "a clip is missing": (remove("beta/002.wav"), "beta has no clip of 002"),
    "a clip beside the systems": (lambda f: write(f, "loose.wav"), "not a clip of a system"),
    "a deeper folder": (lambda f: write(f, "beta/more/003.wav"), "not a clip of a system"),
    "another file": (lambda f: (f / "beta/notes.doc").write_text("x"), "not a WAV or FLAC"),
    "a sentence twice": (lambda f: write(f, "beta/001.flac"), "two files called '001'"),
    "too many pairs": (
        lambda f: [(f / s / f"x{n}.wav").touch() for s in SYSTEMS for n in range(199)],
        "at most 200 sentences",
    ),
    "words that are no text": (
        lambda f: [(f / "text").mkdir(), (f / "text/001.txt").write_bytes(b"\xff\xfe\xff")],
        "cannot be read as text",
    ),
}


@pytest.mark.parametrize(("change", "message"), BAD_FOLDERS.values(), ids=BAD_FOLDERS)
def test_what_cannot_be_arranged_is_refused(clips, change, message):
    change(clips)
    with pytest.raises(InputError, match=message):
        read_folder(clips)


BAD_CLIPS = {
    "no sound": (lambda path: path.write_bytes(b"RIFF" + bytes(60)), "cannot be read as sound"),
    "too short": (lambda path: soundfile.write(path, tone(0.2), RATE), "length of beta/002 "),
    "too long": (lambda path: soundfile.write(path, np.zeros(8000 * 130), 8000), "length"),
    "silent": (lambda path: soundfile.write(path, np.zeros(RATE), RATE), "is silent"),
    "a rate of a telephone's half": (lambda p: soundfile.write(p, tone(), 4000), "sample rate"),
    "three channels": (lambda p: soundfile.write(p, np.zeros((RATE, 3)), RATE), "3 channels"),
}


@pytest.mark.parametrize(("change", "message"), BAD_CLIPS.values(), ids=BAD_CLIPS)
def test_clips_that_cannot_be_compared_are_named(clips, synthesis, tmp_path, change, message):
    change(clips / "beta" / "002.wav")
    with pytest.raises(InputError, match=message):
        compare_clips(tmp_path / "dir", "preference", read_folder(clips), synthesis)


def a_link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


HOSTILE = {
    "a path above": lambda z: z.writestr("../evil.wav", "x"),
    "a deep path above": lambda z: z.writestr("clips/alpha/../../../evil.wav", "x"),
    "an absolute path": lambda z: z.writestr("/tmp/evil.wav", "x"),
    "a windows path": lambda z: z.writestr("clips\\evil.wav", "x"),
    "a link": lambda z: z.writestr(a_link("clips/alpha/003.wav"), "/etc/passwd"),
    "a program": lambda z: z.writestr("clips/alpha/run.py", "x"),
    "a clip twice": lambda z: z.writestr("clips/alpha/001.wav", "x"),
    "a bomb": lambda z: z.writestr("clips/alpha/003.wav", bytes(10**7), zipfile.ZIP_DEFLATED),
    "too large a file": lambda z: z.writestr(
        "clips/alpha/003.wav", bytes(archive.MAX_FILE_BYTES + 1), zipfile.ZIP_DEFLATED
    ),
    "too many files": lambda z: [z.writestr(f"clips/alpha/{n}.wav", "") for n in range(2001)],
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("add", HOSTILE.values(), ids=HOSTILE)
def test_hostile_zips_write_nothing(clips, tmp_path, add):
    path = zipped(clips, tmp_path / "clips.zip")
    with zipfile.ZipFile(path, "a") as packed:
        add(packed)
    (tmp_path / "into").mkdir()
    before = set(tmp_path.rglob("*"))
    with pytest.raises(InputError):
        unpack_clips(path, tmp_path / "into")
    assert set(tmp_path.rglob("*")) == before


def test_what_is_no_zip_is_refused(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"no zip")
    for name, message in (("x.zip", "not a readable zip: zip the"), ("y.zip", "does not exist")):
        with pytest.raises(InputError, match=message), opened_clips(tmp_path / name):
            pass

"""The names of a take's files, and what people call their takes."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace

import pytest

from dia_demo import audio
from dia_demo.errors import InputError
from dia_demo.services.earlier import history as history_module
from dia_demo.services.earlier.history import History
from dia_demo.services.earlier.labels import Label, file_stem, make_distinct, read_labels
from dia_demo.services.earlier.take_metadata import read_take
from dia_demo.services.people import new_key
from tests.helpers.page.page_stubs import silent_take

NANO = {"model": "nano", "seed": 7}


@pytest.mark.parametrize(
    ("script", "name", "stem"),
    [
        ("[S1] Hello there. How are you? [S2] I am fine.", "", "hello-there-how-are-you-i"),
        ("[S1] (laughs) I can't, Zoë!", "", "i-cant-zoe"),
        ("[S1] Hello.", "The one for Ben", "the-one-for-ben"),
        ("[S1] 你好", "", "take"),
        ("", "../../etc/passwd", "etc-passwd"),
        ('[S1] <b>"a:b|c?*"</b>', "", "b-a-b-c-b"),
        ("[S1] " + 50 * "a", "", 40 * "a"),
        (
            "[S1] extraordinarily incomprehensible internationalisation",
            "",
            "extraordinarily-incomprehensible",
        ),
    ],
)
def test_files_are_named_after_the_words(script, name, stem):
    assert file_stem(script, NANO, name) == f"{stem}_nano_seed7"


def test_a_models_folder_is_not_in_the_name():
    assert file_stem("[S1] Hi.", {"model": "/home/ann/my model", "seed": 1}) == "hi_mymodel_seed1"


def test_names_that_are_taken_get_a_number():
    assert make_distinct(["a", "b", "a", "a"]) == ["a", "b", "a_2", "a_3"]


@pytest.fixture
def kept(tmp_path):
    """A history, a key, and the ids of three takes, the first of them the oldest."""
    history, key = History(tmp_path / "kept"), new_key()
    return history, key, [history.add(key, silent_take(f"[S1] Take {n}.")) for n in "abc"]


def test_a_name_and_a_star_are_kept(kept, tmp_path):
    history, key, (first, *_) = kept
    history.label(key, first, name="  For\nBen ")
    history.label(key, first, starred=True)
    assert History(tmp_path / "kept").get(key, first).label == Label("For Ben", True)
    assert history.serve(key, first, tmp_path / "served").name.startswith("for-ben_")
    history.label(key, first, name="")
    assert history.get(key, first).label == Label("", True)
    with pytest.raises(InputError, match="at most 60"):
        history.label(key, first, name=61 * "x")
    with pytest.raises(InputError):
        history.label(new_key(), first, starred=True)


def test_starred_takes_are_removed_last(kept, monkeypatch):
    history, key, (first, *_) = kept
    monkeypatch.setattr(history_module, "MAX_TAKES", 3)
    history.label(key, first, starred=True)
    new = history.add(key, silent_take())
    ids = [take.id for take in history.list(key)]
    assert first in ids and new in ids and len(ids) == 3
    for identity in ids:
        history.label(key, identity, starred=True)
    newest = history.add(key, silent_take())
    assert newest in [take.id for take in history.list(key)], "the new one stays in any case"


def test_damaged_labels_are_no_labels(kept, tmp_path):
    history, key, (first, *_) = kept
    history.label(key, first, starred=True)
    (file,) = (tmp_path / "kept").rglob("labels.json")
    for contents in ("", "[]", '{"x": 3}', json.dumps({first: {"name": 3, "starred": "yes"}})):
        file.write_text(contents)
        assert history.get(key, first).label == Label()
    assert read_labels(tmp_path / "missing") == {}


@pytest.mark.parametrize("suffix", audio.FORMATS)
def test_takes_are_downloaded_in_every_format_with_their_settings(kept, tmp_path, suffix):
    history, key, ids = kept
    served = history.serve(key, ids[0], tmp_path / "served", suffix)
    whole = read_take(history.get(key, ids[0]).path)
    assert served.suffix == suffix and read_take(served) == whole
    with zipfile.ZipFile(history.archive(key, ids, tmp_path / "served", suffix)) as archive:
        assert archive.namelist()[0] == served.name
        assert archive.read(served.name) == served.read_bytes()
    history.delete(key, ids[0], tmp_path / "served")
    assert not served.exists()


def test_a_zip_has_every_take_once(kept, tmp_path):
    history, key, ids = kept
    again = history.add(key, replace(silent_take("[S1] Take a.")))
    path = history.archive(key, [*ids, again], tmp_path / "served")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        assert archive.read(names[0]) == history.get(key, ids[0]).path.read_bytes()
    assert len(set(names)) == 4 and names[0].startswith("take-a_") and "_2.wav" in names[3]
    with pytest.raises(InputError):
        history.archive(new_key(), ids, tmp_path / "served")
    with pytest.raises(InputError, match="no take"):
        history.archive(key, [], tmp_path / "served")

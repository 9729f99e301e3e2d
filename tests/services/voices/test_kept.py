"""The folder of kept voices: names, copies, limits."""

from dataclasses import replace

import numpy as np
import pytest

from dia_demo.errors import InputError, RunError
from dia_demo.prompt.voice_file import SUFFIX, VoiceFile
from dia_demo.services.people import new_key
from dia_demo.services.settings import Settings
from dia_demo.services.voices import kept as kept_module
from dia_demo.services.voices.kept import KeptVoices
from tests.prompt.test_voice_file import VOICE


@pytest.fixture
def kept(tmp_path):
    kept = KeptVoices(tmp_path / "voices")
    kept.add(VOICE)
    kept.add(replace(VOICE, name="ben"))
    return kept


def names(kept) -> list[str]:
    return [voice.name for voice in kept.list()]


def test_a_new_folder_has_no_voices(tmp_path):
    assert KeptVoices(tmp_path / "none").list() == []


def test_voices_are_listed_by_name_and_found_in_any_case(kept):
    assert names(kept) == ["Anna", "ben"]
    assert np.array_equal(kept.get("ANNA").codes, VOICE.codes)
    assert kept.find("Clara") is None
    with pytest.raises(InputError, match=r"'Clara'\. Kept voices: Anna, ben"):
        kept.get("Clara")


def test_a_name_is_given_once(kept):
    with pytest.raises(InputError, match="already a voice 'anna'"):
        kept.add(replace(VOICE, name="anna"))
    assert names(kept) == ["Anna", "ben"]


def test_names_in_any_letters_have_files_of_their_own(kept):
    for name in ("Анна", "安娜", "Anna!"):
        kept.add(replace(VOICE, name=name))
    assert sorted(names(kept)) == sorted(["Anna", "ben", "Анна", "安娜", "Anna!"])
    assert all(path.name.isascii() for path in kept.folder.iterdir())


def test_renaming_keeps_the_voice(kept):
    kept.rename("anna", "Clara")
    assert names(kept) == ["ben", "Clara"] and np.array_equal(kept.get("clara").codes, VOICE.codes)
    kept.rename("clara", "CLARA")
    assert names(kept) == ["ben", "CLARA"]
    with pytest.raises(InputError, match="already"):
        kept.rename("ben", "Clara")
    assert names(kept) == ["ben", "CLARA"]


def test_removing(kept):
    kept.remove("BEN")
    assert names(kept) == ["Anna"]
    with pytest.raises(InputError, match="no kept voice 'ben'"):
        kept.remove("ben")


def test_an_exported_voice_can_be_imported(kept, tmp_path):
    kept.export_file("Anna", tmp_path)
    exported = kept.export_file("Anna", tmp_path / "anna")
    assert exported.name == f"anna{SUFFIX}" and len(list(tmp_path.glob(f"*{SUFFIX}"))) == 2
    other = KeptVoices(tmp_path / "elsewhere")
    other.import_file(exported)
    with pytest.raises(InputError, match="already"):
        other.import_file(exported)
    other.import_file(exported, "Anna two")
    assert names(other) == ["Anna", "Anna two"]
    assert np.array_equal(other.get("Anna").codes, VOICE.codes)


def test_a_damaged_file_is_left_out_of_the_list_and_named_when_chosen(kept):
    kept._path("Anna").write_bytes(b"damaged")
    assert names(kept) == ["ben"]
    with pytest.raises(InputError, match="not a voice file"):
        kept.get("Anna")
    kept.remove("Anna")
    kept.add(VOICE)
    assert isinstance(kept.get("Anna"), VoiceFile)


def test_there_is_a_largest_number_of_voices(kept, monkeypatch):
    monkeypatch.setattr(kept_module, "MAX_VOICES", 2)
    with pytest.raises(InputError, match="At most 2 voices"):
        kept.add(replace(VOICE, name="Clara"))


def test_the_voices_of_all_people_have_a_limit_together(tmp_path, monkeypatch):
    settings = Settings(kept_folder=tmp_path)
    first, second = (KeptVoices.for_person(settings, new_key()) for _ in range(2))
    monkeypatch.setattr(kept_module, "MOST_BYTES", 1000)
    first.add(VOICE)
    with pytest.raises(InputError, match="the maximum"):
        second.add(VOICE)
    KeptVoices.for_user(settings).add(VOICE)
    first.remove("Anna")
    second.add(VOICE)


def test_a_folder_that_cannot_be_made_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="DIA_KEPT"):
        KeptVoices(tmp_path / "file" / "voices").add(VOICE)

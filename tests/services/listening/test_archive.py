"""Comparisons as zips, people's own folders, earlier takes: nothing leaks, nothing gets out."""

from __future__ import annotations

import json
import shutil
import stat
import threading
import zipfile
from datetime import datetime, timedelta

import numpy as np
import pytest
import soundfile

from dia_demo import audio
from dia_demo.errors import InputError
from dia_demo.services.earlier import history
from dia_demo.services.earlier.history import History
from dia_demo.services.earlier.take_metadata import read_take
from dia_demo.services.listening import archive, store
from dia_demo.services.listening.archive import import_zip
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import is_key, new_key
from dia_demo.services.take import Request
from tests.helpers.comparisons import random_bytes, with_plan

SCRIPT = "[S1] Hello there. [S2] Yes."
HEARD = {"A": 9.0, "B": 9.0}


@pytest.fixture(scope="module")
def original(synthesis, base, tmp_path_factory):
    sides = [base, base.change({"temperature": 1.9})]
    plan = make_plan("preference", sides, (SCRIPT,), (1, 2))
    comparison = Comparison.create(tmp_path_factory.mktemp("original") / "dir", plan, synthesis)
    list(comparison.run(synthesis, threading.Event()))
    comparison.vote(plan.trials[0].id, "A", HEARD, 2, "brighter")
    return comparison


@pytest.fixture
def packed(original, tmp_path):
    return archive.export_zip(original.folder, tmp_path / "out.zip")


def test_a_zip_comes_back_the_same(original, packed, tmp_path):
    assert import_zip(packed, tmp_path / "home" / "in") == original.plan
    back = Comparison.open(tmp_path / "home" / "in")
    assert back.votes == original.votes and back.result() == original.result()
    for trial in original.plan.trials:
        assert back.clip(trial.id, "A") == original.clip(trial.id, "A")
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["in"]


def test_a_folder_zipped_by_hand_opens_too(original, tmp_path):
    shutil.copytree(original.folder, tmp_path / "lab" / "my test")
    made = shutil.make_archive(str(tmp_path / "hand"), "zip", tmp_path / "lab", "my test")
    assert import_zip(tmp_path / made, tmp_path / "home" / "in") == original.plan


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


HOSTILE = {
    "a path above": lambda z: z.writestr("../evil.txt", "x"),
    "a deep path above": lambda z: z.writestr("clips/../../../evil.txt", "x"),
    "an absolute path": lambda z: z.writestr("/tmp/evil.txt", "x"),
    "a windows path": lambda z: z.writestr("..\\evil.txt", "x"),
    "a stranger's file": lambda z: z.writestr("run.py", "x"),
    "a hidden file": lambda z: z.writestr(".bashrc", "x"),
    "a link": lambda z: z.writestr(link("votes.csv"), "/etc/passwd"),
    "a clip that is a link": lambda z: z.writestr(link(f"clips/{'0' * 24}.wav"), "/etc/passwd"),
    "a second plan": lambda z: z.writestr("plan.json", "{}"),
    "too many files": lambda z: [
        z.writestr(f"clips/{index:024x}.wav", "") for index in range(archive.MAX_FILES + 1)
    ],
    "a bomb": lambda z: z.writestr(
        f"clips/{'1' * 24}.wav", bytes(archive.MAX_FILE_BYTES + 1), zipfile.ZIP_DEFLATED
    ),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("add", HOSTILE.values(), ids=HOSTILE)
def test_hostile_zips_write_nothing_anywhere(packed, tmp_path, add):
    with zipfile.ZipFile(packed, "a") as file:
        add(file)
    before = {path for path in tmp_path.rglob("*")}
    with pytest.raises(InputError):
        import_zip(packed, tmp_path / "home" / "in")
    assert {path for path in tmp_path.rglob("*")} - before == {tmp_path / "home"}


def test_a_zip_that_lies_about_its_size_is_stopped(packed, tmp_path, monkeypatch):
    """The limit holds for what is really unpacked, not only for what the zip says."""
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 1000)
    with pytest.raises(InputError, match="MB in one file"):
        import_zip(packed, tmp_path / "home" / "in")
    with zipfile.ZipFile(packed) as file:
        monkeypatch.setattr(archive, "MAX_FILE_BYTES", 60_000_000)
        members = archive._checked_members(file)
        name = next(name for name in members if name.startswith("clips/"))
        with pytest.raises(InputError, match="more than its index says"):
            archive.copy_member(file, members[name], tmp_path / "x.wav", 100)


def test_import_ignores_files_that_the_plan_does_not_name(packed, tmp_path):
    stray = [(f"voice.{suffix}", random_bytes(50_000)) for suffix in ("wav", "mp3", "npy")]
    stray += [(f"clips/{'3' * 24}.wav", random_bytes(50_000))]
    full = with_plan(packed, tmp_path / "full.zip", {"voice_file": "voice.wav"}, *stray)
    import_zip(full, tmp_path / "home" / "in")
    assert [path.name for path in (tmp_path / "home" / "in").glob("voice.*")] == ["voice.wav"]
    assert not (tmp_path / "home" / "in" / "clips" / f"{'3' * 24}.wav").exists()
    added = archive.unpacked_bytes(full) - archive.unpacked_bytes(packed)
    assert abs(added - 50_000) < 5_000, "one voice, and a plan written another way"


def test_a_zip_that_unpacks_to_far_more_than_its_size_is_refused(packed, tmp_path):
    zeros = ("voice.wav", bytes(archive.MAX_RATIO * packed.stat().st_size))
    bomb = with_plan(packed, tmp_path / "bomb.zip", {"voice_file": "voice.wav"}, zeros)
    with pytest.raises(InputError, match="20 times its size"):
        archive.unpacked_bytes(bomb)
    with pytest.raises(InputError, match="20 times its size"):
        import_zip(bomb, tmp_path / "home" / "in")
    assert list((tmp_path / "home").iterdir()) == []


def test_a_zip_of_silence_that_was_saved_here_opens_again(original, tmp_path):
    folder = tmp_path / "quiet"
    shutil.copytree(original.folder, folder)
    for clip in folder.glob("*/*.wav"):
        clip.write_bytes(clip.read_bytes()[:44] + bytes(2_000_000))
    import_zip(archive.export_zip(folder, tmp_path / "quiet.zip"), tmp_path / "home" / "in")
    assert len(list((tmp_path / "home" / "in").glob("*/*.wav"))) > 1


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"not a zip at all", b"PK\x05\x06" + bytes(18), b"PK\x03\x04" + bytes(90)]
)
def test_what_is_no_zip_gets_one_message(tmp_path, data):
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(InputError):
        import_zip(tmp_path / "x.zip", tmp_path / "home" / "in")
    assert list((tmp_path / "home").iterdir()) == []


def test_a_damaged_zip_gets_one_message(packed, tmp_path):
    whole = packed.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(40):
        data = bytearray(whole)
        for place in random.integers(0, len(data), 20):
            data[place] ^= 0xFF
        packed.write_bytes(data)
        try:
            import_zip(packed, tmp_path / "home" / "in")
            shutil.rmtree(tmp_path / "home" / "in")
        except InputError:
            pass
        assert list((tmp_path / "home").iterdir()) == []


def test_another_version_is_named(original, tmp_path):
    shutil.copytree(original.folder, tmp_path / "dir")
    plan = tmp_path / "dir" / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"version": 7}))
    archive.export_zip(tmp_path / "dir", tmp_path / "x.zip")
    with pytest.raises(InputError, match="version 7"):
        import_zip(tmp_path / "x.zip", tmp_path / "home" / "in")
    assert list((tmp_path / "home").iterdir()) == []


# People


@pytest.fixture
def comparisons(synthesis, tmp_path):
    return ComparisonStore(tmp_path / "kept", synthesis)


def test_nobody_reaches_anothers(comparisons, packed):
    ann, bob = new_key(), new_key()
    mine = comparisons.load(ann, packed)
    assert [name for name, _ in comparisons.list(ann)] == [mine] and not comparisons.list(bob)
    for wanted in (mine, f"../{mine}", "", None, "0" * 24):
        with pytest.raises(InputError, match="Choose a comparison|no longer exists"):
            comparisons.get(bob, wanted)
    for key in ("", "short", "../../etc", None, ann[:-1], ann + "x"):
        with pytest.raises(InputError, match="key"):
            comparisons.get(key, mine)


def test_keys_cannot_be_read_off_the_folders(comparisons, packed):
    key = new_key()
    comparisons.load(key, packed)
    assert is_key(key) and len({new_key() for _ in range(50)}) == 50
    assert not any(key in str(path) for path in comparisons.home.rglob("*"))


def test_a_blind_comparison_is_not_handed_out(comparisons, packed):
    key = new_key()
    name = comparisons.load(key, packed)
    with pytest.raises(InputError, match="answers"):
        comparisons.export(key, name)
    comparisons.get(key, name).reveal()
    again = comparisons.load(key, comparisons.export(key, name))
    assert comparisons.get(key, again).plan.revealed


def test_deleting_a_comparison_deletes_its_zip(comparisons, packed, synthesis):
    key = new_key()
    name = comparisons.load(key, packed)
    comparisons.get(key, name).reveal()
    zipped = comparisons.export(key, name)
    assert comparisons.export(key, name) == zipped and zipped.is_file()
    assert zipped.is_relative_to(synthesis.settings.served_folder)
    comparisons.delete(key, name)
    assert not zipped.parent.exists()


def test_a_comparison_is_made_again_from_its_plan(comparisons, packed):
    key = new_key()
    old = comparisons.get(key, comparisons.load(key, packed))
    new = comparisons.repeat(key, old.folder.name)
    list(comparisons.run(key, new, threading.Event()))
    fresh = comparisons.get(key, new)
    assert not fresh.votes and fresh.next_trial() is not None
    for trial in old.plan.trials:
        assert fresh.clip(trial.id, "B") == old.clip(trial.id, "B")


def test_a_plan_from_elsewhere_loads_no_strange_model(comparisons, original, tmp_path):
    shutil.copytree(original.folder, tmp_path / "dir")
    plan = tmp_path / "dir" / "plan.json"
    raw = json.loads(plan.read_text())
    raw["settings"][0]["runtime"]["model"] = "somebody/else"
    plan.write_text(json.dumps(raw))
    archive.export_zip(tmp_path / "dir", tmp_path / "x.zip")
    key = new_key()
    name = comparisons.load(key, tmp_path / "x.zip")
    with pytest.raises(InputError, match="not offered"):
        next(comparisons.run(key, name, threading.Event()))


def test_deleting_a_comparison_makes_room_for_another(comparisons, packed, monkeypatch):
    key = new_key()
    monkeypatch.setattr(store, "MAX_COMPARISONS", 2)
    first, _ = comparisons.load(key, packed), comparisons.load(key, packed)
    with pytest.raises(InputError, match="Delete one"):
        comparisons.load(key, packed)
    comparisons.delete(key, first)
    assert len(comparisons.list(key)) == 1
    with pytest.raises(InputError):
        comparisons.get(key, first)
    comparisons.load(key, packed)


# Earlier takes


@pytest.fixture(scope="module")
def take(synthesis, base):
    request = Request(
        SCRIPT, base.params, synthesis.models.first, synthesis.settings.runtime, speed=1.25
    )
    *_, finished = synthesis.stream(request, threading.Event())
    return synthesis.take(request, finished.result)


def test_takes_are_kept_with_their_settings(take, tmp_path):
    kept, key = History(tmp_path), new_key()
    first, second = kept.add(key, take), kept.add(key, take)
    assert [one.id for one in kept.list(key)] == [second, first]
    one = kept.get(key, first)
    assert (one.script, one.speed) == (SCRIPT, 1.25)
    values = one.values()
    assert values["temperature"] == take.request.params.temperature
    assert values["seed"] == take.figures.seed and values["model"] == take.figures.model
    assert soundfile.info(str(one.path)).subtype == "PCM_16"
    kept.delete(key, first, tmp_path)
    assert [one.id for one in kept.list(key)] == [second]


def test_takes_are_private(take, tmp_path):
    kept, ann, bob = History(tmp_path), new_key(), new_key()
    mine = kept.add(ann, take)
    assert kept.list(bob) == []
    for wanted in (mine, f"../{mine}", "../x", None):
        with pytest.raises(InputError):
            kept.get(bob, wanted)
    kept.delete(bob, mine, tmp_path)
    assert len(kept.list(ann)) == 1


def test_the_oldest_takes_go(take, tmp_path, monkeypatch):
    monkeypatch.setattr(history, "MAX_TAKES", 2)
    kept, key = History(tmp_path), new_key()
    names = [kept.add(key, take) for _ in range(4)]
    assert [one.id for one in kept.list(key)] == names[:1:-1]


def test_whoever_keeps_most_loses_first(take, tmp_path):
    size = take.save(tmp_path / "one.wav").stat().st_size
    kept, ann, bob = History(tmp_path / "kept", limit=int(4.5 * size)), new_key(), new_key()
    mine = kept.add(ann, take)
    names = [kept.add(bob, take) for _ in range(6)]
    assert [one.id for one in kept.list(ann)] == [mine]
    assert [one.id for one in kept.list(bob)] == names[:2:-1]


@pytest.mark.parametrize("seconds", [-3 * 3600, -(10**10)], ids=["back", "before 1970"])
def test_a_clock_that_is_set_back_loses_no_take(take, tmp_path, monkeypatch, seconds):
    monkeypatch.setattr(history, "MAX_TAKES", 2)
    kept, key = History(tmp_path), new_key()
    first = [kept.add(key, take) for _ in range(2)]

    class SetBack(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.now(zone) + timedelta(seconds=seconds)

    monkeypatch.setattr(history, "datetime", SetBack)
    new = kept.add(key, take)
    assert [one.id for one in kept.list(key)] == [new, first[1]]
    other = new_key()
    assert [one.id for one in kept.list(other)] == []
    assert kept.add(other, take) == kept.list(other)[0].id


def test_a_dropped_file_gives_its_settings_or_nothing(take, tmp_path):
    for name in ("x.wav", "x.flac"):
        found = read_take(take.save(tmp_path / name))
        assert found["script"] == SCRIPT and found["settings"]["seed"] == take.figures.seed
    audio.write_audio(tmp_path / "bare.wav", np.zeros(100), 8000, {"settings": 3, "script": []})
    (tmp_path / "text.wav").write_text("hello")
    for name in ("bare.wav", "text.wav", "missing.wav"):
        assert read_take(tmp_path / name) is None

"""The bound on what a machine keeps: sound goes first and in a fair order, votes never go."""

from __future__ import annotations

import json
import os
import threading

import pytest

from dia_demo.errors import InputError
from dia_demo.services.earlier import history
from dia_demo.services.earlier.history import History
from dia_demo.services.listening import store
from dia_demo.services.listening.archive import export_zip, unpacked_bytes
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.plan.rebuild import rebuild_plan
from dia_demo.services.listening.quota import IN_USE_SECONDS
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import new_key
from dia_demo.services.settings import Settings
from dia_demo.services.take import VoicePrompt
from dia_demo.ui.compare.html import result
from dia_demo.ui.compare.progress import status_of_stored, title
from tests.helpers.comparisons import random_bytes, with_plan
from tests.helpers.page.page_stubs import silent_take

SCRIPT = "[S1] Hello there. [S2] Yes."
HEARD = {"A": 9.0, "B": 9.0}


@pytest.fixture(scope="module")
def packed(two_settings, synthesis, tmp_path_factory):
    """A finished comparison as a zip, nobody has voted on."""
    plan = make_plan("preference", two_settings, (SCRIPT,), (1,))
    folder = tmp_path_factory.mktemp("packed")
    comparison = Comparison.create(folder / "dir", plan, synthesis)
    list(comparison.run(synthesis, threading.Event()))
    return export_zip(comparison.folder, folder / "one.zip")


@pytest.fixture
def small_store(synthesis, packed, tmp_path):
    """Room for three of them and a little more."""
    return ComparisonStore(tmp_path / "kept", synthesis, limit=int(3.5 * unpacked_bytes(packed)))


def put(small_store, packed, key, hours_ago: float) -> Comparison:
    comparison = small_store.get(key, small_store.load(key, packed))
    unused(comparison, hours_ago)
    return comparison


def unused(comparison, hours: float) -> None:
    then = comparison.folder.stat().st_mtime - 3600 * hours
    os.utime(comparison.folder, (then, then))


def test_the_oldest_finished_comparison_loses_its_audio_first(small_store, packed):
    ann, bob, eve = new_key(), new_key(), new_key()
    unfinished = put(small_store, packed, ann, 90)
    old, older = put(small_store, packed, bob, 0), put(small_store, packed, ann, 0)
    for comparison, hours in ((old, 20), (older, 50)):
        comparison.vote(comparison.plan.trials[0].id, "A", HEARD, 2, "warm")
        unused(comparison, hours)
    put(small_store, packed, eve, 0)
    assert [one.sound_bytes() > 0 for one in (unfinished, old, older)] == [True, True, False]


def test_resume_restores_removed_audio_exactly(small_store, packed, synthesis):
    ann, bob = new_key(), new_key()
    mine = put(small_store, packed, ann, 0)
    trial = mine.plan.trials[0]
    before, secrets = mine.clip(trial.id, "A"), mine.plan.secrets[trial.id]
    mine.vote(trial.id, "B", HEARD, 2, "warm")
    unused(mine, 50)
    for _ in range(3):
        put(small_store, packed, bob, 9)
    for one in (mine, Comparison.open(mine.folder)):
        assert one.sound_bytes() == 0 and one.plan.sound_removed and len(one.votes) == 1
        assert one.result().voted == 1 and one.result().failed == 0 and one.is_unblinded
        assert (
            "Resume generates the same audio" in status_of_stored(one, was_abandoned=False).detail
        )
        assert "audio removed" in title(one)
        assert "1 pair without audio" in result(one) and "Votes" in result(one)
    small_store.limit = 10**9
    list(small_store.run(ann, mine.folder.name, threading.Event()))
    assert mine.clip(trial.id, "A") == before and not mine.plan.sound_removed
    assert mine.plan.secrets[trial.id] == secrets


def test_audio_in_use_is_never_removed(small_store, packed):
    keys = [new_key() for _ in range(3)]
    kept = [put(small_store, packed, key, 0) for key in keys]
    sizes = [one.sound_bytes() for one in kept]
    with pytest.raises(InputError, match="Delete one of yours.*DIA_KEPT_GB"):
        small_store.load(new_key(), packed)
    assert [one.sound_bytes() for one in kept] == sizes, "a refusal removes nothing"
    # Hearing a clip is use.
    unused(kept[0], 5)
    kept[0].clip(kept[0].plan.trials[0].id, "A")
    with pytest.raises(InputError, match="no room"):
        small_store.load(new_key(), packed)
    unused(kept[1], IN_USE_SECONDS / 3600 + 0.1)
    small_store.load(new_key(), packed)
    assert [one.sound_bytes() > 0 for one in kept] == [True, False, True]


def test_a_comparison_that_is_being_made_keeps_its_sound(small_store, packed, synthesis):
    mine = put(small_store, packed, new_key(), 50)
    running = mine.run(synthesis, threading.Event())
    (mine.folder / "clips" / mine.plan.trials[0].clips[0]).unlink()
    mine.plan = Comparison.open(mine.folder).plan
    next(running)
    unused(mine, 50)
    assert mine.running and not mine.remove_sound()
    running.close()
    assert mine.remove_sound() and mine.sound_bytes() == 0


def test_what_counts_against_the_room_can_always_be_had_back(small_store, packed, tmp_path):
    """A voice that a plan names fills it; a day later everybody can go on."""
    voice = ("voice.wav", random_bytes(int(0.38 * small_store.limit)))
    large = with_plan(packed, tmp_path / "large.zip", {"voice_file": "voice.wav"}, voice)
    stranger, ann = new_key(), new_key()
    mine = put(small_store, packed, ann, 30)
    mine.vote(mine.plan.trials[0].id, "A", HEARD)
    put(small_store, large, stranger, 0)
    with pytest.raises(InputError, match="no room"):
        small_store.load(ann, large)
    for _, comparison in (*small_store.list(stranger), *small_store.list(ann)):
        unused(comparison, 25)
    small_store.load(new_key(), large)
    assert small_store.list(stranger) == [], "nobody had voted on it"
    assert len(small_store.get(ann, mine.folder.name).votes) == 1, "what was voted on stays"


def test_votes_survive_the_removal_of_a_large_voice_prompt(small_store, packed, tmp_path):
    """A single vote does not keep a large voice prompt for good, where sound is not enough."""
    voice = ("voice.wav", random_bytes(int(0.4 * small_store.limit)))
    large = with_plan(packed, tmp_path / "large.zip", {"voice_file": "voice.wav"}, voice)
    stranger = new_key()
    first = put(small_store, large, stranger, 0)
    first.vote(first.plan.trials[0].id, "A", HEARD)
    unused(first, 25)
    small_store.load(new_key(), large)
    assert not (first.folder / "voice.wav").exists()
    assert len(small_store.get(stranger, first.folder.name).votes) == 1


def test_a_voice_prompt_counts_before_it_is_copied(small_store, packed, tmp_path):
    key = new_key()
    plan = small_store.get(key, small_store.load(key, packed)).plan
    (tmp_path / "voice.wav").write_bytes(bytes(small_store.limit))
    with pytest.raises(InputError, match="no room for"):
        small_store.create(key, rebuild_plan(plan), VoicePrompt(audio=tmp_path / "voice.wav"))


def test_a_plan_too_large_for_the_machine_is_refused_before_anything_is_kept(small_store, packed):
    key = new_key()
    plan = small_store.get(key, small_store.load(key, packed)).plan
    long = make_plan("preference", plan.settings, plan.scripts, tuple(range(60)))
    with pytest.raises(InputError, match="no room for"):
        small_store.create(key, long)
    assert len(small_store.list(key)) == 1


def test_the_number_each_person_may_keep_is_bounded_too(small_store, packed, monkeypatch):
    monkeypatch.setattr(store, "MAX_COMPARISONS", 1)
    key = new_key()
    small_store.load(key, packed)
    with pytest.raises(InputError, match="Delete one first"):
        small_store.load(key, packed)


def test_everybodys_earlier_takes_have_one_bound(tmp_path, monkeypatch):
    def take(number):
        return silent_take(str(number))

    size = take(0).save(tmp_path / "take.wav").stat().st_size
    kept = History(tmp_path / "kept", limit=int(3.5 * size))
    ann, bob = new_key(), new_key()
    names = [kept.add(key, take(n)) for n, key in enumerate((ann, bob, ann, bob, ann))]
    assert [one.id for one in kept.list(ann)] == [names[4], names[2]]
    assert [one.id for one in kept.list(bob)] == [names[3]]
    assert kept.latest_removal(ann) < kept.list(ann)[-1].created, "its owner is told of it"
    monkeypatch.setattr(kept, "limit", 1)
    last = kept.add(bob, take(5))
    assert [one.id for one in kept.list(bob)] == [last], "the one just made stays"
    assert history.MAX_TAKES == 30


# One folder for everybody who opens the page


def test_a_folder_the_owner_names_is_heard_in_its_place(small_store, packed, synthesis, tmp_path):
    from dia_demo.services.listening.archive import import_zip

    import_zip(packed, tmp_path / "dir")
    shared = ComparisonStore(tmp_path / "kept", synthesis, shared=tmp_path / "dir")
    key = new_key()
    ((name, comparison),) = shared.list(key)
    assert shared.get(key, name) is comparison and comparison.folder == tmp_path / "dir"
    comparison.vote(comparison.plan.trials[0].id, "A", HEARD)
    (heard,) = Comparison.open(tmp_path / "dir").listeners()
    assert len(heard.votes) == 1
    with pytest.raises(InputError, match="delete it in the folder"):
        shared.delete(key, name)
    with pytest.raises(InputError, match="key"):
        shared.get("no key", name)
    with pytest.raises(InputError, match="plan.json"):
        ComparisonStore(tmp_path / "kept", synthesis, shared=tmp_path)


def test_settings_come_from_the_environment(tmp_path):
    found = Settings.from_env({"DIA_KEPT_GB": "7", "DIA_COMPARE": str(tmp_path)})
    assert found.kept_bytes == 7 * 10**9 and found.shared_comparison == tmp_path
    assert Settings.from_env({}).shared_comparison is None
    for wrong in ("0", "lots", "1.5"):
        with pytest.raises(InputError, match="DIA_KEPT_GB"):
            Settings.from_env({"DIA_KEPT_GB": wrong})


def test_an_older_plan_file_still_opens(small_store, packed):
    mine = put(small_store, packed, new_key(), 0)
    path = mine.folder / "plan.json"
    raw = json.loads(path.read_text())
    del raw["sound_removed"]
    path.write_text(json.dumps(raw))
    assert not Comparison.open(mine.folder).plan.sound_removed

"""What programs get whole: takes made together, a dialogue, a comparison of which nothing stays."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from dia_demo.engine.events import Failed
from dia_demo.errors import InputError, RunError
from dia_demo.services.dialogue.plan import make_plan
from dia_demo.services.listening.plan.plan import make_plan as make_comparison_plan
from dia_demo.services.listening.sides import PAIRS, seeds_of, settings_of
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import folder_of, passing_key
from dia_demo.services.programs.comparison import made_comparison
from dia_demo.services.programs.dialogue import make_dialogue
from dia_demo.services.programs.takes import STOPPED, make_take, make_takes
from dia_demo.text.pronunciations import NONE
from tests.helpers.comparisons import SCRIPTS
from tests.helpers.synthesis_requests import make_request

LONG = "[S1] Hello there, how are you? (pause 1) [S2] I am fine."


def never() -> threading.Event:
    return threading.Event()


def stopped() -> threading.Event:
    flag = threading.Event()
    flag.set()
    return flag


# Takes


def test_takes_come_in_the_order_of_their_requests(synthesis):
    requests = [make_request(synthesis, seed=seed) for seed in (9, 3, 5)]
    made = make_takes(synthesis, requests, never())
    assert [one.take.figures.seed for one in made.made] == [9, 3, 5]
    assert [one.row for one in made.made] == [0, 1, 2] and made.problems == ()
    assert all(one.verdict.verdict and one.take.words for one in made.made)


def test_a_take_that_fails_is_told_beside_the_others(synthesis, monkeypatch):
    requests = [make_request(synthesis, seed=seed) for seed in (1, 2)]
    events = [event for event in synthesis.stream_together(requests, never()) if event.row == 0]
    events.insert(1, Failed("The disk is full.", row=1))
    monkeypatch.setattr(synthesis, "stream_together", lambda *_, **__: iterate(events))
    made = make_takes(synthesis, requests, never())
    assert [one.row for one in made.made] == [0] and made.problems == ("The disk is full.",)


def iterate(events):
    yield from events


def test_without_any_take_the_reason_is_raised(synthesis, monkeypatch):
    def silent(*_):
        raise RunError("The take contains no speech.")

    monkeypatch.setattr(synthesis, "take", silent)
    with pytest.raises(RunError, match="no speech"):
        make_take(synthesis, make_request(synthesis), never())


def test_a_take_that_is_stopped_at_once_asks_to_send_it_again(synthesis):
    with pytest.raises(RunError) as refusal:
        make_take(synthesis, make_request(synthesis), stopped())
    assert str(refusal.value) == STOPPED


def test_the_report_begins_with_the_notes_on_the_start(synthesis):
    made = replace(make_take(synthesis, make_request(synthesis), never()), notes=("A note.",))
    assert made.report()["remarks"][0] == "A note."
    assert replace(made, notes=()).report() == made.take.report()


# Dialogues


def test_a_dialogue_reports_its_words_and_parts(synthesis, tmp_path):
    plan = make_plan(make_request(synthesis, LONG, max_tokens=400), retries=0)
    made = make_dialogue(synthesis, plan, tmp_path / "parts", never())
    report = made.report()
    assert [part["index"] for part in report["chunks"]] == [0, 1]
    assert report["words"] and report["audio_seconds"] > 1.5
    assert len(list((tmp_path / "parts").iterdir())) == 2


def test_a_stopped_dialogue_says_how_much_was_made(synthesis, tmp_path):
    plan = make_plan(make_request(synthesis, LONG, max_tokens=400), retries=0)
    with pytest.raises(RunError, match="stopped after 0 of 2 parts"):
        make_dialogue(synthesis, plan, tmp_path, stopped())


def test_a_part_that_cannot_be_made_ends_the_dialogue(synthesis, tmp_path, monkeypatch):
    plan = make_plan(make_request(synthesis, LONG, max_tokens=400), retries=0)
    failed = [Failed("The disk is full.")]
    monkeypatch.setattr(synthesis, "stream_together", lambda *_, **__: iterate(failed))
    with pytest.raises(RunError, match="could not be made: The disk is full"):
        make_dialogue(synthesis, plan, tmp_path, never())


# Comparisons


@pytest.fixture
def comparisons(synthesis, tmp_path) -> ComparisonStore:
    return ComparisonStore(tmp_path / "kept", synthesis)


def test_nothing_of_a_programs_comparison_stays(comparisons, two_settings):
    plan = make_comparison_plan("sighted", two_settings, SCRIPTS[:1], (5,))
    with made_comparison(comparisons, plan, None, never()) as (comparison, ended):
        assert ended.pairs_made == 1 and len(comparison.revealed_pairs()) == 1
        assert comparison.folder.is_relative_to(comparisons.home)
    assert list(comparisons.home.iterdir()) == [] and comparisons._open == {}


def test_a_stopped_comparison_leaves_nothing(comparisons, two_settings):
    plan = make_comparison_plan("preference", two_settings, SCRIPTS[:1], (5,))
    with pytest.raises(RunError, match="stopped after 0 of 1 pairs"):
        with made_comparison(comparisons, plan, None, stopped()):
            raise AssertionError("it was stopped")
    assert list(comparisons.home.iterdir()) == []


def test_a_programs_comparison_needs_room_under_the_quota(comparisons, two_settings):
    comparisons.limit = 10
    plan = make_comparison_plan("sighted", two_settings, SCRIPTS[:1], (5,))
    with pytest.raises(InputError, match="DIA_KEPT_GB"):
        with made_comparison(comparisons, plan, None, never()):
            raise AssertionError("there is no room")


def test_a_passing_key_opens_a_folder_that_goes(tmp_path):
    with passing_key(tmp_path) as key:
        folder_of(tmp_path, key).mkdir()
        (folder_of(tmp_path, key) / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


# Sides of a comparison


def test_sides_are_the_defaults_of_their_model_but_for_their_values(synthesis, base):
    runtime = base.runtime
    sides = [{"temperature": "0.7"}, {"temperature": 1.5, "normalise": True}]
    one, two = settings_of(sides, runtime, synthesis.models.__getitem__, False, NONE)
    assert (one.params.temperature, two.params.temperature) == (0.7, 1.5)
    assert (one.normalise, two.normalise) == (False, True) and one.runtime == runtime
    defaults = synthesis.models[runtime.model].config.defaults
    assert one.params.cfg_scale == defaults.cfg_scale
    everywhere = settings_of(sides, runtime, synthesis.models.__getitem__, True, NONE)
    assert all(setting.normalise for setting in everywhere)


def test_seeds_follow_the_first_and_make_enough_pairs():
    assert seeds_of(4, 2, 10) == (10, 11)
    assert len(seeds_of(None, 1, None)) == PAIRS
    for pairs in (0, 3, -2):
        with pytest.raises(
            InputError, match=f"a multiple of the number of scripts, 2, not {pairs}"
        ):
            seeds_of(pairs, 2, None)

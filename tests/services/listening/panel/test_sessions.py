"""What each rater hears: own order, balanced sides, hidden screens, nothing that reveals a side."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from dia_demo.services.listening.panel.designs import SPECS, Design
from dia_demo.services.listening.panel.plan import SessionRules
from dia_demo.services.listening.panel.sessions import (
    ANCHOR,
    OFFLINE_FIRST,
    ScreenPart,
    make_session,
    session_json,
)
from dia_demo.services.listening.panel.stimuli import needed_stimuli
from tests.services.listening.panel.helpers import panel_plan

SYSTEMS = {"preference": 3, "abx": 2, "cmos": 2, "mushra": 3, "bws": 4, "mos": 2}


def plan_of(design, **more):
    plan = panel_plan(design, systems=SYSTEMS[design], items=8, **more)
    names = sorted(needed_stimuli(plan))
    return replace(plan, clips={name: f"{n:024x}.wav" for n, name in enumerate(names)})


@pytest.fixture(params=list(Design))
def plan(request):
    return plan_of(request.param)


def parts_of(session, *parts):
    return [screen for screen in session if screen.part in parts]


def test_a_session_is_always_the_same_and_another_number_is_another_order(plan):
    assert make_session(plan, 3) == make_session(plan, 3)
    first, second = (
        [(one.item, one.systems) for one in parts_of(make_session(plan, number), ScreenPart.MAIN)]
        for number in (0, 1)
    )
    assert first != second


def test_screens_have_ids_of_their_own_and_the_plans_numbers(plan):
    session = make_session(plan, 5)
    assert len({screen.id for screen in session}) == len(session)
    counts = Counter(screen.part for screen in session)
    assert counts[ScreenPart.TRAINING] == 2 and counts[ScreenPart.MAIN] == plan.trials
    assert counts[ScreenPart.REPEAT] == 1
    assert counts[ScreenPart.NULL] == (1 if SPECS[plan.design].pairs else 0)
    catches = counts[ScreenPart.IDENTICAL] + counts[ScreenPart.ANCHORED]
    assert catches == -(-plan.trials // 10)
    assert all(screen.part is ScreenPart.TRAINING for screen in session[:2])


@pytest.mark.parametrize("design", ["preference", "abx", "cmos"])
@pytest.mark.parametrize("trials", [24, 8, 6])
def test_each_side_is_first_equally_often_for_each_rater_and_two_settings(design, trials):
    trials = min(trials, 24 if design == "preference" else 8)
    plan = plan_of(design, trials=trials)
    pairs = Counter()
    for number in range(4):
        firsts = Counter(
            one.systems for one in parts_of(make_session(plan, number), ScreenPart.MAIN)
        )
        for pair in plan.pairs:
            assert abs(firsts[pair] - firsts[pair[::-1]]) <= (firsts[pair] + firsts[pair[::-1]]) % 2
            pairs[pair] += firsts[pair] - firsts[pair[::-1]]
    assert not any(pairs.values()), "partners have opposite sides"


@pytest.mark.parametrize("design", ["mushra", "bws"])
def test_each_system_has_each_place_equally_often(design):
    plan = plan_of(design)
    places = Counter(
        (place, system)
        for one in parts_of(make_session(plan, 0), ScreenPart.MAIN)
        for place, system in enumerate(one.systems)
    )
    assert max(places.values()) - min(places.values()) <= 2


def test_part_of_the_trials_covers_all_of_them_equally_over_raters():
    plan = plan_of("preference", trials=6)
    heard = Counter(
        (one.item, frozenset(one.systems))
        for number in range(8)
        for one in parts_of(make_session(plan, number), ScreenPart.MAIN)
    )
    assert len(heard) == plan.distinct_trials and set(heard.values()) == {2}


def test_repeats_come_later_with_turned_sides(plan):
    session = make_session(plan, 2)
    (repeat,) = parts_of(session, ScreenPart.REPEAT)
    first = next(one for one in session if one.id == repeat.repeats)
    assert first.part is ScreenPart.MAIN and session.index(first) < session.index(repeat)
    assert (first.item, first.systems[::-1]) == (repeat.item, repeat.systems)


def test_mushra_hides_its_reference_among_the_clips():
    plan = plan_of("mushra", reference=1)
    for screen in parts_of(make_session(plan, 0), ScreenPart.MAIN):
        assert sorted(screen.systems) == [ANCHOR, 0, 1, 2]
        shown = plan.clips[screen.reference]
        assert shown not in [plan.clips[name] for name in screen.names]
    assert not parts_of(make_session(plan, 0), ScreenPart.ANCHORED, ScreenPart.IDENTICAL)


def test_two_clips_of_a_screen_are_never_the_same_file(plan):
    for screen in make_session(plan, 7):
        assert len(set(screen.names)) == len(screen.names)


def test_x_is_drawn_for_each_rater():
    plan = plan_of("abx")
    answers = {
        tuple(one.systems[one.x] for one in parts_of(make_session(plan, number), ScreenPart.MAIN))
        for number in range(6)
    }
    assert len(answers) > 3


def test_a_browser_receives_nothing_that_depends_on_the_systems(plan):
    """The mirror image: the same test with its systems exchanged, sound and names."""
    mirror = replace(plan, systems=plan.systems[::-1])
    for number in (0, 1, OFFLINE_FIRST):
        received = json.dumps(session_json(plan, number))
        assert received == json.dumps(session_json(mirror, number))
        assert not any(word in received for word in ("system", "catch", "repeat", 'null"', "main"))


def test_a_listener_reads_no_closing_tag(plan):
    """It is there for the model."""
    items = tuple(replace(item, text=f"[S1] {item.text} [S2] No. [S1]") for item in plan.items)
    shown = session_json(replace(plan, items=items), 0)["presentations"]
    assert all(screen["text"].endswith("[S2] No.") for screen in shown)


def test_another_key_gives_other_sides():
    plan = plan_of("cmos")
    other = replace(plan, key="f" * 64)
    assert make_session(plan, 0) != make_session(other, 0)


def test_without_extras_a_session_has_its_trials_alone():
    plan = plan_of("cmos", session=SessionRules(0, 0.0, 0, 0))
    assert {screen.part for screen in make_session(plan, 0)} == {ScreenPart.MAIN}

"""Plans: what is paired with what, how sides are drawn, what is refused, what it can show."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from dia_demo.errors import InputError
from dia_demo.files import ROOT
from dia_demo.services.listening.plan.plan import draw_seeds, make_plan, split_scripts
from dia_demo.services.listening.plan.setting import differences
from dia_demo.services.listening.verdict.claims import (
    abx_warning,
    holds_voices,
    rates_warning,
    voices_warning,
    what_it_can_show,
)
from dia_demo.text.checks.script_check import check_script
from tests.helpers.comparisons import SCRIPTS


def test_a_plan_is_every_script_with_every_seed(two_settings):
    plan = make_plan("preference", two_settings, SCRIPTS, (1, 2, 3))
    assert len(plan.trials) == 6 and len(plan.slots) == 12
    assert {(trial.script, trial.seed) for trial in plan.trials} == {
        (script, seed) for script in (0, 1) for seed in (1, 2, 3)
    }


def test_a_round_pairs_everyone_with_everyone(base):
    settings = [base.change({"temperature": 0.5 + index / 4}) for index in range(6)]
    plan = make_plan("preference", settings, SCRIPTS[:1], (1, 2))
    assert len(plan.trials) == 30
    assert set(Counter(trial.settings for trial in plan.trials).values()) == {2}


def test_each_side_comes_first_in_half_of_the_trials(two_settings):
    """Free draws put one side first in 8 of 10 trials of every tenth test."""
    orders = set()
    for _ in range(30):
        plan = make_plan("preference", two_settings, SCRIPTS[:1], tuple(range(10)))
        order = tuple(plan.secrets[trial.id].flip for trial in plan.trials)
        assert sum(order) == 5
        orders.add(order)
    assert len(orders) > 20


def test_an_odd_trial_goes_to_either_side(two_settings):
    plans = [make_plan("preference", two_settings, SCRIPTS[:1], (1, 2, 3)) for _ in range(60)]
    flipped = [sum(secret.flip for secret in plan.secrets.values()) for plan in plans]
    assert set(flipped) == {1, 2}


def test_each_two_settings_of_a_round_are_balanced(base):
    settings = [base.change({"temperature": 0.5 + index / 4}) for index in range(3)]
    plan = make_plan("preference", settings, SCRIPTS, (1, 2))
    flips = Counter(trial.settings for trial in plan.trials if plan.secrets[trial.id].flip)
    assert flips == {(0, 1): 2, (0, 2): 2, (1, 2): 2}


def test_a_preference_test_refuses_identical_sides(base):
    with pytest.raises(InputError, match="identical.*seed shift.*ABX"):
        make_plan("preference", [base, base], SCRIPTS, (1,))
    make_plan("abx", [base, base], SCRIPTS, (1,))
    make_plan("preference", [base, base.change({"seed_shift": 1})], SCRIPTS, (1,))


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(kind="other"), "one of preference, abx, sighted"),
        (dict(scripts=()), "script is empty"),
        (dict(scripts=("  ",)), "script is empty"),
        (dict(scripts=SCRIPTS[:1] * 2), "same script is listed twice"),
        (dict(seeds=()), "seed"),
        (dict(seeds=(1, 1)), "none twice"),
        (dict(seeds=(-1,)), "seed must be"),
        (dict(seeds=tuple(range(201))), "200 allowed"),
        (dict(count=1), "from 2 to 6"),
        (dict(count=7), "from 2 to 6"),
        (dict(kind="abx", count=3), "from 2 to 2"),
    ],
)
def test_impossible_plans_are_refused(base, change, message):
    asked = dict(kind="preference", scripts=SCRIPTS, seeds=(1, 2), count=2) | change
    settings = [base.change({"top_k": 9 + index}) for index in range(asked.pop("count"))]
    with pytest.raises(InputError, match=message):
        make_plan(settings=settings, **asked)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"warmth": 1}, "No setting is called 'warmth'"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"top_k": 2.5}, "top_k must be a whole number"),
        ({"precision": "int7"}, "precision must be one of"),
        ({"model": 3}, "model cannot be 3"),
    ],
)
def test_settings_say_what_is_wrong(base, change, message):
    with pytest.raises(InputError, match=message):
        base.change(change)


def test_what_differs_is_named(base):
    other = base.change({"cfg_scale": 2, "precision": "bfloat16"})
    found = differences([base, other])
    assert found == {"cfg_scale": (3.0, 2.0), "precision": ("auto", "bfloat16")}


def test_what_a_number_of_pairs_can_show():
    assert "ahead on all 6 scripts" in what_it_can_show("preference", 6, 1)
    assert "9 of 10 scripts" in what_it_can_show("preference", 10, 1)
    assert "Use 6 scripts or more" in what_it_can_show("preference", 5, 20)
    few = what_it_can_show("preference", 10, 2, ties=0.0)
    assert "9 of 10 scripts by equal margins" in few and "which show more than more seeds" in few
    assert "fewer than 6 scripts have a majority 41%" in few and "or an odd number of seeds" in few
    odd = what_it_can_show("preference", 10, 3, ties=0.0)
    assert "majority" not in odd and "“no difference”" not in odd
    assert "20% of the answers are “no difference”" in what_it_can_show("preference", 12, 1)
    three = what_it_can_show("preference", 12, 1, settings=3)
    assert "one setting really is better" in three and "a test of 36 pairs notices it" in three
    assert "9 right answers" in what_it_can_show("abx", 1, 10)
    assert "can show nothing" in what_it_can_show("abx", 2, 2)
    assert "proves nothing" in what_it_can_show("sighted", 40, 1)


@pytest.mark.parametrize(
    "common, side, warned",
    [
        ({}, {"temperature": 0.5}, True),
        ({}, {"seed_shift": 1}, True),
        ({}, {"precision": "int8"}, True),
        ({"temperature": 0}, {"temperature": 0.5}, True),
        ({}, {"speed": 1.2}, False),
        ({"temperature": 0}, {"precision": "int8", "cfg_scale": 2}, False),
        ({}, {}, False),
    ],
)
def test_abx_is_warned_of_where_takes_differ_by_chance(base, common, side, warned):
    first = base.change(common)
    settings = [first, first.change(side)]
    assert bool(abx_warning("abx", settings)) == warned
    assert abx_warning("preference", settings) is None


def test_sample_rates_that_differ_are_warned_of(base):
    settings = [base, base.change({"model": "other"})]
    models = {one.runtime.model: SimpleNamespace(sample_rate=16_000) for one in settings}
    assert rates_warning(settings, models) is None
    models["other"].sample_rate = 24_000
    assert "(16,000 and 24,000 Hz)" in rates_warning(settings, models)


@pytest.mark.parametrize(
    "taught, side, why",
    [
        (False, {"temperature": 0.5}, "draws new voices with every setting"),
        (False, {"precision": "int8"}, "draws new voices with every setting"),
        (False, {"speed": 1.2}, None),
        (False, {"max_tokens": 100}, None),
        (True, {"temperature": 0.5}, None),
        (True, {"precision": "int8", "cfg_scale": 2}, None),
        (True, {"seed_shift": 1}, "the seed chooses the voices"),
        (True, {"model": "other"}, "each model has voices of its own"),
    ],
)
def test_different_speakers_are_warned_of(base, taught, side, why):
    """taught: the model has voices by name, among which the seed alone chooses."""
    base = base.change({"temperature": 0.1})
    settings = [base, base.change(side)]
    config = SimpleNamespace(voices=object() if taught else None)
    models = {one.runtime.model: SimpleNamespace(config=config, title="It") for one in settings}
    warning = voices_warning(settings, models)
    assert holds_voices(settings, models) == (warning is None) == (why is None)
    assert why is None or (why in warning and "A voice prompt keeps" in warning)


@pytest.mark.parametrize(
    "common, side, warned",
    [
        ({"temperature": 0.1}, {"temperature": 1.0}, True),
        ({"temperature": 0.1, "voice_s1": "Anna"}, {"temperature": 1.0}, True),
        ({"temperature": 1.0}, {"precision": "int8"}, True),
        ({"temperature": 0.1}, {"temperature": 0.3}, False),
        ({"temperature": 1.0}, {"speed": 1.2}, False),
    ],
)
def test_voices_by_name_that_a_high_temperature_does_not_keep_are_warned_of(
    base, common, side, warned
):
    first = base.change(common)
    settings = [first, first.change(side)]
    config = SimpleNamespace(voices=object())
    models = {first.runtime.model: SimpleNamespace(config=config, title="Nano")}
    warning = voices_warning(settings, models)
    assert holds_voices(settings, models) == (warning is None) == (not warned)
    assert not warned or "Nano now and then says a turn in another" in warning


def test_scripts_are_split_at_dashes():
    assert split_scripts("[S1] One.\n---\n[S1] Two.\n -----\n\n") == ("[S1] One.", "[S1] Two.")
    assert split_scripts("[S1] Well - yes -- no.") == ("[S1] Well - yes -- no.",)


def test_drawn_seeds_are_distinct():
    assert draw_seeds(3, 7) == (7, 8, 9)
    assert len(set(draw_seeds(100))) == 100


def test_the_scripts_that_the_page_offers_can_show_a_preference():
    scripts = split_scripts((ROOT / "assets" / "scripts.txt").read_text(encoding="utf-8"))
    assert len(scripts) == len(set(scripts)) == 12
    for script in scripts:
        assert {one.code for one in check_script(script).findings} <= {"too_short"}, script
        assert 4 < check_script(script).expected_seconds < 8
    assert "ahead on 10 of 12 scripts" in what_it_can_show("preference", 12, 1)

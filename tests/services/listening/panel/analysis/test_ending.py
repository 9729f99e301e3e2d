"""From answers to a verdict: directions, exclusions, what stays closed until when."""

import numpy as np
import pytest

from dia_demo.errors import InputError
from dia_demo.services.listening.panel.analysis.ending import (
    MOS_NOTE,
    panel_result,
    reveal_panel,
)
from dia_demo.services.listening.panel.analysis.result import GoalVerdict
from dia_demo.services.listening.panel.analysis.table import COLUMNS, long_table
from dia_demo.services.listening.panel.panel import CLOSED
from dia_demo.services.listening.panel.plan import (
    ExclusionRules,
    Goal,
    GoalKind,
    LookKind,
    Looks,
    SessionRules,
)
from dia_demo.services.listening.panel.sessions import ScreenPart
from tests.services.listening.panel.helpers import (
    honest_answer,
    new_id,
    soundless_panel,
    take_test,
)

DESIGNS = [
    ("preference", 2, None),
    ("preference", 3, None),
    ("abx", 2, None),
    ("cmos", 2, None),
    ("mushra", 2, None),
    ("mushra", 3, 0),
    ("bws", 3, None),
    ("mos", 2, None),
]


def panel_of(folder, design, systems=2, raters=4, **more):
    more |= {"systems": systems, "items": 6, "raters": raters}
    return soundless_panel(folder / "test", design, **more)


@pytest.mark.parametrize(("design", "systems", "reference"), DESIGNS)
def test_the_better_system_is_found_in_every_design(tmp_path, design, systems, reference):
    panel = panel_of(tmp_path, design, systems, raters=6, reference=reference)
    for seed in range(6):
        take_test(panel, 3.0, seed)
    reveal_panel(panel)
    result = panel_result(panel)
    assert result.verdict is GoalVerdict.PASSED, result.sentence
    assert not [row.excluded for row in result.raters if row.excluded]
    main = result.contrasts[0]
    assert (main.first, main.second) == ("system 0", "system 1") and main.estimate.mean > 0
    assert main.estimate.low < main.estimate.mean <= main.estimate.high and main.p < 0.05
    better = "can be told apart" if design == "abx" else "System 0 is better than system 1"
    assert better in result.sentence
    assert len(result.scripts) == 6 and result.methods
    assert len(result.contrasts) == systems * (systems - 1) / 2
    if result.systems:
        means = [row.estimate.mean for row in result.systems]
        assert int(np.argmax(means)) == 0
    if design == "mos":
        assert MOS_NOTE in result.notes


def test_the_worse_system_is_named_whichever_comes_first(tmp_path):
    panel = panel_of(tmp_path, "cmos", goal=Goal(first=1, second=0))
    for seed in range(4):
        take_test(panel, 2.0, seed)
    reveal_panel(panel)
    result = panel_result(panel)
    assert result.contrasts[0].estimate.mean < 0
    assert result.sentence.startswith("System 0 is better than system 1")


@pytest.mark.parametrize(
    ("kind", "lead", "margin", "verdict"),
    [
        (GoalKind.NONINFERIORITY, 0.0, 1.0, GoalVerdict.PASSED),
        (GoalKind.NONINFERIORITY, 2.0, 1.0, GoalVerdict.PASSED),
        (GoalKind.NONINFERIORITY, -2.0, 1.0, GoalVerdict.FAILED),
        (GoalKind.EQUIVALENCE, 0.0, 1.0, GoalVerdict.PASSED),
        (GoalKind.EQUIVALENCE, 2.0, 1.0, GoalVerdict.FAILED),
    ],
)
def test_margins_decide_as_they_were_planned(tmp_path, kind, lead, margin, verdict):
    panel = panel_of(tmp_path, "cmos", goal=Goal(kind, margin), raters=6)
    for seed in range(6):
        take_test(panel, lead, seed)
    reveal_panel(panel)
    result = panel_result(panel)
    assert result.verdict is verdict, result.sentence
    assert ("It was not shown" in result.sentence) == (verdict is GoalVerdict.FAILED)


def test_nothing_shown_is_not_called_equal(tmp_path):
    panel = panel_of(tmp_path, "cmos")
    for seed in range(4):
        take_test(panel, 0.0, seed)
    reveal_panel(panel)
    result = panel_result(panel)
    assert result.verdict is GoalVerdict.FAILED
    assert "does not show that they are equal" in result.sentence


def test_the_result_stays_closed_until_the_planned_number(tmp_path):
    panel = panel_of(tmp_path, "preference", raters=2)
    take_test(panel, 3.0, 0)
    result = panel_result(panel)
    assert result.verdict is GoalVerdict.OPEN and not result.contrasts
    assert all(row.lead is None for row in result.raters)
    with pytest.raises(InputError, match="stays closed until 2 listeners count"):
        reveal_panel(panel)
    with pytest.raises(InputError, match="contains the sides"):
        long_table(panel)
    reveal_panel(panel, early=True)
    assert "ended after 1 of 2 planned listeners" in panel_result(panel).notes[0]


def test_after_the_reveal_nothing_changes_any_more(tmp_path):
    panel = panel_of(tmp_path, "preference", raters=1)
    rater = take_test(panel, 3.0, 0)
    reveal_panel(panel)
    with pytest.raises(InputError, match=CLOSED):
        panel.start_rater(new_id())
    with pytest.raises(InputError, match="only before the reveal"):
        panel.exclude(rater, "no")
    with pytest.raises(InputError, match="cannot be opened again"):
        panel.reopen()


def test_who_does_not_listen_does_not_count(tmp_path):
    panel = panel_of(tmp_path, "cmos", raters=1, rules=ExclusionRules(catch=0.5))
    take_test(panel, 1.0, 0)
    careless = take_test(panel, 1.0, 1, lambda *_: {"score": 3})
    rows = panel_result(panel).raters
    assert [bool(row.excluded) for row in rows] in ([False, True], [False, False])
    failed = rows[1].checks.catch - rows[1].checks.catch_passed
    assert rows[1].rater.id == careless and bool(rows[1].excluded) == (failed == 1)


def test_repeats_and_headphones_and_half_a_session_exclude_by_the_plan(tmp_path):
    rules = ExclusionRules(repeats=0.5, headphones=True)
    panel = panel_of(
        tmp_path, "cmos", rules=rules, session=SessionRules(headphone_check=True, catch_share=0)
    )
    fickle = take_test(panel, 0.0, 1, lambda _, screen, *more: {"score": 3})
    steady = take_test(panel, 3.0, 2)
    panel.set_headphones(steady, True)
    started = panel.start_rater(new_id()).id
    reasons = {row.rater.id: row.excluded for row in panel_result(panel).raters}
    assert reasons[steady] == ""
    assert reasons[fickle] == "was consistent in 0 of 1 repeats"
    assert reasons[started].startswith("answered 0 of")
    panel.exclude(steady, "knows the answers")
    assert panel_result(panel).raters[1].excluded == "knows the answers"


def test_a_mushra_rater_who_does_not_hear_the_reference_is_left_out(tmp_path):
    panel = panel_of(tmp_path, "mushra", reference=1)
    deaf = take_test(panel, 0.0, 1, lambda _, screen, *more: {"scores": [70] * len(screen.systems)})
    (row,) = panel_result(panel).raters
    assert row.rater.id == deaf and "hidden reference under 90" in row.excluded


def test_who_answered_nothing_never_counts(tmp_path):
    panel = panel_of(tmp_path, "cmos", raters=1, rules=ExclusionRules(complete=False))
    panel.start_rater(new_id())
    assert panel_result(panel).counted == 0


def test_planned_looks_allow_an_early_end_and_say_so(tmp_path):
    panel = panel_of(tmp_path, "cmos", raters=8, looks=Looks(LookKind.OBRIEN_FLEMING, 2))
    for seed in range(3):
        take_test(panel, 3.0, seed)
    with pytest.raises(InputError, match="stays closed"):
        reveal_panel(panel)
    assert "next planned look is after 4" in panel_result(panel).sentence
    take_test(panel, 3.0, 3)
    reveal_panel(panel)
    result = panel_result(panel)
    assert result.verdict is GoalVerdict.PASSED and "planned look" in " ".join(result.notes)


def test_an_e_value_may_be_seen_after_every_rater(tmp_path):
    panel = panel_of(tmp_path, "cmos", raters=30, looks=Looks(LookKind.E_VALUE))
    seen = []
    for seed in range(9):
        take_test(panel, 3.0, seed)
        seen.append(panel_result(panel).e_value)
        if seen[-1] >= 20:
            break
    assert seen[0] < 20 <= seen[-1]
    reveal_panel(panel)
    assert panel_result(panel).verdict is GoalVerdict.PASSED


@pytest.mark.parametrize(("design", "systems", "reference"), DESIGNS)
def test_the_long_table_has_a_row_for_each_answer_with_its_sides(
    tmp_path, design, systems, reference
):
    panel = panel_of(tmp_path, design, systems, reference=reference, raters=1)
    rater = take_test(panel, 2.0, 1)
    reveal_panel(panel)
    rows = long_table(panel)
    assert len(rows) == len(panel.votes()[rater])
    assert all(tuple(row) == COLUMNS for row in rows)
    assert {row["part"] for row in rows} >= {"main", "repeat"}
    for row in rows:
        if design == "preference" and row["part"] == "main" and "system 0" in row["systems"]:
            assert row["chosen"] == "system 0"


def test_null_pairs_show_a_bias_for_a_side(tmp_path):
    panel = panel_of(tmp_path, "preference", raters=1, rules=ExclusionRules(catch=1.0))

    def first_side(panel, screen, lead, noise):
        null = screen.part is ScreenPart.NULL
        return {"better": 1, "strength": 1} if null else honest_answer(panel, screen, lead, noise)

    take_test(panel, 2.0, 1, first_side)
    reveal_panel(panel)
    assert panel_result(panel).identical == (("clip 1", 1),)

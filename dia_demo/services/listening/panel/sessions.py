"""One rater's session: which clips are on which screen, in which order, drawn with the test's key.

A session depends on its number alone. Sessions 2k and 2k + 1 have the same trials with opposite
sides, and an order of their own. What a browser receives (`session_json`) has no word about sides,
nor about which screens are catch trials, repeats or null pairs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from dia_demo.services.listening.panel.designs import SPECS, Design
from dia_demo.services.listening.panel.plan import PanelPlan
from dia_demo.services.listening.panel.stimuli import (
    anchor_clip,
    anchor_copy,
    catch_items,
    copy_clip,
    is_identical_catch,
    main_clip,
    null_items,
    third_clip,
    training_items,
)

FORMAT, VERSION = "dia-listening-session", 1
# The system behind a clip that is an anchor.
ANCHOR = -1
# Sessions for results files, made ahead: a browser draws one.
OFFLINE_FIRST, OFFLINE_SESSIONS = 100_000, 64


class ScreenPart(StrEnum):
    """What a screen is for. Browsers are told of training alone."""

    TRAINING = "training"
    MAIN = "main"
    IDENTICAL = "identical"
    ANCHORED = "anchored"
    REPEAT = "repeat"
    NULL = "null"


@dataclass(frozen=True)
class Presentation:
    """One screen. systems: behind each clip that is judged, in order; ANCHOR for an anchor. names:
    of the stimuli, in the order of the screen. reference: the open reference of MUSHRA. x: which
    of the two X is (0 or 1). repeats: the id of the screen that it repeats."""

    id: str
    part: ScreenPart
    item: int
    systems: tuple[int, ...]
    names: tuple[str, ...]
    reference: str | None = None
    x: int | None = None
    repeats: str = ""


def make_session(plan: PanelPlan, number: int) -> tuple[Presentation, ...]:
    """The screens of a session, training first."""
    main = [
        _screen(plan, number, trial, place) for place, trial in enumerate(_trials(plan, number))
    ]
    placed = [(place, (place + 0.5) / len(main), one) for place, one in enumerate(main)]
    timed = [(at, one) for _, at, one in placed]
    for kind, screens in (("catch", _catches(plan, number)), ("null", _nulls(plan, number))):
        for place, one in enumerate(screens):
            at = (place + 0.1 + 0.8 * _uniform(plan, number, kind, place)) / len(screens)
            timed.append((at, one))
    timed += _repeats(plan, number, main)
    timed.sort(key=lambda entry: entry[0])
    screens = [*_training(plan, number), *(one for _, one in timed)]
    return _with_ids(plan, number, screens)


def session_json(plan: PanelPlan, number: int) -> dict:
    """What a browser receives of a session."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "test": plan.id,
        "session": number,
        "design": plan.design.value,
        "title": plan.title,
        "consent": plan.invitation.consent,
        "attributes": list(plan.attributes),
        "break_every": plan.session.break_every,
        "headphone_check": plan.session.headphone_check,
        "presentations": [
            {
                "id": one.id,
                "part": "training" if one.part is ScreenPart.TRAINING else "test",
                "text": _CLOSING_TAG.sub("", plan.items[one.item].text),
                "clips": [plan.clips[name] for name in one.names],
                "reference": plan.clips[one.reference] if one.reference else None,
            }
            for one in make_session(plan, number)
        ],
    }


# It ends a script for the model, and says nothing to a listener.
_CLOSING_TAG = re.compile(r"\s*\[S[12]\]\s*\Z")
# A trial before its sides are drawn: its item and the systems on its screen.
_Trial = tuple[int, tuple[int, ...]]


def _trials(plan: PanelPlan, number: int) -> list[_Trial]:
    """The main trials of a session in its order, each with the systems in the order of clips."""
    every = _all_trials(plan)
    first = (number // 2) * plan.trials % len(every)
    chosen = (every + every)[first : first + plan.trials]
    chosen = _flip(plan, number, chosen) if SPECS[plan.design].pairs else chosen
    chosen.sort(key=lambda trial: plan.draw("order", number, trial[0], *sorted(trial[1])))
    return chosen if SPECS[plan.design].clips else _rotate(plan, number, chosen)


def _all_trials(plan: PanelPlan) -> list[_Trial]:
    """All trials in an order in which any run of them is balanced. For MOS that is by item: a
    rater hears the same sentences from every system."""
    items = range(len(plan.items))
    systems = range(len(plan.systems))
    if plan.design is Design.MOS:
        order = sorted(items, key=lambda item: plan.draw("items", item))
        return [(item, (system,)) for item in order for system in systems]
    if not SPECS[plan.design].pairs:
        order = sorted(items, key=lambda item: plan.draw("items", item))
        return [(item, tuple(systems)) for item in order]
    columns = [
        [(int(item), pair) for _, item in sorted((plan.draw(*pair, item), item) for item in items)]
        for pair in plan.pairs
    ]
    return [trial for row in zip(*columns, strict=True) for trial in row]


def _flip(plan: PanelPlan, number: int, trials: Sequence[_Trial]) -> list[_Trial]:
    """Each side of every two systems first equally often, opposite in the session's partner."""
    flipped = []
    for pair in plan.pairs:
        group = [trial for trial in trials if trial[1] == pair]
        group.sort(key=lambda trial: plan.draw("side", number // 2, *trial[1], trial[0]))
        for place, (item, systems) in enumerate(group):
            turned = (place + number) % 2 == 1
            flipped.append((item, systems[::-1] if turned else systems))
    return flipped


def _rotate(plan: PanelPlan, number: int, trials: Sequence[_Trial]) -> list[_Trial]:
    """Each system in each place equally often: a random order of them, turned by one at a time."""
    count = len(plan.systems) + (plan.reference is not None)
    rotated = []
    for place, (item, systems) in enumerate(trials):
        every = (*systems, ANCHOR) if plan.reference is not None else systems
        block = place // count
        order = sorted(every, key=lambda system: plan.draw("places", number, block, system))
        turn = place % count
        rotated.append((item, (*order[turn:], *order[:turn])))
    return rotated


def _screen(plan: PanelPlan, number: int, trial: _Trial, place: int) -> Presentation:
    item, systems = trial
    reference = plan.reference
    names = tuple(
        anchor_clip(reference if reference is not None else 0, item)
        if system == ANCHOR
        else main_clip(system, item)
        for system in systems
    )
    x = None
    if plan.design is Design.ABX:
        # Drawn independently: the last answers could be inferred from balanced draws.
        x = _bit(plan, number, "x", place)
        names = (*names, copy_clip(systems[x], item))
    open_reference = None if reference is None else copy_clip(reference, item)
    return Presentation("", ScreenPart.MAIN, item, systems, names, open_reference, x)


def _catches(plan: PanelPlan, number: int) -> list[Presentation]:
    return [
        _identical(plan, number, place, ScreenPart.IDENTICAL, f"catch {count}")
        if is_identical_catch(plan, count)
        else _anchor_screen(plan, number, place, f"catch {count}")
        for count, place in enumerate(catch_items(plan))
    ]


def _nulls(plan: PanelPlan, number: int) -> list[Presentation]:
    return [
        _identical(plan, number, place, ScreenPart.NULL, f"null {count}")
        for count, place in enumerate(null_items(plan))
    ]


def _identical(
    plan: PanelPlan, number: int, place: tuple[int, int], part: ScreenPart, label: str
) -> Presentation:
    """The same sound on both sides."""
    system, item = place
    names: tuple[str, ...] = (main_clip(*place), copy_clip(*place))
    names = names[::-1] if _bit(plan, number, label) else names
    x = None
    if plan.design is Design.ABX:
        x = _bit(plan, number, label, "x")
        names = (*names, third_clip(*place))
    return Presentation("", part, item, (system, system), names, None, x)


def _anchor_screen(
    plan: PanelPlan, number: int, place: tuple[int, int], label: str
) -> Presentation:
    """A screen on which one clip is a low-passed anchor, which every listener should notice."""
    system, item = place
    if plan.design is Design.MOS:
        return Presentation("", ScreenPart.ANCHORED, item, (ANCHOR,), (anchor_clip(*place),))
    if SPECS[plan.design].pairs:
        systems: tuple[int, ...] = (system, ANCHOR)
        systems = systems[::-1] if _bit(plan, number, label) else systems
    else:
        every = [ANCHOR if one == system else one for one in range(len(plan.systems))]
        systems = tuple(sorted(every, key=lambda one: plan.draw(label, number, one)))
    names = tuple(anchor_clip(*place) if one == ANCHOR else main_clip(one, item) for one in systems)
    x = None
    if plan.design is Design.ABX:
        x = _bit(plan, number, label, "x")
        is_anchor = systems[x] == ANCHOR
        names = (*names, anchor_copy(*place) if is_anchor else copy_clip(*place))
    return Presentation("", ScreenPart.ANCHORED, item, systems, names, None, x)


def _training(plan: PanelPlan, number: int) -> list[Presentation]:
    """Screens as in the test, of items drawn for all raters."""
    systems: tuple[int, ...] = tuple(range(len(plan.systems)))
    screens = []
    for count, (system, item) in enumerate(training_items(plan)):
        if plan.design is Design.MOS:
            shown: tuple[int, ...] = (system,)
        elif SPECS[plan.design].pairs:
            shown = plan.pairs[count % len(plan.pairs)]
            shown = shown[::-1] if _bit(plan, number, "training", count) else shown
        else:
            shown = (*systems, ANCHOR) if plan.reference is not None else systems
            shown = tuple(sorted(shown, key=lambda one: plan.draw("train", number, count, one)))
        screens.append(
            replace(_screen(plan, number, (item, shown), -1 - count), part=ScreenPart.TRAINING)
        )
    return screens


def _repeats(
    plan: PanelPlan, number: int, main: Sequence[Presentation]
) -> list[tuple[float, Presentation]]:
    """Trials of the first half again in the last third, with the sides turned."""
    half = range((len(main) + 1) // 2)
    chosen = sorted(half, key=lambda place: plan.draw("repeat", number, place))
    repeats = []
    for count, place in enumerate(chosen[: plan.session.repeats]):
        one = main[place]
        turned = _screen(plan, number, (one.item, one.systems[::-1]), 1000 + count)
        at = 0.67 + 0.33 * _uniform(plan, number, "repeat at", count)
        repeats.append((at, replace(turned, part=ScreenPart.REPEAT, repeats=str(place))))
    return repeats


def _with_ids(
    plan: PanelPlan, number: int, screens: Sequence[Presentation]
) -> tuple[Presentation, ...]:
    """With an id for each screen; those of repeats refer to main screens by theirs."""
    named = [
        replace(one, id=plan.draw("presentation", number, place)[:24])
        for place, one in enumerate(screens)
    ]
    firsts = {
        (one.item, frozenset(one.systems)): one.id for one in named if one.part is ScreenPart.MAIN
    }
    return tuple(
        replace(one, repeats=firsts[one.item, frozenset(one.systems)]) if one.repeats else one
        for one in named
    )


def _uniform(plan: PanelPlan, *what: object) -> float:
    return int(plan.draw(*what)[:12], 16) / 16**12


def _bit(plan: PanelPlan, *what: object) -> int:
    return int(plan.draw(*what)[:1], 16) % 2

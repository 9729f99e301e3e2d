"""Panel tests of short synthetic clips, and raters who answer them."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

import numpy as np

from dia_demo.services.listening.panel.designs import Design
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.plan import Item, PanelPlan, make_panel_plan
from dia_demo.services.listening.panel.plan_file import write_panel_plan
from dia_demo.services.listening.panel.sessions import ANCHOR, Presentation, ScreenPart
from dia_demo.services.listening.panel.stimuli import Source, needed_stimuli
from dia_demo.services.listening.panel.votes import append_panel_votes, make_panel_vote

RATE = 16_000
# What sides and orders are drawn with, so that a test has the same answers every time.
KEY = "5a" * 32


def synthetic_source(systems: int = 2, items: int = 4, seconds: float = 0.6) -> Source:
    """Noise that differs by system and item."""
    names = tuple(f"system {number}" for number in range(systems))
    texts = tuple(Item(f"Sentence {number}.", number, f"s{number}") for number in range(items))

    def wave(system: int, item: int) -> tuple[np.ndarray, int]:
        random = np.random.default_rng((system, item))
        noise = random.standard_normal(round(RATE * seconds)) * (0.05 + 0.02 * system)
        return noise.astype(np.float32), RATE

    return Source(names, texts, wave)


def panel_plan(design: str = "preference", systems: int = 2, items: int = 4, **more) -> PanelPlan:
    """A plan of `synthetic_source`."""
    source = synthetic_source(systems, items)
    return make_panel_plan(
        design, source.systems, source.items, raters=more.pop("raters", 2), **more
    )


def make_panel(folder: Path, design: str = "preference", **more) -> Panel:
    """A panel test with its clips in `folder`."""
    plan = panel_plan(design, **more)
    return Panel.create(folder, plan, synthetic_source(len(plan.systems), len(plan.items)))


def new_id() -> str:
    """The id of a rater or an answer, as a browser makes it."""
    return secrets.token_hex(16)


VALID = {
    Design.PREFERENCE: {"better": 1, "strength": 2},
    Design.ABX: {"x": 2},
    Design.CMOS: {"score": -2},
    Design.BWS: {"best": 1, "worst": 3},
    Design.MOS: {"score": 4},
}


def answer_to(shown: dict, design: str, value: dict | None = None) -> dict:
    """A valid answer to a screen of a session as a browser receives it."""
    clips = len(shown["clips"])
    value = value or VALID.get(Design(design)) or {"scores": [50 + n for n in range(clips)]}
    return {
        "id": new_id(),
        "presentation": shown["id"],
        "answer": value,
        "heard": [shown["hear_seconds"]] * clips,
        "started": "2026-01-31T12:00:00Z",
        "time": "2026-01-31T12:00:20Z",
    }


def honest_answer(
    panel: Panel,
    screen: Presentation,
    lead: float,
    noise: np.random.Generator,
    deviation: float = 0.5,
):
    """What a listener answers for whom system 0 is better than the others by `lead` and an anchor
    much worse than all; what is heard varies by `deviation`."""
    utility = np.array(
        [-9.0 if system == ANCHOR else lead * (system == 0) for system in screen.systems]
    )
    heard = utility + deviation * noise.standard_normal(len(utility))
    if screen.part in (ScreenPart.IDENTICAL, ScreenPart.NULL):
        heard = np.zeros(len(utility))
    match panel.plan.design:
        case Design.PREFERENCE:
            tie = heard[0] == heard[1]
            return {"better": 0 if tie else int(heard.argmax()) + 1, "strength": 2}
        case Design.CMOS:
            return {"score": int(np.clip(np.rint(heard[1] - heard[0]), -3, 3))}
        case Design.ABX:
            hears = abs(heard[0] - heard[1]) > 0.5
            assert screen.x is not None, "ABX"
            return {"x": (screen.x if hears else int(noise.integers(2))) + 1}
        case Design.MUSHRA:
            scores = np.clip(np.rint(60 + 10 * heard), 0, 100).astype(int)
            if panel.plan.reference is not None:
                scores[screen.systems.index(panel.plan.reference)] = 100
            return {"scores": scores.tolist()}
        case Design.BWS:
            return {"best": int(heard.argmax()) + 1, "worst": int(heard.argmin()) + 1}
        case Design.MOS:
            return {"score": int(np.clip(np.rint(3 + heard[0]), 1, 5))}


def soundless_panel(folder: Path, design: str = "preference", **more) -> Panel:
    """A panel test without its clips, for what needs answers alone."""
    plan = replace(panel_plan(design, **more), key=KEY)
    names = sorted(needed_stimuli(plan))
    plan = replace(plan, clips={name: f"{n:024x}.wav" for n, name in enumerate(names)})
    folder.mkdir()
    write_panel_plan(folder, plan)
    return Panel.open(folder)


def take_test(panel: Panel, lead: float, seed: int, answers=honest_answer) -> str:
    """A new rater takes the whole test; returns their id."""
    noise = np.random.default_rng(seed)
    rater = panel.start_rater(new_id())
    screens = panel.screens(rater.session)
    votes = []
    for screen in screens.values():
        if screen.part is not ScreenPart.TRAINING:
            shown = {"id": screen.id, "clips": screen.names, "hear_seconds": 1.0}
            answer = answer_to(shown, panel.plan.design, answers(panel, screen, lead, noise))
            votes.append(make_panel_vote(panel.plan, rater.id, rater.session, screens, answer))
    append_panel_votes(panel.folder, votes)
    panel.finish(rater.id)
    return rater.id

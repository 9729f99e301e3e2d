"""Panel tests in tests: made from noise instead of speech, and answered as the page does it."""

from __future__ import annotations

import json
import secrets
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.plan import Item, SessionRules, make_panel_plan
from dia_demo.services.listening.panel.plan_file import write_panel_plan
from dia_demo.services.listening.panel.stimuli import Source
from dia_demo.services.listening.panel.store import PanelStore
from dia_demo.services.people import new_key

RATE = 16_000
SYSTEMS = ("the secret first", "the secret second", "the secret third")
ANSWERS = {
    "preference": {"better": 1, "strength": None},
    "abx": {"x": 1},
    "cmos": {"score": 0},
    "mos": {"score": 3},
    "bws": {"best": 1, "worst": 2},
}
# A short test: no training, nothing hidden among its trials.
PLAIN = SessionRules(training=0, catch_share=0.0, repeats=0, null_pairs=0)


def source(systems: int = 2, items: int = 4, seconds: float = 0.8) -> Source:
    """Noise that differs by system and item."""
    named = tuple(Item(f"[S1] Sentence {n}.", n, f"item {n}") for n in range(items))

    def wave(system: int, item: int):
        noise = np.random.default_rng([system, item]).normal(size=round(seconds * RATE))
        return (0.1 * noise).astype(np.float32), RATE

    return Source(SYSTEMS[:systems], named, wave)


def make_panel(
    home: Path, design: str = "preference", size=(2, 4), seconds: float = 0.8, **rules
) -> tuple[PanelStore, Panel]:
    """A store with one test, and the test. size: systems and items. rules: of `make_panel_plan`."""
    made = source(*size, seconds)
    rules = {"raters": 4, "session": PLAIN, "title": "Which voice?"} | rules
    plan = make_panel_plan(design, made.systems, made.items, **rules)
    store, key = PanelStore(home), new_key()
    return store, store.get(key, store.create(key, plan, made))


def mirrored(panel: Panel, folder: Path) -> Panel:
    """The same test, every public name included, with the sounds of its two systems exchanged."""
    shutil.copytree(panel.folder, folder)
    plan = panel.plan
    for name, file in plan.clips.items():
        kind, system, item = name.split(":")
        if system == "0":
            other = plan.clips[f"{kind}:1:{item}"]
            kept = (panel.folder / "clips" / file).read_bytes()
            (folder / "clips" / file).write_bytes((panel.folder / "clips" / other).read_bytes())
            (folder / "clips" / other).write_bytes(kept)
    write_panel_plan(folder, replace(plan, systems=plan.systems[::-1]))
    return Panel.open(folder)


def new_rater() -> str:
    return secrets.token_hex(16)


def answer_to(screen: dict, receipts: list[str], seconds: float = 0.8, **other) -> dict:
    """An answer as the page sends it."""
    count = len(screen["clips"])
    heard = [seconds] * count
    own = ANSWERS.get(screen.get("design", "preference"))
    return {
        "id": secrets.token_hex(16),
        "presentation": screen["id"],
        "answer": own,
        "attributes": [],
        "note": "",
        "heard": heard,
        "covered": heard,
        "receipts": receipts,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    } | other


def data_of(script: bytes) -> dict:
    """The data in the data.js of an offline test."""
    text = script.decode()
    return json.loads(text[text.index("data: ") + 6 : text.rindex(", clips:")])

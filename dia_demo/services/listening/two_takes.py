"""A comparison of two takes that exist already: one pair, nothing is generated."""

from __future__ import annotations

import threading
from dataclasses import fields, replace
from pathlib import Path

from dia_demo import audio
from dia_demo.config import PRECISIONS, GenerationParams, RuntimeConfig
from dia_demo.errors import InputError, RunError
from dia_demo.services.earlier.formats import read_samples
from dia_demo.services.earlier.history import EarlierTake
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan import plan_file
from dia_demo.services.listening.plan.plan import ComparisonPlan, TakeState, make_plan
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.listening.render import TAKES
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.text.pronunciations import Pronunciations
from dia_demo.text.script import parse_turns

WHAT_ONE_PAIR_SHOWS = (
    "One pair shows which of these two takes you like better, not which setting is better: "
    "another seed may reverse it. To compare settings, use several scripts above."
)


def compare_takes(
    folder: Path,
    kind: str,
    takes: tuple[EarlierTake, EarlierTake],
    synthesis: Synthesis,
    kept: KeptVoices,
) -> Comparison:
    """A comparison in the new `folder` whose only pair has the sound of two takes.

    kind: "preference" or "sighted". kept: the voices that takes may have been made with. Raises
    InputError if the takes say different things, or have the same settings, voices and seed.
    """
    first, second = takes
    if first.script.split() != second.script.split():
        raise InputError("The two takes say different things: choose two takes of one script.")
    settings = [_setting(take, kept) for take in takes]
    if settings[0] == settings[1]:
        raise InputError(
            "The two takes have the same settings, voices and seed: choose takes that differ in "
            "one of them."
        )
    sounds = [read_samples(take.path) for take in takes]
    plan = make_plan(kind, settings, (first.script,), (0,))
    plan = replace(
        plan,
        slots=tuple(replace(slot, state=TakeState.MADE) for slot in plan.slots),
        facts={slot.id: _facts(takes[slot.setting], *sounds[slot.setting]) for slot in plan.slots},
    )
    _write(folder, plan, sounds)
    comparison = Comparison.open(folder)
    for _ in comparison.run(synthesis, threading.Event()):
        pass
    if failed := comparison.failed_takes():
        raise RunError(failed[0].message)
    return comparison


def _setting(take: EarlierTake, kept: KeptVoices) -> Setting:
    """How a take was made. Its seed is the shift from the plan's, which is 0."""
    names = {field.name for field in fields(GenerationParams)} - {"seed"}
    params = {name: value for name, value in take.settings.items() if name in names}
    figures = take.figures
    precision = figures.get("precision")
    runtime = RuntimeConfig(
        model=str(figures.get("model")),
        precision=precision if precision in PRECISIONS else "auto",
    )
    seed = int(figures.get("seed") or 0)
    listed = Pronunciations.parse(take.pronunciations or "")
    beside = take.speed, seed, take.normalise, listed
    return Setting(GenerationParams(**params), runtime, *beside, *_voice_names(take, kept))


def _voice_names(take: EarlierTake, kept: KeptVoices) -> list[str]:
    """The voices of S1 and S2 by name, blank for those of the seed. A kept voice that has gone has
    the beginning of its identity."""
    return [
        name or (kept.name_of(identity) or f"kept voice {identity[:6]}" if identity else "")
        for name, identity in zip(take.voices, take.kept_voices, strict=True)
    ]


def _facts(take: EarlierTake, samples, rate: int) -> dict:
    seconds = len(samples) / rate
    words = sum(len(turn.text.split()) for turn in parse_turns(take.script))
    named = {
        name: take.figures[name]
        for name in ("finish_reason", "model", "precision")
        if isinstance(take.figures.get(name), str)
    }
    return {
        "seconds": round(seconds, 2),
        "words_per_minute": round(60 * words / max(seconds, 0.1)),
    } | named


def _write(folder: Path, plan: ComparisonPlan, sounds) -> None:
    try:
        (folder / TAKES).mkdir(parents=True)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"The comparison cannot be saved: {reason}. Free some space.") from error
    for slot in plan.slots:
        samples, rate = sounds[slot.setting]
        audio.write_audio(folder / TAKES / plan.take_file(slot), samples, rate, {})
    plan_file.write_plan(folder, plan)

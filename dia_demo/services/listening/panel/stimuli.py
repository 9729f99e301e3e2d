"""The clips of a panel test: from takes made here or from uploaded files, at one level per item.

A stimulus has a name that says what it is (`main`, `copy`, …), and a file whose name does not.
Every clip has its own dither, so that two files of the same sound differ in their bytes; those of
ABX also start after their own short silence, so that X cannot be found by subtraction.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import numpy as np

from dia_demo.audio import STORED_SUFFIX
from dia_demo.config import Range
from dia_demo.errors import InputError, RunError
from dia_demo.loudness import match_levels
from dia_demo.services.listening.clips import at_rate, read_wave, write_clip
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.panel.designs import SPECS, Design
from dia_demo.services.listening.panel.plan import ANCHOR_HZ, Item, PanelPlan
from dia_demo.services.listening.plan.names import setting_names
from dia_demo.services.listening.plan.plan import ComparisonKind
from dia_demo.services.listening.render import CLIPS

RATES = Range(16_000, 96_000, whole=True)  # Hz; a lower one leaves nothing to take from an anchor
LONGEST_SECONDS = 300.0
# Half a transition band, in Hz, and its attenuation in dB: BS.1534 asks for 25 dB at 4 kHz and 50
# dB at 4.5 kHz.
_TRANSITION_HZ, _ATTENUATION_DB = 300, 60
_LONGEST_START = 0.05


@dataclass(frozen=True)
class Source:
    """What is compared. wave: of a system and an item, by their numbers: float32 [n] and its
    sample rate in Hz. settings: of each system as JSON, empty for uploaded clips."""

    systems: tuple[str, ...]
    items: tuple[Item, ...]
    wave: Callable[[int, int], tuple[np.ndarray, int]]
    settings: tuple[str, ...] = ()


def from_comparison(comparison: Comparison) -> Source:
    """The takes of a comparison whose pairs are all made: its settings become named systems.

    Raises InputError if pairs are missing, and for ABX, whose clips have dither of their own.
    """
    plan = comparison.plan
    if plan.kind == ComparisonKind.ABX:
        raise InputError("Make the takes of a panel test as a preference comparison, not as ABX.")
    if not all(trial.made for trial in plan.trials):
        raise InputError("Some pairs are not generated yet: press Resume, and wait for them.")
    keys = [(script, seed) for script in range(len(plan.scripts)) for seed in plan.seeds]
    files: dict[tuple[int, int], str] = {}
    for trial in plan.trials:
        item = keys.index((trial.script, trial.seed))
        for clip in (0, 1):
            files[plan.secrets[trial.id].setting_of(trial, clip), item] = trial.clips[clip]

    def wave(system: int, item: int) -> tuple[np.ndarray, int]:
        samples, rate = read_wave(comparison.folder / CLIPS / files[system, item])
        return np.trim_zeros(samples, "b"), rate

    items = (Item(plan.scripts[script], script, f"seed {seed}") for script, seed in keys)
    settings = tuple(json.dumps(setting.values()) for setting in plan.settings)
    return Source(setting_names(plan.settings), tuple(items), wave, settings)


def from_files(files: Mapping[tuple[str, str], Path], texts: Mapping[str, str]) -> Source:
    """Uploaded files by the names of a system and a sentence. texts: of sentences, where known.

    Raises InputError if a system lacks a sentence that another one has.
    """
    systems = tuple(sorted({system for system, _ in files}))
    sentences = tuple(sorted({sentence for _, sentence in files}))
    for system in systems:
        for sentence in sentences:
            if (system, sentence) not in files:
                raise InputError(
                    f"{system!r:.80} has no file for the sentence {sentence!r:.80}: every system "
                    "needs the same sentences."
                )

    def wave(system: int, item: int) -> tuple[np.ndarray, int]:
        return _read_mono(files[systems[system], sentences[item]])

    items = (Item(texts.get(name, ""), number, name) for number, name in enumerate(sentences))
    return Source(systems, tuple(items), wave)


def _read_mono(path: Path) -> tuple[np.ndarray, int]:
    samples, rate = read_wave(path)
    mono = samples if samples.ndim == 1 else samples.mean(axis=1)
    RATES.check(f"The sample rate of {path.name[:80]}", rate)
    if len(mono) > LONGEST_SECONDS * rate or not np.isfinite(mono).all():
        raise InputError(f"{path.name[:80]} is longer than {LONGEST_SECONDS:.0f} s, or damaged.")
    return mono.astype(np.float32), rate


def main_clip(system: int, item: int) -> str:
    """What a system speaks, as it is."""
    return f"main:{system}:{item}"


def copy_clip(system: int, item: int) -> str:
    """The same sound in another file: the other side of an identical pair, X, or a reference."""
    return f"copy:{system}:{item}"


def third_clip(system: int, item: int) -> str:
    """Once more: X of an identical pair."""
    return f"third:{system}:{item}"


def anchor_clip(system: int, item: int) -> str:
    """The sound without what is above ANCHOR_HZ."""
    return f"anchor:{system}:{item}"


def anchor_copy(system: int, item: int) -> str:
    """An anchor in another file, for X."""
    return f"anchor-copy:{system}:{item}"


def catch_count(plan: PanelPlan) -> int:
    """The catch trials of a session. A MUSHRA screen with a reference needs none: its hidden
    reference and its anchor are one."""
    if plan.reference is not None:
        return 0
    return ceil(round(plan.session.catch_share * plan.trials, 9))


def extra_items(plan: PanelPlan, purpose: str, count: int) -> list[tuple[int, int]]:
    """(system, item) of the catch trials or null pairs, the same for all raters."""
    order = sorted(range(len(plan.items)), key=lambda item: plan.draw(purpose, item))
    system = [int(plan.draw(purpose, "system", n), 16) % len(plan.systems) for n in range(count)]
    return [(system[n], order[n % len(order)]) for n in range(count)]


def training_items(plan: PanelPlan) -> list[tuple[int, int]]:
    """Of training trials."""
    return extra_items(plan, "training", plan.session.training)


def null_items(plan: PanelPlan) -> list[tuple[int, int]]:
    """Of null pairs, which only designs of pairs have."""
    count = plan.session.null_pairs if SPECS[plan.design].pairs else 0
    return extra_items(plan, "null", count)


def catch_items(plan: PanelPlan) -> list[tuple[int, int]]:
    """Of catch trials."""
    return extra_items(plan, "catch", catch_count(plan))


def is_identical_catch(plan: PanelPlan, number: int) -> bool:
    """Whether a catch trial is an identical pair; otherwise it has an anchor."""
    return plan.design in (Design.PREFERENCE, Design.CMOS) and number % 2 == 1


def needed_stimuli(plan: PanelPlan) -> set[str]:
    """The names of all stimuli of all sessions."""
    systems, items = range(len(plan.systems)), range(len(plan.items))
    names = {main_clip(system, item) for system in systems for item in items}
    if plan.design is Design.ABX:
        names |= {copy_clip(system, item) for system in systems for item in items}
    if plan.reference is not None:
        names |= {copy_clip(plan.reference, item) for item in items}
        names |= {anchor_clip(plan.reference, item) for item in items}
    for place in null_items(plan):
        names.add(copy_clip(*place))
        if plan.design is Design.ABX:
            names.add(third_clip(*place))
    for number, place in enumerate(catch_items(plan)):
        identical = is_identical_catch(plan, number)
        names.add(copy_clip(*place) if identical else anchor_clip(*place))
        if plan.design is Design.ABX:
            names.add(anchor_copy(*place))
    return names


def write_stimuli(folder: Path, plan: PanelPlan, source: Source) -> PanelPlan:
    """Write all clips of a plan into `folder`; returns the plan with their names and gains.

    Raises InputError or RunError if a wave cannot be read or its level not be matched.
    """
    needed = needed_stimuli(plan)
    files = {name: f"{secrets.token_hex(12)}{STORED_SUFFIX}" for name in sorted(needed)}
    rate = max(
        source.wave(system, item)[1]
        for system in range(len(plan.systems))
        for item in range(len(plan.items))
    )
    random, gains = np.random.default_rng(), {}
    for item in range(len(plan.items)):
        clips = _clips_of_item(plan, source, item, rate, needed)
        # In the order of the files' random names: the times of the files say nothing.
        for name, clip, gain in sorted(clips, key=lambda entry: files[entry[0]]):
            gains[name] = round(gain, 3)
            write_clip(folder / files[name], _disguise(clip, plan.design, rate, random), rate)
    return replace(plan, clips=files, gains_db=gains, settings=source.settings)


def _clips_of_item(
    plan: PanelPlan, source: Source, item: int, rate: int, needed: set[str]
) -> Iterator[tuple[str, np.ndarray, float]]:
    """The name, int16 [n] and gain in dB of each clip of an item, all of one loudness."""
    systems = range(len(plan.systems))
    waves = {
        main_clip(system, item): at_rate(*source.wave(system, item), rate) for system in systems
    }
    copies = {}
    for system in systems:
        main = main_clip(system, item)
        copies[copy_clip(system, item)] = copies[third_clip(system, item)] = main
        copies[anchor_copy(system, item)] = anchor_clip(system, item)
        if anchor_clip(system, item) in needed:
            waves[anchor_clip(system, item)] = low_pass(waves[main], rate)
    try:
        matched = match_levels(list(waves.values()), rate)
    except RunError as error:
        raise RunError(
            f"{plan.items[item].label or plan.items[item].text!r:.80}: {error}"
        ) from error
    made = dict(zip(waves, zip(matched.clips, matched.gains_db, strict=True), strict=True))
    made |= {name: made[of] for name, of in copies.items() if name in needed}
    for name, (clip, gain) in made.items():
        yield name, clip, gain


def low_pass(samples: np.ndarray, rate: int) -> np.ndarray:
    """float32 [n] without what is above ANCHOR_HZ: the low anchor of ITU-R BS.1534, aligned in
    time with the original."""
    from scipy.signal import firwin, kaiserord, oaconvolve

    taps, beta = kaiserord(_ATTENUATION_DB, 2 * _TRANSITION_HZ / (rate / 2))
    taps |= 1
    window = firwin(taps, ANCHOR_HZ + _TRANSITION_HZ, window=("kaiser", beta), fs=rate)
    return oaconvolve(samples, window, mode="same").astype(np.float32)


def _disguise(
    clip: np.ndarray, design: Design, rate: int, random: np.random.Generator
) -> np.ndarray:
    """int16 [n] with its own dither (triangular, 2 steps RMS) and, for ABX, its own start."""
    longest = round(rate * _LONGEST_START) if design is Design.ABX else 0
    start = int(random.integers(longest + 1))
    size = len(clip) + longest
    wave = random.integers(-2, 3, size) + random.integers(-2, 3, size)
    wave[start : start + len(clip)] += clip
    return np.clip(wave, -32768, 32767).astype(np.int16)

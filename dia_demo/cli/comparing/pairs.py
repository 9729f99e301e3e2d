"""The pairs of a comparison on the command line: a new one, one rebuilt, one continued."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dia_demo.cli.common import StatusLine, model_of, pronunciations_of, stop_on_interrupt, voice_of
from dia_demo.config import Range
from dia_demo.errors import InputError, RunError
from dia_demo.machine.processor import why_it_may_differ
from dia_demo.services.listening.archive import export_zip
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan import plan_file
from dia_demo.services.listening.plan.plan import (
    NAMES,
    ComparisonPlan,
    TakeState,
    make_plan,
    split_scripts,
)
from dia_demo.services.listening.plan.rebuild import rebuild_plan
from dia_demo.services.listening.render import RenderEnded, RenderProgress
from dia_demo.services.listening.sides import seeds_of, settings_of
from dia_demo.services.listening.summary import power_of, summary_of, warnings_of
from dia_demo.services.listening.uploads.make import compare_clips, opened_clips, remarks_on
from dia_demo.services.listening.voice import VOICES
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.services.wording import time_left

LETTERS = NAMES.lower()


def sides_of(options: argparse.Namespace) -> list[Sequence[str] | None]:
    """The words of each side, None for one that was not given."""
    return [getattr(options, letter) for letter in LETTERS]


def comparison_of(options: argparse.Namespace, synthesis: Synthesis) -> Comparison:
    """A new comparison, one rebuilt from its plan, or the existing one of the folder."""
    kept = KeptVoices.for_user(synthesis.settings)
    all_sides = sides_of(options)
    is_new = any((*all_sides, options.script, options.normalise, options.pronunciations))
    if options.rebuild is not None:
        if is_new:
            raise InputError(
                "--rebuild makes the pairs of the plan again, with its settings, scripts and "
                "pronunciations: leave these options out."
            )
        plan, kept = _rebuild(options, kept)
        return Comparison.create(options.output, plan, synthesis, voice_of(options), kept)
    if (options.output / plan_file.NAME).exists():
        if is_new:
            raise InputError(
                f"{options.output} already holds a comparison: use -o alone to resume it, or "
                "another folder for a new one."
            )
        comparison = Comparison.open(options.output)
        if any(slot.state != TakeState.MADE for slot in comparison.plan.slots):
            _warn_of_other_numerics(options.output / plan_file.NAME, comparison.plan)
        return comparison
    plan = _new_plan(options, all_sides, synthesis)
    return Comparison.create(options.output, plan, synthesis, voice_of(options), kept)


def _rebuild(options: argparse.Namespace, kept: KeptVoices) -> tuple[ComparisonPlan, KeptVoices]:
    """The plan, and the voices that it may name: those beside it, or else `kept`."""
    path = options.rebuild / plan_file.NAME if options.rebuild.is_dir() else options.rebuild
    plan = plan_file.read_plan(path)
    if plan.voice_file is not None and voice_of(options) is None:
        raise InputError(
            f"This plan has a voice prompt: add it with --voice-prompt or --voice-codes "
            f"({path.with_name(plan.voice_file)})."
        )
    _warn_of_other_numerics(path, plan)
    beside = KeptVoices(path.parent / VOICES, shared=kept)
    return replace(rebuild_plan(plan), voice_file=None), beside


def _warn_of_other_numerics(path: Path, plan: ComparisonPlan) -> None:
    if remark := why_it_may_differ(plan.numerics):
        print(f"warning: {path}: {remark}", file=sys.stderr)


def _new_plan(options, all_sides: Sequence, synthesis: Synthesis) -> ComparisonPlan:
    if not (options.a and options.b):
        raise InputError("Name both sides, such as --a temperature=1.2 --b temperature=1.8.")
    sides = [words for words in all_sides if words]
    if all_sides[: len(sides)] != sides:
        raise InputError("Name the settings in order, without a gap: --a, --b, --c and so on.")
    scripts = _scripts(options.script)
    settings = settings_of(
        [changes_of(words) for words in sides],
        synthesis.settings.runtime,
        model_of,
        options.normalise,
        pronunciations_of(options),
    )
    seeds = seeds_of(options.pairs, len(scripts), options.seed)
    return make_plan("abx" if options.abx else "preference", settings, scripts, seeds)


def _scripts(paths: Sequence[Path] | None) -> tuple[str, ...]:
    if not paths:
        raise InputError("Name --script FILE: what both sides should say.")
    scripts: list[str] = []
    for path in paths:
        try:
            scripts += split_scripts(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"The script {path} cannot be read as text: {error}.") from error
    if not scripts:
        raise InputError("The script is empty: write what should be said, beginning with [S1].")
    return tuple(scripts)


def make_pairs(comparison: Comparison, synthesis: Synthesis, options: argparse.Namespace) -> int:
    """Generate what a comparison lacks, and print what it can show and how to listen."""
    plan = comparison.plan
    Range(0, 90).check("--ties", options.ties)
    if not options.json:
        print(power_of(plan, options.ties / 100))
    warnings = print_warnings(plan, synthesis)
    ended = render(comparison, synthesis)
    if options.zip is not None:
        export_zip(options.output, options.zip)
    for failure in ended.failures:
        print(f"warning: a take failed: {failure}", file=sys.stderr)
    if options.json:
        summary = summary_of(comparison.plan, ended, warnings, options.ties / 100)
        print(json.dumps({"folder": str(options.output), **summary}))
    else:
        print(
            f"{options.output}: {ended.pairs_made} of {ended.pairs} pairs, "
            f"{ended.audio_seconds:.1f} s of audio in {ended.wall_seconds:.1f} s. To listen: "
            f"DIA_COMPARE={options.output} python app.py, or open it on a page as a zip (--zip)."
        )
    if ended.pairs_made < ended.pairs and not ended.stopped:
        raise RunError(
            f"{ended.pairs - ended.pairs_made} of {ended.pairs} pairs could not be generated. The "
            "same command with -o alone tries them again."
        )
    return 0


def print_warnings(plan: ComparisonPlan, synthesis: Synthesis) -> list[str]:
    """What a result will not show, on stderr; the same sentences."""
    models = {setting.runtime.model for setting in plan.settings if not setting.system}
    warnings = warnings_of(plan, {name: synthesis.models[name] for name in models})
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return warnings


def render(comparison: Comparison, synthesis: Synthesis) -> RenderEnded:
    """Generate the missing takes, with progress on the status line."""
    show, cancel = StatusLine(), threading.Event()
    with stop_on_interrupt(cancel):
        for event in comparison.run(synthesis, cancel):
            if isinstance(event, RenderEnded):
                show("")
                return event
            show(_line(event))
    raise AssertionError("a run ended without its last event")


def _line(progress: RenderProgress) -> str:
    rest = "" if progress.left is None else f", {time_left(progress.left)} left"
    factor = progress.realtime_factor
    speed = "" if factor is None else f", {factor:.2f}x realtime"
    return f"{progress.phase}: {progress.pairs_made} of {progress.pairs} pairs{speed}{rest}"


def pairs_of_clips(options: argparse.Namespace, synthesis: Synthesis) -> int:
    """A comparison of clips that exist, from a folder or a zip."""
    if any((*sides_of(options), options.script, options.rebuild, options.pairs, options.seed)):
        raise InputError(
            "--clips compares files that exist: leave out the sides, scripts, pairs and seeds."
        )
    kind = "abx" if options.abx else "preference"
    with opened_clips(options.clips) as clips:
        for remark in remarks_on(clips):
            print(remark, file=sys.stderr)
        comparison = compare_clips(options.output, kind, clips, synthesis)
    return make_pairs(comparison, synthesis, options)


def changes_of(words: Sequence[str]) -> dict[str, str]:
    """The names and values of NAME=VALUE words."""
    changes = {}
    for word in (part for argument in words for part in argument.split(",")):
        name, sign, value = word.partition("=")
        if not sign:
            raise InputError(f"{word!r} is not a setting: write NAME=VALUE, as in temperature=1.2.")
        changes[name.strip().replace("-", "_")] = value.strip()
    return changes

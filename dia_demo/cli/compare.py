"""The command `compare`: make a blind comparison in a folder, resume it, or print its result."""

from __future__ import annotations

import argparse
import json
import math
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dia_demo.cli.common import (
    StatusLine,
    add_normalise,
    add_pronunciations,
    add_runtime,
    add_voice,
    model_of,
    pronunciations_of,
    runtime_of,
    stop_on_interrupt,
    voice_of,
)
from dia_demo.cli.score import score
from dia_demo.config import Range
from dia_demo.errors import InputError, RunError
from dia_demo.machine.processor import why_it_may_differ
from dia_demo.services.listening.archive import export_zip
from dia_demo.services.listening.comparison import Comparison, rebuilt
from dia_demo.services.listening.plan import plan_file
from dia_demo.services.listening.plan.plan import (
    NAMES,
    ComparisonPlan,
    TakeState,
    draw_seeds,
    make_plan,
    split_scripts,
)
from dia_demo.services.listening.plan.setting import SETTING_FIELDS, Setting, differences
from dia_demo.services.listening.render import RenderEnded, RenderProgress
from dia_demo.services.listening.verdict.claims import (
    abx_warning,
    voices_warning,
    what_it_can_show,
)
from dia_demo.services.listening.verdict.planning import FEWEST_SCRIPTS, TIES
from dia_demo.services.listening.votes.table import EXPLANATION
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.wording import time_left

PAIRS = 12
_LETTERS = NAMES.lower()


def register(commands) -> None:
    """Add `compare` to the command line."""
    parser = commands.add_parser("compare", help="blind comparison of settings, by ear")
    parser.set_defaults(run=_compare)
    _add_sides(parser)
    parser.add_argument(
        "--script",
        type=Path,
        action="append",
        metavar="FILE",
        help="what both sides say; lines of --- separate scripts; may be repeated",
    )
    parser.add_argument(
        "--pairs", type=int, metavar="N", help=f"scripts x seeds; by default at least {PAIRS}"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="seed of the first pair; by default random"
    )
    parser.add_argument(
        "--ties",
        type=float,
        default=100 * TIES,
        metavar="PERCENT",
        help="expected “no difference” answers, for the plan; default %(default)g",
    )
    parser.add_argument("--abx", action="store_true", help="ABX: can the two be told apart?")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="folder of the comparison; alone: resume"
    )
    parser.add_argument(
        "--zip", type=Path, metavar="FILE", help="also write a zip to open on the page"
    )
    parser.add_argument(
        "--rebuild", type=Path, metavar="PLAN", help="make the pairs of a plan.json again"
    )
    parser.add_argument(
        "--score", type=Path, metavar="DIR", help="print the result of a folder or zip"
    )
    parser.add_argument(
        "--csv",
        type=Path,
        metavar="FILE",
        help=f"with --score: also write the votes as CSV, one row per pair, or of several "
        f"listeners one row per vote. {EXPLANATION}",
    )
    parser.add_argument(
        "--reveal", action="store_true", help="with --score: end the test and print its result"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    add_runtime(parser)
    add_voice(parser)
    add_normalise(parser)
    add_pronunciations(parser)


def _add_sides(parser: argparse.ArgumentParser) -> None:
    helps = {
        "a": f"the first side: {', '.join(SETTING_FIELDS)}",
        "b": "the second side; a round has --c to --f as well",
    }
    for letter in _LETTERS:
        text = helps.get(letter, argparse.SUPPRESS)
        parser.add_argument(
            f"--{letter}", nargs="+", action="extend", metavar="NAME=VALUE", help=text
        )


def _compare(options: argparse.Namespace) -> int:
    for path in (options.zip, options.csv):
        if path is not None and not path.absolute().parent.is_dir():
            raise InputError(f"The folder {path.absolute().parent} does not exist: create it.")
    if options.score is not None:
        if options.output is not None or any(getattr(options, letter) for letter in _LETTERS):
            raise InputError("--score DIR takes no other options than --reveal, --csv and --json.")
        return score(options)
    if options.csv is not None:
        raise InputError(
            "--csv writes the votes of a test that has ended: use it with --score DIR."
        )
    if options.reveal:
        raise InputError("--reveal ends the test in a folder: use it with --score DIR.")
    if options.output is None:
        raise InputError("Use -o DIR for the clips and the plan, or --score DIR for a result.")
    settings = Settings.from_env()
    runtime = runtime_of(options, settings)
    synthesis = Synthesis(replace(settings, runtime=runtime))
    comparison = _comparison(options, synthesis)
    return _make(comparison, synthesis, options)


def _comparison(options: argparse.Namespace, synthesis: Synthesis) -> Comparison:
    """A new comparison, one rebuilt from its plan, or the existing one of the folder."""
    all_sides = [getattr(options, letter) for letter in _LETTERS]
    is_new = any((*all_sides, options.script, options.normalise, options.pronunciations))
    if options.rebuild is not None:
        if is_new:
            raise InputError(
                "--rebuild makes the pairs of the plan again, with its settings, scripts and "
                "pronunciations: leave these options out."
            )
        return Comparison.create(options.output, _rebuilt(options), synthesis, voice_of(options))
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
    return Comparison.create(
        options.output, _new_plan(options, all_sides, synthesis), synthesis, voice_of(options)
    )


def _rebuilt(options: argparse.Namespace) -> ComparisonPlan:
    path = options.rebuild / plan_file.NAME if options.rebuild.is_dir() else options.rebuild
    plan = plan_file.read_plan(path)
    if plan.voice_file is not None and voice_of(options) is None:
        raise InputError(
            f"This plan has a voice prompt: add it with --voice-prompt or --voice-codes "
            f"({path.with_name(plan.voice_file)})."
        )
    _warn_of_other_numerics(path, plan)
    return replace(rebuilt(plan), voice_file=None)


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
    runtime = replace(synthesis.settings.runtime, threads=None)
    settings = [_setting(words, runtime) for words in sides]
    listed = pronunciations_of(options)
    settings = [
        replace(setting, normalise=setting.normalise or options.normalise, pronunciations=listed)
        for setting in settings
    ]
    least = len(scripts) * _fewest_seeds(len(scripts))
    pairs = least if options.pairs is None else options.pairs
    if pairs < 1 or pairs % len(scripts):
        raise InputError(
            f"--pairs must be a multiple of the number of scripts, {len(scripts)}, not {pairs}: "
            "every script is spoken with every seed."
        )
    seeds = draw_seeds(pairs // len(scripts), options.seed)
    return make_plan("abx" if options.abx else "preference", settings, scripts, seeds)


def _fewest_seeds(scripts: int) -> int:
    """The seeds for each script where no number of pairs is given: an even number would leave
    scripts without a majority."""
    seeds = math.ceil(PAIRS / scripts)
    return seeds + 1 if scripts >= FEWEST_SCRIPTS and seeds % 2 == 0 else seeds


def _setting(words: Sequence[str], runtime) -> Setting:
    """One side from NAME=VALUE words; other values are its model's defaults."""
    changes = {}
    for word in (part for argument in words for part in argument.split(",")):
        name, sign, value = word.partition("=")
        if not sign:
            raise InputError(f"{word!r} is not a setting: write NAME=VALUE, as in temperature=1.2.")
        changes[name.strip().replace("-", "_")] = value.strip()
    model = changes.get("model", runtime.model)
    info = model_of(model)
    return Setting(info.config.defaults, runtime).changed(changes)


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


def _make(comparison: Comparison, synthesis: Synthesis, options: argparse.Namespace) -> int:
    plan = comparison.plan
    if not options.json:
        print(_can_show(plan, options))
    warnings = _warnings(plan, synthesis)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    ended = _render(comparison, synthesis)
    if options.zip is not None:
        export_zip(options.output, options.zip)
    for failure in ended.failures:
        print(f"warning: a take failed: {failure}", file=sys.stderr)
    if options.json:
        print(json.dumps(_facts(comparison, options, ended, warnings)))
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


def _warnings(plan: ComparisonPlan, synthesis: Synthesis) -> list[str]:
    """What a result will not show."""
    models = {setting.runtime.model for setting in plan.settings}
    infos = {name: synthesis.models[name] for name in models}
    voices = None if plan.voice_file else voices_warning(plan.settings, infos)
    warnings = (voices, abx_warning(plan.kind, plan.settings))
    return [warning for warning in warnings if warning]


def _render(comparison: Comparison, synthesis: Synthesis) -> RenderEnded:
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


def _can_show(plan: ComparisonPlan, options: argparse.Namespace) -> str:
    Range(0, 90).check("--ties", options.ties)
    design = len(plan.scripts), len(plan.seeds), len(plan.settings)
    return what_it_can_show(plan.kind, *design, ties=options.ties / 100)


def _facts(
    comparison: Comparison,
    options: argparse.Namespace,
    ended: RenderEnded,
    warnings: Sequence[str],
) -> dict:
    plan = comparison.plan
    wall = ended.wall_seconds
    return {
        "folder": str(options.output),
        "kind": plan.kind,
        "differences": differences(plan.settings),
        "scripts": len(plan.scripts),
        "seeds": list(plan.seeds),
        "pairs": ended.pairs,
        "pairs_made": ended.pairs_made,
        "takes_failed": len(ended.failures),
        "stopped": ended.stopped,
        "audio_seconds": ended.audio_seconds,
        "wall_seconds": wall,
        "realtime_factor": ended.audio_seconds / wall if wall else None,
        "can_show": _can_show(plan, options),
        "warning": abx_warning(plan.kind, plan.settings),
        "warnings": warnings,
    }

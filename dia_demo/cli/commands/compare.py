"""The command `compare`: make a blind comparison in a folder, resume it, or print its result."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from dia_demo.audio import LOSSLESS_SUFFIXES
from dia_demo.cli.commands.score import score
from dia_demo.cli.common import (
    add_normalise,
    add_pronunciations,
    add_runtime,
    add_voice,
    runtime_of,
)
from dia_demo.cli.comparing.gate import gate
from dia_demo.cli.comparing.pairs import (
    LETTERS,
    comparison_of,
    make_pairs,
    pairs_of_clips,
    sides_of,
)
from dia_demo.cli.comparing.panel import OPTION_NAMES, is_for_many, make_test
from dia_demo.cli.comparing.score_test import score_test
from dia_demo.errors import InputError
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.store import panel_folder
from dia_demo.services.listening.plan.setting import SETTING_FIELDS
from dia_demo.services.listening.sides import PAIRS
from dia_demo.services.listening.verdict.planning import TIES
from dia_demo.services.listening.votes.table import EXPLANATION
from dia_demo.services.remote.synthesis import open_synthesis
from dia_demo.services.settings import Settings


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
        "--clips",
        type=Path,
        metavar="FOLDER | ZIP",
        help="instead of settings, compare clips that exist, each as SYSTEM/SENTENCE with one of "
        f"{', '.join(LOSSLESS_SUFFIXES)}",
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
    _add_folders(parser)
    _add_score(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    _add_many(parser)
    add_runtime(parser)
    add_voice(parser)
    add_normalise(parser)
    add_pronunciations(parser)


def _add_folders(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="folder of the comparison; alone: resume"
    )
    parser.add_argument(
        "--zip", type=Path, metavar="FILE", help="also write a zip to open on the page"
    )
    parser.add_argument(
        "--rebuild", type=Path, metavar="PLAN", help="make the pairs of a plan.json again"
    )


def _add_score(parser: argparse.ArgumentParser) -> None:
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


def _add_many(parser: argparse.ArgumentParser) -> None:
    """The options of tests with many listeners."""
    add = parser.add_argument
    add("--listeners", type=int, metavar="N", help="make a test for N listeners, with a link")
    add(
        "--test",
        nargs="+",
        action="extend",
        metavar="NAME=VALUE",
        help=f"options of that test: {', '.join(OPTION_NAMES)}",
    )
    add(
        "--gate",
        type=Path,
        metavar="DIR",
        help="exit 0 if the test shows what it was planned to show, 1 if not, 2 while it is open",
    )
    add("--add", type=Path, nargs="+", metavar="FILE", help="with --score: add results files")
    add(
        "--leave-out",
        nargs=2,
        metavar=("NUMBER", "REASON"),
        help="with --score: leave a listener out; a blank reason counts them again",
    )
    add("--close", action="store_true", help="with --score: accept no more answers by the link")
    add("--report", type=Path, metavar="FILE", help="with --score: write the report as HTML")
    add("--offline", type=Path, metavar="FILE", help="with --score: write the test as a zip")


def _add_sides(parser: argparse.ArgumentParser) -> None:
    helps = {
        "a": f"the first side: {', '.join(SETTING_FIELDS)}",
        "b": "the second side; a round has --c to --f as well",
    }
    for letter in LETTERS:
        text = helps.get(letter, argparse.SUPPRESS)
        parser.add_argument(
            f"--{letter}", nargs="+", action="extend", metavar="NAME=VALUE", help=text
        )


def _compare(options: argparse.Namespace) -> int:
    if options.gate is not None:
        return gate(options.gate, options.json)
    for path in (options.zip, options.csv, options.report, options.offline):
        if path is not None and not path.absolute().parent.is_dir():
            raise InputError(f"The folder {path.absolute().parent} does not exist: create it.")
    if options.score is not None:
        if options.output is not None or any(sides_of(options)):
            raise InputError(
                "--score DIR takes no other options than --reveal, --csv and --json, and of a test "
                "with many listeners --add, --leave-out, --close, --report and --offline."
            )
        panel = panel_folder(options.score)
        return score(options) if panel is None else score_test(Panel.open(panel), options)
    if options.csv is not None:
        raise InputError(
            "--csv writes the votes of a test that has ended: use it with --score DIR."
        )
    if options.reveal:
        raise InputError("--reveal ends the test in a folder: use it with --score DIR.")
    if options.add or options.leave_out or options.close or options.report or options.offline:
        raise InputError(
            "--add, --leave-out, --close, --report and --offline are for a test with many "
            "listeners: use them with --score DIR."
        )
    if options.output is None:
        raise InputError("Use -o DIR for the clips and the plan, or --score DIR for a result.")
    settings = Settings.from_env()
    runtime = runtime_of(options, settings)
    synthesis = open_synthesis(replace(settings, runtime=runtime))
    if is_for_many(options):
        return make_test(options, synthesis)
    if options.clips is not None:
        return pairs_of_clips(options, synthesis)
    return make_pairs(comparison_of(options, synthesis), synthesis, options)

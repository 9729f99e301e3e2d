"""Measure voices, voice prompts and long dialogues (docs/dialogues.md), and print the table.

    python -m tools.check_voices                       # everything: hours of one core
    python -m tools.check_voices --only joins --only times
    python -m tools.check_voices --quick               # a trial or so of each, in minutes

It measures the embedded voice with a recogniser (pocketsphinx) and a pitch tracker (WORLD) that
know nothing of it: whether kept voices stay, what becomes of damaged voice prompts and of capitals,
whether long dialogues are whole, and what the judge finds. Needs requirements-dev.txt; pitch,
timbre and times of words also need training/requirements.txt and flite, and are left out without
them. It has a low priority, so it may run in the background. Each trial is written to
FOLDER/results.jsonl when it has ended, and running it again goes on where it stopped; results of
another class of processors are not mixed in. After a change of the program, --again measures anew.

`seeds` makes takes of one seed in processes of their own on a machine that it keeps busy, `pairs`
makes blind comparisons, and `speakers` cuts 200 dialogues into turns: who speaks in each? `named`
does the same with dialogues between any two voices.

The bar `together` is a speed, and only measured by its name: it needs an idle machine.

Ends with exit code 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dia_demo.errors import DiaDemoError
from dia_demo.files import cache_folder
from dia_demo.machine.processor import class_name
from dia_demo.machine.system import granted_cores
from tools.voice_bars import (
    dialogues,
    faults,
    full_size,
    inputs,
    lasting,
    programs,
    seeds,
    speakers,
    times,
)
from tools.voice_bars.bar import Bar, Line
from tools.voice_bars.results import Results
from tools.voice_bars.studio import Studio

BARS = {
    bar.name: bar
    for module in (
        lasting,
        dialogues,
        faults,
        times,
        programs,
        inputs,
        full_size,
        seeds,
        speakers,
    )  # fmt: skip
    for bar in module.BARS
}
NICENESS = 15


def measure(bar: Bar, studio: Studio, results: Results, trials: int) -> None:
    """Every trial of a bar that is missing."""
    for number in range(trials):
        if results.has(bar.name, number):
            continue
        began = time.monotonic()
        try:
            measured = bar.trial(studio, number)
        except (DiaDemoError, RuntimeError) as error:
            print(f"{bar.name} {number + 1}: failed: {error}", file=sys.stderr, flush=True)
            continue
        results.add(bar.name, number, measured)
        took = time.monotonic() - began
        print(f"{bar.name} {number + 1} of {trials}: {took:.0f} s", file=sys.stderr, flush=True)


def lines_of(bar: Bar, results: Results, trials: int) -> list[Line]:
    """The lines of a bar; one that is not met, where trials failed."""
    measured = results.trials_of(bar.name, trials)
    lines = bar.lines(measured) if measured else []
    if len(measured) < trials:
        failed = trials - len(measured)
        lines.append(Line(f"{bar.name}: trials that failed", "0", trials, str(failed), False))
    return lines


def table(lines: Sequence[Line], left_out: dict[str, str]) -> str:
    """The table in Markdown, with what was not measured."""
    out = ["| measured | bar | N | result | |", "|---|---|---|---|---|"]
    for line in lines:
        verdict = "met" if line.is_met else "**missed**"
        out.append(f"| {line.measure} | {line.goal} | {line.count} | {line.result} | {verdict} |")
    return "\n".join([*out, *(f"| {bar} | | 0 | {why} | |" for bar, why in left_out.items())])


def why_left_out(bar: Bar, options: argparse.Namespace) -> str:
    """Why a bar is not measured; "" if it is."""
    if missing := bar.missing_requirements():
        return f"not measured: {', '.join(missing)} not installed"
    if bar.on_request and bar.name not in options.only:
        return "not measured: needs an idle machine, so only on request"
    return (
        "not measured: takes too long for a quick look" if options.quick and not bar.quick else ""
    )


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--only", action="append", default=[], choices=BARS, metavar="NAME", help=", ".join(BARS))
    add("--quick", action="store_true", help="a trial or so of each, of short dialogues")
    add("--again", action="store_true", help="forget what was measured before")
    add("--work", type=Path, metavar="FOLDER", help="results and what they are measured on")
    add("--model", default="nano", help="a name or a folder, with voices by name")
    add("--threads", type=int, metavar="N")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_arguments(arguments)
    name = "check-voices-quick" if options.quick else "check-voices"
    work = (options.work or cache_folder() / name).absolute()
    work.mkdir(parents=True, exist_ok=True)
    processor = class_name()
    results = Results(work / "results.jsonl", processor)
    studio = Studio(work, options.model, options.threads, options.quick)
    if options.again:
        forget(work, results, options.only or list(BARS))
    lines: list[Line] = []
    left_out: dict[str, str] = {}
    for bar in (BARS[name] for name in options.only or BARS):
        if why := why_left_out(bar, options):
            left_out[bar.name] = why
            continue
        trials = bar.quick if options.quick else bar.trials
        measure(bar, studio, results, trials)
        lines += lines_of(bar, results, trials)
    print(f"\nClass of processor: {processor}, {granted_cores()} cores. Model: {options.model}.\n")
    print(table(lines, left_out))
    return 0 if all(line.is_met for line in lines) else 1


def forget(work: Path, results: Results, bars: Sequence[str]) -> None:
    """Remove results and the dialogues that they were measured on."""
    for name in bars:
        results.forget(name)
    for path in (*work.glob("dialogue*.npz"), *work.glob("heard*.txt")):
        path.unlink()


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(max(0, NICENESS - os.nice(0)))
    sys.exit(main())

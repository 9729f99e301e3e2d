"""`compare --score`: print the result of a comparison, or how far it is; write its votes."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dia_demo.errors import InputError
from dia_demo.services.listening.archive import import_zip
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.names import value_texts
from dia_demo.services.listening.plan.plan import ComparisonKind
from dia_demo.services.listening.plan.setting import differences
from dia_demo.services.listening.verdict.result import ComparisonResult, Count
from dia_demo.services.listening.votes.table import write_table, write_tables


def score(options: argparse.Namespace) -> int:
    """Print the result of `options.score`, a folder or zip, of every listener."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.score
        if folder.is_file():
            if options.reveal:
                raise InputError(
                    f"{folder} is a zip, in which a test cannot be ended: use the folder it was "
                    "made from, or open it on the page."
                )
            folder = Path(scratch) / "zip"
            import_zip(options.score, folder)
        comparison = Comparison.open(folder)
        if options.reveal:
            comparison.reveal()
        listeners = comparison.listeners()
    results = [(source, source.result()) for source in (comparison, *listeners)]
    if options.csv is not None:
        _write_votes(comparison, listeners, options.csv)
    if options.json:
        own, *others = (asdict(result) for _, result in results)
        more = {"differences": differences(comparison.plan.settings), "listeners": others}
        print(json.dumps(own | more))
        return 0
    for number, (source, result) in enumerate(results):
        if number:
            print(f"\nListener {number} of {len(listeners)}:")
        print("\n".join(_open_lines(result) if result.open else _lines(source, result)))
    return 0


def _write_votes(comparison: Comparison, listeners: Sequence[Comparison], path: Path) -> None:
    """The table of everybody who voted; the owner's own pairs if nobody else did."""
    own = comparison.votes or not listeners
    if not all(one.is_unblinded for one in (*([comparison] if own else []), *listeners)):
        others = f" for all {len(listeners)} listeners" if len(listeners) > 1 else ""
        raise InputError(f"--csv contains the answers: add --reveal to end the test{others}.")
    if not listeners:
        write_table(comparison.plan, comparison.votes, path)
        return
    heard = [(str(number), one.plan, one.votes) for number, one in enumerate(listeners, start=1)]
    write_tables([("owner", comparison.plan, comparison.votes), *heard], path)


def _open_lines(result: ComparisonResult) -> list[str]:
    how = "The result is shown when every pair is judged; --reveal ends the test now."
    return [result.sentence, *result.notes, how]


def _lines(comparison: Comparison, result: ComparisonResult) -> list[str]:
    """The result as text: settings by their values, as on the page."""
    lines = [result.sentence, f"{result.voted} of {result.pairs} pairs judged."]
    differing = differences(comparison.plan.settings)
    if len(differing) > 1:
        lines += [
            f"{name}: {', '.join(value_texts(name, values))}" for name, values in differing.items()
        ]
    counts = [result.overall] if result.overall else []
    rows = [(count.label, count) for count in (*counts, *result.parts)]
    rows += [(" against ".join(count.settings), count) for count in result.by_pair]
    lines += [_count_line(label, count, result.kind) for label, count in rows]
    lines += [
        f"{entry.name}: strength {entry.strength:+.2f} ({entry.low:+.2f} to {entry.high:+.2f})"
        for entry in result.ranking
    ]
    return lines + list(result.notes)


def _count_line(label: str, count: Count, kind: str) -> str:
    is_abx = kind == ComparisonKind.ABX
    first, second = ("right", "wrong") if is_abx else count.settings
    low, high = count.interval
    ties = "" if is_abx else f", no difference {count.ties}"
    rate = "" if count.rate is None else f"; {first} {count.rate:.0%} ({low:.0%} to {high:.0%})"
    p = "" if count.p is None else f", p = {count.p:.3f}"
    return f"{label}: {first} {count.first}, {second} {count.second}{ties}{rate}{p}"

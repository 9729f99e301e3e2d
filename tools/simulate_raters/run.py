"""Running simulated experiments in blocks, each with its own seed, on several processes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from tools.simulate_raters.cases import Wanted, all_cases

BLOCK = 500


class Log:
    """The counts of finished blocks, a line of JSON each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks: dict[tuple[str, int, int], dict[str, int]] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            raw = json.loads(line)
            self.blocks[raw["case"], raw["block"], raw["count"]] = raw["counts"]

    def add(self, case: str, block: int, count: int, counts: dict[str, int]) -> None:
        """Append a finished block."""
        self.blocks[case, block, count] = counts
        line = {"case": case, "block": block, "count": count, "counts": counts}
        with open(self.path, "a") as file:
            file.write(json.dumps(line) + "\n")


def blocks_of(experiments: int) -> list[tuple[int, int]]:
    """The number and size of each block."""
    return [
        (number, min(BLOCK, experiments - first))
        for number, first in enumerate(range(0, experiments, BLOCK))
    ]


def run_block(case: str, block: int, count: int) -> dict[str, int]:
    """The counts of a block, always the same for the same arguments."""
    seed = [*case.encode(), block]
    return dict(all_cases()[case].run(count, np.random.default_rng(seed)))


def run_blocks(names: Sequence[str], experiments: int, workers: int, log: Log) -> None:
    """Run all blocks that the log does not have, and log them with the time."""
    missing = [
        (name, block, count)
        for name in names
        for block, count in blocks_of(experiments)
        if (name, block, count) not in log.blocks
    ]
    began = time.monotonic()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(run_block, *one): one for one in missing}
        for done, future in enumerate(as_completed(running), 1):
            log.add(*running[future], future.result())
            seconds = time.monotonic() - began
            print(f"{done} of {len(missing)} blocks, {seconds:.0f} s", flush=True)


def shares_of(name: str, experiments: int, log: Log) -> Iterator[tuple[str, float, Wanted]]:
    """Each share of a case with its bounds."""
    total: Counter[str] = Counter()
    for block, count in blocks_of(experiments):
        total.update(log.blocks[name, block, count])
    wanted = all_cases()[name].wanted()
    for what in wanted:
        yield what, total[what] / experiments, wanted[what]


def table_of(names: Sequence[str], experiments: int, log: Log) -> tuple[str, bool]:
    """The results as Markdown, and whether all are within their bounds."""
    lines, is_good = (
        ["| test | share of experiments | result | wanted |", "|---|---|---|---|"],
        True,
    )
    for name in names:
        for what, share, wanted in shares_of(name, experiments, log):
            fine = wanted.holds(share)
            is_good = is_good and fine
            mark = "" if fine else " (outside)"
            lines.append(f"| {name} | {what} | {share:.1%}{mark} | {_bounds(wanted)} |")
    return "\n".join(lines), is_good


def _bounds(wanted: Wanted) -> str:
    match wanted.low, wanted.high:
        case None, None:
            return "–"
        case None, high:
            return f"at most {high:.1%}"
        case low, None:
            return f"at least {low:.1%}"
        case low, high:
            return f"{low:.1%} to {high:.1%}"

"""Measures nari-labs/dia2's own code beside this program, at the full size with random weights.

    git clone https://github.com/nari-labs/dia2 CHECKOUT
    python -m tools.compare_dia2.measure_speed CHECKOUT --precision int8 int4

Upstream runs in float32, the only precision that it has on a CPU, and decodes with transformers'
Mimi; this program runs `dia_demo bench`. Both use guidance. Needs 5 GB of disk and 12 GB of memory,
and an idle machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import torch

from tools.compare_dia2.make_random_dia2 import SIZES, write_checkpoint
from tools.compare_dia2.upstream import Upstream

SIZE = "dia2-1b"
FRAME_SECONDS = 0.08
# The first steps allocate what the later ones use.
WARM_UP = 3
SCRIPT = "[S1] The river was high that year, and the bridge was closed. [S2] Until when?"


class _EnoughError(Exception):
    """Raised inside upstream's loop after the last step that is measured."""


def upstream_step_seconds(checkout: Path, folder: Path, steps: int) -> float:
    """The median of a step of upstream's generation: all of a frame but its sound."""
    upstream, times = Upstream(checkout, folder), []
    process = upstream.machine.process

    def note(*arguments: Any, **options: Any) -> Any:
        times.append(perf_counter())
        if len(times) > WARM_UP + steps:
            raise _EnoughError
        return process(*arguments, **options)

    with patch.object(upstream.machine, "process", note):
        try:
            upstream.generate(SCRIPT)
        except _EnoughError:
            pass
    spans = [after - before for before, after in zip(times, times[1:], strict=False)][WARM_UP:]
    assert len(spans) == steps, f"upstream ended after {len(times)} steps"
    return statistics.median(spans)


def transformers_frame_seconds(frames: int) -> float:
    """A frame's decoding by transformers' Mimi of kyutai/mimi's size, all frames at once."""
    from transformers import MimiConfig, MimiModel

    model = MimiModel(MimiConfig()).eval()
    codes = torch.randint(0, 2048, (1, 32, frames))
    times = []
    with torch.inference_mode():
        for _ in range(3):
            began = perf_counter()
            model.decode(codes)
            times.append(perf_counter() - began)
    return min(times) / frames


def our_runs(precisions: list[str]) -> list[dict]:
    """What `dia_demo bench` measures, a dictionary for each precision."""
    command = [sys.executable, "-m", "dia_demo", "bench", "--random-weights", SIZE, "--json"]
    done = subprocess.run(
        [*command, "--precision", *precisions], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)["runs"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="a checkout of nari-labs/dia2")
    parser.add_argument("--precision", nargs="+", default=["int8", "int4"])
    parser.add_argument("--steps", type=int, default=20, help="of upstream that are timed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = write_checkpoint(Path(scratch) / SIZE, SIZES[SIZE], seed=0)
        step = upstream_step_seconds(options.checkout, folder, options.steps)
    frame = step + transformers_frame_seconds(frames=125)
    print(f"upstream, float32: {1000 * frame:.0f} ms a frame, {1000 * step:.0f} of them its step;")
    print(f"  {FRAME_SECONDS / frame:.3f} times realtime", flush=True)
    for run in our_runs(options.precision):
        whole = run["realtime_whole"]
        ratio = whole * frame / FRAME_SECONDS
        print(f"{run['precision']}: {whole:.2f} times realtime, {ratio:.1f} times as fast")


if __name__ == "__main__":
    main()

"""Whether a seed fixes a take: fresh processes on a busy machine against one on an idle machine.

Which kernels are right is found out once in a process, and noted in kernels.json. So every process
has a cache folder of its own without that file, and prepares the weights again; only the compiled
kernels are there, since compiling them takes minutes.

This module is also what such a process runs: `python -m tools.voice_bars.seeds OPTIONS`, where the
options are a JSON object of `make_takes`' arguments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import soundfile

from dia_demo.files import ROOT, cache_folder
from dia_demo.machine.system import granted_cores
from dia_demo.model.linear import FLOATS, INTEGERS
from tools.voice_bars import scripts
from tools.voice_bars.bar import Bar, Line, Trial, share_line
from tools.voice_bars.studio import Studio

PRECISIONS = (*INTEGERS, *FLOATS)
SEED, TURNS = 41, 2
# Takes of a process, and the rows of a batch with them.
TAKES, TOGETHER = 5, 8
# Threads and rows of each process after the reference: 40 takes.
WAYS = ((2, TOGETHER), (1, 1), (2, 1), (1, TOGETHER)) * 2
# Until the process that started it has ended, even if that was killed. At a lower priority than the
# takes, which therefore end, but are interrupted all the time.
SPIN = """import os, sys
if hasattr(os, "nice"):
    os.nice(5)
while os.getppid() == int(sys.argv[1]):
    sum(range(100000))
"""


def make_takes(model: str, precision: str, threads: int, rows: int, takes: int) -> Iterator[Trial]:
    """Takes of SEED, one after another or in as many places of a batch of so many rows: SHA-256 of
    the codes, and of the samples of the WAV file, of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        studio = Studio(folder, model, threads)
        studio.runtime = replace(studio.runtime, precision=precision)
        request = studio.request(scripts.dialogue(0, TURNS), seed=SEED)
        batch = [request] * takes
        # Shorter and longer ones around them, so that some end before and some after.
        for row in range(rows - takes):
            beside = studio.request(scripts.dialogue(1 + row, 1 + row), seed=row)
            batch.insert(2 * row, beside)
        for together in [batch] if rows > 1 else [[each] for each in batch]:
            for asked, result in zip(together, studio.takes(together), strict=True):
                if asked is request:
                    path = studio.synthesis.take(request, result).save(folder / "take.wav")
                    samples, _ = soundfile.read(path, dtype="int16")
                    yield describe(result.codes, samples)


def describe(codes: np.ndarray, samples: np.ndarray) -> Trial:
    """The digests of a take."""
    digests = (sha256(np.ascontiguousarray(each).tobytes()) for each in (codes, samples))
    return dict(zip(("codes", "samples"), (each.hexdigest()[:16] for each in digests), strict=True))


@contextmanager
def keep_busy(cores: int) -> Iterator[None]:
    """A process on each core that does nothing but calculate."""
    command = [sys.executable, "-c", SPIN, str(os.getpid())]
    busy = [subprocess.Popen(command) for _ in range(cores)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _trial(studio: Studio, number: int) -> Trial:
    """A process: of each precision first the reference, alone and with one thread."""
    precision, process = PRECISIONS[number % len(PRECISIONS)], number // len(PRECISIONS)
    threads, rows = WAYS[process - 1] if process else (1, 1)
    way = {"precision": precision, "threads": threads, "rows": rows}
    with keep_busy(granted_cores() if process else 0):
        takes = _run_process(studio, way | {"takes": TAKES if process else 1})
    return way | {"is_reference": not process, "made": takes}


def _run_process(studio: Studio, way: dict) -> list[Trial]:
    """The takes of a process of its own. Raises RuntimeError if it failed."""
    compiled = cache_folder() / "kernels"
    compiled.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=studio.work) as cache:
        (Path(cache) / "kernels").symlink_to(compiled.absolute())
        options = json.dumps(way | {"model": studio.runtime.model})
        done = subprocess.run(
            [sys.executable, "-m", "tools.voice_bars.seeds", options],
            cwd=ROOT, env=os.environ | {"DIA_CACHE": cache}, capture_output=True, text=True,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or "no message").splitlines()[-1])
    return json.loads(done.stdout)


def _lines(trials: Sequence[Trial]) -> list[Line]:
    return [_line(name, [t for t in trials if t["precision"] == name]) for name in PRECISIONS]


def _line(precision: str, trials: Sequence[Trial]) -> Line:
    title = f"{precision}: takes of a seed with the codes and WAV samples of the reference"
    references = [trial["made"][0] for trial in trials if trial["is_reference"]]
    others = [trial for trial in trials if not trial["is_reference"]]
    if not references or not others:
        return Line(title, "≥ 100%", 0, "nothing to compare", False)
    same, wrong = [], set()
    for trial in others:
        for take in trial["made"]:
            differ = [what for what in take if take[what] != references[0][what]]
            same.append(not differ)
            way = f"{trial['threads']} threads, {trial['rows']} rows"
            wrong |= {f"{what} differ with {way}" for what in differ}
    note = f"{len(others)} processes without kernels.json, all cores busy"
    return share_line(title, 1, same, "; ".join([note, *sorted(wrong)]))


COUNT = len(PRECISIONS) * (1 + len(WAYS))
BARS = (Bar("seeds", COUNT, 2 * len(PRECISIONS), _trial, _lines),)

if __name__ == "__main__":
    print(json.dumps(list(make_takes(**json.loads(sys.argv[1])))))

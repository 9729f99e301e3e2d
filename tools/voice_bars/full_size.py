"""Dia-1.6B's size with random weights: everything runs; what a batch of chunks is worth."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from dia_demo.families.dia.profiles import DIA_NAME
from dia_demo.files import ROOT, new_folder
from dia_demo.machine.processor import has_avx512
from dia_demo.machine.system import granted_cores
from dia_demo.services.measurements.fixtures import load_engine
from dia_demo.services.measurements.types import Job, JobKind
from tools.compare_speed import ours, take_turns
from tools.make_random_dia import CODECS, SIZES, TINY, write_checkpoint, write_codec
from tools.voice_bars.bar import Bar, Line, Trial
from tools.voice_bars.studio import Studio

SCRIPT = "[S1] A first line of words. (pause 0.5) [S2] And then a second one. (pause 0.5) [S1] Bye."
# Random weights never end by themselves: two seconds of each chunk, and its prompt.
TOKENS = 160
UNRELIABLE = "does not report"
TOGETHER, STEPS, SPEED_RUNS = 8, 40, 20
FASTER = {True: 2.5, False: 1.6}  # with AVX-512, and without


def _checkpoint(studio: Studio) -> Path:
    """A folder with the weights and the codec, written once."""
    folder = studio.work / ("random-tiny" if studio.is_quick else "random-dia")
    if not folder.exists():
        size = "tiny" if studio.is_quick else "dia-1.6b"
        with new_folder(folder) as part:
            write_checkpoint(part, TINY if studio.is_quick else SIZES[size], "transformers")
            write_codec(part / "codec", CODECS[size])
    return folder


def _random_trial(studio: Studio, number: int) -> Trial:
    """`say` in chunks, with subtitles and words: both joins in turn."""
    join = ("steady", "flowing")[number % 2]
    model = str(_checkpoint(studio))
    with tempfile.TemporaryDirectory(dir=studio.work) as name:
        folder = Path(name)
        command = [
            sys.executable, "-m", "dia_demo", "say", SCRIPT, "-o", str(folder / "out.wav"),
            "--model", model, "--precision", "int8", "--max-tokens", str(3 * TOKENS), "--join",
            join, "--retries", "0", "--seed", str(number), "--json",
            "--words", str(folder / "w.json"), "--subtitles", str(folder / "s.vtt"),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        words = json.loads((folder / "w.json").read_text()) if not done.returncode else []
    figures = json.loads(done.stdout) if not done.returncode else {}
    return {
        "join": join,
        "ran": not done.returncode,
        "message": done.stderr.strip()[-500:],
        "unreliable": UNRELIABLE in done.stderr,
        "turns": sorted({word["turn"] for word in words}),
        "words": len(words),
        "verdicts": [chunk["verdict"] for chunk in figures.get("chunks", [])],
        "seconds": figures.get("audio_seconds"),
    }


def _lines_of_random(trials: Sequence[Trial]) -> list[Line]:
    ran = sum(trial["ran"] for trial in trials)
    # One time for each part, and none of single words.
    honest = sum(
        trial["unreliable"] and trial["words"] == len(trial["verdicts"]) for trial in trials
    )
    count = len(trials)
    return [
        Line("full size, random weights: everything runs", "all", count, str(ran), ran == count),
        Line(
            "the same: the times of words are said to be not reliable", "all", count, str(honest),
            honest == count,
        ),
    ]  # fmt: skip


def _together_trial(studio: Studio, number: int) -> Trial:
    """Seconds of steps of one chunk and of TOGETHER, taking turns. Needs an idle machine."""
    began = time.time()
    torch.set_num_threads(studio.threads or granted_cores())
    engine = _engine(studio)
    tokens = STEPS + 40
    sides = {str(rows): ours(engine.model, rows, 2 * tokens) for rows in (1, TOGETHER)}
    times = take_turns(sides, STEPS)
    one, many = (sorted(times[name])[len(times[name]) // 2] for name in ("1", str(TOGETHER)))
    return {"one": one, "many": many, "faster": TOGETHER * one / many, "took": time.time() - began}


_engines: dict = {}


def _engine(studio: Studio):
    """The engine with random weights in int8, kept for the next trial."""
    if not _engines:
        job = Job(JobKind.RUN, DIA_NAME, random="dia-1.6b", precision="int8")
        _engines["int8"] = load_engine(replace(job, threads=studio.threads), lambda *_: None)
    return _engines["int8"]


def _lines_of_together(trials: Sequence[Trial]) -> list[Line]:
    faster = sorted(trial["faster"] for trial in trials)[len(trials) // 2]
    goal = FASTER[has_avx512()]
    title = f"{TOGETHER} chunks together against one after another, full size, int8"
    return [Line(title, f"≥ {goal:g} times", len(trials), f"{faster:.2f} times", faster >= goal)]


BARS = (
    Bar("random", 2, 2, _random_trial, _lines_of_random),
    Bar("together", SPEED_RUNS, 0, _together_trial, _lines_of_together, on_request=True),
)

"""What evaluate.py tries through the app's own service: speed, settings, size."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from dia_demo.config import GenerationParams, RuntimeConfig
from dia_demo.engine.events import Failed, Finished
from dia_demo.families.resolve import resolve
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, VoicePrompt
from training.voice.corpus import heldout
from training.voice.judge.trials import Line

SPEED_RUNS = 5
FASTER = 20  # than realtime
SPEED_SCRIPT = " ".join(f"[S{1 + k % 2}] {s}" for k, s in enumerate(heldout.NATURAL[:5])) + " [S1]"
OTHER = {"temperature": 1.0, "cfg_scale": 3.0}  # what a changed setting is changed to


class App:
    """Takes as `python -m dia_demo say` makes them, with the model kept in memory between them."""

    def __init__(self, model: str, params: GenerationParams, threads: int) -> None:
        self.runtime = RuntimeConfig(model=model, threads=threads)
        self.synthesis, self.params = Synthesis(Settings.from_env()), params

    def say(self, script: str, voice: VoicePrompt | None = None, *, seed: int = 0, **changes):
        """(the Take, its Figures). Seeds count from that of `params`."""
        params = replace(self.params, seed=self.params.seed + seed, **changes)
        request = Request(
            script=script,
            params=params,
            model=resolve(self.runtime.model),
            runtime=self.runtime,
            voice=voice,
        )
        for event in self.synthesis.stream(request, threading.Event()):
            if isinstance(event, Failed):
                raise RuntimeError(event.message)
            if isinstance(event, Finished):
                return self.synthesis.take(request, event.result), event.result.figures
        raise RuntimeError("the stream ended without a take")


def speed(app: App) -> Line:
    """Seconds of audio a second, whole pipeline, one take at a time, the median of some."""
    app.say(SPEED_SCRIPT)
    factors = [app.say(SPEED_SCRIPT, seed=k)[1].realtime_factor for k in range(SPEED_RUNS)]
    value = float(np.median(factors))
    notes = {"all": [round(f, 2) for f in factors]}
    name, goal = "speed, times realtime", f"≥ {FASTER}"
    return Line(name, "both", SPEED_RUNS, value, goal, value >= FASTER, notes=notes)


def _unlike(a: np.ndarray, b: np.ndarray) -> float:
    """Share of the first codebook's codes that differ, frame by frame; lengths count too."""
    n = min(len(a), len(b))
    return float(1 - (a[:n, 0] == b[:n, 0]).sum() / max(len(a), len(b)))


def settings(app: App, count: int = 10) -> Iterator[Line]:
    """How far takes differ when one setting changes; temperature 0 must give the same again."""
    scripts = [f"[S{1 + k % 2}] {s}" for k, s in enumerate(heldout.NATURAL[:count])]

    def codes(**changes):
        return [app.say(s, **changes)[0].codes for s in scripts]

    usual, cold = codes(seed=0), codes(temperature=0.0, seed=0)
    same = all(
        np.array_equal(a, b) for a, b in zip(cold, codes(temperature=0.0, seed=1), strict=True)
    )
    yield Line("temperature 0 repeats itself", "both", count, float(same), "yes", same)
    changed = {
        "seed": (usual, codes(seed=1)),
        "temperature": (usual, codes(seed=0, temperature=OTHER["temperature"])),
        "CFG scale": (cold, codes(seed=0, temperature=0.0, cfg_scale=OTHER["cfg_scale"])),
    }
    for name, (before, after) in changed.items():
        apart = [_unlike(a, b) for a, b in zip(before, after, strict=True)]
        yield Line(
            f"{name} changes the take: share of codes",
            "both",
            count,
            float(np.mean(apart)),
            "> 0, each take",
            min(apart) > 0,
        )


def size(folder: Path) -> Iterator[Line]:
    """Megabytes of the shipped folder, and of its largest file."""
    sizes = [p.stat().st_size / 1e6 for p in folder.rglob("*") if p.is_file()]
    yield Line("size, MB", "-", len(sizes), sum(sizes), "≤ 30", sum(sizes) <= 30)
    yield Line("largest file, MB", "-", len(sizes), max(sizes), "< 10", max(sizes) < 10)

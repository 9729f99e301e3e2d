"""The audio of running takes, kept for the page to fetch while they are made.

The page pulls: its small player asks for what follows the samples it already has, whenever it
needs more. Nothing is re-encoded, nothing is sent to a page that does not listen, and a lost or
merged update of the page loses no sound.
"""

from __future__ import annotations

import base64
import secrets
import threading
from collections import OrderedDict

import numpy as np

from dia_demo import audio

# A take is at most a few megabytes; of more runs than this, the oldest that have ended go.
KEPT_RUNS = 12


class LiveRun:
    """One take in the making. `token` is its name to the page, and cannot be guessed."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(12)
        self.sample_rate = 0
        self.done = False
        self._chunks: list[np.ndarray] = []
        self._samples = 0

    def add(self, samples: np.ndarray, sample_rate: int) -> None:
        """Append float32 [n] to what can be heard."""
        chunk = audio.to_int16(samples)
        self.sample_rate = sample_rate
        self._chunks.append(chunk)
        self._samples += len(chunk)

    def state(self) -> dict:
        """What the page's player is told with every update."""
        ready = self._samples / self.sample_rate if self.sample_rate else 0.0
        return {"run": self.token, "ready": round(ready, 2), "done": self.done}

    def after(self, start: int) -> dict:
        """Samples from `start` on: base64 of little-endian int16, and whether more may come."""
        # `done` is read first: a chunk added in between is then fetched by the next call.
        done, made = self.done, np.concatenate([np.zeros(0, np.int16), *self._chunks])
        pcm = made[max(0, start) :].astype("<i2").tobytes()
        return {
            "pcm": base64.b64encode(pcm).decode("ascii"),
            "rate": self.sample_rate,
            "done": done,
        }


class LiveAudio:
    """The runs whose audio can be heard, the latest few."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, LiveRun] = OrderedDict()
        self._lock = threading.Lock()

    def admit(self, run: LiveRun) -> None:
        """Let a run that has its place in the engine be heard. One that is not over never goes."""
        with self._lock:
            self._runs[run.token] = run
            ended = [token for token, one in self._runs.items() if one.done]
            for token in ended[: max(0, len(self._runs) - KEPT_RUNS)]:
                del self._runs[token]

    def answer(self, question: object) -> dict:
        """Answer the page's player, which asks {run, from}: the token and the first sample."""
        asked = question if isinstance(question, dict) else {}
        start = asked.get("from")
        return self.after(str(asked.get("run")), start if type(start) is int else 0)

    def after(self, token: str, start: int) -> dict:
        """See `LiveRun.after`; a run no longer kept is silent and done."""
        with self._lock:
            run = self._runs.get(token)
        return run.after(start) if run else {"pcm": "", "rate": 0, "done": True}

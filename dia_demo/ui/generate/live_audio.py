"""The audio of running takes, which the page's player requests while they are generated.

The player requests the samples after those it already has. So nothing is encoded twice, nothing is
sent to a page that does not listen, and a lost or merged update of the page loses no audio.
"""

from __future__ import annotations

import base64
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from dia_demo import audio
from dia_demo.engine.events import Progress, Started
from dia_demo.engine.time_left import TimeLeft
from dia_demo.services.dialogue.subtitles import cue_rows
from dia_demo.services.take import TimedWord

# A take is at most a few megabytes; beyond this number the oldest finished runs are removed.
KEPT_RUNS = 12


def no_notice(sample_rate: int) -> np.ndarray:
    """The samples before a take where there is to be nothing."""
    return np.zeros(0, np.float32)


class LiveRun:
    """The audio of one running take, as its file will have it. `token` identifies it and cannot be
    guessed. notice: the samples before the take, float32 [n] at a rate in Hz."""

    def __init__(self, notice: Callable[[int], np.ndarray] = no_notice) -> None:
        self._notice, self._notice_seconds = notice, 0.0
        self.token = secrets.token_urlsafe(12)
        self.sample_rate = 0
        self.done = False
        # What the player needs of the finished take (`take_files.player_take`).
        self.take: dict | None = None
        self._words: dict = {}
        self._total: float | None = None
        self._left: TimeLeft | None = None
        self._lag = 0.0
        self._chunks: list[np.ndarray] = []
        self._samples = 0

    def start(self, event: Started) -> None:
        """The run has a model, whose rate is known from now on."""
        self.sample_rate = event.sample_rate

    def expect(self, progress: Progress) -> None:
        """Update the estimates of the whole take's length and of the time that it still needs."""
        self._total, self._left = progress.expected_seconds, progress.left
        made = self._notice_seconds + progress.audio_seconds
        self._lag = max(self._lag, made - self._ready)

    def tell(self, words: Sequence[TimedWord], script: str) -> None:
        """Set the words of the script that have begun, in seconds of the take."""
        shifted = [word.shift(self._notice_seconds) for word in words]
        self._words = {"script": script, "cues": cue_rows(shifted)}

    def expect_whole(self, seconds: float, left: TimeLeft | None) -> None:
        """The same for a dialogue, whose parts become audible one after another."""
        self._total, self._left = seconds, left

    def add(self, samples: np.ndarray, sample_rate: int) -> None:
        """Append float32 [n]."""
        self.sample_rate = sample_rate
        if not self._chunks:
            notice = self._notice(sample_rate)
            self._notice_seconds = len(notice) / sample_rate
            samples = np.concatenate([notice, samples])
        chunk = audio.to_int16(samples)
        self._chunks.append(chunk)
        self._samples += len(chunk)

    def state(self) -> dict:
        """The value of the page's player, part of every update, with the take once there is one.

        In seconds: `ready` to be heard, `total` of the whole take, `left` until it is complete
        (both estimates, None before there is one), and `lag`, the audio of tokens that is not ready
        yet, at most. `cues` and `script`: the words that have begun, of models that know them.
        """
        state = {
            "run": self.token,
            "rate": self.sample_rate,
            "ready": int(100 * self._ready) / 100,  # Not more than there is, by rounding.
            "done": self.done,
            "total": self._total and round(self._notice_seconds + self._total, 2),
            "left": self._left and round(self._left.mean, 2),
            "lag": round(self._lag, 2),
        }
        return state | self._words | ({} if self.take is None else {"take": self.take})

    @property
    def _ready(self) -> float:
        return self._samples / self.sample_rate if self.sample_rate else 0.0

    @property
    def has_sound(self) -> bool:
        """Whether some of it can be heard."""
        return self._samples > 0

    def read_from(self, start: int) -> dict:
        """Samples from `start` on as base64 of little-endian int16, and whether it is done."""
        # `done` is read first: the next call returns a chunk that is added in between.
        done, made = self.done, np.concatenate([np.zeros(0, np.int16), *self._chunks])
        pcm = made[max(0, start) :].astype("<i2").tobytes()
        return {
            "pcm": base64.b64encode(pcm).decode("ascii"),
            "rate": self.sample_rate,
            "done": done,
        }


class LiveAudio:
    """The latest runs."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, LiveRun] = OrderedDict()
        self._lock = threading.Lock()

    def admit(self, run: LiveRun) -> None:
        """Add a run that has started. A run is never removed before it is done."""
        with self._lock:
            self._runs[run.token] = run
            ended = [token for token, stored in self._runs.items() if stored.done]
            for token in ended[: max(0, len(self._runs) - KEPT_RUNS)]:
                del self._runs[token]

    def answer(self, question: object) -> dict:
        """Answer the page's player, which asks {run, from}: the token and the first sample."""
        query = question if isinstance(question, dict) else {}
        start = query.get("from")
        return self.read_from(str(query.get("run")), start if type(start) is int else 0)

    def read_from(self, token: str, start: int) -> dict:
        """See `LiveRun.read_from`. An unknown run is empty and done."""
        with self._lock:
            run = self._runs.get(token)
        return run.read_from(start) if run else {"pcm": "", "rate": 0, "done": True}

"""A model on a device, in the device's own process: the loop calls it like any other.

`RemoteDia` sends codes and gets logits; `serve` is the other side. When the device hangs or aborts
its process is ended, its memory goes with it, and the program works on.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dia_demo.accelerator.backend import Backend, Card, explain
from dia_demo.accelerator.device_model import Hybrid
from dia_demo.accelerator.guard import Limits
from dia_demo.accelerator.process import DeviceProcess, Failure
from dia_demo.checkpoint_config import read_model_config
from dia_demo.config import ModelConfig
from dia_demo.errors import RunError
from dia_demo.model import checkpoint
from dia_demo.model.kv_cache import RowCache
from dia_demo.task import Task


@dataclass(frozen=True)
class RunSpec:
    """What the device's process needs. `open` makes the Backend there; `card` must answer."""

    open: Callable[[], Backend]
    folder: Path
    precision: str
    card: Card
    threads: int
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Ready:
    """The model is on the device; `used` bytes of it are taken."""

    used: int


@dataclass(frozen=True)
class Encode:
    """Ask for a row's encoder states. `freed`: caches of rows that ended."""

    text: bytes
    guidance: bool
    max_positions: int
    freed: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """Ask for one decoder step: a code per channel, and the cache of each row."""

    codes: np.ndarray
    caches: tuple[int, ...]
    freed: tuple[int, ...]


@dataclass(frozen=True)
class Encoded:
    """The row's cache has this number; `halves` slots of the batch are its own."""

    number: int
    halves: int


@dataclass(frozen=True)
class Stepped:
    """float32 logits, bytes in use beyond the rows' caches, and the drift where it was measured."""

    logits: np.ndarray
    used: int
    drift: float


class RemoteCache:
    """A row's cache, which lies in the device's process under a number."""

    def __init__(self, number: int, halves: int) -> None:
        self.number, self.halves = number, halves


class RemoteDia:
    """A Dia whose forward passes happen elsewhere. Any call may raise RunError: then it is over,
    and only `close` is left to call."""

    device = torch.device("cpu")

    def __init__(self, process: DeviceProcess, config: ModelConfig, limits: Limits, used: int):
        self.config = config
        self._process, self._limits, self._used = process, limits, used
        self._freed: list[int] = []
        self._steps = 0

    @classmethod
    def load(cls, spec: RunSpec) -> Generator[float, None, RemoteDia]:
        """Start the process and load the model there; yields the fraction done."""
        config = read_model_config(spec.folder)
        process = DeviceProcess(serve, spec)
        try:
            while not isinstance(
                answer := process.receive(spec.limits.loading_seconds, "loading the model"), Ready
            ):
                yield answer
        except BaseException:
            process.close()
            raise
        return cls(process, config, spec.limits, answer.used)

    def encode(self, text: bytes, guidance: bool, max_positions: int) -> RemoteCache:
        self._process.send(Encode(text, guidance, max_positions, self._take_freed()))
        answer = self._process.receive(self._limits.loading_seconds, "reading the script")
        cache = RemoteCache(answer.number, answer.halves)
        weakref.finalize(cache, self._freed.append, answer.number)
        return cache

    def __call__(self, codes_BTC: Tensor, caches: Sequence[RemoteCache]) -> Tensor:
        """Logits [B, T, C, V] float32. Raises RunError for all that `watch` is about."""
        self._steps += 1
        doing = f"step {self._steps}"
        numbers = tuple(cache.number for cache in caches)
        self._process.send(Step(codes_BTC.numpy(), numbers, self._take_freed()))
        answer = self._process.receive(self._limits.step_seconds, doing)
        logits = torch.from_numpy(answer.logits)
        if not logits.isfinite().all():
            raise RunError(f"{doing}: NaN or infinity among the logits")
        if answer.drift > self._limits.drift:
            raise RunError(
                f"{doing}: the same step, done again, gives other numbers (off by "
                f"{answer.drift:.1e}, allowed {self._limits.drift:.0e}): the device drifts"
            )
        growth = answer.used - self._used
        if growth > self._limits.memory_slack:
            raise RunError(f"{doing}: memory grew by {growth / 2**20:.0f} MiB and keeps growing")
        return logits

    def close(self) -> None:
        """End the device's process."""
        self._process.close()

    def _take_freed(self) -> tuple[int, ...]:
        freed = tuple(self._freed)
        del self._freed[: len(freed)]
        return freed


def serve(pipe: Connection, spec: RunSpec) -> None:
    """In the device's process: load, then answer until the other side is gone."""
    torch.set_num_threads(spec.threads)
    try:
        hybrid = _load(pipe, spec)
        server = _Server(hybrid, spec.limits)
        while True:
            message = pipe.recv()
            server.forget(message.freed)
            pipe.send(server.answer(message))
    except (EOFError, BrokenPipeError):
        return
    except Exception as error:
        with suppress(OSError):  # Nobody may be left to be told.
            pipe.send(Failure(explain(error)))


def _load(pipe: Connection, spec: RunSpec) -> Hybrid:
    """Load the model, telling how far it is."""
    backend = spec.open()
    found = backend.card()
    if found != spec.card:
        raise RunError(f"another card answers: {found.name}, not {spec.card.name}")
    loading = Task(checkpoint.load(spec.folder, spec.precision, str(backend.device)))
    for fraction in loading:
        pipe.send(fraction)
    hybrid = Hybrid(loading.result, backend)
    hybrid.drift()
    backend.synchronize()
    pipe.send(Ready(backend.memory().used))
    return hybrid


class _Server:
    """The rows that run in the device's process."""

    def __init__(self, hybrid: Hybrid, limits: Limits) -> None:
        self._hybrid, self._limits = hybrid, limits
        self._caches: dict[int, RowCache] = {}
        self._made = self._steps = 0

    def forget(self, freed: Sequence[int]) -> None:
        for number in freed:
            self._caches.pop(number, None)

    def answer(self, message: Encode | Step) -> Encoded | Stepped:
        if isinstance(message, Encode):
            cache = self._hybrid.encode(message.text, message.guidance, message.max_positions)
            self._made += 1
            self._caches[self._made] = cache
            return Encoded(self._made, cache.halves)
        caches = [self._caches[number] for number in message.caches]
        logits = self._hybrid(torch.from_numpy(message.codes), caches)
        self._steps += 1
        again = self._steps % self._limits.drift_every == 0
        drift = self._hybrid.drift() if again else 0.0
        return Stepped(logits.numpy(), self._used(), drift)

    def _used(self) -> int:
        """Beyond the caches of running rows, which may hold old and new slots while they grow."""
        caches = 3 * sum(cache.size_bytes for cache in self._caches.values())
        return self._hybrid.backend.memory().used - caches

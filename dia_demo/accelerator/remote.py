"""A model on a device, in the device's own process.

`RemoteModel` sends codes and receives logits; `serve` runs in the other process. When the device
hangs or aborts, its process is killed, which frees its memory, and the program continues.
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
from dia_demo.accelerator.device_model import DeviceModel
from dia_demo.accelerator.guard import Limits
from dia_demo.accelerator.process import DeviceProcess
from dia_demo.config import ModelConfig
from dia_demo.errors import RunError
from dia_demo.machine.child_process import Failure
from dia_demo.model.kv_cache import RowCache
from dia_demo.model.weights import checkpoint
from dia_demo.task import Task


@dataclass(frozen=True)
class RunSpec:
    """What the device's process needs. `open` creates the Backend there, which must be `card`."""

    open: Callable[[], Backend]
    folder: Path
    config: ModelConfig
    precision: str
    card: Card
    threads: int
    limits: Limits = field(default_factory=Limits)


# Messages. `freed` are the numbers of caches that the program no longer needs.


@dataclass(frozen=True)
class ModelLoaded:
    """The model is on the device and takes `used` bytes of its memory."""

    used: int


@dataclass(frozen=True)
class EncodeRequest:
    """Encode a row's text."""

    text: bytes
    cfg_scale: float
    max_positions: int
    freed: tuple[int, ...]


@dataclass(frozen=True)
class EncodeReply:
    """The number of the row's cache, and its branches."""

    number: int
    branches: int


@dataclass(frozen=True)
class StepRequest:
    """Feed codes [B, T, C] to the rows of these caches; or, for a further frame of the same step,
    codes [B, C]. frame: its number, 0 for a new step."""

    codes: np.ndarray
    caches: tuple[int, ...]
    freed: tuple[int, ...]
    frame: int = 0


@dataclass(frozen=True)
class StepReply:
    """float32 logits, bytes in use beyond the rows' caches, the drift where it was measured, and
    the caches' `text_place` after a new step."""

    logits: np.ndarray
    used: int
    drift: float
    places: tuple[int | None, ...] = ()


class RemoteCache:
    """The number of a row's cache in the device's process."""

    def __init__(self, number: int, branches: int) -> None:
        self.number, self.branches = number, branches
        self.text_place: int | None = None


class RemoteModel:
    """A DecoderModel whose forward passes run in the device's process.

    Any call may raise RunError. After that only `close` can be called.
    """

    can_prefill_ahead = False

    def __init__(
        self, process: DeviceProcess, config: ModelConfig, limits: Limits, used: int
    ) -> None:
        self.config = config
        self._process, self._limits, self._used_bytes = process, limits, used
        self._freed: list[int] = []
        self._steps = 0

    @classmethod
    def load(cls, spec: RunSpec) -> Generator[float, None, RemoteModel]:
        """Start the process and load the model there; yields the fraction loaded."""
        process = DeviceProcess(serve, spec)
        limit, action = spec.limits.loading_seconds, "loading the model"
        try:
            while not isinstance(answer := process.answer(limit, action), ModelLoaded):
                yield answer
        except BaseException:
            process.close()
            raise
        return cls(process, spec.config, spec.limits, answer.used)

    def encode(self, text: bytes, cfg_scale: float, max_positions: int) -> RemoteCache:
        self._process.send(EncodeRequest(text, cfg_scale, max_positions, self._take_freed()))
        reply = self._process.answer(self._limits.loading_seconds, "reading the script")
        cache = RemoteCache(reply.number, reply.branches)
        weakref.finalize(cache, self._freed.append, reply.number)
        return cache

    def __call__(self, codes_BTC: Tensor, caches: Sequence[RemoteCache]) -> Tensor:
        """Logits [B, T, C, V] float32. Raises RunError if one of the Limits is exceeded."""
        self._steps += 1
        return self._step(codes_BTC, caches, 0)

    def next_frame(self, codes_BC: Tensor, caches: Sequence[RemoteCache], number: int) -> Tensor:
        """As `Decoder.next_frame`; raises as a step does."""
        return self._step(codes_BC, caches, number)

    def _step(self, codes: Tensor, caches: Sequence[RemoteCache], frame: int) -> Tensor:
        action = f"step {self._steps}"
        numbers = tuple(cache.number for cache in caches)
        self._process.send(StepRequest(codes.numpy(), numbers, self._take_freed(), frame))
        reply = self._process.answer(self._limits.step_seconds, action)
        logits = torch.from_numpy(reply.logits)
        if not logits.isfinite().all():
            raise RunError(f"{action}: NaN or infinity among the logits")
        if reply.drift > self._limits.drift:
            raise RunError(
                f"{action}: the same step, run again, gave different numbers (off by "
                f"{reply.drift:.1e}, allowed {self._limits.drift:.0e}): the device drifts"
            )
        for cache, place in zip(caches, reply.places, strict=not frame):
            cache.text_place = place
        growth = reply.used - self._used_bytes
        if growth > self._limits.memory_slack:
            raise RunError(f"{action}: memory grew by {growth / 2**20:.0f} MiB and keeps growing")
        return logits

    def close(self) -> None:
        """End the device's process."""
        self._process.close()

    def _take_freed(self) -> tuple[int, ...]:
        freed = tuple(self._freed)
        del self._freed[: len(freed)]
        return freed


def serve(pipe: Connection, spec: RunSpec) -> None:
    """Runs in the device's process: load the model, then answer until the pipe is closed."""
    torch.set_num_threads(spec.threads)
    try:
        server = RowServer(_load(pipe, spec), spec.limits)
        while True:
            message = pipe.recv()
            server.forget(message.freed)
            pipe.send(server.answer(message))
    except (EOFError, BrokenPipeError):
        return
    except Exception as error:
        with suppress(OSError):  # The program may have closed the pipe.
            pipe.send(Failure(explain(error)))


def _load(pipe: Connection, spec: RunSpec) -> DeviceModel:
    """Load the model and send the fraction loaded."""
    backend = spec.open()
    card = backend.card()
    if card != spec.card:
        raise RunError(f"a different card responded: {card.name}, not {spec.card.name}")
    device = str(backend.device)
    loading = Task(checkpoint.load(spec.folder, spec.precision, device, config=spec.config))
    for fraction in loading:
        pipe.send(fraction)
    model = DeviceModel(loading.result, backend)
    model.drift()
    backend.synchronize()
    pipe.send(ModelLoaded(backend.memory().used))
    return model


class RowServer:
    """The caches of the rows that run in the device's process, by number."""

    def __init__(self, model: DeviceModel, limits: Limits) -> None:
        self._model, self._limits = model, limits
        self._caches: dict[int, RowCache] = {}
        self._rows = self._steps = 0

    def forget(self, freed: Sequence[int]) -> None:
        for number in freed:
            self._caches.pop(number, None)

    def answer(self, message: EncodeRequest | StepRequest) -> EncodeReply | StepReply:
        if isinstance(message, EncodeRequest):
            cache = self._model.encode(message.text, message.cfg_scale, message.max_positions)
            self._rows += 1
            self._caches[self._rows] = cache
            return EncodeReply(self._rows, cache.branches)
        caches = [self._caches[number] for number in message.caches]
        codes = torch.from_numpy(message.codes)
        if message.frame:
            logits = self._model.next_frame(codes, caches, message.frame)
            return StepReply(logits.numpy(), self._used_bytes(), 0.0)
        logits = self._model(codes, caches)
        self._steps += 1
        is_due = self._steps % self._limits.drift_every == 0
        drift = self._model.drift() if is_due else 0.0
        places = tuple(cache.text_place for cache in caches)
        return StepReply(logits.numpy(), self._used_bytes(), drift, places)

    def _used_bytes(self) -> int:
        """Beyond the caches of running rows, which hold old and new slots while they grow."""
        caches = 3 * sum(cache.size_bytes for cache in self._caches.values())
        return self._model.backend.memory().used - caches

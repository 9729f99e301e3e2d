"""What a student saves: decoder steps of teacher and student in turns, and the bytes of caches.

Speed and memory do not depend on the values of weights, so both are random.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from torch import Tensor

from dia_demo.config import ModelConfig
from dia_demo.engine.batch import Batch
from dia_demo.model.cpu_model import CpuModel
from dia_demo.model.kv_cache import RowCache
from dia_demo.model.loading import random_model
from dia_demo.services.measurements.fixtures import make_rows
from dia_demo.task import result_of

# Frames of each model before the other one's turn, so that a disturbance hits both; and before all.
IN_TURN, WARM_UP = 12, 12


@dataclass(frozen=True)
class Saving:
    """Of a batch of rows: milliseconds of a frame, bytes of caches.

    *_ms includes sampling and what Python does between two frames; *_decoder_ms is the decoder's
    part of it.
    """

    rows: int
    teacher_ms: float
    student_ms: float
    teacher_decoder_ms: float
    student_decoder_ms: float
    teacher_cache: int
    student_cache: int

    @property
    def time_ratio(self) -> float:
        return self.student_ms / self.teacher_ms

    @property
    def decoder_ratio(self) -> float:
        return self.student_decoder_ms / self.teacher_decoder_ms

    @property
    def memory_ratio(self) -> float:
        return self.student_cache / self.teacher_cache


class TimedModel:
    """A model as a Batch steps it; adds up its `seconds`."""

    def __init__(self, model: CpuModel) -> None:
        self._model, self.config, self.seconds = model, model.config, 0.0

    def __call__(self, codes_BTC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        return self._time_call(self._model, codes_BTC, caches)

    def next_frame(self, codes_BC: Tensor, caches: Sequence[RowCache], number: int) -> Tensor:
        return self._time_call(self._model.next_frame, codes_BC, caches, number)

    def _time_call(self, run: Callable[..., Tensor], *arguments: object) -> Tensor:
        began = perf_counter()
        logits = run(*arguments)
        self.seconds += perf_counter() - began
        return logits


class Stepper:
    """Rows with guidance that advance together on one model."""

    def __init__(self, model: CpuModel, rows: int, text_bytes: int, frames: int) -> None:
        config = model.config
        tokens = frames + WARM_UP + IN_TURN + config.max_delay + 2
        made = make_rows(config, rows, text_bytes, tokens)
        self.caches, self._frames = [], config.frames_per_step
        for row in made:
            cache = model.encode(row.text, row.params.cfg_scale, row.max_steps)
            assert isinstance(cache, RowCache)
            row.cache = cache
            self.caches.append(cache)
        self._model = TimedModel(model)
        self.batch = Batch(self._model, made)
        self.milliseconds(WARM_UP)

    def milliseconds(self, frames: int = IN_TURN) -> list[tuple[float, float]]:
        """Of a frame, and of the decoder in it, in each of the steps of the next `frames`."""
        times = []
        for _ in range(frames // self._frames):
            began, before = perf_counter(), self._model.seconds
            self.batch.step()
            seconds = perf_counter() - began, self._model.seconds - before
            times.append(tuple(1000 * each / self._frames for each in seconds))
        return times

    @property
    def cache_bytes(self) -> int:
        return sum(cache.size_bytes for cache in self.caches)


def measure(
    config: ModelConfig,
    precision: str,
    threads: int,
    rows: int,
    text_bytes: int,
    frames: int,
    frames_per_step: int = 1,
) -> Saving:
    """Medians over about `frames` frames of each model; frames_per_step: of the student."""
    student_config = replace(
        config, guidance_scales=config.cfg_scales, frames_per_step=frames_per_step
    )
    steppers, times = [], []
    for each in (config, student_config):
        model = result_of(random_model(each, precision, threads)).model
        steppers.append(Stepper(model, rows, text_bytes, frames))
        times.append([])
    for _ in range(frames // IN_TURN):
        for stepper, own in zip(steppers, times, strict=True):
            own.extend(stepper.milliseconds())
    frame_ms, decoder_ms = zip(
        *(map(statistics.median, zip(*own, strict=True)) for own in times), strict=True
    )
    caches = [stepper.cache_bytes for stepper in steppers]
    return Saving(rows, *frame_ms, *decoder_ms, *caches)

"""What a student saves: decoder steps of teacher and student in turns, and the bytes of caches.

Speed and memory do not depend on the values of weights, so both are random.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from time import perf_counter

from dia_demo.config import ModelConfig
from dia_demo.engine.loop import Batch
from dia_demo.model.cpu_model import CpuModel
from dia_demo.model.kv_cache import RowCache
from dia_demo.model.loading import random_model
from dia_demo.services.bench.fixtures import make_rows
from dia_demo.task import result_of

# Frames of each model before the other one's turn, so that a disturbance hits both; and before all.
IN_TURN, WARM_UP = 12, 12


@dataclass(frozen=True)
class Saving:
    """Of a batch of rows: milliseconds of a frame, sampling included, and bytes of caches."""

    rows: int
    teacher_ms: float
    student_ms: float
    teacher_cache: int
    student_cache: int

    @property
    def time_ratio(self) -> float:
        return self.student_ms / self.teacher_ms

    @property
    def memory_ratio(self) -> float:
        return self.student_cache / self.teacher_cache


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
        self.batch = Batch(model, made)
        self.milliseconds(WARM_UP)

    def milliseconds(self, frames: int = IN_TURN) -> list[float]:
        """Of a frame, in each of the steps of the next `frames`."""
        times = []
        for _ in range(frames // self._frames):
            began = perf_counter()
            self.batch.step()
            times.append(1000 * (perf_counter() - began) / self._frames)
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
    medians = [statistics.median(own) for own in times]
    caches = [stepper.cache_bytes for stepper in steppers]
    return Saving(rows, *medians, *caches)

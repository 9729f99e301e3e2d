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
from dia_demo.services.bench.fixtures import frames_of, make_rows
from dia_demo.task import result_of

IN_TURN = 5  # Steps of each model before the other one's turn, so that a disturbance hits both.
WARM_UP = 5


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

    def __init__(self, model: CpuModel, rows: int, text_bytes: int, steps: int) -> None:
        config = model.config
        tokens = frames_of(config, steps + WARM_UP)
        made = make_rows(config, rows, text_bytes, tokens)
        self.caches, self.frames = [], config.frames_per_step
        for row in made:
            cache = model.encode(row.text, row.params.cfg_scale, row.max_steps)
            assert isinstance(cache, RowCache)
            row.cache = cache
            self.caches.append(cache)
        self.batch = Batch(model, made)
        for _ in range(WARM_UP):
            self.batch.step()

    def milliseconds(self) -> list[float]:
        """Of a frame, in each of the next steps."""
        times = []
        for _ in range(IN_TURN):
            began = perf_counter()
            self.batch.step()
            times.append(1000 * (perf_counter() - began) / self.frames)
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
    steps: int,
    frames: int = 1,
) -> Saving:
    """Medians of about `steps` steps of each model; frames: those of a step of the student."""
    student_config = replace(config, guidance_scales=config.cfg_scales, frames_per_step=frames)
    steppers, times = [], []
    for each in (config, student_config):
        model = result_of(random_model(each, precision, threads)).model
        steppers.append(Stepper(model, rows, text_bytes, steps))
        times.append([])
    for _ in range(steps // IN_TURN):
        for stepper, own in zip(steppers, times, strict=True):
            own.extend(stepper.milliseconds())
    medians = [statistics.median(own) for own in times]
    caches = [stepper.cache_bytes for stepper in steppers]
    return Saving(rows, *medians, *caches)

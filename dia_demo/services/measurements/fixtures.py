"""Fixtures of the measurements: a model with its codec, rows that do not end early, step bytes.

Model and codec come from a checkpoint, or have random weights of full size.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from dia_demo.codec.codec import Codec
from dia_demo.config import GenerationParams, ModelConfig, RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Loading
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import check_free
from dia_demo.engine.loading.model_loader import PlacedModel
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.engine.row import Row
from dia_demo.families.resolve import random_sizes
from dia_demo.model.dia import Dia
from dia_demo.services.measurements.sizes import model_info
from dia_demo.services.measurements.types import Job
from dia_demo.services.worker.messages import ReportProgress
from dia_demo.task import Task, result_of

GUIDANCE = 3.0
# Modules of a decoder whose weights a step does not read: embeddings are looked up by row, the
# text's keys and values are computed once per take.
NOT_READ = ("embedding", "embeddings", "cross_attention.k_proj", "cross_attention.v_proj")
WORDS = b"we walk along the river and talk of the weather, of bread and of the long way home. "


class RandomEngine(Engine):
    """An engine with random weights, which has no folder to load from."""

    def open_codec(self) -> Generator[Loading, None, Codec]:
        if self._codec is None:
            yield Loading("Building a codec", 0.0)
            self._codec = random_sizes()[self.info.name].codec()
        return self._codec


def load_engine(job: Job, report_progress: ReportProgress) -> Engine:
    """The engine of a job's model (or random weights), precision and threads, without its codec."""
    runtime = RuntimeConfig(model=job.model, precision=job.precision, threads=job.threads)
    info = model_info(job.model, job.random)
    doing = "Drawing random weights" if job.random else f"Loading {job.model}"
    load = (
        RandomEngine.load(info, runtime, _load_random) if job.random else Engine.load(info, runtime)
    )
    task = Task(load)
    for loading in task:
        report_progress(doing, loading.fraction or 0.0)
    return task.result


def load_any_codec(job: Job, precision: str = "auto") -> Codec:
    """The codec of a job's model, or one of the same size with random weights."""
    if job.random:
        return random_sizes()[job.random].codec(precision=precision)
    info = model_info(job.model, None)
    assert info.folder is not None, "it was downloaded"
    return result_of(info.family.codecs.open(info.folder, precision=precision))


def _load_random(info: ModelInfo, runtime: RuntimeConfig) -> Generator[Loading, None, PlacedModel]:
    """The ModelLoader of random weights."""
    placement = place_on_cpu(runtime, info)
    check_free(info, placement.precision)
    making = Task(random_sizes()[info.name].load(placement.precision, placement.threads))
    for name, fraction in making:
        yield Loading(name, fraction)
    return PlacedModel(making.result.model, placement, making.result)


# Rows


class EndlessRow(Row):
    """A row that ignores EOS and ends at its last token."""

    def accept(self, codes: np.ndarray) -> None:
        super().accept(np.where(codes == self.config.decoder.eos, 0, codes))


def make_rows(
    config: ModelConfig,
    count: int,
    text_bytes: int,
    max_tokens: int,
    row: Callable[..., Any] = Row,
) -> list[Any]:
    """Rows with guidance on a text of `text_bytes` bytes, each with its own seed.

    row: the family's. Where it reads its text as it speaks, the text is as long as it can be, so
    that it does not end.
    """
    most = min(max_tokens, config.decoder.max_positions)
    params = replace(guided_params(config), max_tokens=most)
    if row is not Row:
        text_bytes = config.encoder.max_positions
    text = (b"\x01" + WORDS * (text_bytes // len(WORDS) + 1))[:text_bytes]
    make = EndlessRow if row is Row else row
    return [make(config, text, replace(params, seed=seed)) for seed in range(count)]


def frames_of(config: ModelConfig, steps: int) -> int:
    """Max tokens with which a row takes at least this many steps."""
    return config.frames_per_step * steps + config.max_delay + 2


def guided_params(config: ModelConfig) -> GenerationParams:
    """The checkpoint's default parameters; with guidance, even if its default is none."""
    low, high = config.cfg_scales
    scale = config.defaults.cfg_scale or min(max(GUIDANCE, low), high)
    return replace(config.defaults, cfg_scale=scale)


# Bytes


def step_bytes(model: Dia, rows: int, text_bytes: int, position: int) -> int:
    """Bytes that a decoder step of `rows` utterances with guidance reads at `position`.

    The weights in their precision with their scales, the rows of the embeddings that it looks up,
    and the filled part of the key/value caches.
    """
    decoder, branches = model.config.decoder, model.config.guided_branches * rows
    itemsize = model.decoder.embeddings.weight.dtype.itemsize
    # Every frame is read once by a step, and all but one also for the frame after it.
    frames = 2 * model.config.frames_per_step - 1
    looked_up = branches * frames * decoder.num_channels * decoder.hidden_size * itemsize
    own = 2 * decoder.num_layers * decoder.num_kv_heads * decoder.head_dim * position
    text = 2 * decoder.num_layers * decoder.cross_num_kv_heads * decoder.cross_head_dim * text_bytes
    filled = branches * own + rows * text  # The unconditional branch attends to one position.
    return weight_bytes(model) + looked_up + filled * cache_itemsize(model)


def weight_bytes(model: Dia) -> int:
    """Bytes of the weights, scales included, that every decoder step reads."""
    sizes: dict[int, int] = {}
    for name, module in model.decoder.named_modules():
        if name.endswith(NOT_READ):
            continue
        values = [*module.parameters(False), *module.buffers(False), *vars(module).values()]
        sizes |= {
            id(value): value.nbytes for value in values if isinstance(value, Tensor | np.ndarray)
        }
    return sum(sizes.values())


def cache_itemsize(model: Dia) -> int:
    """Bytes per element of the key/value caches."""
    config = model.config
    return model.encode(b"\x01", config.cfg_scales[0], config.shortest_max_tokens).dtype.itemsize

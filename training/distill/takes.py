"""Takes for training, sampled by the teacher with guidance or by a student."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch import Tensor

from dia_demo.config import ModelConfig
from dia_demo.engine.decoder_model import DecoderModel
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import run
from dia_demo.errors import RunError
from dia_demo.files import write_atomic

log = logging.getLogger(__name__)

SHARD = 64  # Takes in a file.
# Sampling temperatures, as parts of the checkpoint's own.
TEMPERATURES = (0.5, 1.5)
AT_A_SCALE = 0.5  # How often a CFG scale is one of the student's own, instead of between them.


@dataclass(frozen=True, eq=False)
class SampledTake:
    """A script's bytes, its codes [positions, C] as the decoder read them, its CFG scale."""

    text: bytes
    codes: np.ndarray
    cfg_scale: float


def draw_scale(random: Random, scales: Sequence[float]) -> float:
    """A CFG scale: one of the student's own, or any number between the first and the last."""
    if random.random() < AT_A_SCALE:
        return random.choice(scales)
    return random.uniform(scales[0], scales[-1])


def sample_shard(
    model: DecoderModel, scripts: Sequence[bytes], scales: Sequence[float], seed: int
) -> list[SampledTake]:
    """A model's takes of these scripts, with CFG scales and temperatures drawn by the seed."""
    random, config = Random(seed), model.config
    rows = []
    for number, script in enumerate(scripts):
        params = replace(
            config.defaults,
            cfg_scale=draw_scale(random, scales),
            temperature=config.defaults.temperature * random.uniform(*TEMPERATURES),
            seed=seed * SHARD + number,
        )
        rows.append(Row(config, script, params))
    for row in run(model, rows):
        if row.failure is not None:
            raise RunError(f"A take failed: {row.failure}")
    return [SampledTake(row.text, _frames(row), row.params.cfg_scale) for row in rows]


def _frames(row: Row) -> np.ndarray:
    """Codes [positions, C] of a finished row, one position after the other."""
    before = row.config.frames_per_step - 1  # BOS that the first step reads before position 0.
    return row.previous_inputs.reshape(-1, row.config.decoder.num_channels)[before:]


def save_shard(path: Path, takes: Sequence[SampledTake]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomic(path) as part, open(part, "wb") as file:
        np.savez_compressed(
            file,
            codes=np.concatenate([take.codes for take in takes]).astype(np.int16),
            lengths=np.array([len(take.codes) for take in takes]),
            text=np.frombuffer(b"".join(take.text for take in takes), np.uint8),
            text_lengths=np.array([len(take.text) for take in takes]),
            scales=np.array([take.cfg_scale for take in takes]),
        )


def load_shard(path: Path) -> list[SampledTake]:
    with np.load(path) as stored:
        codes = np.split(stored["codes"].astype(np.int64), stored["lengths"].cumsum()[:-1])
        texts = np.split(stored["text"], stored["text_lengths"].cumsum()[:-1])
        scales = stored["scales"].tolist()
    return [
        SampledTake(text.tobytes(), each, scale)
        for text, each, scale in zip(texts, codes, scales, strict=True)
    ]


def sample_takes(
    folder: Path,
    model: DecoderModel,
    scripts: Callable[[int], Iterator[bytes]],
    scales: Sequence[float],
    count: int,
) -> None:
    """Fill `folder` with shards of at least `count` takes; those that are there are kept.

    scripts: gives an iterator of scripts for the seed of a shard.
    """
    for number in range(-(-count // SHARD)):
        path = folder / f"{number:05d}.npz"
        if path.exists():
            continue
        takes = sample_shard(model, list(islice(scripts(number), SHARD)), scales, number)
        save_shard(path, takes)
        log.info("takes %d, %d positions", SHARD * (number + 1), sum(len(t.codes) for t in takes))


def load_takes(folder: Path, count: int) -> list[SampledTake]:
    """The first `count` takes of a folder's shards."""
    shards = (load_shard(path) for path in sorted(folder.glob("*.npz")))
    return list(islice((take for shard in shards for take in shard), count))


@dataclass(frozen=True)
class Batch:
    """Takes padded to one length: text [B, S] with its mask, codes [B, T, C]. Codes beyond a take's
    end are PAD, which no loss counts."""

    takes: Sequence[SampledTake]
    text: Tensor
    text_mask: Tensor
    codes: Tensor


def collate(takes: Sequence[SampledTake], config: ModelConfig, device: str) -> Batch:
    longest, text = max(len(t.codes) for t in takes), max(len(t.text) for t in takes)
    codes = np.full((len(takes), longest, config.decoder.num_channels), config.decoder.pad)
    letters = np.zeros((len(takes), text), np.int64)
    for row, take in enumerate(takes):
        codes[row, : len(take.codes)] = take.codes
        letters[row, : len(take.text)] = list(take.text)
    letters_BS = torch.from_numpy(letters).to(device)
    # No text contains a NUL.
    return Batch(takes, letters_BS, letters_BS != 0, torch.from_numpy(codes).to(device))


def in_batches(
    takes: Sequence[SampledTake], positions: int, random: Random | None = None
) -> Iterator[list[SampledTake]]:
    """Every take once, in batches of about `positions` positions, padding included, of takes of
    similar lengths; in random order if there is a `random`."""
    order = sorted(takes, key=lambda take: len(take.codes))
    batches: list[list[SampledTake]] = [[]]
    for take in order:
        if batches[-1] and len(take.codes) * (len(batches[-1]) + 1) > positions:
            batches.append([])
        batches[-1].append(take)
    if random is not None:
        random.shuffle(batches)
    yield from batches

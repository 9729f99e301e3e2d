"""A model's own takes (own_takes.py), and batches of them for adapt.py like those of scripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch

from dia_demo.files import write_atomic
from training.voice.model.batches import Batch, collate
from training.voice.model.network import CHANNELS, DELAYS
from training.voice.model.scripts import IGNORE, Item

FOLDER = "own"
CORRECTED = 0.5  # takes that are corrected ones
CORRECTION_WEIGHT = 4.0  # of the codes that correct


@dataclass(frozen=True)
class OwnTake:
    """text: bytes; codes [T, C]; letters [T]: the place in the text that a frame should read, NaN
    where that is not taught. corrected: the frame from which the codes are a correction, None in a
    take without a mistake; ends: whether the script ends after the last of the codes.
    """

    text: bytes
    codes: np.ndarray
    letters: np.ndarray
    corrected: int | None = None
    ends: bool = True


def save_own_takes(path: Path, takes: list[OwnTake]) -> None:
    """In small types: places in the text are rounded to half a letter or less."""
    arrays = [(take.codes.astype(np.uint8), take.letters.astype(np.float16)) for take in takes]
    with write_atomic(path) as part:
        torch.save(
            [
                vars(take) | {"codes": codes, "letters": letters}
                for take, (codes, letters) in zip(takes, arrays, strict=True)
            ],
            part,
        )


def load_own_takes(work: Path) -> list[OwnTake]:
    paths = sorted((work / FOLDER).glob("*.pt"))
    saved = [fields for path in paths for fields in torch.load(path, weights_only=False)]
    return [
        OwnTake(
            **fields
            | {
                "codes": fields["codes"].astype(np.int64),
                "letters": fields["letters"].astype(float),
            }
        )
        for fields in saved
    ]


def as_item(take: OwnTake) -> Item:
    """A take without phones, spelling, marks and voices, which only speech of the corpus has."""
    nothing = np.full(len(take.codes), IGNORE)
    phones = np.full((len(take.codes), 2), IGNORE)
    return Item(
        list(take.text), take.codes, take.codes, take.letters, phones, [0], [], [], [], [],
        nothing, nothing,
    )  # fmt: skip


def collate_own(takes: list[OwnTake]) -> tuple[Batch, torch.Tensor]:
    """A batch, and which of its codes are learnt [B, T, C]."""
    batch = collate([as_item(take) for take in takes])
    learnt = torch.zeros(batch.targets.shape, dtype=torch.bool)
    for k, take in enumerate(takes):
        if take.corrected is None:
            continue
        if not take.ends:
            batch.letters[k, len(take.codes) :] = torch.nan
        for c, delay in enumerate(DELAYS):
            learnt[k, take.corrected + delay :, c] = True
            batch.weights[k, take.corrected + delay :, c] = CORRECTION_WEIGHT
            if not take.ends:  # what comes next is not said
                batch.weights[k, len(take.codes) + delay :, c] = 0.0
    return batch, learnt


def own_batches(takes: list[OwnTake], frames: int, seed: int) -> Iterator:
    """What collate_own gives, about `frames` frames each, without end.

    takes: at least one; all of them may be corrected, or none.
    """
    r, group, longest = Random(seed), [], 0
    corrected = [take for take in takes if take.corrected is not None]
    faultless = [take for take in takes if take.corrected is None]
    while True:
        wants_corrected = r.random() < CORRECTED if corrected and faultless else bool(corrected)
        take = r.choice(corrected if wants_corrected else faultless)
        longest = max(longest, len(take.codes) + CHANNELS)
        if group and longest * (len(group) + 1) > frames:
            yield collate_own(group)
            group, longest = [], len(take.codes) + CHANNELS
        group.append(take)

"""Batches of a model's own takes, for adapt.py: as batches.py's of scripts."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import torch

from tools.voice.model.batches import Batch, collate
from tools.voice.model.network import CHANNELS, DELAYS
from tools.voice.model.own_takes import OwnTake
from tools.voice.model.scripts import IGNORE, Item

CORRECTED = 0.5  # takes that are corrected ones
CORRECTION_WEIGHT = 4.0  # of the codes that correct


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

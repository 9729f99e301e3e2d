"""The losses of the small Dia: of its codes, and of the aids that training alone has."""

from __future__ import annotations

from collections.abc import Container

import torch
import torch.nn.functional as F

from training.voice.model.batches import Batch, attention_cost
from training.voice.model.export import SAMPLING
from training.voice.model.network import BOS, PAD, REMAINING, SPELLED, TAG_COUNTS, VOICE_CLASSES
from training.voice.model.scripts import IGNORE
from training.voice.teacher.phones import PHONES
from training.voice.teacher.voices import traits_of

GUIDE_FULL, GUIDE_FADE, GUIDE_FLOOR = 350, 150, 0.2  # steps, steps, weight
VOICE_WEIGHTS = 1.0, 0.2, 0.2  # of the parts of the voice head
GUIDED_HEADS = 2  # heads a layer that the guide pulls


def code_losses(logits, targets, marks, weights=None):
    """Mean cross-entropy of every book (weighted mean, with weights [B, T, C]) and what counts for
    it: BOS and PAD do not."""
    logits = at_sampling(logits.float(), marks)
    wanted = targets.masked_fill((targets == PAD) | (targets == BOS), IGNORE)
    flat = F.cross_entropy(
        logits.flatten(0, 2), wanted.flatten(), ignore_index=IGNORE, reduction="none"
    ).view(wanted.shape)
    counted = wanted != IGNORE
    share = counted if weights is None else counted * weights
    return (flat * share).sum((0, 1)) / share.sum((0, 1)).clamp(min=1), counted


def draw_loss(logits, drawn, codes):
    """Cross-entropy of an even draw among the voice marks `codes` [V] but the one that drawn [B, T]
    names, where it is not IGNORE."""
    chances = (logits[..., -1, :].float() / SAMPLING["temperature"]).log_softmax(-1)[..., codes]
    free = drawn.unsqueeze(-1) != codes
    even = (chances * free).sum(-1) / free.sum(-1)
    is_drawn = drawn != IGNORE
    return -(even * is_drawn).sum() / is_drawn.sum().clamp(min=1)


def at_sampling(logits, marks):
    """Logits [B, T, C, V]; where the last channel is a voice mark, marks [B, T], divided by the
    temperature of sampling."""
    temperature = torch.ones(logits.shape[:3], device=logits.device)
    temperature[..., -1] = torch.where(marks, SAMPLING["temperature"], 1.0)  # no wait for a GPU
    return logits / temperature.unsqueeze(-1)


def phone_loss(logits, phones):
    """Cross-entropy of the phone plus half that of the frames left in it.

    A sum over a count, since a batch whose texts were all dropped has no phones to predict.
    """
    kinds = len(PHONES) + 1
    counted = (phones[..., 0] != IGNORE).sum().clamp(min=1)
    which, rest = (
        F.cross_entropy(
            part.float().flatten(0, 1), wanted.flatten(), ignore_index=IGNORE, reduction="sum"
        )
        for part, wanted in zip(
            logits.split([kinds, REMAINING], -1), phones.unbind(-1), strict=True
        )
    )
    return (which + 0.5 * rest) / counted


def class_loss(logits, classes):
    """Cross-entropy where `classes` [B, T] is not IGNORE, 0 if it is nowhere; logits [B, T, K]."""
    count = (classes != IGNORE).sum().clamp(min=1)
    flat = logits.float().flatten(0, 1)
    return F.cross_entropy(flat, classes.flatten(), ignore_index=IGNORE, reduction="sum") / count


def voice_classes(places: dict[str, int], named: Container[str]) -> torch.Tensor:
    """Of the voice in every place, what the parts of the voice head should find [voices, parts]:
    its name (IGNORE if it has none), its pitch, its source with formants."""
    names = sorted(places, key=places.__getitem__)
    return torch.tensor(
        [[places[n] if n in named else IGNORE, *traits_of(n)] for n in names], dtype=torch.long
    )


def voice_loss(logits, places, classes):
    """Cross-entropy of name, pitch and formants where `places` [B, T] is not IGNORE.

    logits [B, T, K], all parts of the voice head; classes: what voice_classes gives.
    """
    wanted = classes[places.clamp(min=0)].masked_fill((places == IGNORE)[..., None], IGNORE)
    parts = zip(logits.split(VOICE_CLASSES, -1), wanted.unbind(-1), VOICE_WEIGHTS, strict=True)
    return sum(weight * class_loss(part, classes) for part, classes, weight in parts)


def tag_loss(text_logits, frame_logits, batch: Batch, keep):
    """Cross-entropy of the counts of tags at letters and at frames; keep [B]: rows with a text."""
    text_tags, frame_tags = (
        tags.clamp(max=TAG_COUNTS - 1).masked_fill(~keep[:, None], IGNORE)
        for tags in (batch.text_tags, batch.frame_tags)
    )
    return class_loss(text_logits, text_tags) + class_loss(frame_logits, frame_tags)


def spelling_loss(logits, mask, spelling, counts, keep=1):
    """CTC a phone: the encoder alone should know how the text is said."""
    chances = logits.float().log_softmax(-1).transpose(0, 1)
    each = F.ctc_loss(
        chances,
        spelling,
        SPELLED * mask.sum(1),
        counts,
        blank=len(PHONES),
        reduction="none",
        zero_infinity=True,
    )
    return (each * keep).sum() / (counts * keep).sum().clamp(min=1)


def guide_loss(attention, letters, keep, weights):
    """How far the guided heads look from the letter they should read; weights [B, T]."""
    cost = attention_cost(letters, attention[0].shape[-1]) * weights[..., None]
    cost = (cost * keep[:, None, None])[:, None]
    return sum((a[:, :GUIDED_HEADS] * cost).sum(-1).mean() for a in attention) / len(attention)


def guide_weight(step: int) -> float:
    return max(GUIDE_FLOOR, 1.0 - max(0, step - GUIDE_FULL) / GUIDE_FADE)

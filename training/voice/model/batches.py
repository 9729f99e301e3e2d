"""Batches of scripts to train the small Dia on: targets, their weights in the loss, and guides.

Four guides exist in training only. Every frame knows which letter it should read (for the guided
attention), and which phone it is in and how many frames of it are left (for an auxiliary head).
A second auxiliary head predicts the voice: of every frame of speech, and of a turn wherever a mark
or an earlier turn of the speaker determines it. Without the latter, a model learns neither to
repeat marks nor to follow voice prompts: after its first frames a turn shows its voice itself, so
attending to earlier turns improves the loss by a thousandth only. The first frames count by
themselves, since the others are many and easy, but for those that have drifted. The last guide
is the count of tags so far, of every letter and every frame: a model finds a letter by what stands
around it alone, and one that does not count may look for the next tag and find an earlier one. The
end of the text counts as a tag, since it does not belong to the last turn.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch

from training.voice.codec.marks import MARK_FRAME
from training.voice.model.network import BOS, CHANNELS, DELAYS, EOS, PAD
from training.voice.model.scripts import IGNORE, TAGS, Item

PREDICTED = 10  # first frames of a turn, whose voice is predicted by itself
ONSET = (0, 24)  # frames of a turn in which its tag is found, and the voice decides the codes
ONSET_WEIGHT, MARK_WEIGHT = 4.0, 5.0  # in the loss: where the voice is known; of marks, or none
# Of the end and the silence before it, in the loss and the guide: a model that does not look at the
# end of the text there looks at the last turn's tag, and says that turn again.
END_WEIGHT, END_FRAMES = 5.0, 6
GUIDE_WIDTH = 2.5  # letters: how sharp the attention guide is


def delay_codes(codes: np.ndarray) -> np.ndarray:
    """codes [T, C] -> targets [T + max delay + 1, C]: BOS before, EOS once, PAD after."""
    length = len(codes)
    out = np.full((length + 1 + max(DELAYS), CHANNELS), PAD, np.int64)
    for c, delay in enumerate(DELAYS):
        out[:delay, c] = BOS
        out[delay : delay + length, c] = codes[:, c]
        out[delay + length, c] = EOS
    return out


@dataclass(frozen=True)
class Batch:
    """text [B, S], mask [B, S], inputs and targets [B, T, C], letters [B, T], phones [B, T, 2].

    marks [B, T] is True where the target of the last channel is a voice mark. drawn [B, T]: where
    this may be any voice's, ANY, or any but one's, that one's mark; else IGNORE.
    weights [B, T, C]: of the targets in the loss.
    letters: the place in the text that a frame should read; NaN in frames without a guide.
    text_tags [B, S], frame_tags [B, T]: tags up to a letter, and up to what a frame says, one more
    at the end, unless a bare tag is there; IGNORE in padding.
    frame_voices [B, T]: the voice of every frame of speech; onset_voices and later_voices [B, T]:
    the voice of a turn whose voice is known, in its first frames and in the others; else IGNORE.
    spelling [B, P] is padded, spelling_count [B] its lengths.
    """

    text: torch.Tensor
    mask: torch.Tensor
    inputs: torch.Tensor
    targets: torch.Tensor
    marks: torch.Tensor
    drawn: torch.Tensor
    weights: torch.Tensor
    letters: torch.Tensor
    phones: torch.Tensor
    text_tags: torch.Tensor
    frame_tags: torch.Tensor
    frame_voices: torch.Tensor
    onset_voices: torch.Tensor
    later_voices: torch.Tensor
    spelling: torch.Tensor
    spelling_count: torch.Tensor

    def to(self, device: str) -> Batch:
        return Batch(*(getattr(self, field.name).to(device) for field in fields(self)))


def attention_cost(letters: torch.Tensor, width: int) -> torch.Tensor:
    """letters [B, T] -> the guide's cost of attending to each of `width` letters [B, T, S]."""
    off = torch.arange(width, device=letters.device) - letters.unsqueeze(-1)
    return (1 - torch.exp(-(off**2) / (2 * GUIDE_WIDTH**2))).nan_to_num(0.0)


def collate(items: list[Item]) -> Batch:
    rows, width = len(items), max(len(i.text) for i in items)
    length = max(len(i.codes) for i in items) + 1 + max(DELAYS)
    text = np.zeros((rows, width), np.int64)
    targets, read = (np.full((rows, length, CHANNELS), PAD, np.int64) for _ in range(2))
    letters = np.full((rows, length), np.nan, np.float32)
    phones = np.full((rows, length, 2), IGNORE, np.int64)
    marks = np.zeros((rows, length), bool)
    weights = np.ones((rows, length, CHANNELS), np.float32)
    frame_tags, frame_voices, onset_voices, later_voices, drawn = (
        np.full((rows, length), IGNORE, np.int64) for _ in range(5)
    )
    text_tags = np.full((rows, width), IGNORE, np.int64)
    counts = np.array([len(item.spelling) for item in items])
    spelling = np.zeros((rows, counts.max()), np.int64)
    for k, item in enumerate(items):
        text[k, : len(item.text)] = item.text
        tags = np.isin(item.text, TAGS).cumsum()
        tags[-1] = item.tags[-1] + 1  # of the bare tag, if there is one
        text_tags[k, : len(tags)] = tags
        shifted, frames = delay_codes(item.codes), len(item.codes)
        targets[k, : len(shifted)] = shifted
        read[k, : len(shifted)] = delay_codes(item.history)
        phones[k, :frames] = item.phones
        spelling[k, : counts[k]] = item.spelling
        letters[k, :frames] = item.letters
        letters[k, frames : len(shifted)] = len(item.text) - 1  # a bare tag, if there is one
        frame_tags[k, :frames], frame_tags[k, frames : len(shifted)] = item.tags, tags[-1]
        weights[k, max(0, frames - END_FRAMES) : frames + 1, 0] = END_WEIGHT
    inputs = np.concatenate([np.full((rows, 1, CHANNELS), BOS), read[:, :-1]], 1)
    for k, item in enumerate(items):
        frame_voices[k, 1 : len(item.codes) + 1] = item.voices  # a code is read one frame after it
        for start, known, end, voice in item.turns:
            onset_voices[k, known : start + PREDICTED] = voice
            later_voices[k, max(known, start + PREDICTED) : end] = voice
            for c, delay in enumerate(DELAYS):
                weights[k, start + ONSET[0] + delay : start + ONSET[1] + delay, c] = ONSET_WEIGHT
            weights[k, start + MARK_FRAME + DELAYS[-1], -1] = MARK_WEIGHT
        places = [frame + DELAYS[-1] for frame in item.marks]
        marks[k, places], weights[k, places, -1] = True, MARK_WEIGHT
        for frame, taken in item.drawn:
            drawn[k, frame + DELAYS[-1]] = taken
        targets[k, [frame + DELAYS[-1] for frame in item.skipped], -1] = IGNORE
    return Batch(
        *map(torch.from_numpy, (text, text != 0, inputs, targets, marks, drawn, weights, letters)),
        *map(torch.from_numpy, (phones, text_tags, frame_tags, frame_voices, onset_voices)),
        *map(torch.from_numpy, (later_voices, spelling, counts)),
    )

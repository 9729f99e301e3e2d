"""Voice marks: a code in the silence before each turn that says which of the voices speaks.

Sampling would otherwise choose a voice with its first sound, where a low temperature prefers the
voices whose codes are the most common. A mark is drawn from as many codes as there are voices,
each as often as the others, and the rest of the take follows it. It is not heard: of all codes of
the last book, marks are those that are decoded most quietly in a silence. Codes that turns have
there by themselves are none: a turn without a mark would say that it is of that voice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch

from training.voice.codec import network
from training.voice.teacher.phones import HOP

MARK_FRAME = 2  # of a turn, whose first six frames are silent
CONTEXT = 8  # silent frames on either side of a code that is tried
FILE = "marks.json"
OWN_CODE = 1e-3  # of the turns: a code that so many have up to MARK_FRAME is no mark


@torch.no_grad()
def silence(codec: torch.nn.Module) -> np.ndarray:
    """The codes [C] of silence."""
    wave = torch.zeros(1, 1, 2 * CONTEXT * HOP)
    return codec.quantizer(codec.encoder(wave))[1][0, :, CONTEXT].numpy()


@torch.no_grad()
def loudness(codec: torch.nn.Module) -> np.ndarray:
    """Of every code of the last book, the root mean square of what a silence with it sounds like
    [codebook_size], of full scale."""
    size = network.CODEC["codebook_size"]
    codes = torch.from_numpy(silence(codec))[None, :, None].repeat(size, 1, 2 * CONTEXT + 1)
    codes[:, -1, CONTEXT] = torch.arange(size)
    waves = torch.cat([network.decode(codec, part) for part in codes.split(16)])
    return waves.square().mean(1).sqrt().numpy()


def codes_of_turns(work: Path) -> set[int]:
    """Codes of the last book that turns of the corpus have up to MARK_FRAME."""
    found = []
    for path in sorted((work / "codes").glob("[0-9][0-9][0-9].npy")):
        record = json.loads((work / "corpus" / path.name).with_suffix(".json").read_text())
        starts = np.array(record["offsets"][:-1]) // HOP
        found.append(np.load(path)[starts[:, None] + np.arange(MARK_FRAME + 1), -1])
    firsts = np.concatenate(found)
    counts = np.stack([np.bincount(f, minlength=firsts.max() + 1) for f in firsts.T])
    return set(np.flatnonzero((counts > OWN_CODE * len(firsts)).any(0)).tolist())


def choose(
    codec: torch.nn.Module,
    voices: Iterable[str],
    no_marks: Iterable[int],
    chosen: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """A mark for each voice, sorted by name; silence's own code and `no_marks` are none.

    chosen: marks that a model has learnt already; they stay, and the other voices get further ones.
    """
    chosen = chosen or {}
    taken = {int(silence(codec)[-1]), *no_marks, *chosen.values()}
    free = (code for code in np.argsort(loudness(codec)).tolist() if code not in taken)
    return {name: chosen[name] if name in chosen else next(free) for name in sorted(voices)}


def write_marks(
    work: Path, codec: torch.nn.Module, voices: Iterable[str], chosen: Path | None = None
) -> None:
    """DIR/marks.json, of the encoded corpus; `chosen` is the file of a model that training starts
    from."""
    known = json.loads(chosen.read_text()) if chosen else None
    marks = choose(codec, voices, codes_of_turns(work), known)
    (work / FILE).write_text(json.dumps(marks))


def read_marks(work: Path) -> dict[str, int]:
    """Voice -> mark, as encode.py wrote them."""
    return json.loads((work / FILE).read_text())

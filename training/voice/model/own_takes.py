"""Takes of the model itself, and what it should have said where they go astray.
`python -m training.voice.model.own_takes --work DIR --model assets/nano --takes 3000`.

A model that reads the teacher's frames finds the next turn of every script; one that reads its own
finds the wrong one in 5% of the dialogues, and says a turn twice or leaves it out. So it says
dialogues of the corpus's texts. Where its attention goes to another turn than the next, the frames
before are kept and the teacher says how the right turn begins (Ross et al. 2011, "A reduction of
imitation learning and structured prediction to no-regret online learning"). adapt.py learns from
both, the corrected takes and the faultless ones.

Writes DIR/own/SEED.pt, the fields of OwnTake of a hundred takes.
"""

from __future__ import annotations

import argparse
import logging
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path
from random import Random

import numpy as np
import torch

from dia_demo.engine.events import Finished
from dia_demo.engine.row import Row
from dia_demo.text.script import encode_script
from training.voice.codec.marks import MARK_FRAME, read_marks
from training.voice.corpus import shards
from training.voice.judge.evaluate import load_engine
from training.voice.model.batches import delay_codes
from training.voice.model.export import trained_weights
from training.voice.model.losses import GUIDED_HEADS
from training.voice.model.network import BOS, CHANNELS, Nano
from training.voice.model.own_batches import FOLDER, OwnTake, save_own_takes
from training.voice.model.scripts import SILENT, TAGS
from training.voice.model.turns import Turn, letters_read, load_turns

log = logging.getLogger(__name__)
TURNS = 6, 7, 8  # turns of a script
TEXT, FRAMES = (20, 64), 150  # bytes of a turn; its most frames
BARE_TAG = 0.75  # scripts that end with a bare tag
TEMPERATURES = 0.1, 0.1, 0.5, 1.0  # of the takes, in turn
ROWS, SECONDS = 10, 15.0  # takes at a time; about how long each is
GLANCE = 6  # frames: what reads a turn for less has not begun it
SAID = 0.7  # of a turn that is read to there is said
EDGE_WITHIN = 4  # frames between the edge of a turn and the move of the attention
CORRECTION = 40  # frames of the turn that is said rightly instead


def tag_places(text: bytes) -> np.ndarray:
    return np.flatnonzero(np.isin(list(text), TAGS))


def count_turns(text: bytes) -> int:
    """Those with words: a bare tag at the end is none."""
    return len(tag_places(text)) - (text[-1] in TAGS)


def write_scripts(turns: list[Turn], seed: int, count: int) -> list[str]:
    """Scripts of two speakers in turn, with texts of the corpus."""
    r = Random(seed)
    texts = [
        turn.text.decode()
        for turn in turns
        if TEXT[0] <= len(turn.text) <= TEXT[1] and len(turn.codes) < FRAMES
    ]
    scripts = []
    for _ in range(count):
        said, first = r.sample(texts, r.choice(TURNS)), r.randrange(2)
        tags = [f"[S{1 + (first + k) % 2}]" for k in range(len(said) + 1)]
        lines = [f"{tag} {text}" for tag, text in zip(tags, said, strict=False)]
        scripts.append(" ".join(lines + tags[-1:] * (r.random() < BARE_TAG)))
    return scripts


@torch.no_grad()
def letters_looked_at(model: Nano, text: bytes, codes: np.ndarray) -> np.ndarray:
    """The letter [T + C] at which the guided heads look most in every frame."""
    shifted = delay_codes(codes)
    inputs = np.concatenate([np.full((1, CHANNELS), BOS), shifted[:-1]])
    letters = torch.tensor(list(text))[None]
    attention = model(letters, letters != 0, torch.from_numpy(inputs)[None])[1]
    return sum(a[0, :GUIDED_HEADS].mean(0) for a in attention).argmax(-1).numpy()


def stretches(values: np.ndarray) -> list[tuple[int, int, int]]:
    """(value, start, end) of equal values in a row; glances belong to what is before them."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    found: list[tuple[int, int, int]] = []
    for start, end in pairwise(edges):
        value = int(values[start])
        if found and (end - start < GLANCE or found[-1][0] == value):
            value, start, _ = found.pop()
        found.append((value, start, end))
    return found


def first_mistake(text: bytes, letters: np.ndarray) -> tuple[int, int] | None:
    """(turns said before it, frame); None if every turn is read once, and in order.

    letters [T]: what letters_looked_at gives.
    """
    places, turns = tag_places(text), count_turns(text)
    ends = [*places[1:], len(text)]
    said = 0
    for tag, start, end in stretches(np.searchsorted(places, letters, side="right")):
        if said == turns and tag > turns:
            return None
        if tag != said + 1:
            return said, start
        read = (letters[start:end].max() - places[said]) / (ends[said] - places[said])
        if read < SAID:
            return said, start
        said += 1
    return None if said == turns else (said, len(letters))


class Teacher:
    """Says how a turn begins, in a voice of the model."""

    def __init__(self, work: Path, codec, turns: list[Turn]) -> None:
        self.tables, self.codec, self.marks = shards.load_tables(work), codec, read_marks(work)
        self.voices = {mark: voice for voice, mark in self.marks.items()}
        # The first book's codes on either side of an edge: every turn begins and ends in silence.
        edges = Counter((int(turn.codes[-1, 0]), int(turn.codes[0, 0])) for turn in turns)
        self.edge = edges.most_common(1)[0][0]

    def turn(self, text: str, voice: str) -> tuple[np.ndarray, np.ndarray] | None:
        """Codes [T, C] with the voice's mark, and letters read [T]; None if flite fails."""
        spoken = shards.speak((text, voice), self.tables)
        if spoken is None:
            return None
        codes = np.array(self.codec.encode(spoken.wave)[:CORRECTION], np.int64)
        codes[MARK_FRAME, -1] = self.marks[voice]
        return codes, letters_read(text, spoken.phones, spoken.frames)[: len(codes)]

    def starts(self, codes: np.ndarray) -> list[int]:
        """The first frames of the turns."""
        before, after = self.edge
        first = codes[:, 0]
        return [0, *(np.flatnonzero((first[:-1] == before) & (first[1:] == after)) + 1).tolist()]

    def confirm(self, text: bytes, codes: np.ndarray) -> OwnTake:
        """What to learn from a take without a mistake: where to look as a turn begins."""
        letters, places, starts = np.full(len(codes), np.nan), tag_places(text), self.starts(codes)
        if len(starts) == count_turns(text):
            for start, place in zip(starts, places, strict=False):
                letters[start : start + SILENT] = place + 2  # after the tag and a space
        return OwnTake(text, codes, letters)

    def correct(self, text: bytes, codes: np.ndarray, said: int, frame: int) -> OwnTake | None:
        """What to learn from a take's first_mistake; None where its turns have no clear edges."""
        starts = self.starts(codes)
        edge = min(starts, key=lambda start: abs(start - frame))
        if edge == 0 or abs(edge - frame) > EDGE_WITHIN:
            return None
        right, unguided = codes[:edge], np.full(edge, np.nan)
        if said == count_turns(text):
            return OwnTake(text, right, unguided, edge)
        places = tag_places(text).tolist()
        earlier = [place for place in places[:said] if text[place] == text[places[said]]]
        if not earlier:
            return None
        start = starts[min(places.index(earlier[0]), len(starts) - 1)]
        voice = self.voices.get(int(codes[start + MARK_FRAME, -1]))
        line = text[places[said] + 1 : [*places, len(text)][said + 1]].decode()
        taught = self.turn(line.strip(), voice) if voice else None
        if taught is None:
            return None
        letters = taught[1] + places[said] + 1 + len(line) - len(line.lstrip())
        return OwnTake(
            text,
            np.concatenate([right, taught[0]]),
            np.concatenate([unguided, letters]),
            edge,
            ends=False,
        )


def own_takes(seed: int, count: int, work: Path, folder: Path) -> list[OwnTake]:
    """`count` takes of an exported model, without those whose mistakes cannot be corrected."""
    torch.set_num_threads(1)
    engine, model = load_engine(folder, 1), Nano()
    model.load_state_dict(trained_weights(folder, model), strict=False)
    turns = load_turns(work)
    teacher, found = Teacher(work, engine.codec, turns), []
    scripts = [encode_script(script) for script in write_scripts(turns, seed, count)]
    for first in range(0, count, ROWS):
        texts = scripts[first : first + ROWS]
        rows = [
            Row(
                engine.config,
                text,
                replace(
                    engine.config.defaults,
                    seed=1000 * seed + first + k,
                    temperature=TEMPERATURES[(first + k) % len(TEMPERATURES)],
                ),
            )
            for k, text in enumerate(texts)
        ]
        for event in engine.stream(rows, [SECONDS] * len(rows), with_audio=False):
            if not isinstance(event, Finished):
                continue
            text, codes = texts[event.row], np.array(event.result.codes, np.int64)
            mistake = first_mistake(text, letters_looked_at(model, text, codes))
            if mistake is None:
                found.append(teacher.confirm(text, codes))
            elif corrected := teacher.correct(text, codes, *mistake):
                found.append(corrected)
    return found


def make_takes(seed: int, count: int, work: Path, folder: Path) -> None:
    takes = own_takes(seed, count, work, folder)
    save_own_takes(work / FOLDER / f"{seed:03d}.pt", takes)
    corrected = sum(take.corrected is not None for take in takes)
    log.info("seed %d: %d takes, %d of them corrected", seed, len(takes), corrected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("assets/nano"))
    parser.add_argument("--takes", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first hundred")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    (args.work / FOLDER).mkdir(exist_ok=True)
    seeds = range(args.first, args.first + args.takes // 100)
    make = partial(make_takes, count=100, work=args.work, folder=args.model)
    with Pool(args.workers) as pool:
        pool.map(make, seeds, chunksize=1)


if __name__ == "__main__":
    main()

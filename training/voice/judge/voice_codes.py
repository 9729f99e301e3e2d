"""How likely each code is in each voice: `python -m training.voice.judge.voice_codes FOLDER`.

The model says dialogues between any two voices of FOLDER/config.json, and each voice there gets the
logarithm of how much more frequent each code is in its turns than in all (`Voice.ratios`), by which
the app hears from the codes that a turn leaves its voice. What is counted are the model's own
takes: its codes are more alike than the teacher's, and with ratios of the teacher's speech about
twice as many turns stayed in another voice. The turns that do so are found with the first ratios,
and left out of the second. Codes of silences say nothing of a voice, nor do those that begin a
turn. Run it after `voice_table`.
"""

from __future__ import annotations

import argparse
import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import run_to_end
from dia_demo.engine.turns.drift import VoiceDrift
from dia_demo.families.resolve import resolve
from dia_demo.task import result_of
from dia_demo.text.script import encode_script
from dia_demo.voices import RATIO_UNIT, VoiceTable
from training.voice.corpus.heldout import banned_sentences
from training.voice.corpus.text import corpus

DIALOGUES, TURNS, TOGETHER, SEED = 800, 6, 8, 71
# A voice counts as if so many more frames of it had been seen, with codes as frequent as in all.
PRIOR_FRAMES = 50
LARGEST_RATIO = 3.0  # on either side of 0
# A code is one of silences if so much of it is in frames whose first code is quiet.
QUIET_SHARE = 0.5
# Of each turn the place of its voice in the table, and its codes [frames, C].
Spoken = list[tuple[int, np.ndarray]]


def dialogue_rows(engine: Engine, count: int) -> Iterator[Row]:
    """Dialogues between two voices that a number draws, of sentences like those of the training."""
    table = engine.config.voices
    assert table is not None, "the model has voices by name"
    # Nothing that an earlier run of this wrote corrects what is said now.
    table = replace(table, voices=tuple(replace(voice, ratios=b"") for voice in table.voices))
    config = replace(engine.config, voices=table)
    sentences = iter(corpus(count * TURNS, SEED, banned_sentences()))
    for seed in range(count):
        lines = [next(sentences) for _ in range(TURNS)]
        script = " ".join(f"[S{1 + k % 2}] {line}" for k, line in enumerate(lines))
        one, two = (voice.name for voice in Random(seed).sample(table.voices, 2))
        params = replace(config.defaults, seed=seed)
        yield Row(config, encode_script(script), params, chosen=(one, two))


def turns_of(row: Row) -> Spoken:
    """What was said in each voice, without the codes that begin a turn."""
    assert row.turns is not None
    found, codes, table = [], row.codes(), row.turns.table
    ends = [start for start, _ in row.turns.begun[1:]]
    first = len(table.turn_start) + 1
    for (start, number), end in zip(row.turns.begun, [*ends, len(codes)], strict=True):
        voice = row.turns.voices[row.turns.passages[number].speaker]
        if voice is not None and start + first < end:
            found.append((table.voices.index(voice), codes[start + first : end]))
    return found


def log_ratios(table: VoiceTable, turns: Spoken, num_codes: int) -> np.ndarray:
    """Those of `Voice.ratios` of all voices, int8 [voices, C, V]."""
    books = len(table.silence)
    speech = np.zeros((len(table.voices), books, num_codes))
    silence = np.zeros((books, num_codes))
    for voice, codes in turns:
        quiet = np.isin(codes[:, 0], table.quiet[0])
        for book in range(books):
            of_voice = speech[voice, book]
            np.add.at(of_voice, codes[~quiet, book], 1)
            np.add.at(silence[book], codes[quiet, book], 1)
    usual = speech.sum(0) / speech.sum((0, 2))[:, None]
    seen = (speech + PRIOR_FRAMES * usual) / (speech.sum(2, keepdims=True) + PRIOR_FRAMES)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(seen / usual)
    ratios[:, silence >= QUIET_SHARE * (silence + speech.sum(0))] = 0
    for book, codes in enumerate(table.quiet):
        ratios[:, book, codes] = 0
    for frame in (*table.turn_start, table.silence):
        ratios[:, np.arange(books), frame] = 0
    ratios[:, -1, [voice.mark for voice in table.voices]] = 0
    clipped = np.clip(ratios, -LARGEST_RATIO, LARGEST_RATIO)
    return np.rint(clipped / RATIO_UNIT).astype(np.int8)


def with_ratios(table: VoiceTable, ratios: np.ndarray) -> VoiceTable:
    """The table with these ratios, [voices, C, V]."""
    pairs = zip(table.voices, ratios, strict=True)
    return replace(
        table, voices=tuple(replace(voice, ratios=its.tobytes()) for voice, its in pairs)
    )


def select_in_voice(table: VoiceTable, turns: Spoken) -> Spoken:
    """The turns that are never in doubt."""
    kept = []
    for voice, codes in turns:
        drift = VoiceDrift(table)
        for frame in codes:
            drift.hear(0, table.voices[voice], frame)
        if drift.correction is None:
            kept.append((voice, codes))
    return kept


def measure(engine: Engine, rows: Sequence[Row]) -> VoiceTable:
    """The table of the model with the ratios of these rows' turns."""
    turns: Spoken = []
    for first in range(0, len(rows), TOGETHER):
        together = rows[first : first + TOGETHER]
        run_to_end(engine.model, together)
        turns += [turn for row in together for turn in turns_of(row)]
    table = engine.config.voices
    assert table is not None
    table = with_ratios(table, log_ratios(table, turns, engine.config.num_codes))
    kept = select_in_voice(table, turns)
    print(f"{len(kept)} of {len(turns)} turns keep their voice")
    return with_ratios(table, log_ratios(table, kept, engine.config.num_codes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dialogues", type=int, default=DIALOGUES)
    args = parser.parse_args()
    engine = result_of(Engine.load(resolve(str(args.folder)), RuntimeConfig(threads=1)))
    table = measure(engine, list(dialogue_rows(engine, args.dialogues)))
    path = args.folder / "config.json"
    config = json.loads(path.read_text())
    for entry, voice in zip(config["voices"]["table"], table.voices, strict=True):
        entry["ratios"] = b64encode(voice.ratios).decode()
    path.write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    main()

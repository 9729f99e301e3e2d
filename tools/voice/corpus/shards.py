"""Stage 1: speak the corpus. `python -m tools.voice.corpus.shards --work DIR --shards N`.

Writes DIR/corpus/NNN.npy (int16 samples, 16 kHz, whole frames an utterance) and NNN.json (text,
voice, offsets, phones, frames per phone). A shard that exists is kept: run again to go on.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from random import Random

import numpy as np

from tools.voice.corpus import heldout, text
from tools.voice.teacher import speech

log = logging.getLogger(__name__)
TABLE_SENTENCES = 300
SHARE = 100  # turns written at a time


def load_table(work: Path) -> dict[str, int]:
    """Frames per phone of the teacher, measured once on our own sentences and kept in DIR."""
    path = work / "phone_frames.json"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        voice = next(iter(speech.VOICES.values()))
        sentences = text.corpus(TABLE_SENTENCES, seed=99)
        path.write_text(json.dumps(speech.duration_table(sentences, voice.flite)))
    return json.loads(path.read_text())


def write_turns(seed: int, count: int) -> list[tuple[str, str]]:
    """(text, voice) of `count` turns; a worker's share of a shard."""
    voices = list(speech.VOICES)
    banned = heldout.banned(), frozenset(heldout.rare_words())
    r = Random(seed)
    return [(t, r.choice(voices)) for t in text.corpus(count, seed, *banned)]


def speak(item: tuple[str, str], table: dict[str, int]):
    """(int16 samples, phones, frames) or None where flite fails on a text."""
    sentence, tag = item
    spoken = sentence.replace(text.LAUGH, text.LAUGH_SPOKEN)
    try:
        wave, phones, frames = speech.speak(spoken, speech.VOICES[tag], table)
    except Exception as error:  # one bad sentence must not end an hour's run
        log.warning("skipped %r: %s", sentence, error)
        return None
    return (wave * 32767).astype(np.int16), phones, frames


def make_shard(path: Path, count: int, seed: int, table: dict[str, int], pool) -> float:
    """Speak `count` turns, voices drawn at random; returns seconds of speech."""
    shares = [(seed * 1000 + k, SHARE) for k in range(count // SHARE)]
    items = [item for share in pool.starmap(write_turns, shares, chunksize=1) for item in share]
    spoken = pool.map(partial(speak, table=table), items, chunksize=25)
    kept = [(item, s) for item, s in zip(items, spoken, strict=True) if s is not None]
    offsets = np.cumsum([0] + [len(s[0]) for _, s in kept])
    np.save(path.with_suffix(".npy"), np.concatenate([s[0] for _, s in kept]))
    record = {
        "items": [item for item, _ in kept],
        "offsets": offsets.tolist(),
        "phones": [s[1] for _, s in kept],
        "frames": [s[2] for _, s in kept],
    }
    path.with_suffix(".json").write_text(json.dumps(record))  # last: marks the shard complete
    return offsets[-1] / speech.SAMPLE_RATE


def read_shard(work: Path, name: str):
    """(record, samples memory-mapped) of the shard `name`, such as "003"."""
    path = work / "corpus" / name
    record = json.loads(path.with_suffix(".json").read_text())
    return record, np.load(path.with_suffix(".npy"), mmap_mode="r")


def shard_names(work: Path) -> list[str]:
    """Every complete shard."""
    return sorted(p.stem for p in (work / "corpus").glob("*.json"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--shards", type=int, default=12)
    parser.add_argument("--per-shard", type=int, default=1400, help="turns in a shard")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    (args.work / "corpus").mkdir(parents=True, exist_ok=True)
    table = load_table(args.work)
    with Pool(args.workers) as pool:
        for k in range(args.shards):
            path = args.work / "corpus" / f"{k:03d}"
            if path.with_suffix(".json").exists():
                continue
            start = time.time()
            seconds = make_shard(path, args.per_shard, 1000 + k, table, pool)
            log.info(
                "shard %03d: %.2f h of speech in %.0f s", k, seconds / 3600, time.time() - start
            )


if __name__ == "__main__":
    main()

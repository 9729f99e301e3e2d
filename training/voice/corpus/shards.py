"""Speak the corpus. `python -m training.voice.corpus.shards --work DIR --shards N`.

Writes DIR/corpus/NNN.npy (int16 samples, 16 kHz, whole frames an utterance) and NNN.json (text,
voice, offsets, phones, their frames and pulses). A shard that exists is kept: run again to go on.
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

from training.voice.corpus import heldout, text
from training.voice.teacher import speech
from training.voice.teacher.phones import SAMPLE_RATE
from training.voice.teacher.voices import VOICES, free_voice, voice_named

log = logging.getLogger(__name__)
TABLE_SENTENCES = 300
SHARE = 100  # turns written at a time
FREE_SHARE, FREE_TURNS = 0.3, 6  # of all turns, those in voices without a name; turns of each


def load_tables(work: Path) -> dict[str, dict[str, int]]:
    """Source -> frames per phone, measured once on our own sentences and stored in DIR."""
    path = work / "phone_frames.json"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        sentences = text.corpus(TABLE_SENTENCES, seed=99)
        sources = {voice.source for voice in VOICES.values()}
        tables = {source.flite: speech.duration_table(sentences, source) for source in sources}
        path.write_text(json.dumps(tables, sort_keys=True))
    return json.loads(path.read_text())


def write_turns(
    seed: int, count: int, named: list[str], free_share: float = FREE_SHARE
) -> list[tuple[str, str]]:
    """(text, voice) of `count` turns; a worker's share of a shard.

    named: the voices with a name to draw from. `free_share` of the turns are in voices that have no
    name, and FREE_TURNS turns only: from them a model learns to follow a voice
    prompt instead of the names that it knows.
    """
    banned = heldout.banned_sentences(), frozenset(heldout.rare_words())
    texts, r = text.corpus(count, seed, *banned), Random(seed)
    free = [free_voice(r) for _ in range(round(free_share * count) // FREE_TURNS)]
    voices = free * FREE_TURNS + r.choices(named, k=count - len(free) * FREE_TURNS)
    return list(zip(texts, voices, strict=True))


def speak(item: tuple[str, str], tables: dict[str, dict[str, int]]) -> speech.Utterance | None:
    """None where flite fails on a text."""
    sentence, name = item
    voice = voice_named(name)
    spoken = sentence.replace(text.LAUGH, text.LAUGH_SPOKEN)
    try:
        return speech.speak(spoken, voice, tables[voice.source.flite])
    except Exception as error:  # one bad sentence must not end an hour's run
        log.warning("skipped %r: %s", sentence, error)
        return None


def make_shard(
    path: Path,
    count: int,
    seed: int,
    tables: dict[str, dict[str, int]],
    pool,
    named: list[str],
    free_share: float,
) -> float:
    """Speak `count` turns, voices drawn at random; returns seconds of speech."""
    shares = [(seed * 1000 + k, SHARE, named, free_share) for k in range(count // SHARE)]
    items = [item for share in pool.starmap(write_turns, shares, chunksize=1) for item in share]
    spoken = pool.map(partial(speak, tables=tables), items, chunksize=25)
    pairs = [(item, s) for item, s in zip(items, spoken, strict=True) if s is not None]
    utterances = [utterance for _, utterance in pairs]
    offsets = np.cumsum([0] + [len(u.wave) for u in utterances])
    samples = np.concatenate([u.wave for u in utterances])
    np.save(path.with_suffix(".npy"), (samples * 32767).astype(np.int16))
    record = {
        "items": [item for item, _ in pairs],
        "offsets": offsets.tolist(),
        "phones": [u.phones for u in utterances],
        "frames": [u.frames for u in utterances],
        "pulses": [u.pulses for u in utterances],
    }
    path.with_suffix(".json").write_text(json.dumps(record))  # last: marks the shard complete
    return offsets[-1] / SAMPLE_RATE


def read_shard(work: Path, name: str):
    """(record, samples memory-mapped) of the shard `name`, such as "003"."""
    path = work / "corpus" / name
    record = json.loads(path.with_suffix(".json").read_text())
    return record, np.load(path.with_suffix(".npy"), mmap_mode="r")


def shard_names(work: Path) -> list[str]:
    """Every complete shard, without those of drift.py."""
    return sorted(p.stem for p in (work / "corpus").glob("[0-9][0-9][0-9].json"))


def load_samples(work: Path) -> np.ndarray:
    """The whole corpus as int16 [samples], whole frames."""
    return np.concatenate([np.asarray(read_shard(work, n)[1]) for n in shard_names(work)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--shards", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="number, and seed, of the first one")
    parser.add_argument("--per-shard", type=int, default=1400, help="turns in a shard")
    parser.add_argument(
        "--voices",
        nargs="+",
        choices=VOICES,
        default=list(VOICES),
        help="only these, such as new ones",
    )
    parser.add_argument(
        "--free-share", type=float, default=FREE_SHARE, help="turns in voices without a name"
    )
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    (args.work / "corpus").mkdir(parents=True, exist_ok=True)
    tables = load_tables(args.work)
    with Pool(args.workers) as pool:
        for k in range(args.first, args.first + args.shards):
            path = args.work / "corpus" / f"{k:03d}"
            if path.with_suffix(".json").exists():
                continue
            start = time.time()
            seconds = make_shard(
                path, args.per_shard, 1000 + k, tables, pool, args.voices, args.free_share
            )
            log.info(
                "shard %03d: %.2f h of speech in %.0f s", k, seconds / 3600, time.time() - start
            )


if __name__ == "__main__":
    main()

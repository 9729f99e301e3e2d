"""The corpus again in voices nearby. `python -m training.voice.corpus.drift --work DIR`.

A model that hears itself drifts, within a few sentences, from a voice to one whose codes are
more common: in training the frames before always have the right voice, so it learns to follow these
instead of the voice mark or the prompt. With these shards some of the frames before are of another
voice (model/scripts.py), and what follows is still the right one.

Writes DIR/corpus/NNNd.npy and NNNd.json (offsets alone) for each shard NNN: every turn has the same
phones in the same frames, since these depend on the text and the source alone.
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

from training.voice.corpus import shards
from training.voice.teacher.voices import FREE_NAME, VOICES, nearby_voice

log = logging.getLogger(__name__)
SUFFIX = "d"


def speak(item: tuple[str, str, int], tables: dict[str, dict[str, int]]) -> np.ndarray | None:
    """A turn (text, voice, seed) in a voice near its own; None if there is no such voice any more
    (a corpus made before a voice was dropped still has its turns)."""
    text, voice, seed = item
    if voice not in VOICES and not FREE_NAME.fullmatch(voice):
        return None
    spoken = shards.speak((text, nearby_voice(voice, Random(seed))), tables)
    return None if spoken is None else spoken.wave


def make_shard(work: Path, name: str, tables: dict[str, dict[str, int]], pool) -> None:
    record, samples = shards.read_shard(work, name)
    items = [(text, voice, 1000 * int(name) + k) for k, (text, voice) in enumerate(record["items"])]
    waves = pool.map(partial(speak, tables=tables), items, chunksize=25)
    drifted, offsets = np.array(samples), record["offsets"]
    for wave, start, end in zip(waves, offsets, offsets[1:], strict=False):
        if wave is not None and len(wave) == end - start:
            drifted[start:end] = (wave * 32767).astype(np.int16)
    path = work / "corpus" / f"{name}{SUFFIX}"
    np.save(path.with_suffix(".npy"), drifted)
    path.with_suffix(".json").write_text(json.dumps({"offsets": offsets}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    tables = shards.load_tables(args.work)
    with Pool(args.workers) as pool:
        for name in shards.shard_names(args.work):
            if (args.work / "corpus" / f"{name}{SUFFIX}.json").exists():
                continue
            start = time.time()
            make_shard(args.work, name, tables, pool)
            log.info("shard %s%s in %.0f s", name, SUFFIX, time.time() - start)


if __name__ == "__main__":
    main()

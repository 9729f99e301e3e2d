"""The corpus as codes. `python -m training.voice.codec.encode --work DIR`.

Writes DIR/codes/NNN.npy, int16 [frames, books], frames in the corpus's order, and DIR/marks.json
(marks.py). A shard that exists is kept; delete DIR/codes after training encoder or codebooks
further.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import torch

from dia_demo.files import write_atomic
from training.voice.codec import marks, network
from training.voice.teacher.phones import HOP
from training.voice.teacher.voices import VOICES

log = logging.getLogger(__name__)
BATCH_SAMPLES = 4 * HOP * 60  # larger batches leave a CPU core's cache: half the speed


def batches(lengths: np.ndarray):
    """Indices grouped by like length, about BATCH_SAMPLES samples a group."""
    group: list[int] = []
    for k in np.argsort(lengths):
        if group and (len(group) + 1) * lengths[k] > BATCH_SAMPLES:
            yield group
            group = []
        group.append(int(k))
    if group:
        yield group


@torch.no_grad()
def encode_shard(record_path: Path, source: Path, out: Path, device: str) -> float:
    """Encode one shard with a checkpoint or an exported folder; returns seconds of speech."""
    torch.set_num_threads(1)
    codec = network.load(source).to(device)
    network.compile_snake()
    offsets = np.array(json.loads(record_path.read_text())["offsets"])
    samples = np.load(record_path.with_suffix(".npy"), mmap_mode="r")
    lengths = np.diff(offsets)
    codes = np.zeros((offsets[-1] // HOP, network.CODEC["n_codebooks"]), np.int16)
    for group in batches(lengths):
        wave = np.zeros((len(group), 1, lengths[group].max()), np.float32)
        for row, k in enumerate(group):
            wave[row, 0, : lengths[k]] = samples[offsets[k] : offsets[k + 1]] / 32768.0
        found = codec.quantizer(codec.encoder(torch.from_numpy(wave).to(device)))[1].cpu().numpy()
        for row, k in enumerate(group):
            start, count = offsets[k] // HOP, lengths[k] // HOP
            codes[start : start + count] = found[row, :, :count].T
    with write_atomic(out / (record_path.stem + ".npy")) as part, open(part, "wb") as file:
        np.save(file, codes)
    return offsets[-1] / network.CODEC["sample_rate"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument(
        "--codec", type=Path, help="instead of DIR/codec.pt: the folder of a shipped codec"
    )
    parser.add_argument(
        "--marks", type=Path, help="marks.json of the model that training is to start from"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    out = args.work / "codes"
    out.mkdir(exist_ok=True)
    todo = [
        p
        for p in sorted((args.work / "corpus").glob("*.json"))
        if not (out / (p.stem + ".npy")).exists()
    ]
    source = args.codec or args.work / "codec.pt"
    run = partial(encode_shard, source=source, out=out, device=args.device)
    start = time.time()
    with Pool(args.workers) as pool:
        for seconds in pool.imap_unordered(run, todo):
            log.info("encoded %.2f h, %.0f s so far", seconds / 3600, time.time() - start)
    marks.write_marks(args.work, network.load(source), VOICES, args.marks)


if __name__ == "__main__":
    main()

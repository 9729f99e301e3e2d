"""Whether a codec keeps the words and the melody of the teacher: the gate before the model.

`python -m training.voice.judge.codec_gate --work DIR --codec DIR/codec.pt --count 100`: of every
voice the word error of the teacher and of the codec alone, the mel error of the codec, pitch and
rumble before and after it. The exit code is 1 if a voice loses more than the gate allows.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import torch

from training.voice.codec import network
from training.voice.corpus import heldout, shards
from training.voice.judge import intonation
from training.voice.judge.voice_trials import Measured, Prompts, error_of, measure
from training.voice.teacher.voices import EIGHT, VOICES

GATE = 0.03  # word error: the codec alone against the teacher


@dataclass(frozen=True)
class Pair:
    """A sentence of the teacher's and what the codec makes of it; their distance (mel L1)."""

    before: Measured
    after: Measured
    mel: float


@lru_cache
def load_codec(source: Path) -> torch.nn.Module:
    torch.set_num_threads(1)
    return network.load(source)


@torch.no_grad()
def recode(sentence: str, name: str, prompts: Prompts, source: Path) -> Pair:
    codec, wave = load_codec(source), prompts.speak(name, sentence)
    before = torch.from_numpy(wave)[None]
    codes = codec.quantizer(codec.encoder(before[:, None]))[1]
    after = network.decode(codec, codes)
    mel = network.SpectralLoss()(after, before)[0].item()
    return Pair(measure(sentence, wave), measure(sentence, after[0].numpy()), mel)


def passes(before: list[Measured], after: list[Measured]) -> bool:
    return error_of(after) <= error_of(before) + GATE


def report(name: str, pairs: list[Pair]) -> bool:
    before, after = [p.before for p in pairs], [p.after for p in pairs]
    deviations = [intonation.deviation([t.f0 for t in takes]) for takes in (before, after)]
    rumble = intonation.rumble([t.wave for t in after])
    passed = passes(before, after)
    print(
        f"{name}: word error {error_of(before):.1%} -> {error_of(after):.1%}, mel "
        f"{np.mean([p.mel for p in pairs]):.4f}, pitch {deviations[0]:.2f} -> {deviations[1]:.2f} "
        f"semitones s.d., below 50 Hz {rumble:.1f} dB: {'passes' if passed else 'fails'}",
        flush=True,
    )
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--codec", type=Path, help="DIR/codec.pt, or the folder of a shipped codec")
    parser.add_argument("--voices", nargs="+", choices=VOICES, default=list(EIGHT))
    parser.add_argument("--count", type=int, default=100, help="sentences for each voice")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    prompts = Prompts(shards.load_tables(args.work))
    source = args.codec or args.work / "codec.pt"
    sentences, passed = heldout.NATURAL[: args.count], []
    with Pool(args.workers) as pool:
        for name in args.voices:
            run = partial(recode, name=name, prompts=prompts, source=source)
            passed.append(report(name, pool.map(run, sentences)))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())

"""How well the teacher's voices are understood and told apart.

`python -m training.voice.judge.teachers --work DIR --count 30`: for every voice the word error of
the teacher on sentences never trained on, the spread of its pitch, its two most common semitones,
its rumble, its level, and how many takes are identified as this voice.
"""

from __future__ import annotations

import argparse
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np

from dia_demo.services.measurements.words import word_error
from training.voice.corpus import heldout, shards
from training.voice.judge import intonation, speakers
from training.voice.judge.voice_trials import (
    IDENTIFIED,
    Measured,
    Prompts,
    identity_line,
    measure,
)
from training.voice.teacher.voices import UNSEEN, VOICES


def hear(sentence: str, name: str, prompts: Prompts) -> Measured:
    return measure(sentence, prompts.speak(name, sentence))


def level(waves: list[np.ndarray]) -> float:
    """RMS in dB over what is not silence."""
    samples = np.concatenate(waves)
    return float(20 * np.log10(np.sqrt(np.square(samples[samples != 0]).mean())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--voices", nargs="+", choices=VOICES | UNSEEN, default=list(VOICES))
    parser.add_argument("--count", type=int, default=30, help="sentences for each voice")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    prompts = Prompts(shards.load_tables(args.work))
    takes: dict[str, list[Measured]] = {}
    with Pool(args.workers) as pool:
        for name in args.voices:
            sentences = heldout.NATURAL[: args.count]
            each = takes[name] = pool.map(partial(hear, name=name, prompts=prompts), sentences)
            error = word_error([t.text for t in each], [t.recognised for t in each])
            tracks, waves = [t.f0 for t in each], [t.wave for t in each]
            print(
                f"{name}: word error {error:.1%}, pitch {intonation.deviation(tracks):.2f} "
                f"semitones s.d., two most common semitones {intonation.two_steps(tracks):.0%}, "
                f"below 50 Hz {intonation.rumble(waves):.1f} dB, level {level(waves):.1f} dB",
                flush=True,
            )
    # every second take makes the profiles, the others are identified
    known = speakers.profiles({n: [t.traits for t in each[::2]] for n, each in takes.items()})
    line = identity_line({n: each[1::2] for n, each in takes.items()}, known, IDENTIFIED)
    print(f"identified: {line.value:.1%} of {line.count}, confused: {line.notes['confused']}")


if __name__ == "__main__":
    main()

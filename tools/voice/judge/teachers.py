"""How well the teacher's voices are understood and told apart.

`python -m tools.voice.judge.teachers --work DIR --count 30`: for every voice the word error of the
teacher on sentences never trained on, the spread of its pitch, its two commonest semitones, its
rumble, its level, and how many takes are identified as this voice.
"""

from __future__ import annotations

import argparse
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np

from dia_demo.services.bench.words import word_error
from tools.voice.corpus import heldout, shards
from tools.voice.judge import asr, intonation, speakers
from tools.voice.teacher import speech
from tools.voice.teacher.melody import pitch_track
from tools.voice.teacher.voices import VOICES

PROFILE_SHARE = 2  # every second take makes the profiles, the others are identified


def hear(sentence: str, name: str, tables):
    """(recognised text, pitch track, traits, waveform) of one sentence in one voice."""
    voice = VOICES[name]
    wave = speech.speak(sentence, voice, tables[voice.source.flite]).wave
    return asr.recognise(wave), pitch_track(wave)[1], speakers.traits(wave), wave


def level(waves: list[np.ndarray]) -> float:
    """RMS in dB over what is not silence."""
    samples = np.concatenate(waves)
    return float(20 * np.log10(np.sqrt(np.square(samples[samples != 0]).mean())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--voices", nargs="+", default=list(VOICES))
    parser.add_argument("--count", type=int, default=30, help="sentences for each voice")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    tables = shards.load_tables(args.work)
    sentences = heldout.NATURAL[: args.count]
    takes: dict[str, list] = {}
    with Pool(args.workers) as pool:
        for name in args.voices:
            takes[name] = pool.map(partial(hear, name=name, tables=tables), sentences)
            texts, tracks, _, waves = zip(*takes[name], strict=True)
            print(
                f"{name}: word error {word_error(sentences, list(texts)):.1%}, pitch "
                f"{intonation.deviation(tracks):.2f} semitones s.d., two commonest semitones "
                f"{intonation.two_steps(tracks):.0%}, below 50 Hz {intonation.rumble(waves):.1f} "
                f"dB, level {level(waves):.1f} dB",
                flush=True,
            )
    known = speakers.profiles(
        {name: [t[2] for t in each[::PROFILE_SHARE]] for name, each in takes.items()}
    )
    for name, each in takes.items():
        others = [speakers.identify(t[2], known) for t in each[1::PROFILE_SHARE]]
        wrong = sorted({other for other in others if other != name})
        print(f"{name}: identified {np.mean([o == name for o in others]):.0%} {wrong or ''}")


if __name__ == "__main__":
    main()

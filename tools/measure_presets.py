"""Measure what sampling settings do to a model's speech, for the presets of its profile.

    python -m tools.measure_presets                       # the embedded voice, minutes of one core
    python -m tools.measure_presets /models/dia --settings 1.0,3 --settings 1.8,3

For each pair of temperature and CFG scale, takes of everyday sentences by the same voices with
different seeds: word error by an independent recogniser, how far the pitch moves within a sentence
(standard deviation in semitones), and how much takes of the same sentence differ in length
(standard deviation of the logarithm). Needs requirements-dev.txt and pyworld.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from dia_demo.engine.events import Result
from dia_demo.services.measurements.words import SENTENCES, word_error
from tools.voice_bars.hearing import hear_pieces
from tools.voice_bars.studio import Studio

SETTINGS = ("0,1", "0.1,1", "0.3,1", "0.5,1", "0.7,1", "1,1", "0.1,2", "0.3,2", "0.5,2", "0.7,2")
SEEDS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="nano")
    parser.add_argument("--settings", action="append", metavar="TEMPERATURE,CFG")
    parser.add_argument("--sentences", type=int, default=len(SENTENCES))
    options = parser.parse_args()
    os.nice(15)
    print("temperature  CFG scale  words wrong  pitch  length  takes")
    with tempfile.TemporaryDirectory() as work:
        studio = Studio(Path(work), options.model, 1)
        for setting in options.settings or SETTINGS:
            temperature, scale = map(float, setting.split(","))
            wrong, pitch, length, count = _measure(studio, temperature, scale, options.sentences)
            print(
                f"{temperature:<11g}  {scale:<9g}  {wrong:10.1%}  {pitch:5.2f}  {length:6.3f}  "
                f"{count:5}",
                flush=True,
            )


def _measure(studio: Studio, temperature: float, scale: float, sentences: int):
    """Word error, spread of the pitch, spread of the length, and the number of takes."""
    said, heard, pitches, lengths = [], [], [], []
    for sentence in SENTENCES[:sentences]:
        takes = _takes(studio, sentence, temperature, scale)
        for take in takes:
            rate = take.figures.sample_rate
            said.append(sentence)
            heard.append(hear_pieces(take.samples, rate))
            pitches.append(_pitch_spread(take.samples, rate))
        lengths.append(np.var([np.log(take.figures.audio_seconds) for take in takes], ddof=1))
    return word_error(said, heard), np.nanmean(pitches), np.sqrt(np.mean(lengths)), len(said)


def _takes(studio: Studio, sentence: str, temperature: float, scale: float) -> list[Result]:
    """Takes of a sentence with different seeds, by the same voice if the model has voices."""
    requests = []
    for seed in range(SEEDS):
        request = studio.request(f"[S1] {sentence}", seed)
        table = request.model.config.voices
        params = replace(request.params, temperature=temperature, cfg_scale=scale)
        # Another voice for each sentence, the same for all its takes.
        names = [] if table is None else [voice.name for voice in table.voices]
        voice = names[SENTENCES.index(sentence) % len(names)] if names else None
        requests.append(replace(request, params=params, voices=(voice, None)))
    return studio.takes(requests)


def _pitch_spread(samples: np.ndarray, rate: int) -> float:
    """How far the pitch moves, in semitones."""
    import pyworld

    pitch, _ = pyworld.harvest(samples.astype(np.float64), rate, f0_floor=60, f0_ceil=500)
    voiced = pitch[pitch > 0]
    return float(np.std(12 * np.log2(voiced))) if len(voiced) > 10 else float("nan")


if __name__ == "__main__":
    main()

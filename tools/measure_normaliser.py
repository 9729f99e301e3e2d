"""What normalising is worth on the embedded voice: word error of odd text and of the same by hand.

`python -m tools.measure_normaliser [--seeds N]`: every sentence is made three times, as it was
written, normalised, and as a person wrote it in words, and heard by the recogniser (pocketsphinx,
from requirements-dev.txt). The words by hand are the reference of all three.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import soxr

from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Finished
from dia_demo.engine.row import Row
from dia_demo.services.measurements.words import SAMPLE_RATE, word_error
from dia_demo.text.normaliser import normalise
from dia_demo.text.script import encode_script
from training.voice.judge import asr
from training.voice.judge.evaluate import load_engine

SENTENCES = (
    ("I’m sure you’ll like it.", "I'm sure you'll like it."),
    ("Don’t be late — we can’t wait…", "Don't be late, we can't wait."),
    ("It’s “really” good, isn’t it?", "It's really good, isn't it?"),
    ("The book costs $3.50 now.", "The book costs three dollars and fifty cents now."),
    ("She paid $20 for the hat.", "She paid twenty dollars for the hat."),
    ("He owes me £5.", "He owes me five pounds."),
    ("They spent $2 million on the house.", "They spent two million dollars on the house."),
    ("A cup of tea is €2.", "A cup of tea is two euros."),
    ("The train leaves at 10:45.", "The train leaves at ten forty five."),
    ("We eat at 7 p.m. every day.", "We eat at seven pee em every day."),
    ("Come at 6:30 in the morning.", "Come at six thirty in the morning."),
    ("The shop opens at 9:00.", "The shop opens at nine o'clock."),
    ("We met on March 4, 2025.", "We met on March fourth, twenty twenty five."),
    ("The party is on 12/25/2024.", "The party is on December twenty fifth, twenty twenty four."),
    ("Her birthday is May 3rd.", "Her birthday is May third."),
    ("He was born in 1999.", "He was born in nineteen ninety nine."),
    ("Music of the 1960s is nice.", "Music of the nineteen sixties is nice."),
    ("About 25% of them came.", "About twenty five percent of them came."),
    ("I am 100% sure.", "I am one hundred percent sure."),
    ("She came in 2nd.", "She came in second."),
    ("This is the 21st time.", "This is the twenty first time."),
    ("I have 12 pears.", "I have twelve pears."),
    ("There were 20 men in the room.", "There were twenty men in the room."),
    ("He read 150 books.", "He read one hundred and fifty books."),
    ("It took 3 days & 2 nights.", "It took three days and two nights."),
    ("Call me at 555-1234.", "Call me at five five five, one two three four."),
    ("Dr. Smith was here.", "Doctor Smith was here."),
    ("Mr. Brown and Mrs. Brown left.", "Mister Brown and Missus Brown left."),
    ("They live on Baker St.", "They live on Baker Street."),
    ("He lives near St. John.", "He lives near Saint John."),
    ("We saw cats, dogs, etc.", "We saw cats, dogs, et cetera."),
    ("It is cats vs. dogs.", "It is cats versus dogs."),
    ("Look at No. 5.", "Look at number five."),
    ("Read page 12 and pp. 3-5.", "Read page twelve and pages three to five."),
    ("He works for the FBI.", "He works for the eff bee eye."),
    ("The TV is too loud.", "The tee vee is too loud."),
    ("I need a new PC.", "I need a new pee see."),
    ("She lives in the U.S.A. now.", "She lives in the you ess ay now."),
    ("He plays an MP3.", "He plays an em pee three."),
    ("The lake is 5 km away.", "The lake is five kilometers away."),
    ("The bag weighs 3 kg.", "The bag weighs three kilograms."),
    ("It is 72°F outside.", "It is seventy two degrees Fahrenheit outside."),
    ("He drove 60 mph.", "He drove sixty miles per hour."),
    ("Add 1/2 cup of milk.", "Add one half cup of milk."),
    ("We need 2½ hours.", "We need two and a half hours."),
    ("It is open 24/7.", "It is open twenty four seven."),
    ("The answer is 3.14.", "The answer is three point one four."),
    ("It was -5 last night.", "It was minus five last night."),
    ("Wait 10-15 minutes.", "Wait ten to fifteen minutes."),
    ("World War II was long.", "World War two was long."),
    ("Write to anna@example.com today.", "Write to Anna at example dot com today."),
    ("See https://www.example.com for more.", "See example dot com for more."),
    ("That was **very** good.", "That was very good."),
    ("This is *not* the end.", "This is not the end."),
    ("Salt & pepper, please.", "Salt and pepper, please."),
    ("Bring tea and/or milk.", "Bring tea and or milk."),
    ("2 + 2 = 4.", "Two plus two equals four."),
    ("The house is #7.", "The house is number seven."),
    ("It is OK, we have ~20 left.", "It is okay, we have about twenty left."),
    ("I’ll take 2 coffees — no sugar.", "I'll take two coffees, no sugar."),
)
TOGETHER = 12


def hear(engine: Engine, texts: list[str], seed: int) -> list[str]:
    """What the recogniser hears of each text, said by S1 and S2 in turn."""
    heard = []
    for start in range(0, len(texts), TOGETHER):
        rows = [
            Row(
                engine.config,
                encode_script(f"[S{number % 2 + 1}] {text.removeprefix('[S1] ')}"),
                replace(engine.config.defaults, seed=1000 * seed + number),
            )
            for number, text in enumerate(texts[start : start + TOGETHER], start)
        ]
        takes: dict[int, np.ndarray] = {}
        for event in engine.stream(rows, [3.0] * len(rows), with_audio=False):
            if isinstance(event, Finished):
                takes[event.row] = engine.codec.decode(event.result.codes)
        waves = (takes[number] for number in range(len(rows)))
        rate = engine.info.codec.sample_rate
        heard += [asr.recognise(soxr.resample(wave, rate, SAMPLE_RATE)) for wave in waves]
    return heard


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2, help="takes of each sentence (2)")
    args = parser.parse_args()
    engine = load_engine("nano", threads=1)
    kinds = {
        "as written": [odd for odd, _ in SENTENCES],
        "normalised": [normalise(odd, letter_names=True).text for odd, _ in SENTENCES],
        "by hand": [by_hand for _, by_hand in SENTENCES],
    }
    reference = kinds["by hand"] * args.seeds
    for kind, texts in kinds.items():
        heard = [line for seed in range(args.seeds) for line in hear(engine, texts, seed)]
        print(f"{kind}: word error {100 * word_error(reference, heard):.1f}%, {len(heard)} takes")


if __name__ == "__main__":
    main()

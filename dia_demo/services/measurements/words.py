"""Word error by an independent recogniser, pocketsphinx, which is a development dependency.

It was not trained on these voices, so its errors are only comparable with each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

SAMPLE_RATE = 16000
GET_IT = "pocketsphinx, the recogniser, is not installed: pip install -r requirements-dev.txt"
# Spoken by the two speakers in turn.
SENTENCES = """
The baker opens his shop before the sun is up.
We could walk to the lake if the rain stops.
Her letter came on Monday, but I never read it.
Put the blue cup on the shelf beside the door.
How many apples did you buy at the market?
My uncle keeps bees at the end of his garden.
It takes an hour to reach the top of the hill.
The doctor said that you should rest for a week.
Would you mind if I sat near the window?
They sold the old farm and moved to the city.
I heard a strange noise in the cellar last night.
Nobody knows where the key to this box is.
She sings better than anyone else in our class.
The train was full, so we had to stand.
Leave your shoes outside and come in.
We have known each other since we were children.
There is a good film on television tonight.
He lost his watch somewhere on the beach.
Can we talk about the price another time?
The soup is hot, wait until it has cooled.
Every summer they paint one of the boats green.
You were right, the road does end at the bridge.
I would rather stay at home and cook something.
The dog waited at the gate until dark.
What did the man at the station tell you?
Our neighbours are going to build a wooden fence.
The cake will be ready in half an hour.
Please write your name at the bottom of the page.
It was so quiet that I could hear the clock.
The teacher asked us to bring some warm clothes.
Two of the chairs are broken and one is missing.
Let me know when you get back from work.
""".strip().splitlines()


class Recogniser:
    """Recognises English speech. Raises ImportError if pocketsphinx is not installed."""

    def __init__(self) -> None:
        import pocketsphinx

        settings = pocketsphinx.Config(samprate=SAMPLE_RATE, loglevel="FATAL")
        self._decoder = pocketsphinx.Decoder(settings)

    def hear(self, samples_N: np.ndarray) -> str:
        """The recognised words in float32 [N] at SAMPLE_RATE."""
        silence = np.zeros(SAMPLE_RATE // 3, np.int16)
        wave = (np.clip(samples_N, -1, 1) * 32767).astype(np.int16)
        self._decoder.start_utt()
        self._decoder.process_raw(np.concatenate([silence, wave, silence]).tobytes(), full_utt=True)
        self._decoder.end_utt()
        hypothesis = self._decoder.hyp()
        return re.sub(r"\(\d+\)", "", hypothesis.hypstr) if hypothesis else ""


def word_error(texts: Sequence[str], heard: Sequence[str]) -> float:
    """Word error rate: wrong, missing and extra words over the words of all texts."""
    pairs = [
        (words(text), words(transcript)) for text, transcript in zip(texts, heard, strict=True)
    ]
    return sum(distance(a, b) for a, b in pairs) / sum(len(a) for a, _ in pairs)


def words(text: str) -> list[str]:
    """The words of a script or transcript, in lower case, without tags."""
    return re.sub(r"[^a-z' ]", " ", re.sub(r"\[S\d\]", " ", text).lower()).split()


def distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Levenshtein distance: the fewest words to change, remove or add."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]

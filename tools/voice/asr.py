"""Word error by pocketsphinx with its general English model: our measure of being understood."""

from __future__ import annotations

import re
from multiprocessing import Pool

import numpy as np

SAMPLE_RATE = 16000
_decoder = None


def normalise(text: str) -> list[str]:
    """Lower-case words without speaker tags and punctuation."""
    return re.sub(r"[^a-z' ]", " ", re.sub(r"\[S\d\]", " ", text).lower()).split()


def recognise(wave: np.ndarray) -> str:
    """What pocketsphinx hears in a 16 kHz waveform (float in -1..1, or int16)."""
    global _decoder
    if _decoder is None:
        import pocketsphinx

        _decoder = pocketsphinx.Decoder(pocketsphinx.Config(samprate=SAMPLE_RATE, loglevel="FATAL"))
    if wave.dtype != np.int16:
        wave = (np.clip(wave, -1, 1) * 32767).astype(np.int16)
    silence = np.zeros(4800, np.int16)
    _decoder.start_utt()
    _decoder.process_raw(np.concatenate([silence, wave, silence]).tobytes(), full_utt=True)
    _decoder.end_utt()
    heard = _decoder.hyp()
    return re.sub(r"\(\d+\)", "", heard.hypstr) if heard else ""


def edit_distance(a, b) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def word_errors(texts: list[str], waves: list[np.ndarray], workers: int = 1):
    """(word error rate 0..1 over all texts, what was heard for each)."""
    if workers > 1:
        with Pool(workers) as pool:
            heard = pool.map(recognise, waves)
    else:
        heard = [recognise(w) for w in waves]
    pairs = [(normalise(t), normalise(h)) for t, h in zip(texts, heard, strict=True)]
    wrong = sum(edit_distance(a, b) for a, b in pairs)
    return wrong / sum(len(a) for a, _ in pairs), heard

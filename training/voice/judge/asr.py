"""Many takes heard by the app's recogniser at once: our measure of being understood."""

from __future__ import annotations

from multiprocessing import Pool

import numpy as np

from dia_demo.services.measurements.words import Recogniser

_recogniser = None


def recognise(wave: np.ndarray) -> str:
    """What is heard in a 16 kHz waveform, float in -1..1."""
    global _recogniser
    _recogniser = _recogniser or Recogniser()
    return _recogniser.hear(wave)


def recognise_all(waves: list[np.ndarray], workers: int = 1) -> list[str]:
    """`recognise` for each, in as many processes."""
    if workers == 1:
        return [recognise(wave) for wave in waves]
    with Pool(workers) as pool:
        return pool.map(recognise, waves)

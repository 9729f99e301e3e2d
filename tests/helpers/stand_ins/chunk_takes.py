"""Takes of chunks as a model that follows its text makes them, and faults planted into them."""

from dataclasses import replace

import numpy as np

from dia_demo.engine.events import Figures, FinishReason
from dia_demo.services.judging.chunk_take import ChunkTake
from dia_demo.text.script import encode_script

RATE, HOP = 16000, 384
FPS = RATE / HOP
FRAMES_PER_BYTE = 3
SILENT_FRAMES = 8  # at a space after a mark, and at both ends
SCRIPT = "[S1] Hello there, my friend. [S2] How have you been? [S1] Very well indeed, thank you."


def chunk_take(script: str = SCRIPT, seed: int = 0, level: float = 0.1) -> ChunkTake:
    """A take in which every byte of a word has FRAMES_PER_BYTE frames of modulated noise."""
    text = encode_script(script)
    places, loud = [0] * SILENT_FRAMES, [0.0] * SILENT_FRAMES
    for place, byte in enumerate(text):
        is_mark = byte in b".,?!"
        count = SILENT_FRAMES if is_mark else 0 if byte in b"\x01\x02 " else FRAMES_PER_BYTE
        places += [place] * count
        loud += [0.0 if is_mark else 1.0] * count
    # The last word fades out.
    last = max(frame for frame, value in enumerate(loud) if value)
    loud[last - 1], loud[last] = 0.3, 0.06
    rng = np.random.default_rng(seed)
    shape = np.repeat(loud, HOP) * (1 + 0.8 * np.sin(np.arange(len(loud) * HOP) / 700))
    samples = (level * shape * rng.standard_normal(len(loud) * HOP)).astype(np.float32)
    return take_of(np.clip(samples, -0.99, 0.99), np.array(places, np.int32), text)


def take_of(samples: np.ndarray, places: np.ndarray | None, text: bytes, said: int = 0):
    seconds = len(samples) / RATE
    figures = Figures(
        seconds, 1.0, seconds, 0.5, 0.5, 0.1, 10, FinishReason.END, 1, "m", "int8", "cpu", RATE, 1
    )
    codes = np.zeros((len(samples) // HOP, 4), np.int16)
    return ChunkTake(0, 0, samples, codes, places, text, said, figures)


def with_frames(take: ChunkTake, kept: np.ndarray) -> ChunkTake:
    """The take of these frames, in this order: sound and places alike."""
    samples = np.concatenate([take.samples[f * HOP : (f + 1) * HOP] for f in kept])
    return replace(take, samples=samples, codes=take.codes[kept], places=take.places[kept])


def frames_reading(take: ChunkTake, words: str) -> tuple[int, int]:
    """The first frame and the one after the last that read these words."""
    start = take.text.index(words.encode())
    inside = (take.places >= start) & (take.places < start + len(words))
    frames = np.flatnonzero(inside)
    return int(frames[0]), int(frames[-1]) + 1

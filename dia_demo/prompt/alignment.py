"""When each word of a recording begins, by an aligner, where one is installed: pocketsphinx.

It brings an acoustic model and a dictionary of English. A word that is not in the dictionary gets
roughly the sounds of its letters, which is enough to find where it begins.
"""

from __future__ import annotations

import logging
import re
from typing import Any

import numpy as np

from dia_demo.prompt.speech import RATE
from dia_demo.prompt.voice_file import WordTime
from dia_demo.text.script import words_of

log = logging.getLogger(__name__)
FRAMES_PER_SECOND = 100
# Silence around the recording, in samples: its first word may begin at once.
_MARGIN = RATE // 5
# The nearest sounds of letters, in the symbols of the dictionary (ARPAbet).
_SOUNDS = {
    "a": "AE", "b": "B", "c": "K", "d": "D", "e": "EH", "f": "F", "g": "G", "h": "HH", "i": "IH",
    "j": "JH", "k": "K", "l": "L", "m": "M", "n": "N", "o": "AA", "p": "P", "q": "K", "r": "R",
    "s": "S", "t": "T", "u": "AH", "v": "V", "w": "W", "x": "K S", "y": "Y", "z": "Z",
}  # fmt: skip


def align_words(transcript: str, wave: np.ndarray, rate: int) -> tuple[WordTime, ...] | None:
    """The words of a transcript, each with the second of a wave [n] in which it begins.

    A word without letters begins where the one before it ends. None if no aligner is installed, or
    it finds these words not in this order.
    """
    said = words_of(transcript)
    spoken = [_dictionary_words(word) for _, word in said]
    decoder = _new_decoder()
    if decoder is None or not any(spoken):
        return None
    try:
        segments = _segments(decoder, [word for words in spoken for word in words], wave, rate)
    except RuntimeError as error:
        log.info("a recording could not be aligned: %s", error)
        return None
    if [word for word, _, _ in segments] != [word for words in spoken for word in words]:
        return None
    starts, end, at = [], 0.0, 0
    for words in spoken:
        starts.append(segments[at][1] if words else end)
        at += len(words)
        end = segments[at - 1][2] if words else end
    return tuple(
        (word, start, speaker) for (speaker, word), start in zip(said, starts, strict=True)
    )


def _new_decoder() -> Any:
    """pocketsphinx with its English model; None if it is not installed. It takes 0.1 s, and what
    was added to its dictionary goes with it."""
    try:
        import pocketsphinx

        return pocketsphinx.Decoder(pocketsphinx.Config(samprate=RATE, lm=None, loglevel="FATAL"))
    except ImportError:
        return None


def _dictionary_words(word: str) -> list[str]:
    """A word of a script as words of the dictionary; none for a sound in parentheses."""
    if word.startswith("("):
        return []
    return [part for part in re.findall(r"[a-z']+", word.lower()) if re.search("[a-z]", part)]


def _segments(
    decoder: Any, words: list[str], wave: np.ndarray, rate: int
) -> list[tuple[str, float, float]]:
    """Each word with the seconds from its start to its end. Raises RuntimeError."""
    import soxr

    for word in set(words):
        if decoder.lookup_word(word) is None:
            sounds = " ".join(_SOUNDS[letter] for letter in word if letter in _SOUNDS)
            decoder.add_word(word, sounds, False)
    heard = np.pad(soxr.resample(np.asarray(wave, np.float32), rate, RATE), _MARGIN)
    decoder.set_align_text(" ".join(words))
    decoder.start_utt()
    decoder.process_raw((np.clip(heard, -1, 1) * 32767).astype(np.int16).tobytes(), full_utt=True)
    decoder.end_utt()
    longest = len(wave) / rate
    found = []
    for segment in decoder.seg() or ():
        word = re.sub(r"\(\d+\)$", "", segment.word)
        if word[:1] not in ("", "<", "(", "["):  # Silence and noise.
            frames = np.array([segment.start_frame, segment.end_frame + 1]) / FRAMES_PER_SECOND
            start, end = (frames - _MARGIN / RATE).clip(0, longest).round(3).tolist()
            found.append((word, start, end))
    return found

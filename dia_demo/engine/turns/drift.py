"""Finds from the codes that a turn leaves the voice of its speaker, and brings it back.

The mark of a voice (engine/turns/voices.py) is one code at the beginning of a turn; with some texts
the model speaks in another voice all the same. But every code is more frequent in some voices than
in others (`Voice.ratios`). Their sum over a turn tells the voices apart within half a second:
a sequential likelihood-ratio test that forgets. Once another voice is far more likely than the
right one, the same ratios are added to the logits for the rest of the turn, so that the codes are
drawn from the product of what the model and the voice make likely.

Of 160 dialogues between any two of the embedded voice's 24 voices, 24 had a turn in another voice
without this and 5 with it. A turn in which no doubt arises has the same codes with it and without.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from dia_demo.voices import RATIO_UNIT, Voice, VoiceTable

# How much more likely another voice must be, as a logarithm. Nine of ten turns never reach 11; one
# that leaves its voice comes to 30 and more. From 12 on, twice as many takes were corrected, and
# good ones among them harmed.
DOUBT = 16.0
# What counts of a frame in the next one: the last half a second is half of all that counts.
# (Heard four at a time, turns came back later: with a doubt of 12, 7 of the 160 dialogues were left
# and not 3.)
MEMORY = np.float32(0.97)
# The multiple of the ratios that is added. With 2.5 more turns stayed in another voice, and with 6
# the correction itself changed the sound.
STRENGTH = 3.0


class VoiceDrift:
    """How one row keeps to its voices, turn by turn.

    correction: what is to be added to the logits of the next codes, float32 [C, V]; None while the
    turn is in the voice of its speaker, as far as is known.
    """

    def __init__(self, table: VoiceTable) -> None:
        from dia_demo.kernels.turns import add_evidence

        self._add_evidence = add_evidence
        self._table, self._ratios = table, code_ratios(table)
        self._turn: int | None = None
        self._voice: int | None = None  # Its place in the table.
        self._evidence = np.zeros(len(table.voices), np.float32)
        self.correction: np.ndarray | None = None

    def hear(self, turn: int, voice: Voice | None, codes: np.ndarray) -> None:
        """The codes [C] of a step. turn: the number of the one that is spoken; voice: of its
        speaker, None where it is not known. Codes that are not the codec's, such as the end, say
        nothing."""
        if turn != self._turn:
            self._turn, self.correction = turn, None
            is_known = voice is not None and self._ratios is not None
            self._voice = self._table.voices.index(voice) if is_known else None
            self._evidence[:] = 0
        ratios, right = self._ratios, self._voice
        if ratios is None or right is None or self.correction is not None:
            return
        if self._add_evidence(self._evidence, MEMORY, ratios, codes, right) > DOUBT:
            self.correction = STRENGTH * ratios[:, :, right]


@cache
def code_ratios(table: VoiceTable) -> np.ndarray | None:
    """How much more likely each code is in each voice than in all voices together, as a logarithm,
    float32 [C, V, voices]; None of a table without them."""
    stored = [np.frombuffer(voice.ratios, np.int8) for voice in table.voices]
    if not all(map(len, stored)):
        return None
    ratios = np.float32(RATIO_UNIT) * np.stack(stored, -1)
    return ratios.reshape(len(table.silence), -1, len(stored))

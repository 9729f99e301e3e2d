"""Dia's delay pattern: channel c has frame f at position f + 1 + delay[c].

Position 0 holds BOS on all channels, and channel c keeps BOS through position delay[c].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

UNKNOWN = -1


def apply_delay(codes: np.ndarray, delay: Sequence[int], bos: int) -> np.ndarray:
    """A prompt's codes [frames, C] as decoder positions [frames + 1 + max(delay), C].

    BOS goes before each channel's first code, UNKNOWN (to be predicted) after its last.
    """
    frames, channels = codes.shape
    out = np.full((frames + 1 + max(delay), channels), UNKNOWN, dtype=np.int64)
    for channel, lag in enumerate(delay):
        out[: lag + 1, channel] = bos
        out[lag + 1 : lag + 1 + frames, channel] = codes[:, channel]
    return out


def revert_delay(positions: np.ndarray, delay: Sequence[int], first: int, last: int) -> np.ndarray:
    """Frames first..last (last excluded) of decoder positions [P, C], as codes [frames, C].

    All positions up to last + max(delay) must be present.
    """
    assert last + max(delay) < len(positions) or first >= last
    return np.stack(
        [positions[first + 1 + lag : last + 1 + lag, c] for c, lag in enumerate(delay)], axis=1
    )

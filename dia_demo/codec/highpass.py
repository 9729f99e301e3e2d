"""The high-pass filter of a codec whose output has an offset or rumble."""

from __future__ import annotations

import numpy as np
import torch

from dia_demo.codec.decoder import StreamState

# Two second-order sections: 24 dB down an octave below the cutoff, 0.1 dB at 1.6 times it.
_ORDER = 4


class HighPass:
    """A Butterworth filter over samples that arrive in pieces.

    It is computed in float64 and its state is part of the stream's `StreamState`, so the output
    does not depend on how the samples are cut, not even in the last bit.
    """

    def __init__(self, cutoff_hz: float, sample_rate: int) -> None:
        from scipy import signal

        self._sections = signal.butter(_ORDER, cutoff_hz, "highpass", fs=sample_rate, output="sos")
        self._settled = signal.sosfilt_zi(self._sections)
        self._run = signal.sosfilt

    def __call__(self, samples_N: np.ndarray, state: StreamState) -> np.ndarray:
        """Filter the stream's next samples, float32 [N]."""
        if not len(samples_N):
            return samples_N
        if self not in state:
            # As if the first sample had been constant before: no step, no click.
            state[self] = torch.from_numpy(self._settled * float(samples_N[0]))
        filtered_N, sections_state = self._run(
            self._sections, samples_N.astype(np.float64), zi=state[self].numpy()
        )
        state[self] = torch.from_numpy(sections_state)
        return filtered_N.astype(np.float32)

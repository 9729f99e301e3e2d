"""Mimi as a codec: codes to sound as a stream, and sound to codes."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dia_demo.codec.codec import Codec
from dia_demo.codec.convolution import LIGHT_GFLOP, PRECISIONS, BackendChoice
from dia_demo.codec.mimi.choose_decoder import decoder_kind, new_decoder
from dia_demo.codec.mimi.config import MimiConfig
from dia_demo.codec.mimi.decoder import macs_of_a_second
from dia_demo.codec.mimi.encoder import MimiEncoder
from dia_demo.codec.mimi.files import find_mimi
from dia_demo.codec.mimi.weights import (
    StoredMimi,
    codebook_names,
    open_stored_mimi,
    random_stored_mimi,
)
from dia_demo.errors import InputError
from dia_demo.model.cpu_model import torch_threads
from dia_demo.task import result_of


def open_mimi(
    folder: Path | str | None = None, *, allow_download: bool = True, precision: str = "auto"
) -> Generator[float, None, MimiCodec]:
    """The Mimi of a checkpoint folder, or kyutai/mimi where it has none of its own.

    Yields the fraction fetched. precision: of the decoder's weights; "auto", "float32" or
    "bfloat16" (encoding is float32). Raises InputError if no codec is available or its files are
    inconsistent.
    """
    folder = None if folder is None else Path(folder)
    source = yield from find_mimi(folder, allow_download=allow_download)
    return MimiCodec(open_stored_mimi(source), precision)


def load_mimi(
    folder: Path | str | None = None, *, allow_download: bool = True, precision: str = "auto"
) -> MimiCodec:
    """`open_mimi` as a blocking call."""
    return result_of(open_mimi(folder, allow_download=allow_download, precision=precision))


def random_mimi(seed: int = 0, precision: str = "auto", **sizes) -> MimiCodec:
    """A Mimi of random weights, of kyutai/mimi's size but for `sizes` of MimiConfig: quiet noise,
    for tests and tools."""
    return MimiCodec(random_stored_mimi(MimiConfig(**sizes), seed), precision)


class MimiCodec(Codec):
    """A loaded Mimi. The encoder is loaded at its first use."""

    def __init__(self, stored: StoredMimi, precision: str = "auto") -> None:
        config = stored.config
        super().__init__(stored.label, config.format, _choose(config, precision))
        self._stored = stored
        self._encoder: MimiEncoder | None = None
        self._decoder = new_decoder(stored, self.choice.precision)

    @cached_property
    def identity(self) -> str:
        digest = hashlib.sha256(f"mimi {self.sample_rate}".encode())
        for _, codebooks in codebook_names(self._stored.config):
            for name in codebooks:
                digest.update(self._stored.codebook(name).numpy().astype("<f4").tobytes())
        return digest.hexdigest()[:32]

    @property
    def numerics(self) -> str:
        return f"{self.choice.precision}, {self.choice.backend}"

    def encode_finite(self, samples_N: np.ndarray) -> np.ndarray:
        if self._encoder is None:
            self._encoder = MimiEncoder(self._stored)
        samples = torch.from_numpy(np.ascontiguousarray(samples_N, np.float32))
        # By one thread: with another number, torch rounds differently.
        with torch.inference_mode(), torch_threads(1):
            return self._encoder(samples).numpy()

    def stream(self) -> MimiStream:
        return MimiStream(self)

    def new_state(self) -> Any:
        """The state of a stream at its beginning."""
        return self._decoder.new_state()

    def advance(self, codes_TC: np.ndarray, state: Any) -> np.ndarray:
        """Feed a stream's next frames, checked; returns their samples, float32 [N]."""
        most, chunks = self._decoder.most_frames, [np.zeros(0, np.float32)]
        with torch.inference_mode():
            for part in torch.from_numpy(codes_TC).split(most):
                chunks.append(self._decoder(part, state).numpy())
        return self.check_finite(np.concatenate(chunks))


class MimiStream:
    """Decodes codes that arrive in pieces: every frame at once, since nothing looks ahead. The
    samples equal those of `Codec.decode` to the bit."""

    def __init__(self, codec: MimiCodec) -> None:
        self._codec, self._state = codec, codec.new_state()
        self._is_finished = False

    def push(self, codes_TC: np.ndarray) -> np.ndarray:
        """Add codes [k, C]; returns their float32 samples."""
        assert not self._is_finished, "push after finish"
        codes_TC = self._codec.check_codes(codes_TC)
        return self._codec.advance(codes_TC, self._state) if len(codes_TC) else _SILENCE

    def finish(self) -> np.ndarray:
        """No codes follow, and no samples."""
        self._is_finished = True
        return _SILENCE


_SILENCE = np.zeros(0, np.float32)


def _choose(config: MimiConfig, precision: str) -> BackendChoice:
    """How the decoder is computed, and why."""
    why = "as asked"
    if precision == "auto":
        gflop = 2e-9 * macs_of_a_second(config)
        precision = "float32" if gflop <= LIGHT_GFLOP else "bfloat16"
        why = f"{gflop:.0f} GFLOP for a second of audio"
    if precision not in PRECISIONS:
        raise InputError(
            f"The codec's precision must be auto or {' or '.join(PRECISIONS)}, not {precision!r}."
        )
    kind = decoder_kind()
    reason = f"weights in {precision} ({why}), {kind}: by a fixed rule"
    return BackendChoice(precision, kind, kind, reason)

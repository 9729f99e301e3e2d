"""What every codec does (`Codec`), and the Descript Audio Codec: waveforms to codes and back, whole
or as a stream. Mimi is in mimi/.

Shapes: N samples, T frames, C codebooks. Where the network comes from is in files.py and
weights.py, how it is computed in decoder.py and convolution.py.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Generator
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from dia_demo.codec.config import CodecFormat
from dia_demo.codec.convolution import BackendChoice
from dia_demo.codec.decoder import StreamingDecoder, StreamState, macs_per_frame
from dia_demo.codec.files import find_codec
from dia_demo.codec.highpass import HighPass
from dia_demo.codec.snake import snake_kind
from dia_demo.codec.weights import StoredDac, build_dac, open_dac
from dia_demo.errors import InputError, RunError
from dia_demo.model.cpu_model import torch_threads
from dia_demo.task import result_of

# Frames of a stream's first block, which is short for a quick first sound; each next one is twice
# as long, up to the second number, which bounds the memory. Longer blocks are not faster.
_FIRST_FRAMES = 8
_LONGEST_BLOCK = 32


def open_codec(
    folder: Path | str | None = None, *, allow_download: bool = True, precision: str = "auto"
) -> Generator[float, None, DacCodec]:
    """The codec of a checkpoint folder, or Descript's 44.1 kHz codec where it has none of its own.

    Yields the fraction fetched. precision: of decoding; "auto", "float32" or "bfloat16" (encoding
    is float32). Raises InputError if no codec is available or its files are inconsistent.
    """
    folder = None if folder is None else Path(folder)
    source = yield from find_codec(folder, allow_download=allow_download)
    return DacCodec(open_dac(source), precision)


def load_codec(
    folder: Path | str | None = None, *, allow_download: bool = True, precision: str = "auto"
) -> DacCodec:
    """`open_codec` as a blocking call."""
    return result_of(open_codec(folder, allow_download=allow_download, precision=precision))


def random_codec(seed: int = 0, precision: str = "auto", **kwargs) -> DacCodec:
    """A codec of random weights from the arguments of dac.DAC: quiet noise, for tests and tools."""
    return DacCodec(random_dac(seed, **kwargs), precision)


def random_dac(seed: int = 0, **kwargs) -> StoredDac:
    """The codec of `random_codec`; its weights are made when they are read."""
    net = build_dac(kwargs, "random_codec")
    shapes = {name: tensor.shape for name, tensor in net.state_dict().items()}
    seeds = {name: seed * len(shapes) + index for index, name in enumerate(shapes)}

    def read(name: str) -> Tensor:
        noise = torch.randn(shapes[name], generator=torch.Generator().manual_seed(seeds[name]))
        if name.endswith("alpha"):
            return 1 + 0.2 * noise
        if name.endswith("bias"):
            return 0.05 * noise
        # Small weights keep residual sums, and so rounding, from growing with depth.
        return noise / (4 * noise[0].numel()) ** 0.5

    return StoredDac(f"random weights, seed {seed}", net, read)


class CodecStream(Protocol):
    """Codes that arrive in pieces, and their samples."""

    def push(self, codes_TC: np.ndarray) -> np.ndarray:
        """Add codes [k, C]; returns the float32 samples that are complete."""

    def finish(self) -> np.ndarray:
        """The remaining samples; no codes follow."""


class Codec(ABC):
    """A loaded codec. Rates are in Hz; `source` says where the weights come from, `choice` how
    decoding is computed and why."""

    def __init__(self, source: str, format: CodecFormat, choice: BackendChoice) -> None:
        self.source, self.choice = source, choice
        self.sample_rate, self.hop_length = format.sample_rate, format.hop_length
        self.num_codebooks, self.codebook_size = format.n_codebooks, format.codebook_size

    @property
    @abstractmethod
    def identity(self) -> str:
        """What its codes mean: a hash of its codebooks and its sample rate, in 32 hex digits. It is
        the same for all files of one codec, whatever their format."""

    @property
    @abstractmethod
    def numerics(self) -> str:
        """How decoding is computed: what is rounded where."""

    @property
    def frames_per_second(self) -> float:
        return self.sample_rate / self.hop_length

    def encode(self, samples_N: np.ndarray) -> np.ndarray:
        """float32 [N] at `sample_rate` to codes int16 [T, C]; the last frame is padded with zeros.

        Raises RunError where the samples are not finite.
        """
        if not len(samples_N):
            return np.zeros((0, self.num_codebooks), np.int16)
        if not np.isfinite(samples_N).all():
            raise RunError("The audio to encode contains NaN or infinite values.")
        return self.encode_finite(samples_N).astype(np.int16)

    @abstractmethod
    def encode_finite(self, samples_N: np.ndarray) -> np.ndarray:
        """`encode` of at least one sample, all of them finite."""

    def decode(self, codes_TC: np.ndarray) -> np.ndarray:
        """Codes [T, C] to float32 [T * hop_length], in blocks so that memory stays bounded.

        Raises InputError for codes of another shape or outside the codebook, RunError where the
        audio comes out non-finite.
        """
        stream = self.stream()
        return np.concatenate([stream.push(codes_TC), stream.finish()])

    @abstractmethod
    def stream(self) -> CodecStream:
        """A decoder for codes that arrive in pieces."""

    def check_codes(self, codes_TC: np.ndarray) -> np.ndarray:
        """The codes as int64 [T, C], or an InputError that names what is wrong with them."""
        codes_TC = np.asarray(codes_TC)
        if codes_TC.ndim != 2 or codes_TC.shape[1] != self.num_codebooks:
            raise InputError(
                f"Codes must be [frames, {self.num_codebooks}], not {list(codes_TC.shape)}."
            )
        if codes_TC.dtype.kind not in "iu":
            raise InputError(f"Codes must be whole numbers, not {codes_TC.dtype}.")
        outside = np.argwhere((codes_TC < 0) | (codes_TC >= self.codebook_size))
        if len(outside):
            frame, codebook = outside[0]
            raise InputError(
                f"Codes must be from 0 to {self.codebook_size - 1}; frame {frame}, codebook "
                f"{codebook} contains {codes_TC[frame, codebook]}."
            )
        return codes_TC.astype(np.int64)

    def check_finite(self, samples_N: np.ndarray) -> np.ndarray:
        """The decoded samples, unless one is not finite: then a RunError."""
        if not np.isfinite(samples_N).all():
            raise RunError(
                "The codec produced NaN or infinite values, so the audio was discarded: its "
                f"weights ({self.source}) may be damaged."
            )
        return samples_N


class DacCodec(Codec):
    """A loaded DAC. The encoder is loaded at its first use."""

    def __init__(self, stored: StoredDac, precision: str = "auto") -> None:
        net = stored.net
        form = CodecFormat(
            int(net.sample_rate), int(net.hop_length), int(net.n_codebooks), int(net.codebook_size)
        )
        self._decoder = StreamingDecoder(
            stored.read,
            macs_per_frame(stored.shapes, list(net.decoder_rates)),
            form.n_codebooks,
            len(net.decoder_rates),
            form.frames_per_second,
            precision,
        )
        super().__init__(stored.label, form, self._decoder.choice)
        self.context = decoder_context(net.decoder, self.hop_length)
        self._stored = stored
        self._encoder: Any = None
        cutoff = stored.highpass_hz
        self._highpass = HighPass(cutoff, self.sample_rate) if cutoff else None

    @cached_property
    def identity(self) -> str:
        digest = hashlib.sha256(f"{self.sample_rate}".encode())
        for number in range(self.num_codebooks):
            codebook = self._stored.read(f"quantizer.quantizers.{number}.codebook.weight")
            digest.update(codebook.numpy().astype("<f4").tobytes())
        return digest.hexdigest()[:32]

    @property
    def numerics(self) -> str:
        return f"{self.choice.precision}, {self.choice.backend}, {snake_kind()} activation"

    def encode_finite(self, samples_N: np.ndarray) -> np.ndarray:
        num_frames = -(-len(samples_N) // self.hop_length)
        padded = np.zeros((1, 1, num_frames * self.hop_length), np.float32)
        padded[0, 0, : len(samples_N)] = samples_N
        if self._encoder is None:
            self._encoder = self._stored.encoder()
        # By one thread: with another number, torch rounds differently.
        with torch.inference_mode(), torch_threads(1):
            codes_1CT = self._encoder.encode(torch.from_numpy(padded))[1]
        return codes_1CT[0, :, :num_frames].T.numpy()

    def stream(self) -> DecodeStream:
        return DecodeStream(self)

    def advance(self, codes_TC: np.ndarray, state: StreamState, last: bool) -> np.ndarray:
        """Feed a stream's next codes, checked; returns the samples that are complete, float32 [N].

        state: of the stream, empty at its beginning; it is updated. Transposed convolutions of odd
        stride give one sample less than their stride times their input, so a take may end a few
        samples early.
        """
        with torch.inference_mode():
            samples_N = self._decoder(torch.from_numpy(codes_TC), state, last).numpy()
        self.check_finite(samples_N)
        return self._highpass(samples_N, state) if self._highpass else samples_N


class DecodeStream:
    """Decodes codes that arrive in pieces; the samples it returns equal those of `Codec.decode`.

    The network looks ahead, so samples are delayed by `codec.context[1]` frames. The codes are cut
    into the same blocks however they arrive, so that even the rounding is the same.
    """

    def __init__(self, codec: DacCodec) -> None:
        self._codec = codec
        self._state: StreamState = {}
        self._waiting_TC = np.zeros((0, codec.num_codebooks), np.int64)
        self._block = codec.context[1] + _FIRST_FRAMES
        self._next = 2 * _FIRST_FRAMES
        self._frames = 0  # Received so far, decoded or not.
        self._samples = 0  # Returned so far.
        self._finished = False

    def push(self, codes_TC: np.ndarray) -> np.ndarray:
        """Add codes [k, C]; returns the float32 samples that are complete, often none."""
        assert not self._finished, "push after finish"
        codes_TC = self._codec.check_codes(codes_TC)
        self._frames += len(codes_TC)
        self._waiting_TC = np.concatenate([self._waiting_TC, codes_TC])
        blocks = []
        while len(self._waiting_TC) >= self._block:
            blocks.append(self._advance(self._block))
            self._block, self._next = self._next, min(2 * self._next, _LONGEST_BLOCK)
        return _join(blocks)

    def finish(self) -> np.ndarray:
        """The remaining samples; no codes follow."""
        self._finished = True
        if not self._frames:
            return _join([])
        rest = self._advance(len(self._waiting_TC), last=True)
        # Transposed convolutions of odd stride give fewer samples: the rest is silence.
        missing = self._frames * self._codec.hop_length - self._samples
        return np.pad(rest, (0, missing))

    def _advance(self, num_frames: int, last: bool = False) -> np.ndarray:
        codes_TC, self._waiting_TC = np.split(self._waiting_TC, [num_frames])
        samples_N = self._codec.advance(codes_TC, self._state, last)
        self._samples += len(samples_N)
        return samples_N


def decoder_context(decoder: nn.Module, hop_length: int) -> tuple[int, int]:
    """How many frames before and after a frame its samples depend on.

    Goes through the convolutions from the output backwards and widens the interval of positions
    that one frame's samples need. Residual branches keep the length, so only convolutions count.
    """
    layers = [m for m in decoder.modules() if isinstance(m, nn.Conv1d | nn.ConvTranspose1d)]
    low, high = 0, hop_length - 1
    for layer in reversed(layers):
        reach = layer.dilation[0] * (layer.kernel_size[0] - 1)
        stride, padding = layer.stride[0], int(layer.padding[0])
        if isinstance(layer, nn.ConvTranspose1d):
            # Output t gets input i through the kernel where 0 <= t + padding - i * stride <= reach.
            low, high = -((reach - low - padding) // stride), (high + padding) // stride
        else:
            low, high = low - padding, high - padding + reach
    return max(0, -low), max(0, high)


def _join(chunks: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.float32), *chunks])

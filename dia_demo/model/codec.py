"""The Descript Audio Codec: waveforms to codes and back, whole or as they come.

Shapes: N samples, T frames, C codebooks. Where the network comes from is in `codec_files.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

from dia_demo.errors import InputError, RunError
from dia_demo.model.codec_files import build_dac, codec_source, load_dac

# A stream's first block is small, for a quick first sound; each next one is twice as long, until
# the context decoded besides it hardly counts. The longest also bounds the memory of a decode.
_FIRST_BLOCK = 8
_BLOCK_PER_CONTEXT = 8


def load_codec(
    folder: Path | str | None = None,
    *,
    allow_download: bool = True,
    device: torch.device | str = "cpu",
) -> Codec:
    """The codec of a checkpoint folder, or Descript's 44.1 kHz codec where it has none of its own.

    Raises InputError where none can be had or its files do not fit together.
    """
    source = codec_source(None if folder is None else Path(folder), allow_download=allow_download)
    return Codec(load_dac(source), source.label, device)


def random_codec(seed: int = 0, **kwargs) -> Codec:
    """A codec of random weights from the arguments of dac.DAC: quiet noise, for tests and tools."""
    generator = torch.Generator().manual_seed(seed)
    model = build_dac(kwargs, "random_codec")
    weights = {}
    for name, tensor in model.state_dict().items():
        noise = torch.randn(tensor.shape, generator=generator)
        if name.endswith("alpha"):
            weights[name] = 1 + 0.2 * noise
        elif name.endswith("bias"):
            weights[name] = 0.05 * noise
        else:
            # Small steps keep residual sums, and with them rounding, from growing with depth.
            weights[name] = noise / (4 * tensor[0].numel()) ** 0.5
    model.load_state_dict(weights, assign=True)
    return Codec(model.eval().requires_grad_(False), f"random weights, seed {seed}")


class Codec:
    """A DAC ready to run. Rates are in Hz; `source` says where the weights come from."""

    def __init__(self, model: nn.Module, source: str, device: torch.device | str = "cpu") -> None:
        self.source = source
        self.device = torch.device(device)
        self.sample_rate = int(model.sample_rate)
        self.hop_length = int(model.hop_length)
        self.num_codebooks = int(model.n_codebooks)
        self.codebook_size = int(model.codebook_size)
        self._model = model.to(self.device)
        self.context = decoder_context(model.decoder, self.hop_length)

    @property
    def frames_per_second(self) -> float:
        return self.sample_rate / self.hop_length

    def encode(self, samples_N: np.ndarray) -> np.ndarray:
        """float32 [N] at `sample_rate` to codes int16 [T, C]; the last frame is padded with zeros.

        Raises RunError where the samples are not finite.
        """
        num_frames = -(-len(samples_N) // self.hop_length)
        if num_frames == 0:
            return np.zeros((0, self.num_codebooks), np.int16)
        if not np.isfinite(samples_N).all():
            raise RunError("The audio to encode holds values that are not numbers.")
        padded = np.zeros((1, 1, num_frames * self.hop_length), np.float32)
        padded[0, 0, : len(samples_N)] = samples_N
        with torch.inference_mode():
            codes_1CT = self._model.encode(torch.from_numpy(padded).to(self.device))[1]
        return codes_1CT[0, :, :num_frames].T.cpu().numpy().astype(np.int16)

    def decode(self, codes_TC: np.ndarray) -> np.ndarray:
        """Codes [T, C] to float32 [T * hop_length], in blocks so that memory stays bounded.

        Raises InputError for codes of another shape or outside the codebook, RunError where the
        audio comes out non-finite.
        """
        stream = DecodeStream(self, first_block=None)
        return np.concatenate([stream.push(codes_TC), stream.finish()])

    def stream(self) -> DecodeStream:
        """A decoder for codes that arrive bit by bit."""
        return DecodeStream(self, first_block=_FIRST_BLOCK)

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
                f"Codes must lie in 0..{self.codebook_size - 1}; frame {frame}, codebook "
                f"{codebook} holds {codes_TC[frame, codebook]}."
            )
        return codes_TC.astype(np.int64)

    def decode_window(self, codes_TC: np.ndarray) -> np.ndarray:
        """One pass of the network over checked codes: float32, at most T * hop_length samples.

        Each transposed convolution of odd stride gives one sample less than its stride times its
        input, so the pass may end a few samples early.
        """
        codes_1CT = torch.from_numpy(np.ascontiguousarray(codes_TC.T[None]))
        with torch.inference_mode():
            latent = self._model.quantizer.from_codes(codes_1CT.to(self.device))[0]
            samples_N = self._model.decode(latent)[0, 0].float().cpu().numpy()
        if not np.isfinite(samples_N).all():
            raise RunError(
                "The codec produced values that are not numbers, so the audio was discarded: its "
                f"weights ({self.source}) may be damaged."
            )
        return samples_N


class DecodeStream:
    """Decodes codes as they come; all it returns, in order, equals the decoded whole.

    The network looks `context` frames to either side. Each block is decoded together with that
    much around it, and only the block's own samples are handed out.
    """

    def __init__(self, codec: Codec, first_block: int | None) -> None:
        self._codec = codec
        self._before, self._after = codec.context
        self._longest = max(_FIRST_BLOCK, _BLOCK_PER_CONTEXT * sum(codec.context))
        self._block = first_block or self._longest
        self._kept_TC = np.zeros((0, codec.num_codebooks), np.int64)
        self._start = 0  # The take's frame that is first in _kept_TC.
        self._done = 0  # Frames whose samples were handed out.
        self._finished = False

    def push(self, codes_TC: np.ndarray) -> np.ndarray:
        """Take further codes [k, C]; return float32 samples that are ready now, often none."""
        assert not self._finished, "push after finish"
        self._kept_TC = np.concatenate([self._kept_TC, self._codec.check_codes(codes_TC)])
        ready = []
        while self._end - self._after - self._done >= self._block:
            ready.append(self._advance(self._block))
            self._block = min(2 * self._block, self._longest)
        return _joined(ready)

    def finish(self) -> np.ndarray:
        """The rest of the take: no codes follow."""
        self._finished = True
        rest = []
        while self._done < self._end:
            rest.append(self._advance(min(self._longest, self._end - self._done)))
        return _joined(rest)

    @property
    def _end(self) -> int:
        return self._start + len(self._kept_TC)

    def _advance(self, num_frames: int) -> np.ndarray:
        """Decode the next frames with their context: float32 [num_frames * hop_length]."""
        hop = self._codec.hop_length
        low = max(0, self._done - self._before)
        high = min(self._end, self._done + num_frames + self._after)
        window = self._codec.decode_window(self._kept_TC[low - self._start : high - self._start])
        offset = (self._done - low) * hop
        samples_N = window[offset : offset + num_frames * hop]
        self._done += num_frames
        keep_from = max(0, self._done - self._before)
        self._kept_TC = self._kept_TC[keep_from - self._start :]
        self._start = keep_from
        # Only the take's very end can be short (see decode_window); silence completes its frame.
        return np.pad(samples_N, (0, num_frames * hop - len(samples_N)))


def decoder_context(decoder: nn.Module, hop_length: int) -> tuple[int, int]:
    """Frames before and after a frame that its samples depend on.

    Walks the convolutions from the output back, widening the interval of positions one frame's
    samples need. Residual branches keep the length, so the convolutions alone decide.
    """
    layers = [m for m in decoder.modules() if isinstance(m, nn.Conv1d | nn.ConvTranspose1d)]
    low, high = 0, hop_length - 1
    for layer in reversed(layers):
        reach = layer.dilation[0] * (layer.kernel_size[0] - 1)
        stride, padding = layer.stride[0], layer.padding[0]
        if isinstance(layer, nn.ConvTranspose1d):
            # Output t gets input i through the kernel where 0 <= t + padding - i * stride <= reach.
            low, high = -((reach - low - padding) // stride), (high + padding) // stride
        else:
            low, high = low - padding, high - padding + reach
    return max(0, -low), max(0, high)


def _joined(chunks: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.float32), *chunks])

"""The network of the Descript Audio Codec, with the arguments and tensor names of dac.DAC.

It encodes. The decoder's layers are here for their names and shapes alone: it runs as a stream, see
decoder.py. Written from Kumar et al., https://arxiv.org/abs/2306.06546, and compared with
descript-audio-codec in the tests; the package itself is not needed, and with it some 30 others.

Weight norm is not part of the network: it is folded when weights are read (names.py). Shapes: B
waveforms of N samples, T frames, L latent channels, D channels of a codebook, V codes, C codebooks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, prod

import torch
from torch import Tensor, nn
from torch.nn import functional

DILATIONS = (1, 3, 9)
_KERNEL = 7


class _Snake(nn.Module):
    """x + sin²(alpha x) / alpha, with an alpha for each channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).pow(2)


class _Block(nn.Module):
    """Layers in a row, under the name "block"."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.block = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.block(x)


class _Residual(_Block):
    """x + a convolution of kernel 1 of a dilated one, each after its activation."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__(
            _Snake(channels),
            _convolution(channels, channels, _KERNEL, dilation),
            _Snake(channels),
            _convolution(channels, channels, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.block(x)


class _Decoder(nn.Module):
    def __init__(self, latent: int, channels: int, rates: Sequence[int]) -> None:
        super().__init__()
        self.model = nn.Sequential(*_decoder_layers(latent, channels, rates))


class _Codebook(nn.Module):
    """Nearest neighbours by direction in a space of few channels."""

    def __init__(self, latent: int, size: int, channels: int) -> None:
        super().__init__()
        self.in_proj = _convolution(latent, channels, 1)
        self.out_proj = _convolution(channels, latent, 1)
        # Without random values, which on the meta device load torch's compiler.
        self.codebook = nn.Embedding.from_pretrained(torch.empty(size, channels))

    def forward(self, x_BLT: Tensor) -> tuple[Tensor, Tensor]:
        """The nearest codes [B, T] and what they stand for [B, L, T]."""
        directions_BTD = functional.normalize(self.in_proj(x_BLT), dim=1).transpose(1, 2)
        entries_VD = functional.normalize(self.codebook.weight)
        distances_BTV = entries_VD.pow(2).sum(1) - 2 * directions_BTD @ entries_VD.t()
        codes_BT = distances_BTV.argmin(-1)
        return codes_BT, self.out_proj(self.codebook(codes_BT).transpose(1, 2))


class _Quantizer(nn.Module):
    """Codebooks in turn, each for what those before it left over."""

    def __init__(self, latent: int, count: int, size: int, channels: int) -> None:
        super().__init__()
        codebooks = (_Codebook(latent, size, channels) for _ in range(count))
        self.quantizers = nn.ModuleList(codebooks)

    def forward(self, x_BLT: Tensor) -> Tensor:
        codes = []
        for quantizer in self.quantizers:
            codes_BT, quantized_BLT = quantizer(x_BLT)
            codes.append(codes_BT)
            x_BLT = x_BLT - quantized_BLT
        return torch.stack(codes, dim=1)


class DacNetwork(nn.Module):
    """A DAC. sample_rate is in Hz; latent_dim None: the encoder's width at its end.

    quantizer_dropout concerns training alone; configs contain it.
    """

    def __init__(
        self,
        encoder_dim: int = 64,
        encoder_rates: Sequence[int] = (2, 4, 8, 8),
        latent_dim: int | None = None,
        decoder_dim: int = 1536,
        decoder_rates: Sequence[int] = (8, 8, 4, 2),
        n_codebooks: int = 9,
        codebook_size: int = 1024,
        codebook_dim: int = 8,
        quantizer_dropout: float = 0.0,
        sample_rate: int = 44100,
    ) -> None:
        super().__init__()
        self.sample_rate, self.hop_length = sample_rate, prod(encoder_rates)
        self.decoder_rates = tuple(decoder_rates)
        self.n_codebooks, self.codebook_size = n_codebooks, codebook_size
        latent = latent_dim or encoder_dim * 2 ** len(encoder_rates)
        self.encoder = _Block(*_encoder_layers(latent, encoder_dim, encoder_rates))
        self.quantizer = _Quantizer(latent, n_codebooks, codebook_size, codebook_dim)
        self.decoder: nn.Module | None = _Decoder(latent, decoder_dim, decoder_rates)

    def encode(self, samples_B1N: Tensor) -> Tensor:
        """Codes [B, C, T] of whole frames."""
        return self.quantizer(self.encoder(samples_B1N))


def _convolution(inputs: int, outputs: int, kernel: int, dilation: int = 1) -> nn.Conv1d:
    """A convolution that keeps the length."""
    padding = dilation * (kernel - 1) // 2
    return nn.Conv1d(inputs, outputs, kernel, dilation=dilation, padding=padding)


def _encoder_layers(latent: int, channels: int, rates: Sequence[int]) -> Iterator[nn.Module]:
    yield _convolution(1, channels, _KERNEL)
    for rate in rates:
        yield _Block(
            *(_Residual(channels, dilation) for dilation in DILATIONS),
            _Snake(channels),
            nn.Conv1d(channels, 2 * channels, 2 * rate, rate, padding=ceil(rate / 2)),
        )
        channels *= 2
    yield _Snake(channels)
    yield _convolution(channels, latent, 3)


def _decoder_layers(latent: int, channels: int, rates: Sequence[int]) -> Iterator[nn.Module]:
    yield _convolution(latent, channels, _KERNEL)
    for rate in rates:
        wide, channels = channels, channels // 2
        yield _Block(
            _Snake(wide),
            nn.ConvTranspose1d(wide, channels, 2 * rate, rate, padding=ceil(rate / 2)),
            *(_Residual(channels, dilation) for dilation in DILATIONS),
        )
    yield _Snake(channels)
    yield _convolution(channels, 1, _KERNEL)

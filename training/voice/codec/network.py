"""The small Descript Audio Codec: its shape, its losses, loading and saving. No training loop."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn

from dia_demo.codec.files import import_dac

CODEC = {
    "encoder_dim": 16,
    "encoder_rates": [4, 4, 4, 6],
    "latent_dim": 96,
    "decoder_dim": 256,
    "decoder_rates": [6, 4, 4, 4],
    "n_codebooks": 4,
    "codebook_size": 256,
    "codebook_dim": 8,
    "sample_rate": 16000,
}
# What the app filters below, beside what dac.DAC takes: the codec adds an offset and rumble.
PLAYBACK = {"highpass_hz": 50}
WINDOWS = {2048: 100, 1024: 80, 512: 64, 256: 40, 128: 20}  # STFT window -> mel bands
FLOOR = 1e-4  # of a mel band's magnitude


def dac_class():
    """dac.DAC; the app knows how to import it where torchaudio does not load."""
    return import_dac().DAC


def make_codec(config: dict = CODEC, dropout: float = 0.0) -> nn.Module:
    return dac_class()(**config, quantizer_dropout=dropout)


def load_codec(path: Path) -> nn.Module:
    """A codec as train.py saved it: {"config", "model", ...}."""
    saved = torch.load(path, map_location="cpu", weights_only=False)
    codec = make_codec(saved["config"])
    codec.load_state_dict(saved["model"])
    return codec.eval()


def load_exported(folder: Path) -> nn.Module:
    """The codec as shipped: config.json and model.safetensors. Its output is not filtered."""
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    codec = make_codec({key: config[key] for key in config.keys() - PLAYBACK.keys()})
    state = {k: v.float() for k, v in load_file(folder / "model.safetensors").items()}
    codec.load_state_dict(state)
    return codec.eval()


def load(source: Path) -> nn.Module:
    """A codec as shipped, from its folder, or from a checkpoint of train.py."""
    return load_exported(source) if source.is_dir() else load_codec(source)


def compile_snake() -> None:
    """Fuse dac's Snake activation: it is memory-bound and takes most of a CPU step otherwise."""
    import dac.nn.layers as layers
    import torch._dynamo

    torch._dynamo.config.recompile_limit = 64  # one variant a width and precision

    def snake(x, alpha):
        return x + (alpha + 1e-9).reciprocal() * torch.sin(alpha * x).pow(2)

    compiled = torch.compile(snake, dynamic=True)
    layers.Snake1d.forward = lambda self, x: compiled(x, self.alpha)


@torch.no_grad()
def decode(codec: nn.Module, codes: torch.Tensor) -> torch.Tensor:
    """codes [B, C, T] -> waveform [B, T * hop]."""
    latent = codec.quantizer.from_codes(codes)[0]
    return codec.decode(latent)[:, 0]


class SpectralLoss(nn.Module):
    """Log-mel L1, relative STFT error and relative waveform L1, averaged over five windows."""

    def __init__(self) -> None:
        super().__init__()
        from librosa.filters import mel

        for window, bands in WINDOWS.items():
            self.register_buffer(f"hann{window}", torch.hann_window(window))
            filters = torch.tensor(mel(sr=CODEC["sample_rate"], n_fft=window, n_mels=bands))
            self.register_buffer(f"mel{window}", filters)

    def _magnitude(self, wave: torch.Tensor, window: int) -> torch.Tensor:
        hann = getattr(self, f"hann{window}")
        spectrum = torch.stft(wave, window, window // 4, window=hann, return_complex=True)
        return (spectrum.real.square() + spectrum.imag.square() + 1e-9).sqrt()

    def _log_mel(self, magnitude: torch.Tensor, window: int) -> torch.Tensor:
        filters = getattr(self, f"mel{window}") * (2 / window**0.5)
        return torch.log10((filters @ magnitude).clamp(min=FLOOR))

    def log_mel(self, wave: torch.Tensor, window: int) -> torch.Tensor:
        """[B, samples] -> log10 of the mel bands [B, bands, columns], window / 4 samples apart."""
        return self._log_mel(self._magnitude(wave, window), window)

    def forward(self, guess: torch.Tensor, truth: torch.Tensor):
        """[B, samples] twice -> (mel, stft, wave), three scalars."""
        mel_error = stft_error = 0.0
        for window in WINDOWS:
            a, b = self._magnitude(guess, window), self._magnitude(truth, window)
            log_a, log_b = self._log_mel(a, window), self._log_mel(b, window)
            mel_error = mel_error + (log_a - log_b).abs().mean()
            energy = b.square().sum((1, 2)) + 1e-2
            stft_error = stft_error + ((a - b).square().sum((1, 2)) / energy).sqrt().mean()
        wave_error = (guess - truth).abs().mean() / (truth.abs().mean() + 1e-4)
        return mel_error / len(WINDOWS), stft_error / len(WINDOWS), wave_error

"""A small phone recogniser, so that the codec spends its bits on what words are told apart by.

`python -m training.voice.codec.recogniser --work DIR` trains it on the corpus, whose phones are
known to the frame, and writes DIR/recogniser.pt. `codec.train` then asks that the recogniser hears
the same in the codec's output as in the teacher's speech: its posteriors (KL divergence) and its
layers' outputs (feature matching, as in the perceptual losses of Johnson, Alahi and Fei-Fei,
2016). The judge's recogniser is another one, pocketsphinx.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from dia_demo.files import write_atomic
from training.voice.codec import network
from training.voice.corpus import shards
from training.voice.teacher.phones import HOP, PHONES

log = logging.getLogger(__name__)
WINDOW = 512  # samples; its mel columns are 128 samples apart, three a frame
COLUMNS = HOP // (WINDOW // 4)
WIDTH = 192
CROP = 64  # frames
BATCH = 16
LR = 2e-3
LOG_EVERY = 100  # steps


class Recogniser(nn.Module):
    """Log-mel columns -> the phone of every frame; it sees 0.3 s."""

    def __init__(self) -> None:
        super().__init__()
        bands = network.WINDOWS[WINDOW]
        self.layers = nn.ModuleList(
            nn.Conv1d(channels, WIDTH, 5, stride=stride, padding=2)
            for channels, stride in ((bands, 1), (WIDTH, COLUMNS), (WIDTH, 1), (WIDTH, 1))
        )
        self.head = nn.Conv1d(WIDTH, len(PHONES), 1)

    def forward(self, log_mel: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
        """[B, bands, columns] -> every layer's output, and logits [B, phones, frames]."""
        x, outputs = log_mel + 2.5, []
        for layer in self.layers:
            x = F.gelu(layer(x))
            outputs.append(x)
        return outputs, self.head(x)


class PhoneLoss(nn.Module):
    """How differently the recogniser hears two waveforms; its weights stay as they are."""

    def __init__(self, recogniser: Recogniser, spectral: network.SpectralLoss) -> None:
        super().__init__()
        self.recogniser = recogniser.requires_grad_(False).eval()
        self.spectral = spectral

    def forward(self, guess: torch.Tensor, truth: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """[B, samples] twice -> KL divergence a frame in nats, relative L1 of the layers."""
        with torch.no_grad():
            wanted, logits = self.recogniser(log_mel(self.spectral, truth))
        found, guessed = self.recogniser(log_mel(self.spectral, guess))
        divergence = F.kl_div(
            guessed.log_softmax(1), logits.log_softmax(1), log_target=True, reduction="none"
        )
        features = [
            (a - b).abs().mean() / b.abs().mean() for a, b in zip(found, wanted, strict=True)
        ]
        return divergence.sum(1).mean(), torch.stack(features).mean()


def log_mel(spectral: network.SpectralLoss, wave: torch.Tensor) -> torch.Tensor:
    """[B, samples], whole frames -> [B, bands, COLUMNS a frame]."""
    return spectral.log_mel(wave, WINDOW)[..., :-1]  # the last column is centred on the end


def load(path: Path) -> Recogniser:
    recogniser = Recogniser()
    recogniser.load_state_dict(torch.load(path, map_location="cpu"))
    return recogniser


def load_labels(work: Path) -> np.ndarray:
    """The phone of every frame of the corpus, as its place in PHONES."""
    places = {phone: place for place, phone in enumerate(PHONES)}
    rows = []
    for name in shards.shard_names(work):
        record = shards.read_shard(work, name)[0]
        for phones, frames in zip(record["phones"], record["frames"], strict=True):
            rows.append(np.repeat([places[p] for p in phones], frames))
    return np.concatenate(rows)


def smear(columns: torch.Tensor) -> torch.Tensor:
    """Log-mel columns with blur and noise of a random strength each, as after a codec."""
    strength, noise = torch.rand(2, len(columns), 1, 1)
    blurred = F.avg_pool2d(columns[:, None], 3, stride=1, padding=1, count_include_pad=False)[:, 0]
    mixed = columns + strength * (blurred - columns)
    return mixed + 0.2 * noise * torch.randn_like(mixed)


def train(work: Path, steps: int, seed: int) -> Recogniser:
    """A recogniser taught by crops of the corpus, half of them smeared."""
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    samples, labels = shards.load_samples(work), load_labels(work)
    recogniser, spectral = Recogniser(), network.SpectralLoss()
    optimiser = torch.optim.AdamW(recogniser.parameters(), lr=LR, weight_decay=1e-2)
    hits = []
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = LR * min(1.0, (step + 1) / 50) * (1 - step / steps)
        at = draw.integers(0, len(labels) - CROP, BATCH)
        crops = np.stack([samples[a * HOP : (a + CROP) * HOP] for a in at])
        wanted = torch.from_numpy(np.stack([labels[a : a + CROP] for a in at]))
        mel = log_mel(spectral, torch.from_numpy(crops).float() / 32768)
        mel[BATCH // 2 :] = smear(mel[BATCH // 2 :])
        logits = recogniser(mel)[1]
        loss = F.cross_entropy(logits, wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        hits.append((logits.argmax(1) == wanted).float().mean().item())
        if step % LOG_EVERY == 0:
            right = 100 * np.mean(hits[-LOG_EVERY:])
            log.info("step %d: loss %.3f, right %.1f%%", step, loss.item(), right)
    return recogniser


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=3500)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    recogniser = train(args.work, args.steps, args.seed)
    with write_atomic(args.work / "recogniser.pt") as part:
        torch.save(recogniser.state_dict(), part)


if __name__ == "__main__":
    main()

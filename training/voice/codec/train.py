"""Train the codec. `python -m training.voice.codec.train --work DIR --minutes 50`.

Needs DIR/recogniser.pt (recogniser.py): what the codec makes of speech has to be recognised alike.
Crops lie on the frame grid (the teacher is phase-locked to it). Dead codes are re-seeded from
current latents: without it most books collapse at once. Saves DIR/codec.pt every two minutes;
run again to resume. `--decoder-only` goes on with frozen codes, which keeps a trained language
model valid.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from dia_demo.files import write_atomic
from dia_demo.machine.processor import multiplies_bfloat16
from training.voice import parallel
from training.voice.codec import network, recogniser
from training.voice.corpus import shards
from training.voice.teacher.phones import HOP

log = logging.getLogger(__name__)
CROP = 32  # frames
SAVE_EVERY = 120.0  # seconds
RESEED_EVERY = 25  # steps
# Of mel, stft, wave, phones and features: of all the codec, and of its decoder alone.
JOINT_WEIGHTS, DECODER_WEIGHTS = (7.5, 1.0, 0.7, 1.0, 0.5), (15.0, 1.0, 0.5, 1.0, 0.5)
PARTS = ("mel", "stft", "wave", "phones", "features", "commit")  # of the loss, as logged
FLOAT32_FROM = 0.8  # share of the run after which bfloat16 is left


@dataclass(frozen=True)
class Plan(parallel.Plan):
    batch: int
    decoder_only: bool
    dropout: float = 0.5
    start: Path | None = None


def learning_rate(base: float, step: int, share: float) -> float:
    """Warm-up of 50 steps, constant to the middle, cosine to 2% at the end."""
    decay = (
        1.0 if share < 0.4 else 0.5 * (1 + math.cos(math.pi * (share - 0.4) / 0.6)) * 0.98 + 0.02
    )
    return base * min(1.0, (step + 1) / 50) * decay


class CodeUse:
    """Running use of every code, and the re-seeding of those that died."""

    def __init__(self, codec) -> None:
        self.books = [q.codebook.weight for q in codec.quantizer.quantizers]
        self.counts = torch.zeros(len(self.books), self.books[0].shape[0])

    def count(self, codes: torch.Tensor) -> None:
        self.counts *= 0.98
        for k in range(len(self.books)):
            self.counts[k] += torch.bincount(codes[:, k].flatten().cpu(), minlength=256)

    @torch.no_grad()
    def reseed(self, latents: torch.Tensor, optimiser, workers: int) -> None:
        """latents [B, books * dim, T]: dead codes take the place of random current latents."""
        mean = self.counts.mean(1, keepdim=True)
        dead = (self.counts < 0.05 * mean).float()
        parallel.broadcast([dead], workers)
        vectors = latents.transpose(1, 2).reshape(-1, len(self.books), self.books[0].shape[1])
        for k, book in enumerate(self.books):
            rows = dead[k].nonzero()[:, 0]
            if not len(rows):
                continue
            book[rows] = vectors[torch.randint(0, len(vectors), (len(rows),)), k].float()
            self.counts[k, rows] = 0.3 * mean[k]
            state = optimiser.state.get(book)
            if state:
                state["exp_avg"][rows] = 0
                state["exp_avg_sq"][rows] = 0
        parallel.broadcast(self.books, workers)

    def perplexity(self) -> list[int]:
        p = self.counts / self.counts.sum(1, keepdim=True).clamp(min=1e-9)
        return [int(x) for x in torch.exp(-(p * (p + 1e-9).log()).sum(1))]


class Loss:
    """What a waveform is compared by: its spectra, and what the recogniser hears in it."""

    def __init__(self, plan: Plan) -> None:
        self.spectral = network.SpectralLoss().to(plan.device)
        listener = recogniser.load(plan.work / "recogniser.pt")
        self.phones = recogniser.PhoneLoss(listener, self.spectral).to(plan.device)

    def __call__(self, guess: torch.Tensor, truth: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """[B, samples] twice -> (mel, stft, wave, phones, features), five scalars."""
        return *self.spectral(guess, truth), *self.phones(guess, truth)


def weighted_sum(parts: tuple[torch.Tensor, ...], weights: tuple[float, ...]) -> torch.Tensor:
    return torch.stack([w * part for w, part in zip(weights, parts, strict=True)]).sum()


def joint_step(codec, loss, wave, amp: bool):
    """Loss of encoder, quantizer and decoder together; the quantizer stays in float32."""
    device = wave.device.type
    with torch.autocast(device, torch.bfloat16, enabled=amp):
        latent = codec.encoder(wave[:, None])
    z, codes, latents, commitment, codebook = codec.quantizer(latent.float())
    with torch.autocast(device, torch.bfloat16, enabled=amp):
        guess = codec.decoder(z)
    parts = loss(guess.float()[:, 0], wave)
    quantised = 0.25 * commitment.mean() + codebook.mean()
    total = weighted_sum(parts, JOINT_WEIGHTS) + quantised
    return total, (*parts, commitment.mean()), codes, latents


def decoder_step(codec, loss, wave, amp: bool):
    """Loss of the decoder alone on the codes the frozen encoder gives."""
    with torch.no_grad():
        z, codes, latents, _, _ = codec.quantizer(codec.encoder(wave[:, None]))
    with torch.autocast(wave.device.type, torch.bfloat16, enabled=amp):
        guess = codec.decoder(z)
    parts = loss(guess.float()[:, 0, HOP:-HOP], wave[:, HOP:-HOP])
    return weighted_sum(parts, DECODER_WEIGHTS), (*parts, torch.zeros(())), codes, latents


def save(path: Path, codec, optimiser, step: int, elapsed: float) -> None:
    state = {
        "config": network.CODEC,
        "model": codec.state_dict(),
        "optimiser": optimiser.state_dict(),
        "step": step,
        "elapsed": elapsed,
    }
    with write_atomic(path) as part:
        torch.save(state, part)


def prepare(plan: Plan):
    """Codec, optimiser, steps and seconds so far (from a checkpoint where there is one)."""
    dropout = 0.0 if plan.decoder_only else plan.dropout
    codec = network.make_codec(network.CODEC, dropout).to(plan.device)
    trained = codec.decoder if plan.decoder_only else codec
    optimiser = torch.optim.AdamW(
        trained.parameters(), lr=plan.lr, betas=(0.8, 0.99), weight_decay=1e-3
    )
    path, step, elapsed = plan.work / plan.out, 0, 0.0
    start_from = path if path.exists() else plan.work / "codec.pt"
    if start_from.exists():
        saved = torch.load(start_from, map_location=plan.device, weights_only=False)
        codec.load_state_dict(saved["model"])
        if start_from == path:
            optimiser.load_state_dict(saved["optimiser"])
            step, elapsed = saved["step"], saved["elapsed"]
    elif plan.start:
        codec.load_state_dict(network.load_exported(plan.start).state_dict())
    if plan.decoder_only:
        codec.encoder.requires_grad_(False).eval()
        codec.quantizer.requires_grad_(False).eval()
    return codec, trained, optimiser, step, elapsed


def train(rank: int, workers: int, plan: Plan) -> None:
    if rank == 0:
        parallel.log_to(plan.work / (Path(plan.out).stem + ".log"))
    torch.manual_seed(plan.seed + rank)
    network.dac_class()
    network.compile_snake()
    codec, trained, optimiser, step, before = prepare(plan)
    parallel.broadcast([p.data for p in codec.parameters()], workers)
    loss, use = Loss(plan), CodeUse(codec)
    samples = shards.load_samples(plan.work)
    draw = np.random.default_rng(plan.seed + 17 * rank + step)
    take = decoder_step if plan.decoder_only else joint_step
    watch, saved = parallel.Stopwatch(before), time.time()
    fast_bfloat16 = plan.device != "cpu" or multiplies_bfloat16()
    history: list[tuple[float, ...]] = []
    while True:
        elapsed = parallel.share(watch.lap(), workers)
        done = elapsed / (plan.minutes * 60)
        if done >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(plan.lr, step, done)
        starts = draw.integers(0, len(samples) // HOP - CROP, plan.batch) * HOP
        crops = np.stack([samples[a : a + CROP * HOP] for a in starts])
        wave = torch.from_numpy(crops).to(plan.device).float() / 32768
        total, parts, codes, latents = take(
            codec, loss, wave, amp=fast_bfloat16 and done < FLOAT32_FROM
        )
        optimiser.zero_grad()
        total.backward()
        parallel.average_gradients(trained.parameters(), workers)
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 10.0)
        optimiser.step()
        step += 1
        history.append(tuple(p.item() for p in parts))
        use.count(codes)
        if not plan.decoder_only and step % RESEED_EVERY == 0 and done < 0.6:
            use.reseed(latents, optimiser, workers)
        if rank == 0 and step % 50 == 0:
            named = zip(PARTS, np.mean(history, 0), strict=True)
            history.clear()
            said = " ".join(f"{name} {value:.4f}" for name, value in named)
            log.info("step %d t %.0f %s codes %s", step, elapsed, said, use.perplexity())
        if rank == 0 and time.time() - saved > SAVE_EVERY:
            save(plan.work / plan.out, codec, optimiser, step, elapsed)
            saved = time.time()
    if rank == 0:
        save(plan.work / plan.out, codec, optimiser, step, elapsed)
        log.info("done: %d steps", step)


def main() -> None:
    parser = parallel.arguments(__doc__, minutes=50, lr=8e-4, out="codec.pt")
    parser.add_argument("--batch", type=int, default=4, help="crops a process")
    parser.add_argument(
        "--dropout", type=float, default=0.5, help="share of crops with fewer books than all"
    )
    parser.add_argument("--decoder-only", action="store_true")
    parser.add_argument("--start", type=Path, help="an exported codec whose weights to go on from")
    plan = Plan(**vars(parser.parse_args()))
    parallel.launch(plan.workers, train, plan)


if __name__ == "__main__":
    main()

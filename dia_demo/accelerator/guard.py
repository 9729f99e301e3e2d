"""What is monitored while an accelerator runs, and the message of its failure.

A device that passed its self-check may still hang, drift, leak or distort. Any of these ends the
run: nothing of the take is returned, and the CPU makes none in its place unless asked to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dia_demo import audio
from dia_demo.accelerator.selfcheck.report import SelfCheckReport
from dia_demo.errors import RunError

# A step may take this many times its time in the race, and always SLOWEST_STEP.
STEP_FACTOR = 20.0
SLOWEST_STEP = 10.0


@dataclass(frozen=True)
class Limits:
    """Limits of a run. A step longer than step_seconds means that the device hangs. Memory may grow
    by memory_slack bytes beyond the caches of running rows. Every drift_every steps the reference
    step is repeated; its relative L2 error must not exceed drift.
    """

    step_seconds: float = SLOWEST_STEP
    loading_seconds: float = 300.0
    memory_slack: int = 512 * 2**20
    drift_every: int = 50
    drift: float = 1e-5

    @classmethod
    def from_report(cls, report: SelfCheckReport) -> Limits:
        """Limits that follow from the speed measured by the self-check."""
        speed = report.race.device_steps if report.race else 0.0
        return cls(step_seconds=max(SLOWEST_STEP, STEP_FACTOR / speed if speed else 0.0))


@dataclass(frozen=True)
class WaveformBounds:
    """Bounds of speech as a waveform; outside them it is distorted or empty.

    high_band is the share of power in the upper half of the band, a half for white noise; the other
    fields are those of `audio.Health`. Measured on 60 takes of the embedded voice on the CPU
    (`python -m tools.accelerator.measure_waveform_bounds`, 2026-11-22): high_band 0.0004 to 0.13,
    clipped 0, dc below 0.00001, crest_db 11.8 to 16.2. The bounds leave a factor of at least 1.8,
    and 5 dB of crest factor; a sine has 3 dB, a square wave 0. They depend on the checkpoint: the
    upper half of the band is 4 to 8 kHz in the embedded voice, where every "s" has power, and 11 to
    22 kHz in Dia-1.6B, whose takes could not be measured here. `Accelerator.bounds` takes other
    ones.
    """

    high_band: float = 0.25
    clipped: float = 0.01
    dc: float = audio.LARGEST_OFFSET
    crest_db: float = 6.0


def check_waveform(
    samples: np.ndarray, sample_rate: int, bounds: WaveformBounds | None = None
) -> None:
    """Raise RunError, with the first problem, for a device's take that is not speech."""
    bounds = bounds or WaveformBounds()
    health = audio.health(samples, sample_rate)
    if health.seconds == 0:
        return
    high = high_band_share(samples)
    checks = {
        "it contains NaN or infinite values": not health.finite,
        "it is silent": health.rms_db < audio.SILENCE_DB,
        f"it is clipped ({health.clipped_fraction:.1%})": health.clipped_fraction > bounds.clipped,
        f"it is offset from zero by {health.dc:+.2f}": abs(health.dc) > bounds.dc,
        f"its crest factor is {health.crest_db:.1f} dB, a buzz": health.crest_db < bounds.crest_db,
        f"{high:.0%} of its power is in the upper half of the band, a hiss": (
            high > bounds.high_band
        ),
    }
    problems = [problem for problem, is_present in checks.items() if is_present]
    if problems:
        raise RunError(f"the finished waveform is not speech: {problems[0]}")


def high_band_share(samples: np.ndarray) -> float:
    """Share of power above a quarter of the sample rate, 0 for silence."""
    wave = np.nan_to_num(np.asarray(samples, np.float64), posinf=0.0, neginf=0.0)
    power = np.abs(np.fft.rfft(wave - wave.mean())) ** 2 if wave.size else np.zeros(1)
    total = power.sum()
    return float(power[len(power) // 2 :].sum() / total) if total else 0.0


def explain_failure(device: str, reason: str) -> str:
    """The message for a person when a run on a device has failed."""
    name = device.split(":")[0].upper()
    return (
        f"The {name} failed: {reason.rstrip('.')}. The whole take was dropped; no part of it is "
        f"returned, and the CPU has not made another one in its place. Turn the {name} off to make "
        f"the same take on the CPU, with the same seed. Before the {name} can run again, its "
        f"self-check must pass. {how_to_check(name.lower())}"
    )


def how_to_check(device: str) -> str:
    """How a person runs the self-check of a device, on the page or on the command line."""
    return (
        "Run the self-check in the settings of the Generate tab, or with: "
        f"python -m dia_demo doctor --device {device}"
    )

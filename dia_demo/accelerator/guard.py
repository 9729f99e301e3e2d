"""What is watched while an accelerator runs, and how its failure is told.

A device that passed its check may still hang, drift, leak or distort. Whatever trips here ends the
run: nothing of the take is handed over, and nothing is made on the CPU instead unless asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dia_demo import audio
from dia_demo.accelerator.selfcheck.report import Report
from dia_demo.errors import RunError

# A step may take this many times what it took in the race, and never less than SLOWEST_STEP.
STEP_FACTOR = 20.0
SLOWEST_STEP = 10.0


@dataclass(frozen=True)
class Limits:
    """step_seconds: longer and the device hangs. Memory may grow by memory_slack bytes beyond
    the caches of running rows. Every drift_every steps the same step must come out within drift.
    """

    step_seconds: float = SLOWEST_STEP
    loading_seconds: float = 300.0
    memory_slack: int = 512 * 2**20
    drift_every: int = 50
    drift: float = 1e-5

    @classmethod
    def of(cls, report: Report) -> Limits:
        """From what the device did when it was checked."""
        speed = report.race.device_steps if report.race else 0.0
        return cls(step_seconds=max(SLOWEST_STEP, STEP_FACTOR / speed if speed else 0.0))


@dataclass(frozen=True)
class Usual:
    """What speech looks like as a waveform; outside it is distortion or nothing.

    high_band is the share of power in the upper half of the band, which white noise fills to a
    half; the other names are those of `audio.Health`. Measured on 60 takes of the embedded voice by
    the CPU (`python -m tools.measure_usual`, 2026-11-22): high_band 0.0004 to 0.13, clipped 0, dc
    below 0.00001, crest_db 11.8 to 16.2. The bounds leave a factor of 1.8 and more, and 5 dB of
    crest; a sine has 3 dB, a square wave 0. The ranges depend on the checkpoint: the upper half is
    4 to 8 kHz in the embedded voice, with many an s in it, and 11 to 22 kHz in Dia-1.6B, whose
    takes nobody here could measure. `Accelerator.usual` takes another checkpoint's.
    """

    high_band: float = 0.25
    clipped: float = 0.01
    dc: float = audio.LARGEST_OFFSET
    crest_db: float = 6.0


def check_waveform(samples: np.ndarray, sample_rate: int, usual: Usual | None = None) -> None:
    """Raise RunError, naming what is wrong, for a take of a device that is no speech."""
    usual = usual or Usual()
    found = audio.health(samples, sample_rate)
    if found.seconds == 0:
        return
    high = high_band_share(samples)
    problems = {
        "it holds values that are not numbers": not found.finite,
        "it is silent": found.rms_db < audio.SILENCE_DB,
        f"it is clipped ({found.clipped_fraction:.1%})": found.clipped_fraction > usual.clipped,
        f"it is offset from zero by {found.dc:+.2f}": abs(found.dc) > usual.dc,
        f"its crest factor is {found.crest_db:.1f} dB, a buzz": found.crest_db < usual.crest_db,
        f"{high:.0%} of its power lies in the upper half of the band, a hiss": (
            high > usual.high_band
        ),
    }
    told = [problem for problem, there in problems.items() if there]
    if told:
        raise RunError(f"the finished waveform is not speech: {told[0]}")


def high_band_share(samples: np.ndarray) -> float:
    """Share of power above a quarter of the sample rate, 0 for silence."""
    wave = np.nan_to_num(np.asarray(samples, np.float64), posinf=0.0, neginf=0.0)
    power = np.abs(np.fft.rfft(wave - wave.mean())) ** 2 if wave.size else np.zeros(1)
    total = power.sum()
    return float(power[len(power) // 2 :].sum() / total) if total else 0.0


def explain_failure(device: str, what: str) -> str:
    """What a person reads when a device's run has failed."""
    name = device.split(":")[0].upper()
    return (
        f"The {name} failed: {what.rstrip('.')}. This take was dropped whole: no part of it is "
        f"handed over, and none was made on the CPU instead. Turn the {name} off to make the same "
        f"take on the CPU, with the same seed. Before the {name} runs again its self-check must "
        f"pass: python -m dia_demo doctor --device {name.lower()}"
    )

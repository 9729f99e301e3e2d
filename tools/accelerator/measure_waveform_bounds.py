"""Measurements of waveforms: the figures behind `dia_demo.accelerator.guard.WaveformBounds`.

    python -m tools.accelerator.measure_waveform_bounds [--model nano] [--takes 40]

Generates common sentences on the CPU with seeds 0, 1, 2, ... and prints, for each measure of the
waveform check, the smallest, median and largest value beside the bound.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dia_demo import audio
from dia_demo.accelerator.guard import WaveformBounds, high_band_share
from dia_demo.config import RuntimeConfig
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request

SCRIPTS = (
    "[S1] Hello there. How are you? [S2] I am fine, thank you. [S1]",
    "[S1] We walk along the river and talk of the weather. [S2] Yes, it is warm today. [S1]",
    "[S1] She sees six small ships sail past the south shore. [S2] So she says. [S1]",
    "[S2] No. [S1] Oh, I know. [S2]",
    "[S1] Please put the blue book on the table by the door. [S2]",
)
MEASURES = ("high_band", "clipped", "dc", "crest_db")


def measures(samples: np.ndarray, sample_rate: int) -> dict[str, float]:
    """The measures of `guard.check_waveform`, by the fields of `WaveformBounds`."""
    health = audio.health(samples, sample_rate)
    return {
        "high_band": high_band_share(samples),
        "clipped": health.clipped_fraction,
        "dc": abs(health.dc),
        "crest_db": health.crest_db,
    }


def takes(synthesis: Synthesis, model: str, count: int) -> Iterator[np.ndarray]:
    """Samples of `count` takes: the scripts in turn, a seed for each take."""
    info = synthesis.models[model]
    runtime = replace(synthesis.settings.runtime, model=model)
    for seed in range(count):
        params = replace(info.config.defaults, seed=seed)
        request = Request(SCRIPTS[seed % len(SCRIPTS)], params, info, runtime)
        *_, finished = synthesis.stream(request, threading.Event())
        yield synthesis.take(request, finished.result).samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="nano")
    parser.add_argument("--takes", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    synthesis = Synthesis(Settings(RuntimeConfig(model=options.model, threads=options.threads)))
    rate = synthesis.models[options.model].sample_rate
    rows = [measures(samples, rate) for samples in takes(synthesis, options.model, options.takes)]
    bounds, summary = WaveformBounds(), {}
    for name in MEASURES:
        values = np.array([row[name] for row in rows])
        low, middle, high = (float(x) for x in (values.min(), np.median(values), values.max()))
        bound = getattr(bounds, name)
        summary[name] = {"min": low, "median": middle, "max": high, "bound": bound}
        print(f"{name:<10} {low:.4g} to {high:.4g}, median {middle:.4g}; bound {bound:g}")
    print(json.dumps({"model": options.model, "takes": len(rows), "rate": rate} | summary))


if __name__ == "__main__":
    main()

"""Losses over time from the training logs. `python -m training.voice.plot --work DIR`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

CURVES = {
    "codec": ("mel", "stft", "wave"),
    "codec-decoder": ("mel", "stft"),
    "nano": ("codes", "guide", "phone", "spelling", "dictionary", "onset-voice", "first-draw"),
}


def read_curve(path: Path, name: str) -> tuple[list[float], list[float]]:
    """Minutes and values of one figure in a log."""
    minutes, values = [], []
    for line in path.read_text().splitlines():
        time, value = re.search(r" t (\d+)", line), re.search(rf" {name} ([\d.]+)", line)
        if time and value:
            minutes.append(int(time[1]) / 60)
            values.append(float(value[1]))
    return minutes, values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    work = parser.parse_args().work
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for stage, names in CURVES.items():
        log = work / f"{stage}.log"
        if not log.exists():
            continue
        figure, axes = pyplot.subplots(figsize=(7, 4))
        for name in names:
            axes.plot(*read_curve(log, name), label=name)
        axes.set(xlabel="minutes", yscale="log", title=stage)
        axes.legend()
        figure.savefig(work / f"{stage}.png", dpi=100)
        print(work / f"{stage}.png")


if __name__ == "__main__":
    main()

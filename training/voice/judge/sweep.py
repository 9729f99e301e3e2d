"""The most intelligible settings. `python -m training.voice.judge.sweep --work DIR --model FOLDER`.

Word error on held-out natural sentences, both voices alternating, for every pair of temperature and
CFG scale (0 is no guidance, at half the work). The choice goes into export.py's SAMPLING.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

from dia_demo.services.measurements.words import word_error
from training.voice.corpus import heldout
from training.voice.judge import evaluate
from training.voice.judge.trials import Studio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", default="assets/nano")
    parser.add_argument("--count", type=int, default=100, help="sentences")
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 0.1, 0.2, 0.3])
    parser.add_argument("--cfg-scales", type=float, nargs="+", default=[0.0, 1.0, 1.5, 2.0])
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    engine = evaluate.load_engine(args.model, args.threads)
    studio = Studio(args.work, engine, engine.config.defaults, 20, args.threads)
    sentences = heldout.NATURAL[: args.count]
    scripts = [f"[S{1 + k % 2}] {s}" for k, s in enumerate(sentences)]
    for cfg, temperature in itertools.product(args.cfg_scales, args.temperatures):
        start = time.time()
        takes = studio.say(scripts, temperature=temperature, cfg_scale=cfg)
        error = word_error(scripts, studio.heard(scripts, [take.wave for take in takes]))
        ended = sum(take.ended for take in takes)
        print(
            f"CFG {cfg} temperature {temperature}: {error:.1%}, {ended} of {len(takes)} ended, "
            f"{time.time() - start:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""The mean of checkpoints. `python -m tools.voice.model.average --work DIR A B --shares 2 1`.

Training in small batches leaves weights that wander about where they would settle. Checkpoints of
one run, and the model that it started from, are near enough to each other for their mean to be
better than any of them (Wortsman et al. 2022, "Model soups"; Izmailov et al. 2018).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from tools.voice.model.export import trained_weights
from tools.voice.model.network import Nano, load_nano, save_nano


def load(path: Path) -> Nano:
    """A checkpoint of training, or an exported folder (which has no training aids)."""
    if path.is_file():
        return load_nano(path)[0]
    model = Nano()
    model.load_state_dict(trained_weights(path, model), strict=False)
    return model


@torch.no_grad()
def average(models: list[Nano], shares: list[float]) -> Nano:
    """A model of the first one's shape; shares are relative to their sum."""
    total = sum(shares)
    states = [model.state_dict() for model in models]
    mean = Nano(models[0].shape)
    mean.load_state_dict(
        {
            name: sum(s / total * state[name] for s, state in zip(shares, states, strict=True))
            for name in states[0]
        }
    )
    return mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("models", nargs="+", help="checkpoints in DIR, or exported folders")
    parser.add_argument("--shares", nargs="+", type=float, help="one for each; equal without them")
    parser.add_argument("--out", default="averaged.pt", help="in DIR")
    args = parser.parse_args()
    shares = args.shares or [1.0] * len(args.models)
    if len(shares) != len(args.models):
        parser.error(f"{len(args.models)} models need as many shares, not {len(shares)}")
    inside = [args.work / name for name in args.models]
    paths = [a if a.exists() else Path(name) for a, name in zip(inside, args.models, strict=True)]
    save_nano(args.work / args.out, average([load(path) for path in paths], shares))


if __name__ == "__main__":
    main()

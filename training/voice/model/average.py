"""The mean of checkpoints. `python -m training.voice.model.average --work DIR A B --shares 2 1`.

Training in small batches leaves weights that wander about where they would settle. Checkpoints of
one run, and the model that it started from, are near enough to each other for their mean to be
better than any of them (Wortsman et al. 2022, "Model soups"; Izmailov et al. 2018).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from training.voice.model.export import trained_weights
from training.voice.model.network import Nano, load_nano, save_nano

Weights = dict[str, torch.Tensor]


def load(path: Path) -> tuple[Weights, int]:
    """The weights of a checkpoint and its steps; of an exported folder, which has no training aids,
    and 0."""
    if path.is_file():
        model, state = load_nano(path)
        return model.state_dict(), state.get("step", 0)
    return trained_weights(path, Nano()), 0


def average(models: list[Weights], shares: list[float]) -> Weights:
    """The mean of every tensor, over the models that have it; shares are relative to each other."""
    mean = {}
    for name in set().union(*models):
        having = [(m[name], s) for m, s in zip(models, shares, strict=True) if name in m]
        mean[name] = sum(tensor * s for tensor, s in having) / sum(s for _, s in having)
    return mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("models", nargs="+", help="checkpoints in DIR, or exported folders")
    parser.add_argument("--shares", nargs="+", type=float, help="one for each; equal without them")
    parser.add_argument("--out", default="averaged.pt", help="in DIR; training can go on from it")
    args = parser.parse_args()
    shares = args.shares or [1.0] * len(args.models)
    if len(shares) != len(args.models):
        parser.error(f"{len(args.models)} models need as many shares, not {len(shares)}")
    inside = [args.work / name for name in args.models]
    paths = [a if a.exists() else Path(name) for a, name in zip(inside, args.models, strict=True)]
    weights, steps = zip(*map(load, paths), strict=True)
    model = Nano()
    model.load_state_dict(average(list(weights), shares), strict=False)
    save_nano(args.work / args.out, model, step=max(steps))


if __name__ == "__main__":
    main()

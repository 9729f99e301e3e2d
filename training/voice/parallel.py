"""Data-parallel training with one thread a process, and what its stages are told.

Two processes of one thread beat one process of two threads on a machine that others use: OpenMP
waits at every one of a step's thousand barriers for whichever thread was descheduled (ten times
slower, measured), processes wait once a step.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

PATIENCE = timedelta(minutes=30)  # a process may be paused while others measure
LOADER_SEEDS = 1_000_003  # between the seeds of two loaders
LONGEST_STEP = 10.0  # seconds; what a step takes longer is a pause


@dataclass(frozen=True)
class Plan:
    """What `arguments` reads; a stage adds its own."""

    work: Path
    minutes: float
    lr: float
    workers: int
    device: str
    loaders: int
    seed: int
    out: str

    @property
    def path(self) -> Path:
        """The checkpoint."""
        return self.work / self.out


def log_to(path: Path) -> None:
    """Write what is logged to a file, each line with its time."""
    handler = logging.FileHandler(path)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", handlers=[handler])


def arguments(description: str, minutes: float, lr: float, out: str) -> argparse.ArgumentParser:
    """What every training stage is told, with its defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--work", type=Path, required=True, help="data, checkpoints, logs")
    parser.add_argument("--minutes", type=float, default=minutes, help="in all, without pauses")
    parser.add_argument("--lr", type=float, default=lr)
    parser.add_argument("--workers", type=int, default=2, help="processes; 1 on a GPU")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--loaders", type=int, default=0, help="processes that prepare batches; 12 on a GPU"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default=out, help="the checkpoint's name in the work folder")
    return parser


def launch(workers: int, run: Callable, *args) -> None:
    """Call run(rank, workers, *args) in `workers` processes joined by gloo."""
    if workers == 1:
        run(0, 1, *args)
        return
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(20000 + os.getpid() % 20000))
    torch.multiprocessing.spawn(_enter, (workers, run, args), nprocs=workers)


def _enter(rank: int, workers: int, run: Callable, args: tuple) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=workers, timeout=PATIENCE)
    run(rank, workers, *args)
    dist.destroy_process_group()


def average_gradients(parameters: Iterable[torch.nn.Parameter], workers: int) -> None:
    """All-reduce every gradient as one flat tensor; an absent one counts as zero."""
    if workers == 1:
        return
    parameters = list(parameters)
    grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
    flat = torch.cat([g.flatten() for g in grads])
    dist.all_reduce(flat)
    flat /= workers
    start = 0
    for p, g in zip(parameters, grads, strict=True):
        p.grad = flat[start : start + g.numel()].view_as(g)
        start += g.numel()


class Stopwatch:
    """Seconds of training, from `before` on: the time for which the process is paused is not
    counted, because the learning rate follows it."""

    def __init__(self, before: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.clock = before, clock
        self.last = clock()

    def lap(self) -> float:
        """The seconds so far; called once a step."""
        now = self.clock()
        self.seconds += min(now - self.last, LONGEST_STEP)
        self.last = now
        return self.seconds


class _Source(IterableDataset):
    def __init__(self, make: Callable[[int], Iterator], seed: int) -> None:
        self.make, self.seed = make, seed

    def __iter__(self) -> Iterator:
        torch.set_num_threads(1)
        info = get_worker_info()
        return self.make(self.seed + (LOADER_SEEDS * info.id if info else 0))


def prefetch(make: Callable[[int], Iterator], seed: int, loaders: int) -> Iterator:
    """What make(seed) yields, without end: prepared by as many processes, each with its own seed,
    or by this one if there are none."""
    if not loaders:
        return make(seed)
    return iter(DataLoader(_Source(make, seed), batch_size=None, num_workers=loaders))


def share(value: float, workers: int) -> float:
    """Rank 0's value on every rank, so that all agree on time and end together."""
    if workers == 1:
        return value
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.broadcast(tensor, 0)
    return tensor.item()


def broadcast(tensors: Iterable[torch.Tensor], workers: int) -> None:
    if workers > 1:
        for tensor in tensors:
            dist.broadcast(tensor, 0)

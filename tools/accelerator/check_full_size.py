"""The self-check at Dia-1.6B's sizes, with the CPU standing in for the card.

    python -m tools.accelerator.check_full_size FOLDER [--decoder-layers 2] [--threads 1]

Writes random weights of the real widths, heads, channels and lengths into FOLDER, with fewer layers
so that the copies a check needs (two in float32, one for the race) fit into a few gigabytes, and
runs all nine stages as `doctor --device` does, in a process of its own. It proves no card; it shows
that the probes themselves hold at those shapes, how long they take and how much memory.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from dia_demo.accelerator.backend import Backend
from dia_demo.accelerator.selfcheck.report import VerdictKey
from dia_demo.accelerator.selfcheck.runner import CheckSpec, check
from dia_demo.families.resolve import resolve
from dia_demo.task import Task
from tools.make_random_dia import SIZES, write_checkpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--decoder-layers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    dia = SIZES["dia-1.6b"]
    config = replace(
        dia,
        encoder=replace(dia.encoder, num_layers=1),
        decoder=replace(dia.decoder, num_layers=options.decoder_layers),
    )
    if not (options.folder / "config.json").exists():
        write_checkpoint(options.folder, config, "transformers")
    card = Backend("cpu").card()
    key = VerdictKey("cpu", card.name, card.driver, torch.__version__, "random", "float32")
    backend = partial(Backend, "cpu")
    spec = CheckSpec(backend, resolve(str(options.folder)), key, card, options.threads)
    running = Task(check(spec))
    for event in running:
        print(event.doing, flush=True)
    print(running.result.as_text())


if __name__ == "__main__":
    main()

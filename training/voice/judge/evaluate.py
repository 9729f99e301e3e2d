"""The voice's quality. `python -m training.voice.judge.evaluate --work DIR --out OUT`.

Tries everything the voice must reach (trials.py, app_trials.py) on sentences never trained on
(heldout.py) and prints one table; writes it as scores.json and scores.md. Word error is
pocketsphinx's with its general English model.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import torch

from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.families.resolve import resolve
from dia_demo.task import result_of
from training.voice.corpus import heldout, shards
from training.voice.judge import app_trials, trials, voice_trials
from training.voice.judge.trials import Line, Studio
from training.voice.judge.voice_trials import Prompts
from training.voice.teacher.voices import SPEAKERS

NATURAL, RARE = "sentences of common words", "lines of five unrelated words unseen in training"
EVERYDAY_SEEDS = 2  # takes of every sentence
TRIALS = (
    "natural", "everyday", "template", "rare", "examples", "voices", "stops", "settings", "speed",
    "size",
)  # fmt: skip
SETTINGS = (("temperature", float), ("cfg_scale", float), ("top_p", float), ("top_k", int))


def load_engine(folder: str, threads: int) -> Engine:
    runtime = RuntimeConfig(model=folder, threads=threads)
    engine = result_of(Engine.load(resolve(folder), runtime))
    engine.load_codec()
    return engine


def try_all(studio: Studio, app: app_trials.App, args) -> Iterator[Line]:
    """Every wanted line; `--count` shortens all sets alike, for a quick look."""
    share = args.count / 100
    for name in args.trials:
        match name:
            case "natural":
                for tag in SPEAKERS:
                    sentences = heldout.NATURAL[: args.count]
                    yield trials.words(studio, NATURAL, tag, sentences, 0.25, 0.12)
            case "everyday":
                sentences = heldout.EVERYDAY[: round(len(heldout.EVERYDAY) * share)]
                yield trials.everyday(studio, sentences, EVERYDAY_SEEDS)
            case "template":
                sentences = heldout.template()[: args.count]
                yield trials.words(studio, "the training's own grammar", "both", sentences, 0.5)
            case "rare":
                yield from trials.other_words(studio, round(400 * share), 0.5)
                sentences = heldout.rare()[: round(100 * share)]
                yield trials.words(studio, RARE, "both", sentences, 0.5)
            case "examples":
                yield from trials.examples(studio, max(1, round(5 * share)))
            case "stops":
                yield trials.stops(studio, round(200 * share))
            case "settings":
                yield from app_trials.settings(app)
            case "speed":
                yield app_trials.speed(app)
            case "voices":
                prompts = Prompts(shards.load_tables(args.work))
                yield from voice_trials.voices(studio, app, prompts, share)
            case "size":
                yield from app_trials.size(Path(args.model))


def format_value(line: Line, value: float | None) -> str:
    """A rate as a percentage, a yes or no as a word, anything else as it is."""
    if value is None:
        return ""
    if line.goal == "yes":
        return "yes" if value else "no"
    if any(unit in line.measure for unit in ("MB", "realtime", "semitones", "dB")):
        return f"{value:.1f}"
    return f"{value:.1%}"


def markdown(lines: list[Line]) -> str:
    out = [
        "| measured | voice | N | teacher | codec alone | goal | result | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        cells = (format_value(line, v) for v in (line.teacher, line.codec))
        verdict = "met" if line.met else "**missed**"
        out.append(
            f"| {line.measure} | {line.voice} | {line.count} | {' | '.join(cells)} | {line.goal} "
            f"| {format_value(line, line.value)} | {verdict} |"
        )
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", default="assets/nano")
    parser.add_argument("--trials", nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--count", type=int, default=100, help="percent of every set's sentences")
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="of every trial's first take")
    parser.add_argument("--out", type=Path, help="the table goes to OUT.json and OUT.md")
    for name, kind in SETTINGS:
        parser.add_argument(f"--{name}", type=kind, help="instead of the checkpoint's")
    args = parser.parse_args()
    start, engine = time.time(), load_engine(args.model, args.threads)
    given = {name: getattr(args, name) for name, _ in SETTINGS}
    changes = {k: v for k, v in given.items() if v is not None}
    params = replace(engine.config.defaults, seed=args.seed, **changes)
    torch.manual_seed(0)
    studio = Studio(args.work, engine, params, args.batch, args.threads)
    app = app_trials.App(args.model, params, args.threads)
    lines = []
    for line in try_all(studio, app, args):
        lines.append(line)
        print(
            f"{time.time() - start:5.0f} s  {line.measure}, {line.voice}: "
            f"{format_value(line, line.value)}"
        )
    table = markdown(lines)
    print(f"\n{table}\n\nsettings {asdict(params)}")
    if args.out:
        record = {"settings": asdict(params), "lines": [asdict(line) for line in lines]}
        args.out.with_suffix(".json").write_text(json.dumps(record, indent=2) + "\n")
        args.out.with_suffix(".md").write_text(table + "\n")


if __name__ == "__main__":
    main()

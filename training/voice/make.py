"""The embedded voice from nothing: all stages in order. `python -m training.voice.make --work DIR`.

A stage that has ended is noted in DIR/stages and not run again; one that was interrupted goes on
where it stopped, because every stage keeps what it has made. The voice is written to DIR/voice, in
the form of assets/nano. README.md says what the stages make and what they took, LOG.md how they and
their settings were found.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Of stages that train: what a GPU needs beside `--device cuda --workers 1`.
LARGE_CROPS = ("--batch", "64")
LARGE_BATCHES = ("--frames", "60000", "--lines", "128", "--loaders", "14")


@dataclass(frozen=True)
class Stage:
    """command: of a module in this package; W is the work folder. on_gpu: more options there; None
    for a stage that computes on the CPU alone."""

    name: str
    command: str
    on_gpu: tuple[str, ...] | None = None

    def arguments(self, work: Path, device: str) -> list[str]:
        module, *options = self.command.split()
        words = [option.replace("W", str(work), 1) for option in options]
        if device != "cpu" and self.on_gpu is not None:
            words += ["--device", device, "--workers", "1", *self.on_gpu]
        return ["-m", f"training.voice.{module}", *words]


STAGES = (
    Stage("speech", "corpus.shards --work W --shards 28"),
    # Voices without a name, so that prompts in voices that were never trained on are followed.
    Stage("unnamed", "corpus.shards --work W --first 28 --shards 8 --free-share 0.8"),
    Stage("drift", "corpus.drift --work W"),
    Stage("recogniser", "codec.recogniser --work W"),
    Stage("codec", "codec.train --work W --minutes 76", LARGE_CROPS),
    Stage("gate", "judge.codec_gate --work W --codec W/codec.pt"),
    Stage("codes", "codec.encode --work W", ()),
    Stage("turns", "model.turns --work W"),
    Stage("model", "model.train --work W --minutes 120", LARGE_BATCHES),
    Stage(
        "decoder",
        "codec.train --work W --decoder-only --out codec-decoder.pt --minutes 20",
        LARGE_CROPS,
    ),
    Stage("first", "model.export --work W --codec codec-decoder.pt --out W/first"),
    Stage("takes", "model.own_takes --work W --model W/first --takes 2000"),
    Stage(
        "adapted",
        "model.adapt --work W --start W/first --known W/marks.json --learn free --minutes 60",
        ("--frames", "48000", "--loaders", "14"),
    ),
    Stage("voice", "model.export --work W --model adapted.pt --codec W/first/codec --out W/voice"),
    Stage("voices", "judge.voice_table W/voice --marks W/marks.json"),
    Stage("ratios", "judge.voice_codes W/voice"),
    Stage("scores", "judge.evaluate --work W --model W/voice --out W/scores"),
)


def make(work: Path, device: str, run: Callable[[list[str]], int]) -> str | None:
    """Run what has not been run yet; the name of the stage that failed, or None.

    run: carries out the arguments of a Python process and returns its exit code.
    """
    ended = work / "stages"
    ended.mkdir(parents=True, exist_ok=True)
    for stage in STAGES:
        if not (ended / stage.name).exists():
            if run(stage.arguments(work, device)):
                return stage.name
            (ended / stage.name).touch()
    return None


def run_python(arguments: list[str]) -> int:
    print(f"python {' '.join(arguments)}", flush=True)
    return subprocess.run([sys.executable, *arguments]).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="data, checkpoints, logs")
    parser.add_argument("--device", default="cpu", help="cuda: of the stages that train")
    args = parser.parse_args()
    failed = make(args.work, args.device, run_python)
    if failed:
        print(f"The stage {failed!r} failed. Run the same command again to go on with it.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

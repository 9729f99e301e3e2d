"""Check the real Dia-1.6B on this machine: fetch it, make takes, judge them, write one table.

    python -m tools.check_real_weights WORK
    python -m tools.check_real_weights WORK --precision int8 --dialogues 3     # a first look

Fetches Dia-1.6B-0626 (6.4 GB) and the codec from the hub, makes 20 fixed dialogues with fixed seeds
in each precision, and compares the first codes with those of transformers on the same weights. Each
take is made by `python -m dia_demo say` in a process of its own. Needs 16 GB of memory for float32
and for transformers, and requirements-dev.txt for transformers and the recogniser.

What is finished stays in WORK, and running it again goes on where it stopped:

    takes/PRECISION/07.flac    takes with their settings inside, for listening
    takes/PRECISION/07.json    the take's figures, and what the recogniser heard
    codes/                     the first codes, ours and those of transformers
    report.md                  the table for docs/performance.md

Ends with exit code 1 where a take failed or codes differ.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dia_demo.checkpoint_config import read_model_config
from dia_demo.codec.files import find_codec
from dia_demo.config import PRECISIONS
from dia_demo.errors import DiaDemoError
from dia_demo.files import ROOT, write_atomic
from dia_demo.hub.cache import cached_source
from dia_demo.hub.fetch import fetch_checkpoint
from dia_demo.model.checkpoint import local_folder
from dia_demo.services.bench import words
from dia_demo.services.models import DIA_NAME
from dia_demo.services.system_info import describe_machine
from dia_demo.task import Task
from tools.transformers_codes import CFG_SCALE, TOP_K, max_tokens_for

ALL = PRECISIONS[1:]
FRAMES = 100
# Two speakers, 5 to 20 s each, and words that a recogniser can know.
DIALOGUES = """
[S1] Good morning. Did you sleep well? [S2] Yes, thank you. And you? [S1] Not really, the wind kept me awake. [S2]
[S1] Have you seen my keys? [S2] They are on the kitchen table, under the newspaper. [S1] Oh, thank you so much. [S2]
[S1] The train leaves at nine. [S2] Then we should go now. It takes half an hour to the station. [S1]
[S1] What would you like to eat? [S2] Soup, if there is any left from yesterday. [S1] There is, and fresh bread too. [S2]
[S1] I heard that you bought a boat. [S2] A small one. We want to sail along the coast this summer. [S1] That sounds wonderful. [S2]
[S1] Can you help me carry this box? [S2] Of course. What is in it? It is very heavy. [S1] Only books, I promise. [S2]
[S1] How was the film last night? [S2] Too long, but the music was beautiful. [S1] Then I will wait and see it at home. [S2]
[S1] It has been raining for three days now. [S2] The garden needs it. The ground was as dry as a bone. [S1]
[S1] Do you remember our old teacher? [S2] The one with the red hat? Of course I do. [S1] I met her at the market today. [S2]
[S1] Please turn the music down a little. [S2] Sorry, I did not know that you were working. [S1] No problem at all. [S2]
[S1] Where shall we meet? [S2] At the bridge, where the river is wide. I will bring my brother. [S1] Good, I look forward to it. [S2]
[S1] My computer does not start any more. [S2] Did you try another power cable? [S1] I did, and nothing happens at all. [S2]
[S1] This cake is very good. Did you make it? [S2] My father did. He bakes every Sunday. [S1] Please ask him for the recipe. [S2]
[S1] The doctor says that I should walk more. [S2] Then come with me in the evening. I go around the lake. [S1] I would love to. [S2]
[S1] How much is this lamp? [S2] Forty, and thirty if you take two of them. [S1] One is enough for me, thank you. [S2]
[S1] Is anybody sitting here? [S2] No, please take a seat. The concert will begin in a few minutes. [S1]
[S1] We lost the game again. [S2] But you played much better than last week. [S1] Perhaps we will win the next one. [S2]
[S1] I cannot find the house. [S2] Go past the church and turn left at the old tree. [S1] Now I can see it. Thank you. [S2]
[S1] Tell me what you did on your holiday. [S2] We stayed in the mountains and walked for hours every day. [S1] You look very happy. [S2]
[S1] Good night. Leave the window open, please. [S2] It will be cold, but I like the fresh air as well. [S1]
""".strip().splitlines()  # noqa: E501


@dataclass(frozen=True)
class Check:
    """What was asked for. limits: options of `say` that bound a take."""

    work: Path
    model: str
    precisions: Sequence[str]
    dialogues: Sequence[str]
    frames: int
    limits: Sequence[str]


@dataclass
class Outcome:
    """What is known so far. takes: the figures of each precision's takes."""

    takes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    codes: str = "The first codes were not compared."


def fetch(model: str) -> Path:
    """The folder of the model, fetched with its codec if necessary; shows the progress."""
    folder = local_folder(model)
    if folder is None:
        folder = show(f"Fetching {model}", fetch_checkpoint(model))
    show("Fetching the codec", find_codec(folder))
    return folder


def show(what: str, work) -> Any:
    task, shown = Task(work), -1
    for fraction in task:
        if int(100 * fraction) > shown:
            shown = int(100 * fraction)
            print(f"\r{what}: {shown}%", end="", flush=True)
    print()
    return task.result


# Takes


def make_takes(check: Check, outcome: Outcome) -> None:
    """All takes that are not there yet. A failed one does not stop the others."""
    for precision in check.precisions:
        folder = check.work / "takes" / precision
        folder.mkdir(parents=True, exist_ok=True)
        outcome.takes[precision] = []
        for number, script in enumerate(check.dialogues):
            file = folder / f"{number:02}.json"
            try:
                take = finished_take(check, script, file) or make_take(
                    check, precision, number, script, file
                )
            except RuntimeError as error:
                outcome.failures.append(f"{precision}, dialogue {number}: {error}")
                print(outcome.failures[-1], flush=True)
            else:
                outcome.takes[precision].append(take)
                print(
                    f"{precision}, dialogue {number}: {take['audio_seconds']:.1f} s of audio, "
                    f"{take['realtime_factor']:.2f}x realtime",
                    flush=True,
                )
            write_report(check, outcome)


def finished_take(check: Check, script: str, file: Path) -> dict[str, Any] | None:
    """The figures of a take that an earlier run made, if it is the same one."""
    if not file.is_file():
        return None
    take = json.loads(file.read_text(encoding="utf-8"))
    is_same = (take["model"], take["script"]) == (check.model, script)
    return take if is_same and take["limits"] == list(check.limits) else None


def make_take(check: Check, precision: str, number: int, script: str, file: Path) -> dict[str, Any]:
    """Make a take, and write its figures to `file` when it is whole; returns them."""
    sound = file.with_suffix(".flac")
    figures = say(
        check, script, "--precision", precision, "--seed", number, *check.limits, "-o", sound
    )
    figures |= {"heard": hear(sound), "script": script, "limits": list(check.limits)}
    with write_atomic(file) as part:
        part.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    return figures


def say(check: Check, script: str, *options: object) -> dict[str, Any]:
    """The figures of a take by `python -m dia_demo say`. Raises RuntimeError with its message."""
    command = ["-m", "dia_demo", "say", script, "--model", check.model, "--json"]
    return json.loads(python(*command, *options).splitlines()[-1])


def python(*arguments: object) -> str:
    """The output of a Python process. Raises RuntimeError with its last words."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    if done.returncode < 0:
        raise RuntimeError(
            f"its process was ended by signal {-done.returncode}"
            + (", most likely because the memory ran out" if done.returncode == -9 else "")
        )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"exit code {done.returncode}")
    return done.stdout


def hear(sound: Path) -> str | None:
    """What a recogniser hears in a take; None where it is not installed."""
    import soundfile
    import soxr

    try:
        recogniser = words.Recogniser()
    except ImportError:
        return None
    samples, rate = soundfile.read(sound, dtype="float32")
    return recogniser.hear(soxr.resample(samples, rate, words.SAMPLE_RATE))


# Codes


def compare_codes(check: Check, folder: Path, outcome: Outcome) -> None:
    """Greedy in float32: ours beside those of transformers, each in a process of its own."""
    home = check.work / "codes"
    home.mkdir(parents=True, exist_ok=True)
    script, most = check.dialogues[0], max_tokens_for(read_model_config(folder), check.frames)
    ours, theirs = home / "ours.npy", home / "transformers.npy"
    try:
        if not theirs.is_file():
            with write_atomic(theirs) as part:
                arguments = (folder, script, "-o", part, "--frames", check.frames)
                python("-m", "tools.transformers_codes", *arguments)
        greedy = ("--temperature", 0, "--cfg-scale", CFG_SCALE, "--top-k", TOP_K)
        say(check, script, *greedy, "--precision", "float32", "--max-tokens", most, "--codes", ours)
    except RuntimeError as error:
        outcome.failures.append(f"first codes: {error}")
        return
    outcome.codes, are_equal = compared(np.load(ours), np.load(theirs))
    if not are_equal:
        outcome.failures.append(outcome.codes)


def compared(ours: np.ndarray, theirs: np.ndarray) -> tuple[str, bool]:
    """The comparison in words, and whether all codes are equal."""
    frames = min(len(ours), len(theirs))
    differing = np.argwhere(ours[:frames] != theirs[:frames])
    what = "Greedy codes in float32 against transformers on the same weights"
    if len(ours) != len(theirs) and not len(differing):
        return f"{what}: ours end after {len(ours)} frames, theirs after {len(theirs)}.", False
    if not len(differing):
        return f"{what}: all of {frames} frames equal in {ours.shape[1]} channels.", True
    frame, channel = differing[0]
    share = 1 - len(differing) / ours[:frames].size
    return (
        f"{what}: equal up to frame {frame}, where channel {channel} differs; {share:.1%} of "
        f"{frames} frames in all. Rounding may choose another of two codes that are equally "
        "likely; after that everything differs.",
        False,
    )


# Report


def write_report(check: Check, outcome: Outcome) -> None:
    with write_atomic(check.work / "report.md") as part:
        part.write_text("\n".join(report(check, outcome)) + "\n", encoding="utf-8")


def report(check: Check, outcome: Outcome) -> Iterator[str]:
    machine = describe_machine()
    source = cached_source(local_folder(check.model) or _cached(check.model))
    revision = f" at revision {source[1]}" if source else ""
    yield f"### {check.model}{revision}"
    yield ""
    yield (
        f"{machine.cpu}, {machine.cores} cores, {machine.simd}, torch {torch.__version__}, Python "
        f"{platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}. Fixed dialogues with seeds 0, "
        f"1, 2, ... and the checkpoint's own settings; medians. Words by pocketsphinx, which knows "
        "nothing of the voices."
    )
    yield ""
    yield (
        "| | takes | wrong words | ended by themselves | length / expected | with remarks | whole "
        "| first sound | peak memory |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for precision, takes in outcome.takes.items():
        if takes:
            yield row(precision, takes)
    yield ""
    yield outcome.codes
    if outcome.failures:
        yield ""
        yield "Failed:"
        yield ""
        yield from (f"- {failure}" for failure in outcome.failures)


def _cached(model: str) -> Path:
    from dia_demo.hub.cache import cached_config

    return cached_config(model) or Path(model)


def row(precision: str, takes: Sequence[dict[str, Any]]) -> str:
    """A precision's line of the table."""

    def median(key: str) -> float:
        return statistics.median(take[key] for take in takes)

    heard = [take for take in takes if take["heard"] is not None]
    scripts, transcripts = ([take[key] for take in heard] for key in ("script", "heard"))
    wrong = f"{words.word_error(scripts, transcripts):.1%}" if heard else "not measured"
    ended = sum(take["finish_reason"] == "end" for take in takes)
    lengths = [take["audio_seconds"] / take["expected_seconds"] for take in takes]
    cells = [
        precision,
        str(len(takes)),
        wrong,
        f"{ended} of {len(takes)}",
        f"{statistics.median(lengths):.2f} ({min(lengths):.2f} to {max(lengths):.2f})",
        str(sum(bool(take["remarks"]) for take in takes)),
        f"{median('realtime_factor'):.2f}x",
        f"{median('first_audio_seconds'):.1f} s",
        f"{max(take['peak_rss_bytes'] for take in takes) / 1e9:.1f} GB",
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path, help="folder of what is finished")
    parser.add_argument("--model", default=DIA_NAME, help="another Dia, for a rehearsal")
    parser.add_argument("--precision", nargs="+", choices=ALL, default=ALL)
    parser.add_argument("--dialogues", type=int, default=len(DIALOGUES), metavar="N")
    parser.add_argument("--frames", type=int, default=FRAMES, help="compared with transformers")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="a bound, for a rehearsal")
    options = parser.parse_args(arguments)
    limits = () if options.max_tokens is None else ("--max-tokens", str(options.max_tokens))
    work = options.work.absolute()
    local = local_folder(options.model)
    model = options.model if local is None else str(local.absolute())
    check = Check(
        work, model, options.precision, DIALOGUES[: options.dialogues], options.frames, limits
    )
    work.mkdir(parents=True, exist_ok=True)
    outcome = Outcome()
    try:
        folder = fetch(check.model)
    except DiaDemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    compare_codes(check, folder, outcome)
    make_takes(check, outcome)
    write_report(check, outcome)
    print("\n".join(report(check, outcome)))
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())

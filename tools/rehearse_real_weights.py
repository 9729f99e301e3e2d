"""Rehearse `tools.check_real_weights` without a connection, at Dia-1.6B's size.

    python -m tools.rehearse_real_weights FOLDER                  # 25 GB of disk, some minutes
    python -m tools.rehearse_real_weights FOLDER --size tiny --precision int8

Writes random weights and a random codec into FOLDER, serves them from a stand-in for the hub under
the names of the real ones, and runs the check against it, with short takes. The check is killed in
the midst of the download and after the first take, and has to go on there. At the end its report is
compared with what it must say, and its comparison of codes is repeated with damaged weights, which
it has to notice. Prints a table; the exit code is 1 where a step fails. What is finished stays in
FOLDER, so the weights are written once.
"""

from __future__ import annotations

import argparse
import mmap
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load_file, save_file

from dia_demo.checkpoint_files import INDEX, fingerprint, shard_names
from dia_demo.config import PRECISIONS
from dia_demo.files import ROOT
from dia_demo.services.models import DIA_NAME
from tests.helpers.stand_ins.stand_in_hub import Hub, running_hub
from tools.make_random_dia import CODECS, SIZES, write_checkpoint, write_codec
from tools.real_weights.check import Check, Outcome
from tools.real_weights.codes import compare_codes
from tools.real_weights.dialogues import DIALOGUES
from tools.rehearsal.table import Mismatch, Table

CODEC_NAME = "descript/dac_44khz"
# The check is killed after this much of the download, which would take so many seconds as a whole.
KILLED_AT, DOWNLOAD_SECONDS = 40, 60
# The check is killed after the first take, so a precision has a second one.
DIALOGUE_COUNT = 2
# Changed in the damaged weights, by a tenth.
DAMAGED = "model.decoder.layers.{}.self_attention.o_proj.weight"


class Rehearsal:
    """The folders, the stand-in hub, and the check in a process of its own."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.weights, self.codec = folder / "weights", folder / "codec"
        self.cache, self.work, self.damaged = folder / "cache", folder / "work", folder / "damaged"
        self.config, self.size = SIZES[options.size], options.size
        self.precisions, self.frames = options.precision, options.frames
        self.limits = ("--max-tokens", str(options.max_tokens))
        self.hub = Hub()

    def write(self) -> str:
        """The weights and the codec, unless an earlier rehearsal wrote them."""
        if not (self.weights / INDEX).is_file():
            write_checkpoint(self.weights, self.config, "transformers")
        if not (self.codec / "model.safetensors").is_file():
            write_codec(self.codec, CODECS[self.size])
        for folder, name in ((self.weights, DIA_NAME), (self.codec, CODEC_NAME)):
            self.hub.others[name] = {path.name: mapped(path) for path in folder.iterdir()}
        return f"{self.download_bytes() / 1e9:.1f} GB"

    def download_bytes(self) -> int:
        return sum(len(content) for content in self.hub.others[DIA_NAME].values())

    def forget(self) -> None:
        """Begin as on a machine that never ran the check."""
        for folder in (self.cache, self.work, self.damaged):
            shutil.rmtree(folder, ignore_errors=True)

    def environment(self) -> dict[str, str]:
        """The check's: this hub, and caches of its own."""
        others = {name: text for name, text in os.environ.items() if not name.startswith("HF_")}
        return others | {
            "HF_ENDPOINT": self.hub.url,
            "HF_HOME": str(self.cache / "hub"),
            "DIA_CACHE": str(self.cache / "dia-demo"),
            "PYTHONPATH": str(ROOT),
        }

    def run(self, is_enough: Callable[[str], bool] = lambda _: False) -> tuple[int, str]:
        """Run the check, and kill it with its children once `is_enough` of its output.

        Returns its exit code and its output.
        """
        options = ["--dialogues", str(DIALOGUE_COUNT), "--frames", str(self.frames), *self.limits]
        command = [sys.executable, "-u", "-m", "tools.check_real_weights", str(self.work)]
        began, output = time.monotonic(), ""
        with subprocess.Popen(
            [*command, "--precision", *self.precisions, *options],
            cwd=ROOT,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            while letter := process.stdout.read(1).decode(errors="replace"):
                output += letter
                if letter == "\n" and (line := re.split("[\r\n]", output)[-2]):
                    print(f"   {time.monotonic() - began:6.1f} s  {line}", flush=True)
                if is_enough(output):
                    os.killpg(process.pid, signal.SIGKILL)
                    break
        return process.returncode, output

    def killed_download(self) -> str:
        """Kill the check in the midst of the download."""
        self.hub.rate = max(1000, self.download_bytes() // DOWNLOAD_SECONDS)

        def is_enough(output: str) -> bool:
            shares = re.findall(r"Fetching nari[^:]*: (\d+)%", output[-200:])
            if not shares or int(shares[-1]) < KILLED_AT:
                return False
            self.hub.rate = 1000  # The rest would take hours: nothing arrives before the signal.
            return True

        code, output = self.run(is_enough)
        self.hub.rate = None
        if code != -signal.SIGKILL:
            raise Mismatch(f"exit code {code}: {output[-300:]}")
        return f"killed at {re.findall(r'([0-9]+)%', output)[-1]}%"

    def resumed_download(self) -> str:
        """Run the check again, which continues the download, and kill it after the first take."""
        self.hub.ranges.clear()
        code, output = self.run(lambda output: ", dialogue 0: " in output)
        starts = [start for _, start in self.hub.ranges if start]
        if code != -signal.SIGKILL:
            raise Mismatch(f"exit code {code}: {output[-600:]}")
        if not starts:
            raise Mismatch("every file was fetched from its beginning")
        return f"continued at byte {starts[0]:,}, killed after the first take"

    def finished(self) -> str:
        """Run the check to its end."""
        takes = self.work / "takes"
        before = {file: file.stat().st_mtime_ns for file in takes.rglob("*.flac")}
        self.hub.ranges.clear()
        code, output = self.run()
        if code:
            raise Mismatch(f"exit code {code}: {output[-900:]}")
        if files := [name for name, _ in self.hub.ranges if name]:
            raise Mismatch(f"fetched again: {files}")
        kept = sum(file.stat().st_mtime_ns == made for file, made in before.items())
        made = len(list(takes.rglob("*.json")))
        return f"{made} takes, {kept} of them from before"

    def report(self) -> str:
        """The report's table and verdict."""
        text = (self.work / "report.md").read_text(encoding="utf-8")
        rows = [line for line in text.splitlines() if line.startswith("|")]
        columns = {len(row.split("|")) for row in rows}
        names = [row.split("|")[1].strip() for row in rows[2:]]
        counts = {row.split("|")[2].strip() for row in rows[2:]}
        if len(columns) != 1 or names != list(self.precisions) or counts != {str(DIALOGUE_COUNT)}:
            raise Mismatch(text)
        verdict = text.splitlines()[-1]
        if "frames equal in" not in verdict:
            raise Mismatch(verdict)
        return verdict

    def damage_noticed(self) -> str:
        """Compare the codes of damaged weights with those of transformers on the true ones."""
        damaged_copy(self.weights, self.damaged, self.config.decoder.num_layers // 2)
        check = Check(
            self.work / "damaged", str(self.damaged), (), DIALOGUES[:1], self.frames, self.limits
        )
        shutil.rmtree(check.work, ignore_errors=True)
        outcome = Outcome()
        codes = check.work / "codes"
        codes.mkdir(parents=True)
        for file in (self.work / "codes").glob("*-transformers.npy"):  # Named after a copy.
            shutil.copy(file, codes / f"{fingerprint(self.weights)}-{self.frames}-transformers.npy")
        compare_codes(check, self.weights, outcome)
        if not outcome.failures or "differs" not in outcome.codes:
            raise Mismatch(f"{outcome.codes} {outcome.failures}")
        return outcome.codes.partition(": ")[2].partition(" in all")[0]


def mapped(path: Path) -> memoryview:
    """The bytes of a file, which stays on disk."""
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def damaged_copy(weights: Path, into: Path, layer: int) -> None:
    """The same weights but for one tensor, which is a tenth larger."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    name = DAMAGED.format(layer)
    for path in weights.iterdir():
        (into / path.name).symlink_to(path)
    for file in shard_names(weights / INDEX):
        tensors = load_file(weights / file)
        if name in tensors:
            tensors[name] *= 1.1
            (into / file).unlink()
            save_file(tensors, into / file, metadata={"format": "pt"})


def memory_and_disk(rehearsal: Rehearsal) -> str:
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    files = (path.lstat() for path in rehearsal.cache.rglob("*"))
    disk = sum(file.st_size for file in files if stat.S_ISREG(file.st_mode))
    return f"at most {largest / 1e9:.1f} GB in one process; caches of {disk / 1e9:.1f} GB"


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="dia-1.6b")
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS[1:], default=PRECISIONS[1:])
    parser.add_argument("--frames", type=int, default=50, help="compared with transformers")
    parser.add_argument("--max-tokens", type=int, default=60, help="of each take")
    parser.add_argument("--keep", action="store_true", help="go on with earlier work")
    return parser


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    rehearsal = Rehearsal(options.folder.absolute(), options)
    table = Table()
    table.step("random weights", "written", rehearsal.write)
    with running_hub(rehearsal.hub):
        if not options.keep:
            rehearsal.forget()
            table.step("download", f"killed at {KILLED_AT}% of it", rehearsal.killed_download)
            table.step("second run", "goes on at that byte", rehearsal.resumed_download)
        table.step("last run", "makes only what is missing", rehearsal.finished)
    table.step("report", "a row for each precision; equal codes", rehearsal.report)
    table.step("damaged weights", "codes differ", rehearsal.damage_noticed)
    table.step("memory", "fits", lambda: memory_and_disk(rehearsal))
    print(f"{table.failed} steps fail." if table.failed else "No step fails.")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Checkpoint folders that nobody should be harmed by, and what the command line says to each.

    python -m tools.hostile_checkpoints             # writes each, speaks with it, prints a table
    python -m tools.hostile_checkpoints --forked    # the same, quicker: the program is loaded once

Every one is the embedded voice with one thing wrong; the voice itself must speak. `say --model
FOLDER` must answer with one sentence and exit code 2, within SECONDS of processor time and BYTES,
and must run no code of the checkpoint. (Processor time, so that other programs do not count.)
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil
import torch
from safetensors.torch import load_file, save_file

from dia_demo.checkpoint_files import INDEX, SAFETENSORS
from dia_demo.cli import main as cli
from dia_demo.files import ROOT
from dia_demo.model.checkpoint import EMBEDDED_FOLDER

SECONDS, BYTES = 5.0, 10**9
# What the code inside a pickle would leave behind.
PROOF = "code-ran"
ENOUGH_SECONDS = 40

CONFIG, GENERATION = "config.json", "generation_config.json"
CODEC, CODEC_WEIGHTS = "codec/config.json", "codec/model.safetensors"


def copy_voice(folder: Path) -> Path:
    """The embedded voice under another name, its files as links until one is replaced."""
    for source in EMBEDDED_FOLDER.rglob("*"):
        if source.is_file():
            target = folder / source.relative_to(EMBEDDED_FOLDER)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source)
    return folder


def write(folder: Path, name: str, content: bytes) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_bytes(content)


def fill(name: str, content: bytes) -> Callable[[Path], None]:
    """A file with other bytes."""
    return lambda folder: write(folder, name, content)


def change(name: str, path: str, value: object) -> Callable[[Path], None]:
    """A JSON file with one value replaced; a dot descends."""

    def apply(folder: Path) -> None:
        raw = place = json.loads((folder / name).read_text())
        *sections, key = path.split(".")
        for section in sections:
            place = place[section]
        place[key] = value
        write(folder, name, json.dumps(raw).encode())

    return apply


def special(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Something that is no regular file in a file's place."""

    def apply(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return apply


def sparse(path: Path) -> None:
    """2 GB of nothing, which takes no room on the disk."""
    with open(path, "wb") as file:
        file.truncate(2 * 10**9)


def remove(*names: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        for name in names:
            for path in folder.glob(name):
                path.unlink()

    return apply


def weights(edit: Callable[[dict], object]) -> Callable[[Path], None]:
    """One safetensors file whose tensors were edited."""

    def apply(folder: Path) -> None:
        state: dict[str, torch.Tensor] = {}
        for path in sorted(folder.glob("*.safetensors")):
            state |= load_file(path)
            path.unlink()
        (folder / INDEX).unlink()
        edit(state)
        save_file(state, folder / SAFETENSORS)

    return apply


def set_tensor(name: str, edit: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[dict], None]:
    return lambda state: state.update({name: edit(state[name])})


def all_zero(state: dict) -> None:
    state.update({name: torch.zeros_like(tensor) for name, tensor in state.items()})


def cut(name: str, kept: int) -> Callable[[Path], None]:
    """A file that broke off."""
    return lambda folder: write(folder, name, (folder / name).read_bytes()[:kept])


class _Code:
    """Unpickling this runs a command."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self):
        return os.system, (f"touch '{self.proof}'",)


def in_place_of_weights(make: Callable[[Path], bytes]) -> Callable[[Path], None]:
    """A pickle instead of the safetensors."""

    def apply(folder: Path) -> None:
        remove("*.safetensors", INDEX)(folder)
        write(folder, "pytorch_model.bin", make(folder))

    return apply


def index(names: object) -> Callable[[Path], None]:
    content = json.dumps({"weight_map": names}).encode()
    return fill(INDEX, content)


def codec_weights(edit: Callable[[dict], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        state = load_file(folder / CODEC_WEIGHTS)
        edit(state)
        (folder / CODEC_WEIGHTS).unlink()
        save_file(state, folder / CODEC_WEIGHTS)

    return apply


def first_float(edit: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[dict], None]:
    def apply(state: dict) -> None:
        name = next(name for name in state if state[name].dim() > 1)
        state[name] = edit(state[name])

    return apply


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


HEAD = "logits_dense.weight"
HEALTHY = "the voice itself"
HOSTILE: dict[str, Callable[[Path], None]] = {
    # config.json
    "config: none": remove(CONFIG),
    "config: empty": fill(CONFIG, b""),
    "config: not JSON": fill(CONFIG, b"{]"),
    "config: not text": fill(CONFIG, b"\xff\xfe\x00"),
    "config: a list": fill(CONFIG, b"[]"),
    "config: nested 100,000 deep": fill(CONFIG, nested(100_000)),
    "config: a number of 5,000 digits": fill(CONFIG, b'{"a": ' + b"9" * 5000 + b"}"),
    "config: a FIFO": special(CONFIG, os.mkfifo),
    "config: 2 GB": special(CONFIG, sparse),
    "config: a folder": special(CONFIG, os.mkdir),
    "config: /dev/zero": special(CONFIG, lambda path: path.symlink_to("/dev/zero")),
    "config: another model": change(CONFIG, "model_type", "llama"),
    "config: 10^10 decoder positions": change(
        CONFIG, "decoder_config.max_position_embeddings", 10**10
    ),
    "config: 10^10 encoder positions": change(
        CONFIG, "encoder_config.max_position_embeddings", 10**10
    ),
    "config: 10^9 layers": change(CONFIG, "decoder_config.num_hidden_layers", 10**9),
    "config: 10^12 codes": change(CONFIG, "decoder_config.vocab_size", 10**12),
    "config: a negative width": change(CONFIG, "decoder_config.hidden_size", -256),
    "config: an odd head": change(CONFIG, "decoder_config.head_dim", 31),
    "config: a delay of 10^9": change(CONFIG, "delay_pattern", [0, 1, 2, 10**9]),
    "config: 10^7 channels": change(CONFIG, "decoder_config.num_channels", 10**7),
    "config: rope_theta NaN": change(
        CONFIG, "decoder_config.rope_parameters.rope_theta", float("nan")
    ),
    "config: eos outside": change(CONFIG, "decoder_config.eos_token_id", 10**6),
    # generation_config.json
    "generation config: nested 100,000 deep": fill(GENERATION, nested(100_000)),
    "generation config: temperature NaN": change(GENERATION, "temperature", float("nan")),
    # weights
    "weights: none": remove("*.safetensors", INDEX),
    "weights: broken off": cut("model-00001-of-00002.safetensors", 10_000),
    "weights: a header of 2^63 bytes": fill(
        "model-00001-of-00002.safetensors", b"\xff" * 7 + b"\x7f" + b"{}"
    ),
    "weights: a FIFO": special("model-00001-of-00002.safetensors", os.mkfifo),
    "weights: NaN": weights(set_tensor(HEAD, lambda one: one * float("nan"))),
    "weights: all zero": weights(all_zero),
    "weights: one matrix all zero": weights(set_tensor(HEAD, torch.zeros_like)),
    "weights: misshapen": weights(set_tensor(HEAD, lambda one: one[:-1].clone())),
    "weights: one missing": weights(lambda state: state.pop(HEAD)),
    "weights: whole numbers": weights(set_tensor(HEAD, lambda one: one.to(torch.int8))),
    "weights: a pickle with code": in_place_of_weights(
        lambda folder: pickle.dumps(_Code(folder / PROOF))
    ),
    "weights: a pickle of no tensors": in_place_of_weights(
        lambda folder: pickle.dumps({HEAD: "text"})
    ),
    "index: names outside the folder": index({HEAD: "../../etc/passwd"}),
    "index: a file that is missing": index({HEAD: "model-00009-of-00009.safetensors"}),
    "index: nested 100,000 deep": fill(INDEX, nested(100_000)),
    # codec/
    "codec: encoder_rates 0": change(CODEC, "encoder_rates", [4, 4, 4, 0]),
    "codec: sample_rate negative": change(CODEC, "sample_rate", -16000),
    "codec: sample_rate 10^12": change(CODEC, "sample_rate", 10**12),
    "codec: nested 100,000 deep": fill(CODEC, nested(100_000)),
    "codec: a FIFO": special(CODEC, os.mkfifo),
    "codec: 10^9 codebooks": change(CODEC, "n_codebooks", 10**9),
    "codec: a width of 10^6": change(CODEC, "decoder_dim", 10**6),
    "codec: other codebooks than the model": change(CODEC, "n_codebooks", 3),
    "codec: unknown keys": change(CODEC, "run", "rm -rf /"),
    "codec: weights broken off": cut(CODEC_WEIGHTS, 5_000),
    "codec: weights NaN": codec_weights(first_float(lambda one: one * float("nan"))),
    "codec: weights all zero": codec_weights(all_zero),
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What `say` did with a checkpoint."""

    code: int | None
    seconds: float
    processor_seconds: float
    peak_bytes: int
    stderr: str
    code_ran: bool

    def problems(self) -> list[str]:
        """What is wrong with it; nothing where the checkpoint did no harm."""
        lines = self.stderr.strip().splitlines()
        found = {
            "it did not end": self.code is None,
            f"exit code {self.code}": self.code not in (2, None),
            "its code ran": self.code_ran,
            f"{len(lines)} lines on stderr": len(lines) != 1,
            "no sentence": not (lines and lines[-1].startswith("error: ")),
            f"{self.processor_seconds:.1f} s": self.processor_seconds > SECONDS,
            f"{self.peak_bytes / 1e9:.1f} GB": self.peak_bytes > BYTES,
        }
        return [problem for problem, there in found.items() if there]


def ask(name: str, home: Path, forked: bool = False) -> Answer:
    """Write the checkpoint under `home`, speak with it in a process, and remove it.

    forked: a copy of this process instead of a new one, which saves the imports.
    """
    folder = home / "checkpoint"
    script = ["say", "[S1] Hello.", "-o", str(home / "take.wav"), "--model", str(folder)]
    # Nothing outside this folder is written, and nothing is fetched.
    os.environ |= {"DIA_CACHE": str(home / "cache"), "HF_HUB_OFFLINE": "1"}
    began = time.monotonic()
    try:
        with tempfile.TemporaryFile() as stderr:
            code, used = _wait((_fork if forked else _spawn)(name, folder, script, stderr))
            seconds = time.monotonic() - began
            stderr.seek(0)
            said = stderr.read(100_000).decode(errors="replace")
        processor = used.ru_utime + used.ru_stime
        proof = (folder / PROOF).exists()
        return Answer(code, seconds, processor, used.ru_maxrss * 1024, said, proof)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(name: str, folder: Path) -> None:
    copy_voice(folder)
    if name != HEALTHY:
        HOSTILE[name](folder)


def _spawn(name: str, folder: Path, script: list[str], stderr: IO[bytes]) -> int:
    _prepare(name, folder)
    command = [sys.executable, "-m", "dia_demo", *script]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=stderr)
    process.returncode = 0  # It is waited for below, by its number.
    return process.pid


def _fork(name: str, folder: Path, script: list[str], stderr: IO[bytes]) -> int:
    # All work is the child's: torch's threads would not outlive a fork.
    if pid := os.fork():
        return pid
    code = 1
    try:
        _prepare(name, folder)
        os.dup2(stderr.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = cli.main(script)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait(pid: int) -> tuple[int | None, resource.struct_rusage]:
    """Exit code and what it used; None where it was ended for taking far too long or too much."""
    process, end = psutil.Process(pid), time.monotonic() + ENOUGH_SECONDS
    while time.monotonic() < end and process.memory_info().rss < 3 * BYTES:
        found, status, used = os.wait4(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), used
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    _, _, used = os.wait4(pid, 0)
    return None, used


def ask_all(forked: bool = False) -> Iterator[tuple[str, Answer]]:
    """Each kind's answer. Raises RuntimeError where the voice itself does not speak."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as home:
        # It also compiles the kernels, as anybody's first take does.
        healthy = ask(HEALTHY, Path(home), forked)
        if healthy.code != 0:
            raise RuntimeError(f"The embedded voice does not speak here: {healthy.stderr}")
        for name in HOSTILE:
            yield name, ask(name, Path(home), forked)


def main() -> int:
    """Ask all; 1 where one did harm."""
    bad = 0
    for name, answer in ask_all(forked="--forked" in sys.argv[1:]):
        problems = answer.problems()
        bad += bool(problems)
        print(
            f"{name:42} {answer.seconds:5.1f} s {answer.processor_seconds:5.1f} s of processor "
            f"{answer.peak_bytes / 1e6:6.0f} MB  {'; '.join(problems) or 'one sentence'}"
        )
        if problems:
            print("    " + (answer.stderr.strip().splitlines() or ["nothing"])[-1][:160])
    print(f"{len(HOSTILE) - bad} of {len(HOSTILE)} did no harm.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

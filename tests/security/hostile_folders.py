"""Checkpoint folders that must do no harm: the embedded voice with one thing wrong, and how each is
written. `hostile_checkpoints` runs the program on them.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from dia_demo.checkpoint_files import INDEX, SAFETENSORS
from dia_demo.files import ASSETS

# What the code inside a pickle would leave behind.
PROOF = "code-ran"

CONFIG, GENERATION = "config.json", "generation_config.json"
CODEC, CODEC_WEIGHTS = "codec/config.json", "codec/model.safetensors"


def copy_voice(folder: Path) -> Path:
    """The embedded voice under another name, its files as links until one is replaced."""
    for source in (ASSETS / "nano").rglob("*"):
        if source.is_file():
            target = folder / source.relative_to(ASSETS / "nano")
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


def nested_json(depth: int) -> bytes:
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
    "config: nested 100,000 deep": fill(CONFIG, nested_json(100_000)),
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
    "generation config: nested 100,000 deep": fill(GENERATION, nested_json(100_000)),
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
    "index: nested 100,000 deep": fill(INDEX, nested_json(100_000)),
    # codec/
    "codec: encoder_rates 0": change(CODEC, "encoder_rates", [4, 4, 4, 0]),
    "codec: sample_rate negative": change(CODEC, "sample_rate", -16000),
    "codec: sample_rate 10^12": change(CODEC, "sample_rate", 10**12),
    "codec: nested 100,000 deep": fill(CODEC, nested_json(100_000)),
    "codec: a FIFO": special(CODEC, os.mkfifo),
    "codec: 10^9 codebooks": change(CODEC, "n_codebooks", 10**9),
    "codec: a width of 10^6": change(CODEC, "decoder_dim", 10**6),
    "codec: other codebooks than the model": change(CODEC, "n_codebooks", 3),
    "codec: unknown keys": change(CODEC, "run", "rm -rf /"),
    "codec: weights broken off": cut(CODEC_WEIGHTS, 5_000),
    "codec: weights NaN": codec_weights(first_float(lambda one: one * float("nan"))),
    "codec: weights all zero": codec_weights(all_zero),
}  # fmt: skip


def write_checkpoint(name: str, folder: Path) -> None:
    """The embedded voice in `folder`, with the defect of this name."""
    copy_voice(folder)
    if name != HEALTHY:
        HOSTILE[name](folder)

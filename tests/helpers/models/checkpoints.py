"""Tiny checkpoints for tests: one set of weights in every public layout, and folders that speak."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from dia_demo.checkpoint_files import INDEX, SAFETENSORS
from dia_demo.config import DecoderConfig, EncoderConfig, ModelConfig
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import run_to_end
from dia_demo.model.dia import Dia
from dia_demo.model.linear import Kernel
from dia_demo.model.weights import checkpoint
from dia_demo.task import result_of
from tests.helpers.models.known import NANO
from tools.make_random_dia import write_checkpoint

# Small enough for tens of runs in a second; room beyond one growth of the cache (256 positions).
SMALL = ModelConfig(
    encoder=EncoderConfig(1, 32, 2, 2, 16, 48, max_positions=400),
    decoder=DecoderConfig(
        num_layers=2,
        hidden_size=32,
        num_heads=4,
        num_kv_heads=2,
        head_dim=8,
        cross_num_heads=2,
        cross_num_kv_heads=2,
        cross_head_dim=16,
        intermediate_size=48,
        vocab_size=68,
        max_positions=600,
        num_channels=3,
        eos=64,
        pad=65,
        bos=66,
    ),
    delay_pattern=(0, 2, 3),
)
# Kernels and precisions that `pytest` alone tries, where a test takes all of them in turn.
SHORT = {
    ("compiled, dot products", "int8"),
    ("compiled", "float32"),
    ("compiled", "int8"),
    ("plain", "float32"),
}
# What the embedded voice generates with unless other values are given.
NANO_DEFAULTS = NANO.config.defaults
# A codec of SMALL's three channels of 64 codes: 62.5 frames of 256 samples a second.
CODEC = dict(
    encoder_dim=2,
    encoder_rates=[4, 8, 8],
    decoder_dim=8,
    decoder_rates=[8, 8, 4],
    latent_dim=8,
    n_codebooks=3,
    codebook_size=64,
    codebook_dim=4,
    sample_rate=16000,
)


def load(folder: Path, precision: str = "float32") -> Dia:
    return result_of(checkpoint.load(folder, precision))


def threads_for(kernel: Kernel) -> int:
    """Two share a compiled step; torch's second would only spin where other tests are at work."""
    return 2 if kernel.compiled else 1


def marks_for(kernel: Kernel) -> list:
    """The marks of a test's parameter with this kernel."""
    return [pytest.mark.kernels] if kernel.compiled else []


def marks_for_case(kernel: Kernel, precision: str) -> list:
    """The same with a precision: but for one or two of each kind, such tests are long."""
    is_short = (kernel.name, precision) in SHORT
    return marks_for(kernel) if is_short else [*marks_for(kernel), pytest.mark.long]


def write_small(
    folder: Path, seed: int = 0, codec: bool = False, config: ModelConfig = SMALL
) -> Path:
    """A checkpoint that never says EOS by itself; with a codec of SMALL where one is wanted."""
    write_checkpoint(folder, config, "transformers", seed)
    index = json.loads((folder / INDEX).read_text())
    (file,) = set(index["weight_map"].values())
    weights = load_file(folder / file)
    # Sharper than random: otherwise every code is about as likely as every other.
    weights["logits_dense.weight"] *= 3
    weights["logits_dense.weight"][config.decoder.eos] = 0
    save_file(weights, folder / file)
    if codec:
        write_codec(folder / "codec")
    return folder


def write_codec(folder: Path) -> None:
    from dia_demo.codec.codec import random_dac

    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CODEC))
    stored = random_dac(**CODEC)
    save_file({name: stored.read(name) for name in stored.shapes}, folder / "model.safetensors")


def say(model: Dia, text: bytes = b"\x01 Hello.", prompt=None, cancel=None, **params) -> Row:
    """One row, run to its end."""
    row = Row(model.config, text, replace(model.config.defaults, **params), prompt, cancel)
    run_to_end(model, [row])
    return row


def random_codes(config: ModelConfig, frames: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.integers(0, config.num_codes, (frames, config.decoder.num_channels))


# Layouts


def nari_state(folder: Path) -> dict[str, torch.Tensor]:
    """The weights of a transformers folder as nari-labs/dia stores them: [in, out], heads apart.

    Written from the published names and shapes, not from the code under test.
    """
    config = json.loads((folder / "config.json").read_text())
    encoder, decoder = config["encoder_config"], config["decoder_config"]
    dims = {
        "encoder.self_attention": encoder["head_dim"],
        "decoder.self_attention": decoder["head_dim"],
        "decoder.cross_attention": decoder["cross_head_dim"],
    }
    state = {}
    for name, weight in load_file(folder / SAFETENSORS).items():
        name = name.removeprefix("model.")
        parts = name.split(".")
        outputs, inputs = weight.shape if weight.dim() == 2 else (0, 0)
        if parts[-2] in ("q_proj", "k_proj", "v_proj"):
            dim = dims[f"{parts[0]}.{parts[-3]}"]
            state[name] = weight.t().reshape(inputs, outputs // dim, dim)
        elif parts[-2] == "o_proj":
            dim = dims[f"{parts[0]}.{parts[-3]}"]
            state[name] = weight.t().reshape(inputs // dim, dim, outputs)
        elif parts[-2] == "gate_up_proj":
            wide = name.replace("gate_up_proj", "wi_fused")
            state[wide] = weight.t().reshape(inputs, 2, outputs // 2)
        elif parts[-2] == "down_proj":
            state[name.replace("down_proj", "wo")] = weight.t()
        elif parts[-2] == "embed":
            for channel, table in enumerate(weight.chunk(decoder["num_channels"])):
                state[f"decoder.embeddings.{channel}.weight"] = table
        elif parts[-2] == "logits_dense":
            shape = (inputs, decoder["num_channels"], decoder["vocab_size"])
            state[f"decoder.{name}"] = weight.t().reshape(shape)
        else:
            state[name] = weight
    return {name: weight.clone().contiguous() for name, weight in state.items()}


def write_shards(folder: Path, state: dict[str, torch.Tensor], count: int = 3) -> None:
    """`count` safetensors files and the index that names them."""
    names = list(state)
    weight_map = {}
    for number in range(count):
        part = names[number::count]
        file = f"model-{number + 1:05d}-of-{count:05d}.safetensors"
        save_file({name: state[name] for name in part}, folder / file)
        weight_map |= dict.fromkeys(part, file)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def _legacy_pickle(folder: Path, state: dict) -> None:
    torch.save(state, folder / "dia-v1.pth", _use_new_zipfile_serialization=False)


Writer = Callable[[Path, dict[str, torch.Tensor]], object]
WRITERS: dict[str, Writer] = {
    "safetensors": lambda folder, state: save_file(state, folder / SAFETENSORS),
    "sharded safetensors": write_shards,
    "dia-v1.pth": lambda folder, state: torch.save(state, folder / "dia-v1.pth"),
    "pytorch_model.bin": lambda folder, state: torch.save(state, folder / "pytorch_model.bin"),
    "an unzipped pickle": _legacy_pickle,
    "a pickle of parameters": lambda folder, state: torch.save(
        {"state_dict": {name: torch.nn.Parameter(t) for name, t in state.items()}},
        folder / "dia-v1.pth",
    ),
}
NAMINGS = {
    "transformers": lambda folder: load_file(folder / SAFETENSORS),
    "nari": nari_state,
}


def layouts(source: Path, into: Path) -> Iterator[tuple[str, Path]]:
    """(description, folder): the weights of `source` (transformers, one file) in every layout."""
    for naming, state_of in NAMINGS.items():
        for kind, write in WRITERS.items():
            folder = into / f"{naming}, {kind}"
            folder.mkdir()
            shutil.copy(source / "config.json", folder)
            write(folder, state_of(source))
            yield folder.name, folder

"""Weights of a checkpoint folder, one tensor at a time, under either public naming.

Reading files and knowing names; building the model is model/checkpoint.py.
"""

from __future__ import annotations

import math
import pickle
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dia_demo.config import ModelConfig
from dia_demo.errors import InputError

# A pickle's file is mapped anew every so many bytes, so that pages already read are given back.
MAPPED_BYTES = 512 * 2**20
# What safetensors and torch say where a file cannot be mapped or copied for want of memory.
NO_MEMORY = re.compile(r"allocate memory|not enough memory", re.I)


@dataclass(frozen=True)
class TensorSlice:
    """Where a file's tensor goes: rows `start` onwards of parameter `name`.

    `shape` is the tensor's shape in the file; nari files store linears [in, out...], so those are
    flattened to [in, out] (`inputs` axes make up "in") and transposed.
    """

    name: str
    start: int
    shape: tuple[int, ...]
    inputs: int = 0

    def fit(self, tensor: Tensor) -> Tensor:
        """The tensor as rows of its parameter."""
        if not self.inputs:
            return tensor
        width = math.prod(self.shape[: self.inputs])
        return tensor.reshape(width, -1).t()


def tensor_shapes(files: list[Path]) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor, without reading any.

    InputError for an unreadable file, and for a tensor that stands in two of them.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for file in files:
        with _readable(file):
            found = _shapes_in(file)
        twice = sorted(found.keys() & shapes.keys())
        if twice:
            raise InputError(
                f"{file} holds {twice[0]}, which another file of the folder holds too."
            )
        shapes |= found
    return shapes


def _shapes_in(file: Path) -> dict[str, tuple[int, ...]]:
    if file.suffix != ".safetensors":
        return {name: tuple(tensor.shape) for name, tensor in _load_pickle(file).items()}
    with safe_open(file, framework="pt") as opened:
        return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}


def read_tensors(files: list[Path]) -> Iterator[tuple[str, Tensor]]:
    """(name in the file, tensor) one at a time. InputError for a file that cannot be read.

    Files are mapped only as long as they are read, so memory stays near what the caller keeps.
    """
    for file in files:
        read = _read_safetensors if file.suffix == ".safetensors" else _read_pickle
        with _readable(file):
            yield from read(file)


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except (
        SafetensorError, pickle.UnpicklingError, RuntimeError, OSError, EOFError, MemoryError
    ) as error:  # fmt: skip
        raise unreadable(file, error, "damaged or not a weight file", "Fetch it again.") from error


def unreadable(file: Path, error: Exception, fault: str, remedy: str) -> InputError:
    """What to say of a file that cannot be read: it has this fault, or memory is what lacks."""
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    if isinstance(error, MemoryError) or NO_MEMORY.search(reason):
        return InputError(
            f"{file} cannot be read: this process may have no more memory ({reason}). Close other "
            "programs, raise the limit, or use a smaller model."
        )
    return InputError(f"{file} is {fault} ({reason}). {remedy}")


def _read_safetensors(file: Path) -> Iterator[tuple[str, Tensor]]:
    with safe_open(file, framework="pt") as opened:
        names = list(opened.keys())
    for name in names:
        with safe_open(file, framework="pt") as opened:
            yield name, opened.get_tensor(name)


def _read_pickle(file: Path) -> Iterator[tuple[str, Tensor]]:
    names, done = list(_load_pickle(file)), 0
    while done < len(names):
        state, mapped = _load_pickle(file), 0
        while done < len(names) and mapped < MAPPED_BYTES:
            tensor = state.pop(names[done]).detach()
            mapped += tensor.nbytes
            yield names[done], tensor
            done += 1


def _load_pickle(file: Path) -> dict[str, Tensor]:
    """Tensors only: weights_only refuses code. Old, unzipped files cannot be mapped."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of protocols, to whoever wrote the file.
            state = _load_tensors(file)
    except pickle.UnpicklingError as error:
        # torch's own advice is to let the code in the file run.
        raise pickle.UnpicklingError("it holds more than tensors, which is not loaded") from error
    except Exception as error:  # Damaged bytes meet every kind of error inside the unpickler.
        raise pickle.UnpicklingError(str(error) or type(error).__name__) from error
    state = state.get("state_dict", state) if isinstance(state, dict) else state
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise pickle.UnpicklingError("it holds something other than a table of tensors")
    return state


def _load_tensors(file: Path) -> object:
    try:
        return torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError:
        return torch.load(file, map_location="cpu", weights_only=True)


def why_unfit(tensor: Tensor) -> str:
    """What keeps a weight from being one, or nothing: NaN, infinity, or zeros alone."""
    # One pass and no mask: a sum is finite unless an element is not (or floats overflow).
    total = tensor.sum(dtype=torch.float32)
    if not total.isfinite() and not tensor.isfinite().all():
        return "holds NaN or infinity: the file is damaged."
    if total == 0 and not tensor.any():
        return "holds zeros alone: the file is damaged, or its download broke off."
    return ""


def targets(config: ModelConfig, names: set[str]) -> dict[str, TensorSlice]:
    """Every tensor name a file with such `names` must hold, and where it goes."""
    if any(name.startswith("model.") for name in names) or "logits_dense.weight" in names:
        return dict(transformers_targets(config))
    return dict(nari_targets(config))


def _projections(config: ModelConfig) -> Iterator[tuple[str, str, int, tuple[int, int], int, int]]:
    """(name in files, parameter, first row, (heads, head dim), width in, width out) of each."""
    text_width = config.encoder.hidden_size
    for part, sizes in (("encoder", config.encoder), ("decoder", config.decoder)):
        width = sizes.hidden_size
        for index in range(sizes.num_layers):
            block = f"{part}.layers.{index}.self_attention"
            heads, kv_heads, dim = sizes.num_heads, sizes.num_kv_heads, sizes.head_dim
            parts = (("q", heads, 0), ("k", kv_heads, heads), ("v", kv_heads, heads + kv_heads))
            for letter, count, before in parts:
                own = f"{block}.qkv_proj"
                shape = (count, dim)
                yield f"{block}.{letter}_proj", own, before * dim, shape, width, count * dim
            yield f"{block}.o_proj", f"{block}.o_proj", 0, (heads, dim), heads * dim, width
            if part == "encoder":
                continue
            block = f"{part}.layers.{index}.cross_attention"
            heads, kv_heads = sizes.cross_num_heads, sizes.cross_num_kv_heads
            dim = sizes.cross_head_dim
            parts = (("q", heads, width), ("k", kv_heads, text_width), ("v", kv_heads, text_width))
            for letter, count, inner in parts:
                name = f"{block}.{letter}_proj"
                yield name, name, 0, (count, dim), inner, count * dim
            yield f"{block}.o_proj", f"{block}.o_proj", 0, (heads, dim), heads * dim, width


def _vectors(config: ModelConfig) -> Iterator[tuple[str, int]]:
    """(name, width) of each norm; the same in both namings and here."""
    norms = {
        "encoder": ("pre_sa_norm", "post_sa_norm"),
        "decoder": ("pre_sa_norm", "pre_ca_norm", "pre_mlp_norm"),
    }
    for part, sizes in (("encoder", config.encoder), ("decoder", config.decoder)):
        for index in range(sizes.num_layers):
            for norm in norms[part]:
                yield f"{part}.layers.{index}.{norm}.weight", sizes.hidden_size
        yield f"{part}.norm.weight", sizes.hidden_size


def _mlps(config: ModelConfig) -> Iterator[tuple[str, int, int]]:
    for part, sizes in (("encoder", config.encoder), ("decoder", config.decoder)):
        for index in range(sizes.num_layers):
            yield f"{part}.layers.{index}.mlp", sizes.hidden_size, sizes.intermediate_size


def transformers_targets(config: ModelConfig) -> Iterator[tuple[str, TensorSlice]]:
    """transformers: linears [out, in] under "model.", one embedding table for all channels."""
    encoder, decoder = config.encoder, config.decoder
    codes = decoder.num_channels * decoder.vocab_size
    for name, own, start, _, inner, outer in _projections(config):
        yield f"model.{name}.weight", TensorSlice(f"{own}.weight", start, (outer, inner))
    for name, width in _vectors(config):
        yield f"model.{name}", TensorSlice(name, 0, (width,))
    for name, width, hidden in _mlps(config):
        up, down = f"{name}.gate_up_proj.weight", f"{name}.down_proj.weight"
        yield f"model.{up}", TensorSlice(up, 0, (2 * hidden, width))
        yield f"model.{down}", TensorSlice(down, 0, (width, hidden))
    text = "encoder.embedding.weight"
    yield f"model.{text}", TensorSlice(text, 0, (encoder.vocab_size, encoder.hidden_size))
    audio = TensorSlice("decoder.embeddings.weight", 0, (codes, decoder.hidden_size))
    yield "model.decoder.embeddings.embed.weight", audio
    head = TensorSlice("decoder.logits_dense.weight", 0, (codes, decoder.hidden_size))
    yield "logits_dense.weight", head


def nari_targets(config: ModelConfig) -> Iterator[tuple[str, TensorSlice]]:
    """nari-labs/dia: linears [in, out...] whose shapes carry the heads, a table per channel."""
    encoder, decoder = config.encoder, config.decoder
    channels, vocab, width = decoder.num_channels, decoder.vocab_size, decoder.hidden_size
    for name, own, start, heads, inner, outer in _projections(config):
        if name.endswith("o_proj"):
            yield f"{name}.weight", TensorSlice(f"{own}.weight", start, (*heads, outer), inputs=2)
        else:
            yield f"{name}.weight", TensorSlice(f"{own}.weight", start, (inner, *heads), inputs=1)
    for name, norm_width in _vectors(config):
        yield name, TensorSlice(name, 0, (norm_width,))
    for name, inner, hidden in _mlps(config):
        up, down = f"{name}.gate_up_proj.weight", f"{name}.down_proj.weight"
        yield f"{name}.wi_fused.weight", TensorSlice(up, 0, (inner, 2, hidden), inputs=1)
        yield f"{name}.wo.weight", TensorSlice(down, 0, (hidden, inner), inputs=1)
    text = "encoder.embedding.weight"
    yield text, TensorSlice(text, 0, (encoder.vocab_size, encoder.hidden_size))
    for channel in range(channels):
        table = TensorSlice("decoder.embeddings.weight", channel * vocab, (vocab, width))
        yield f"decoder.embeddings.{channel}.weight", table
    head = TensorSlice("decoder.logits_dense.weight", 0, (width, channels, vocab), inputs=1)
    yield "decoder.logits_dense.weight", head

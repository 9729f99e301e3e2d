"""Builds a codec's network from its files: reads, renames, folds and checks one tensor at a time.

Three layouts contain the same network: a `codec/` folder beside a checkpoint's weights (config.json
with the arguments of dac.DAC, model.safetensors with its names), transformers' DacModel
(descript/dac_44khz), and Descript's own weights.pth. Where they come from is in files.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from dia_demo.codec.config import DacSizes, read_codec_config
from dia_demo.codec.files import CodecSource, import_dac
from dia_demo.codec.names import dac_name, fold, fold_names, from_transformers, is_transformers
from dia_demo.errors import InputError
from dia_demo.model.weights.tensor_files import (
    Shapes,
    shape_differences,
    unreadable_error,
    weight_fault,
)
from dia_demo.untrusted import parse_config

# A pickle is mapped again after this many bytes, so that pages already read are released.
_MAPPED_BYTES = 64 * 2**20

# A key of the config that is not an argument of dac.DAC.
HIGHPASS = "highpass_hz"


class StoredDac:
    """A dac.DAC whose weights are in files; `net` is on the meta device.

    read: gives a tensor of `net` by name, in float32. highpass_hz: the cutoff of the output's
    high-pass filter, None for no filter.
    """

    def __init__(
        self,
        label: str,
        net: Any,
        read: Callable[[str], Tensor],
        highpass_hz: float | None = None,
    ) -> None:
        self.label, self.net, self.read, self.highpass_hz = label, net, read, highpass_hz

    @property
    def shapes(self) -> Shapes:
        return {name: tuple(tensor.shape) for name, tensor in self.net.state_dict().items()}

    def encoder(self) -> Any:
        """`net` with the weights of the encoder in float32; afterwards it cannot decode."""
        net = self.net
        net.decoder = None
        net.load_state_dict({name: self.read(name) for name in net.state_dict()}, assign=True)
        return net.eval().requires_grad_(False)


def open_dac(source: CodecSource) -> StoredDac:
    """Open the codec of `source`; its weights are read later.

    Raises InputError for files that are damaged, describe no DAC, or do not match it exactly.
    """
    try:
        kwargs, shapes, get = _open(source)
        highpass_hz = _pop_highpass(kwargs, source.label)
        renamed = {name: name for name in shapes}
        if is_transformers(kwargs):
            kwargs = from_transformers(kwargs)
            renamed = {dac_name(name, len(kwargs["encoder_rates"])): name for name in shapes}
    except InputError:
        raise
    except Exception as error:  # torch and safetensors raise many types for a damaged file.
        raise _read_error(source, error) from error
    parse_config(DacSizes, kwargs, source.label)
    shapes = {name: shapes[stored] for name, stored in renamed.items()}
    sources = fold_names(shapes)
    net = build_dac(kwargs, source.label)

    def read(name: str) -> Tensor:
        try:
            tensor = fold([get(renamed[source_name]) for source_name in sources[name]])
        except Exception as error:
            raise _read_error(source, error) from error
        if tensor.dim() > 1 and (reason := weight_fault(tensor)):
            raise InputError(f"{name} in the codec from {source.label} {reason}")
        return tensor

    if highpass_hz is not None and highpass_hz >= net.sample_rate / 2:
        raise _highpass_error(source.label, highpass_hz)
    stored = StoredDac(source.label, net, read, highpass_hz)
    # Folding gives the direction's shape.
    _check_shapes(stored.shapes, {name: shapes[of[-1]] for name, of in sources.items()}, stored)
    return stored


def build_dac(kwargs: dict, label: str = "config.json") -> Any:
    """A dac.DAC on the meta device, its convolutions without weight norm."""
    dac = import_dac()
    unknown = kwargs.keys() - _dac_arguments()
    if unknown:
        raise InputError(f"{label}: the codec's config has unknown keys {sorted(unknown)}.")
    try:
        with _skip_initialization(dac), torch.device("meta"):
            net = dac.DAC(**kwargs)
        strides = [_product(kwargs.get(key)) for key in ("encoder_rates", "decoder_rates")]
    except (TypeError, ValueError, RuntimeError, ZeroDivisionError) as error:
        raise InputError(
            f"{label}: the codec's config does not describe a codec ({error})."
        ) from error
    if strides[0] != strides[1]:
        raise InputError(f"{label}: encoder_rates and decoder_rates differ in their product.")
    return net


@contextmanager
def _skip_initialization(dac: Any) -> Iterator[None]:
    """Build convolutions without weight norm, and nothing with random values.

    On meta, weight norm and random values load torch's compiler: 80 MB and more than a second.
    """
    layers, network, embedding = dac.nn.layers, dac.model.dac, cast(Any, nn.Embedding)
    originals = layers.weight_norm, network.init_weights, embedding.reset_parameters
    layers.weight_norm = lambda convolution: convolution
    network.init_weights = lambda module: None
    embedding.reset_parameters = lambda self: None
    try:
        yield
    finally:
        layers.weight_norm, network.init_weights, embedding.reset_parameters = originals


def _dac_arguments() -> set[str]:
    return set(inspect.signature(import_dac().DAC).parameters)


def _product(rates: list[int] | None) -> int:
    return int(torch.tensor(rates or [2, 4, 8, 8]).prod())


def _open(source: CodecSource) -> tuple[dict, Shapes, Callable[[str], Tensor]]:
    """The config as stored; shapes, and a function that reads a tensor, by names in the file."""
    if source.config is not None:
        return read_codec_config(source.config), *_open_safetensors(source.weights)
    metadata = _load_pickle(source.weights)["metadata"]["kwargs"]
    # Training stores arguments of its own there; dac's loader drops them too.
    kwargs = {name: metadata[name] for name in _dac_arguments() & metadata.keys()}
    return kwargs, *_open_pickle(source.weights)


def _pop_highpass(kwargs: dict, label: str) -> float | None:
    """Remove `highpass_hz` from a config: it is not an argument of dac.DAC."""
    if HIGHPASS not in kwargs:
        return None
    cutoff = kwargs.pop(HIGHPASS)
    if type(cutoff) not in (int, float) or not cutoff > 0:
        raise _highpass_error(label, cutoff)
    return float(cutoff)


def _highpass_error(label: str, cutoff: object) -> InputError:
    return InputError(
        f"{label}: the codec's config has {HIGHPASS} {cutoff!r}; it must be a number of Hz above 0 "
        "and below half the sample rate. Remove it for no filter."
    )


def _open_safetensors(file: Path) -> tuple[Shapes, Callable[[str], Tensor]]:
    from safetensors import safe_open

    def get(name: str) -> Tensor:
        # Opened for each tensor, since an open file keeps everything that was read from it.
        with safe_open(file, framework="pt") as opened:
            return opened.get_tensor(name)

    with safe_open(file, framework="pt") as opened:
        shapes = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}
    return shapes, get


def _open_pickle(file: Path) -> tuple[Shapes, Callable[[str], Tensor]]:
    mapped: dict[str, Tensor] = {}
    bytes_read = 0

    def get(name: str) -> Tensor:
        nonlocal mapped, bytes_read
        if name not in mapped or bytes_read > _MAPPED_BYTES:
            mapped, bytes_read = dict(_load_pickle(file)["state_dict"]), 0
        bytes_read += mapped[name].nbytes
        return mapped[name]

    shapes = {name: tuple(t.shape) for name, t in _load_pickle(file)["state_dict"].items()}
    return shapes, get


def _load_pickle(file: Path) -> dict:
    try:
        return torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError:  # Files in torch's old format cannot be mapped.
        return torch.load(file, map_location="cpu", weights_only=True)


def _read_error(source: CodecSource, error: Exception) -> InputError:
    remedy = "Delete it and fetch it again."
    return unreadable_error(source.weights, error, "corrupted or not a codec", remedy)


def _check_shapes(expected: Shapes, shapes: Shapes, stored: StoredDac) -> None:
    if differences := shape_differences(expected, shapes):
        raise InputError(
            f"The codec from {stored.label} does not match its config. {differences}. Fetch it "
            "again."
        )

"""A codec's files as one network: read, renamed, folded and checked, one tensor at a time.

Three layouts hold the same network: a `codec/` folder beside a checkpoint's weights (config.json
with the arguments of dac.DAC, model.safetensors with its names), transformers' DacModel
(descript/dac_44khz), and Descript's own weights.pth. Where they come from is in `codec_files.py`.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from dia_demo.codec.config import check_codec_sizes
from dia_demo.codec.files import CodecSource, import_dac
from dia_demo.codec.names import dac_name, fold, fold_names, from_transformers, is_transformers
from dia_demo.errors import InputError
from dia_demo.model.tensor_files import unreadable_error, weight_fault
from dia_demo.untrusted import read_json

_NAMES_SHOWN = 10
# A pickle's file is mapped anew every so many bytes, so that pages already read are given back.
_MAPPED_BYTES = 64 * 2**20

# The config's own key beside the arguments of dac.DAC.
HIGHPASS = "highpass_hz"

Shapes = dict[str, tuple[int, ...]]


class StoredDac:
    """A dac.DAC whose weights lie in files: `net` has its shapes but, on meta, no weights.

    read: float32, by the names of `net`. highpass_hz: the cutoff below which its output is
    filtered, None for none.
    """

    def __init__(
        self,
        label: str,
        net: nn.Module,
        read: Callable[[str], Tensor],
        highpass_hz: float | None = None,
    ) -> None:
        self.label, self.net, self.read, self.highpass_hz = label, net, read, highpass_hz

    @property
    def shapes(self) -> Shapes:
        return {name: tuple(tensor.shape) for name, tensor in self.net.state_dict().items()}

    def encoder(self) -> nn.Module:
        """The net with the weights that encoding needs, in float32; it cannot decode."""
        net = self.net
        net.decoder = None
        net.load_state_dict({name: self.read(name) for name in net.state_dict()}, assign=True)
        return net.eval().requires_grad_(False)


def open_dac(source: CodecSource) -> StoredDac:
    """The codec of `source`, its weights not read yet.

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
    except Exception as error:  # torch and safetensors raise a dozen kinds for a damaged file.
        raise _unreadable(source, error) from error
    check_codec_sizes(kwargs, source.label)
    shapes = {name: shapes[stored] for name, stored in renamed.items()}
    sources = fold_names(shapes)
    net = build_dac(kwargs, source.label)

    def read(name: str) -> Tensor:
        try:
            tensor = fold([get(renamed[one]) for one in sources[name]])
        except Exception as error:
            raise _unreadable(source, error) from error
        if tensor.dim() > 1 and (reason := weight_fault(tensor)):
            raise InputError(f"{name} in the codec from {source.label} {reason}")
        return tensor

    if highpass_hz is not None and highpass_hz >= net.sample_rate / 2:
        raise _bad_highpass(source.label, highpass_hz)
    stored = StoredDac(source.label, net, read, highpass_hz)
    # Folding gives the direction's shape.
    _check_shapes(stored.shapes, {name: shapes[of[-1]] for name, of in sources.items()}, stored)
    return stored


def build_dac(kwargs: dict, label: str = "config.json") -> nn.Module:
    """A dac.DAC on the meta device, its convolutions without weight norm."""
    dac = import_dac()
    unknown = kwargs.keys() - _dac_arguments()
    if unknown:
        raise InputError(f"{label}: the codec's config has unknown keys {sorted(unknown)}.")
    try:
        with _shapes_alone(dac.nn.layers), torch.device("meta"):
            net = dac.DAC(**kwargs)
        strides = [_product(kwargs.get(key)) for key in ("encoder_rates", "decoder_rates")]
    except (TypeError, ValueError, RuntimeError, ZeroDivisionError) as error:
        raise InputError(f"{label}: the codec's config describes no codec ({error}).") from error
    if strides[0] != strides[1]:
        raise InputError(f"{label}: encoder_rates and decoder_rates differ in their product.")
    return net


@contextmanager
def _shapes_alone(layers: types.ModuleType) -> Iterator[None]:
    """Convolutions as they are after folding, embeddings without values.

    On meta, weight norm and normal draws load torch's compiler: 80 MB and more than a second.
    """
    norm, draw = layers.weight_norm, nn.Embedding.reset_parameters
    layers.weight_norm = lambda convolution: convolution
    nn.Embedding.reset_parameters = lambda embedding: None
    try:
        yield
    finally:
        layers.weight_norm, nn.Embedding.reset_parameters = norm, draw


def _dac_arguments() -> set[str]:
    return set(inspect.signature(import_dac().DAC).parameters)


def _product(rates: list[int] | None) -> int:
    return int(torch.tensor(rates or [2, 4, 8, 8]).prod())


def _open(source: CodecSource) -> tuple[dict, Shapes, Callable[[str], Tensor]]:
    """The config as stored, and shapes and tensors by the names in the file."""
    if source.config is not None:
        return read_json(source.config), *_open_safetensors(source.weights)
    metadata = _load_pickle(source.weights)["metadata"]["kwargs"]
    # Training runs keep arguments of their own there; dac's loader drops them too.
    kwargs = {name: metadata[name] for name in _dac_arguments() & metadata.keys()}
    return kwargs, *_open_pickle(source.weights)


def _pop_highpass(kwargs: dict, label: str) -> float | None:
    """Take `highpass_hz` out of a config: it is no argument of dac.DAC."""
    if HIGHPASS not in kwargs:
        return None
    cutoff = kwargs.pop(HIGHPASS)
    if type(cutoff) not in (int, float) or not cutoff > 0:
        raise _bad_highpass(label, cutoff)
    return float(cutoff)


def _bad_highpass(label: str, cutoff: object) -> InputError:
    return InputError(
        f"{label}: the codec's config has {HIGHPASS} {cutoff!r}; it must be a number of Hz above 0 "
        "and below half the sample rate. Remove it for no filter."
    )


def _open_safetensors(file: Path) -> tuple[Shapes, Callable[[str], Tensor]]:
    from safetensors import safe_open

    def get(name: str) -> Tensor:
        # Opened anew for each, since an open file holds all that was read from it.
        with safe_open(file, framework="pt") as opened:
            return opened.get_tensor(name)

    with safe_open(file, framework="pt") as opened:
        shapes = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}
    return shapes, get


def _open_pickle(file: Path) -> tuple[Shapes, Callable[[str], Tensor]]:
    mapped: dict[str, Tensor] = {}
    given = 0

    def get(name: str) -> Tensor:
        nonlocal mapped, given
        if name not in mapped or given > _MAPPED_BYTES:
            mapped, given = dict(_load_pickle(file)["state_dict"]), 0
        given += mapped[name].nbytes
        return mapped[name]

    shapes = {name: tuple(t.shape) for name, t in _load_pickle(file)["state_dict"].items()}
    return shapes, get


def _load_pickle(file: Path) -> dict:
    try:
        return torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError:  # Files of the oldest kind cannot be mapped.
        return torch.load(file, map_location="cpu", weights_only=True)


def _unreadable(source: CodecSource, error: Exception) -> InputError:
    remedy = "Delete it and fetch it again."
    return unreadable_error(source.weights, error, "damaged or not a codec", remedy)


def _check_shapes(wanted: Shapes, given: Shapes, stored: StoredDac) -> None:
    problems = {
        "missing": sorted(wanted.keys() - given.keys()),
        "surplus": sorted(given.keys() - wanted.keys()),
        "misshapen": [
            f"{name} {list(given[name])}, not {list(shape)}"
            for name, shape in wanted.items()
            if given.get(name, shape) != shape
        ],
    }
    listed = "; ".join(f"{kind}: {_some(names)}" for kind, names in problems.items() if names)
    if listed:
        raise InputError(f"The codec from {stored.label} does not match its config. {listed}.")


def _some(names: list[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")

"""Where the codec comes from: found, fetched, read, renamed and checked, as a `dac.DAC` to run.

Three layouts hold the same network: a `codec/` folder beside a checkpoint's weights (config.json
with the arguments of dac.DAC, model.safetensors with its names), transformers' DacModel
(descript/dac_44khz), and Descript's own weights.pth. What the codec does is in `codec.py`.
"""

from __future__ import annotations

import importlib
import inspect
import shutil
import sys
import types
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from dia_demo.config import read_json
from dia_demo.errors import InputError, RunError
from dia_demo.model.codec_names import fold_weight_norm, from_transformers, is_transformers

HUB_NAME = "descript/dac_44khz"
# What dac.utils.download fetches, and the name it keeps it under.
DESCRIPT_URL = (
    "https://github.com/descriptinc/descript-audio-codec/releases/download/0.0.1/weights.pth"
)
_DESCRIPT_FILE = ".cache/descript/dac/weights_44khz_8kbps_0.0.1.pth"
_SECONDS_TO_ANSWER = 10
_NAMES_SHOWN = 10


# The package


def import_dac() -> types.ModuleType:
    """The `dac` package, also where torchaudio is missing or does not load.

    Its audiotools import torchaudio for effects that neither encode nor decode. A torchaudio that
    loads is left to them; otherwise an empty module stands in for it during this one import.
    """
    if "dac" in sys.modules:
        return sys.modules["dac"]
    try:
        with _quiet(), _torchaudio_or_stand_in():
            return importlib.import_module("dac")
    except ImportError as error:
        raise RunError(
            f"The codec's package does not load ({error}): run pip install -r requirements.txt."
        ) from error


@contextmanager
def _torchaudio_or_stand_in() -> Iterator[None]:
    before = _torchaudio_modules()
    try:
        importlib.import_module("torchaudio")
    except Exception:  # A build for another torch raises OSError, AttributeError, RuntimeError, ...
        sys.modules["torchaudio"] = types.ModuleType("torchaudio")
        try:
            yield
        finally:
            # audiotools keeps its reference; everybody else finds what is really installed.
            for name in _torchaudio_modules():
                del sys.modules[name]
            sys.modules.update(before)
    else:
        yield


def _torchaudio_modules() -> dict[str, types.ModuleType]:
    ours = [name for name in sys.modules if name.partition(".")[0] == "torchaudio"]
    return {name: sys.modules[name] for name in ours}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the two deprecations dac runs into under torch 2.13."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*torch\.jit\.script.*deprecated")
        warnings.filterwarnings("ignore", r".*torch\.nn\.utils\.weight_norm.*deprecated")
        yield


# The place


@dataclass(frozen=True)
class CodecSource:
    """The files of one codec. config is None where the weights carry their own."""

    label: str
    weights: Path
    config: Path | None = None


def codec_source(folder: Path | None = None, *, allow_download: bool = True) -> CodecSource:
    """Find the codec of a checkpoint folder, else Descript's 44.1 kHz codec.

    Tried in order: `<folder>/codec`, Descript's cache, the hub's cache, the hub, Descript's
    release; the last two not where the hub is set offline. Raises InputError saying what was
    looked for, where, and how to provide it.
    """
    if folder is not None and (folder / "codec").is_dir():
        return _folder_source(folder / "codec")
    tried = []
    for find in _finders(allow_download):
        try:
            return find()
        except Exception as error:  # The hub's errors share no base; each is a reason to go on.
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            tried.append(f"{find.__name__.strip('_').replace('_', ' ')}: {reason[:200]}")
    raise InputError(
        f"The audio codec (Descript 44.1 kHz) is not on this machine ({'; '.join(tried)}). "
        f"Connect to the internet once, or download {DESCRIPT_URL} elsewhere and copy it to "
        f"{_descript_path()}."
    )


def _finders(allow_download: bool) -> list:
    from huggingface_hub import is_offline_mode

    cached = [_descript_cache, _hub_cache]
    return cached if not allow_download or is_offline_mode() else [*cached, _hub, _descript_release]


def _folder_source(folder: Path) -> CodecSource:
    config, weights = folder / "config.json", folder / "model.safetensors"
    for path in (config, weights):
        if not path.is_file():
            raise InputError(f"{path} is missing: a checkpoint's codec folder holds it.")
    return CodecSource(str(folder), weights, config)


def _descript_path() -> Path:
    return Path.home() / _DESCRIPT_FILE


def _descript_cache() -> CodecSource:
    path = _descript_path()
    if not path.is_file():
        raise FileNotFoundError(f"no {path}")
    return CodecSource("Descript's release", path)


def _hub_cache() -> CodecSource:
    return _hub_files(local_files_only=True)


def _hub() -> CodecSource:
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    # One quick question first: the hub's own client retries for half a minute when unreachable.
    get_session().head(constants.ENDPOINT, timeout=_SECONDS_TO_ANSWER)
    return _hub_files(local_files_only=False)


def _hub_files(local_files_only: bool) -> CodecSource:
    from huggingface_hub import hf_hub_download

    config, weights = (
        Path(hf_hub_download(HUB_NAME, name, local_files_only=local_files_only))
        for name in ("config.json", "model.safetensors")
    )
    return CodecSource(HUB_NAME, weights, config)


def _descript_release() -> CodecSource:
    path = _descript_path()
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(DESCRIPT_URL, timeout=_SECONDS_TO_ANSWER) as answer:
            with open(part, "wb") as file:
                shutil.copyfileobj(answer, file)
            size = answer.headers["Content-Length"]
        if size and part.stat().st_size != int(size):
            raise OSError("the download broke off")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return _descript_cache()


# The content


def load_dac(source: CodecSource) -> nn.Module:
    """The dac.DAC of `source`, weights float32 and weight norm folded, in eval mode.

    Raises InputError for files that are damaged, describe no DAC, or do not match it exactly.
    """
    kwargs, tensors = _read(source)
    model = build_dac(kwargs, source.label)
    tensors = {name: tensor.float() for name, tensor in fold_weight_norm(tensors).items()}
    _check_tensors(model, tensors, source.label)
    model.load_state_dict(tensors, assign=True)
    return model.eval().requires_grad_(False)


def build_dac(kwargs: dict, label: str = "config.json") -> nn.Module:
    """A dac.DAC on the meta device, its convolutions without weight norm."""
    dac = import_dac()
    unknown = kwargs.keys() - _dac_arguments()
    if unknown:
        raise InputError(f"{label}: the codec's config has unknown keys {sorted(unknown)}.")
    try:
        with _quiet(), torch.device("meta"):
            model = dac.DAC(**kwargs)
        strides = [_product(kwargs.get(key)) for key in ("encoder_rates", "decoder_rates")]
    except (TypeError, ValueError, RuntimeError, ZeroDivisionError) as error:
        raise InputError(f"{label}: the codec's config describes no codec ({error}).") from error
    if strides[0] != strides[1]:
        raise InputError(f"{label}: encoder_rates and decoder_rates differ in their product.")
    for module in model.modules():
        if isinstance(module, nn.Conv1d | nn.ConvTranspose1d):
            nn.utils.remove_weight_norm(module)
    return model


def _dac_arguments() -> set[str]:
    return set(inspect.signature(import_dac().DAC).parameters)


def _product(rates: list[int] | None) -> int:
    return int(torch.tensor(rates or [2, 4, 8, 8]).prod())


def _read(source: CodecSource) -> tuple[dict, dict[str, torch.Tensor]]:
    """Arguments for dac.DAC, and tensors under its names."""
    try:
        if source.config is None:
            raw = torch.load(source.weights, map_location="cpu", weights_only=True)
            given, tensors = dict(raw["metadata"]["kwargs"]), dict(raw["state_dict"])
            # Training runs keep arguments of their own there; dac's loader drops them too.
            kwargs = {name: given[name] for name in _dac_arguments() & given.keys()}
        else:
            from safetensors.torch import load_file

            kwargs, tensors = read_json(source.config), load_file(source.weights)
        return from_transformers(kwargs, tensors) if is_transformers(kwargs) else (kwargs, tensors)
    except InputError:
        raise
    except Exception as error:  # torch and safetensors raise a dozen kinds for a damaged file.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise InputError(
            f"{source.weights} is damaged or not a codec: delete it and fetch it again ({reason})."
        ) from error


def _check_tensors(model: nn.Module, tensors: dict[str, torch.Tensor], label: str) -> None:
    wanted = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    given = {name: list(tensor.shape) for name, tensor in tensors.items()}
    problems = {
        "missing": sorted(wanted.keys() - given.keys()),
        "surplus": sorted(given.keys() - wanted.keys()),
        "misshapen": [
            f"{name} {given[name]}, not {shape}"
            for name, shape in wanted.items()
            if given.get(name, shape) != shape
        ],
    }
    listed = "; ".join(f"{kind}: {_some(names)}" for kind, names in problems.items() if names)
    if listed:
        raise InputError(f"The codec from {label} does not match its config. {listed}.")


def _some(names: list[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")

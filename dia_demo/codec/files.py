"""Imports the codec's package, and finds or fetches its files.

The files are read in weights.py; the codec itself is in codec.py.
"""

from __future__ import annotations

import importlib
import sys
import types
import urllib.request
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dia_demo.errors import InputError, RunError
from dia_demo.files import write_atomic
from dia_demo.hub.fetch import fetch_file

T = TypeVar("T")

HUB_NAME = "descript/dac_44khz"
HUB_FILES = ("config.json", "model.safetensors")
# The file that dac.utils.download fetches, and the path where it stores it.
DESCRIPT_URL = (
    "https://github.com/descriptinc/descript-audio-codec/releases/download/0.0.1/weights.pth"
)
_DESCRIPT_FILE = ".cache/descript/dac/weights_44khz_8kbps_0.0.1.pth"
_TENSORBOARD = "torch.utils.tensorboard"
_SECONDS_TO_ANSWER = 10
_PIECE_BYTES = 2**20


# The package


def import_dac() -> types.ModuleType:
    """The `dac` package, without torchaudio and tensorboard.

    Its audiotools import torchaudio, for effects that neither encoding nor decoding uses, and
    tensorboard, with protobuf, for training. Empty modules replace both during this import;
    audiotools keeps them, and other imports find what is installed.
    """
    if "dac" in sys.modules:
        return sys.modules["dac"]
    writer = type("SummaryWriter", (), {})
    try:
        with (
            ignore_dac_warnings(),
            _stand_in("torchaudio"),
            _stand_in(_TENSORBOARD, SummaryWriter=writer),
        ):
            return importlib.import_module("dac")
    except ImportError as error:
        raise RunError(
            f"The codec's package could not be imported ({error}): run pip install -r "
            "requirements.txt."
        ) from error


@contextmanager
def _stand_in(name: str, **attributes: object) -> Iterator[None]:
    """A module with these attributes alone in place of one that is not loaded yet."""
    # None in place of a module stops its import.
    before = {name: sys.modules[name]} if name in sys.modules else {}
    if before.get(name):
        yield
        return
    sys.modules[name] = module = types.ModuleType(name)
    vars(module).update(attributes)
    try:
        yield
    finally:
        del sys.modules[name]
        sys.modules.update(before)


@contextmanager
def ignore_dac_warnings() -> Iterator[None]:
    """Suppress two deprecation warnings that dac causes with torch 2.13."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*torch\.jit\.script.*deprecated")
        warnings.filterwarnings("ignore", r".*torch\.nn\.utils\.weight_norm.*deprecated")
        yield


# The files


@dataclass(frozen=True)
class CodecSource:
    """The files of one codec. config is None if the weights contain their own."""

    label: str
    weights: Path
    config: Path | None = None


def find_codec(
    folder: Path | None = None, *, allow_download: bool = True
) -> Generator[float, None, CodecSource]:
    """The codec of a checkpoint folder, else Descript's 44.1 kHz one. Yields the fraction fetched.

    Tried in order: `<folder>/codec`, Descript's cache, the hub's cache, the hub, Descript's
    release; the last two only if the hub is not set offline. Raises InputError that says what was
    looked for, where, and how to provide it.
    """
    if folder is not None and (folder / "codec").is_dir():
        return folder_source(folder / "codec")
    tried = []
    for find in _finders(allow_download):
        try:
            source = find()
            return source if isinstance(source, CodecSource) else (yield from source)
        except (
            Exception
        ) as error:  # The hub's errors share no base class; each is a reason to try the next.
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


def folder_source(folder: Path) -> CodecSource:
    """The codec in a folder. Raises InputError where one of its files is missing."""
    config, weights = folder / "config.json", folder / "model.safetensors"
    for path in (config, weights):
        if not path.is_file():
            raise InputError(f"{path} is missing: a checkpoint's codec folder must contain it.")
    return CodecSource(str(folder), weights, config)


def _descript_path() -> Path:
    return Path.home() / _DESCRIPT_FILE


def _descript_cache() -> CodecSource:
    path = _descript_path()
    if not path.is_file():
        raise FileNotFoundError(f"no {path}")
    return CodecSource("Descript's release", path)


def _hub_cache() -> CodecSource:
    return cached_source(HUB_NAME)


def _hub() -> Generator[float, None, CodecSource]:
    return (yield from fetch_source(HUB_NAME))


def cached_source(repository: str) -> CodecSource:
    """A codec's repository in the hub's cache. Raises an error of the hub where it is not there."""
    from huggingface_hub import hf_hub_download

    config, weights = (
        Path(hf_hub_download(repository, name, local_files_only=True)) for name in HUB_FILES
    )
    return CodecSource(repository, weights, config)


def fetch_source(repository: str) -> Generator[float, None, CodecSource]:
    """A codec's repository, fetched from the hub; yields the fraction."""
    config = yield from fetch_file(repository, HUB_FILES[0], 0.0, 0.0)
    weights = yield from fetch_file(repository, HUB_FILES[1], 0.0, 1.0)
    return CodecSource(repository, weights, config)


def _descript_release() -> Generator[float, None, CodecSource]:
    path = _descript_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomic(path) as part:
        with urllib.request.urlopen(DESCRIPT_URL, timeout=_SECONDS_TO_ANSWER) as answer:
            size = int(answer.headers["Content-Length"] or 0)
            with open(part, "wb") as file:
                while piece := answer.read(_PIECE_BYTES):
                    file.write(piece)
                    yield file.tell() / size if size else 0.0
        if size and part.stat().st_size != size:
            raise OSError("the download was interrupted")
    return _descript_cache()

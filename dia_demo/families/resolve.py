"""Finds the model of a name, once, where the name comes in: page, command line, endpoint, API."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from dia_demo.checkpoint_config import read_config_file
from dia_demo.checkpoint_files import MANIFEST
from dia_demo.codec.config import check_codec_fits
from dia_demo.engine.family import Family, ModelInfo, RandomSize
from dia_demo.errors import InputError
from dia_demo.families.table import FAMILIES
from dia_demo.files import Stamp, file_stamp
from dia_demo.hub.cache import cached_config, is_hub_name

# The files that a description is read from.
_DESCRIBING = ("config.json", "generation_config.json", MANIFEST, "codec", "codec/config.json")


def resolve(name: str) -> ModelInfo:
    """The model of a name, without network access. Its files are read again when they change.

    name: that of an included voice, a folder on this machine, or OWNER/NAME on the hub. A hub model
    that is not downloaded has no folder, and what is not known of it is assumed. Raises InputError
    where there is no such model, or its config cannot be used.
    """
    local = local_folder(name)
    folder = cached_config(name) if local is None else local
    if folder is None:
        return assumed_info(name)
    stamps = tuple(map(file_stamp, (folder / file for file in _DESCRIBING)))
    return _read_folder(name, folder, local is not None, stamps)


def assumed_info(name: str) -> ModelInfo:
    """A hub model of which nothing is on this machine: of the family that knows its name, or else
    of the first."""
    family = next((family for family in FAMILIES if name in family.profiles), FAMILIES[0])
    codec = family.codecs.format
    return ModelInfo(name, family, family.config, codec, family.profiles.get(name, family.other))


def local_folder(name: str) -> Path | None:
    """The checkpoint's folder where `name` is an included voice or a folder, None where it is a hub
    name.

    Raises InputError for anything else.
    """
    for family in FAMILIES:
        if name in family.profiles and (included := family.profiles[name].included):
            return included
    try:
        folder = Path(name).expanduser()
        if name and folder.is_dir():
            return folder
    except (OSError, RuntimeError):  # Not a valid path: too long, or an unknown ~user.
        pass
    if is_hub_name(name):
        return None
    raise InputError(
        f"Model {name!r} is neither 'nano', nor a folder on this machine, nor a hub name "
        "like nari-labs/Dia-1.6B-0626."
    )


def random_sizes() -> dict[str, RandomSize]:
    """What `bench` can measure with random weights, by name."""
    return {name: size for family in FAMILIES for name, size in family.random_sizes.items()}


def random_model(name: str) -> ModelInfo:
    """A model with random weights, by its name in `random_sizes`; it has no files."""
    family = next(family for family in FAMILIES if name in family.random_sizes)
    config = family.random_sizes[name].config
    return ModelInfo(name, family, config, family.codecs.format, family.other)


def recommended_model() -> ModelInfo:
    """The model that is recommended beside the included voice, as if nothing of it were here."""
    return next(info for info in map(assumed_info, known_models()) if info.is_recommended)


def known_models() -> tuple[str, ...]:
    """The names of the included voice and of the models that menus have beside it."""
    profiles = [item for family in FAMILIES for item in family.profiles.items()]
    return tuple(
        name
        for name, profile in profiles
        if profile.included or profile.is_recommended or profile.is_listed
    )


@lru_cache(maxsize=64)
def _read_folder(
    name: str, folder: Path, is_local: bool, _stamps: tuple[Stamp | None, ...]
) -> ModelInfo:
    """The model in a folder. `_stamps` changes with its files and is a cache key."""
    raw = read_config_file(folder)
    family = _family_of(raw)
    config, codec = family.read_config(raw, folder), family.codecs.read_format(folder)
    if (folder / "codec").is_dir():
        check_codec_fits(config, codec, str(folder))
    # What prepared weights were made from speaks alike.
    original = name if config.prepared is None else config.prepared.base
    profile = family.profiles.get(original, family.other)
    return ModelInfo(name, family, config, codec, profile, folder, is_local)


def _family_of(raw: dict) -> Family:
    """The family of a config.json; the first says what is wrong with one of another kind."""
    return next((family for family in FAMILIES if family.is_config(raw)), FAMILIES[0])

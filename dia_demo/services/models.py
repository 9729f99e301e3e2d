"""The models a person can choose, and fetching one from the hub."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence

from dia_demo.engine.events import Loading
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.model_loader import loading_events
from dia_demo.errors import InputError
from dia_demo.families.resolve import assumed_info, known_models, local_folder, resolve
from dia_demo.hub.fetch import fetch_checkpoint, fetch_config


class Models(Mapping[str, ModelInfo]):
    """The models of a page by name: the listed ones, and the one the app was started with.

    Any other name can be looked up as well, since programs and plans may name one. Descriptions are
    as new as the files on this machine.
    """

    def __init__(self, listed: Sequence[str], start: str) -> None:
        self._listed, self._start = listed, start

    @property
    def first(self) -> ModelInfo:
        """The model that a page begins with: the one the app was started with, or the embedded
        voice if that has to be downloaded."""
        info = self[self._start]
        return info if info.is_local or info.has_weights else self[known_models()[0]]

    def __getitem__(self, name: str) -> ModelInfo:
        """Raises InputError if there is no such model."""
        return find_model(name)

    def __iter__(self) -> Iterator[str]:
        first = self.first.name
        begin = [] if first == self._start else [first]
        return iter(dict.fromkeys([*begin, *self._listed, self._start]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in list(iter(self))


def find_model(name: str) -> ModelInfo:
    """The model of a name. Raises InputError if there is none.

    A hub model with an unusable config must not empty a menu: what is wrong with it is the
    download's and the take's to say.
    """
    try:
        return resolve(name)
    except InputError:
        if local_folder(name) is not None:
            raise
        return assumed_info(name)


def refresh_info(info: ModelInfo) -> ModelInfo:
    """The model as the files that are on this machine by now describe it.

    Raises InputError where they describe none that can run here.
    """
    return info if info.is_local else resolve(info.name)


def fetch_description(info: ModelInfo) -> Generator[float, None, ModelInfo]:
    """The model with its config, of which nothing is assumed. Downloads the config files of a hub
    model and yields the fraction done."""
    if not info.is_local:
        yield from fetch_config(info.name)
    return refresh_info(info)


def fetch_files(info: ModelInfo) -> Generator[float, None, ModelInfo]:
    """The model with all its files on this machine; yields the fraction fetched of a hub model.

    Raises InputError where the hub does not have them, or the model is none that can run here.
    """
    if not info.is_local:
        info = yield from fetch_description(info)
        yield from fetch_checkpoint(info.name, info.family.files)
    return refresh_info(info)


def fetch_with_progress(info: ModelInfo) -> Generator[Loading, None, ModelInfo]:
    """`fetch_files` as the events of a run."""
    if info.is_local:
        return info
    return (yield from loading_events(f"Fetching {info.name}", fetch_files(info)))

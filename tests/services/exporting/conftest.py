"""A small checkpoint and its export, with a cache folder of their own and one kernel."""

from __future__ import annotations

import pytest

from dia_demo.model import loading, packed_cache
from dia_demo.model.linear import KERNELS, KernelChoice
from tests.helpers.checkpoints import write_small
from tests.helpers.exports import export_of

COMPILED = next(kernel for kernel in KERNELS if kernel.name == "compiled")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(packed_cache, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(loading, "choose_kernel", lambda *_: KernelChoice(COMPILED, 1))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A checkpoint with a codec, to be read alone."""
    return write_small(tmp_path_factory.mktemp("original") / "small", codec=True)


@pytest.fixture(scope="module")
def exported(original, tmp_path_factory):
    """Its export in int8, to be read alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "choose_kernel", lambda *_: KernelChoice(COMPILED, 1))
        return export_of(original, tmp_path_factory.mktemp("exported") / "small-int8").folder

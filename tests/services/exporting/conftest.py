"""A small checkpoint and its export, with a cache folder of their own and one kernel."""

from __future__ import annotations

import pytest

from tests.helpers.models.checkpoints import write_small
from tests.helpers.models.exports import export_of
from tests.helpers.models.kernels import choose_compiled


@pytest.fixture(autouse=True)
def cache_of_each_test(own_cache):
    """No test reads what another one prepared."""


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A checkpoint with a codec, to be read alone."""
    return write_small(tmp_path_factory.mktemp("original") / "small", codec=True)


@pytest.fixture(scope="module")
def exported(original, tmp_path_factory):
    """Its export in int8, to be read alone."""
    with pytest.MonkeyPatch.context() as patch:
        choose_compiled(patch)
        return export_of(original, tmp_path_factory.mktemp("exported") / "small-int8").folder

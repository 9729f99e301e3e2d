"""Exports of Dia2: its tokenizer goes with it, and its takes are those of the original."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Finished
from dia_demo.model.linear import can_compile
from dia_demo.services.models import find_model
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request
from tests.helpers.long import long_after
from tests.helpers.models.exports import export_of, loading_refusal
from tests.helpers.models.mimi import write_small_dia2

pytestmark = [
    pytest.mark.kernels,
    pytest.mark.skipif(not can_compile(), reason="needs numba"),
]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return write_small_dia2(tmp_path_factory.mktemp("export") / "small2")


def take(folder, precision="auto"):
    """(the precision that ran, its result) of a take with the model in a folder."""
    runtime = RuntimeConfig(model=str(folder), precision=precision, threads=1)
    synthesis = Synthesis(Settings(runtime, takes_folder=folder / "takes"))
    try:
        info = find_model(str(folder))
        params = replace(info.config.defaults, seed=3)
        request = Request("[S1] Hello there. [S2] Hi.", params, info, runtime)
        last = list(synthesis.stream(request, threading.Event()))[-1]
    finally:
        synthesis.close()
    assert isinstance(last, Finished), last
    return last.result.figures.precision, last.result


@pytest.mark.parametrize("precision", long_after(1, ["int8", "int8+int5", "int4", "float32"]))
def test_an_export_speaks_as_its_original(original, tmp_path, precision, own_cache):
    expected = take(original, precision)[1]
    report = export_of(original, tmp_path / "export", precision)
    assert {"tokenizer.json", "codec/config.json", "prepared.json"} <= set(report.files)
    info = find_model(str(tmp_path / "export"))
    assert info.config.prepared.precision == precision and info.config.precisions == (precision,)
    made_in, result = take(tmp_path / "export")
    assert made_in == precision
    np.testing.assert_array_equal(result.codes, expected.codes)
    np.testing.assert_array_equal(result.samples, expected.samples)
    assert result.words == expected.words


def test_a_damaged_export_names_the_file(original, tmp_path, own_cache):
    export_of(original, tmp_path / "export", "int8")
    assert "prepared in int8 and cannot run in" in loading_refusal(tmp_path / "export", "bfloat16")
    tokenizer = tmp_path / "export" / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes() + b"\n")
    assert "tokenizer.json is corrupted" in loading_refusal(tmp_path / "export")

"""Prepared weights: the same model from a mapped file, never a stale or a damaged one."""

from __future__ import annotations

import errno
import os
import shutil
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from dia_demo.checkpoint_config import read_model_config
from dia_demo.engine.events import Started
from dia_demo.engine.loading.calibration import make_takes
from dia_demo.errors import InputError
from dia_demo.model import loading
from dia_demo.model.loading import Calibrator
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.model.weights import checkpoint, packed_cache
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.task import Task, result_of
from tests.helpers.models.checkpoints import say, write_small
from tests.helpers.models.kernels import COMPILED
from tests.helpers.synthesis_requests import make_request, runtime
from tests.helpers.synthesis_requests import say as take

pytestmark = pytest.mark.processor


@pytest.fixture(autouse=True)
def small_models_are_stored(own_cache, monkeypatch):
    monkeypatch.setattr(packed_cache, "LEAST_BYTES", 0)


@pytest.fixture
def folder(tmp_path):
    return write_small(tmp_path / "small")


def load(folder, precision="int8"):
    """(the model, the reported stages, the note)."""
    task = Task(
        loading.load_model(folder, read_model_config(folder), precision, 1, Calibrator(make_takes))
    )
    stages = [stage for stage, _ in task]
    return task.result.model, stages, task.result.note


def codes_of(model):
    return say(model, temperature=0.7, max_tokens=40, seed=5).codes()


@pytest.mark.parametrize("precision", ["bfloat16", "int8", "int4"])
@pytest.mark.kernels
def test_the_second_start_reads_what_the_first_stored(folder, precision, monkeypatch):
    first, stages, note = load(folder, precision)
    file = packed_cache.prepared_file(folder, precision)
    assert file.is_file() and not note and any("Storing" in stage for stage in stages)
    monkeypatch.setattr(checkpoint, "load", lambda *_: pytest.fail("it was converted again"))
    second, stages, _ = load(folder, precision)
    assert not any("Storing" in stage for stage in stages)
    np.testing.assert_array_equal(codes_of(second), codes_of(first))
    for (name, ours), (_, theirs) in zip(
        second.dia.named_modules(), first.dia.named_modules(), strict=True
    ):
        if isinstance(ours, PackedLinear):
            assert torch.equal(ours.blocks, theirs.blocks), name
            assert (ours.outputs, ours.inputs, ours.format) == (
                theirs.outputs,
                theirs.inputs,
                theirs.format,
            )


def test_float32_is_not_stored(folder, own_cache):
    load(folder, "float32")
    assert not list(own_cache.rglob("*.safetensors"))


def test_each_precision_has_a_file_of_its_own(folder):
    load(folder, "int8")
    load(folder, "int4")
    assert packed_cache.prepared_file(folder, "int8") != packed_cache.prepared_file(folder, "int4")
    assert packed_cache.prepared_file(folder, "int8").is_file()


def damage(file, place: float) -> None:
    """Change one byte, so far into the file."""
    content = bytearray(file.read_bytes())
    content[int(place * (len(content) - 1))] ^= 0xFF
    file.write_bytes(content)


@pytest.mark.parametrize("place", [0.0, 0.02, 0.3, 0.61803, 0.9, 1.0])
def test_a_damaged_cache_file_is_rebuilt(folder, place):
    expected = codes_of(load(folder)[0])
    damage(packed_cache.prepared_file(folder, "int8"), place)
    model, told, _ = load(folder)
    assert any("Storing" in what for what in told)
    np.testing.assert_array_equal(codes_of(model), expected)
    assert not any("Storing" in what for what in load(folder)[1]), "it is whole again"


def test_half_a_file_is_made_again(folder):
    load(folder)
    file = packed_cache.prepared_file(folder, "int8")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert any("Storing" in what for what in load(folder)[1])
    assert file.stat().st_size == len(whole)


def test_another_layout_or_checkpoint_is_not_taken(folder, monkeypatch):
    load(folder)
    before = packed_cache.prepared_file(folder, "int8")
    write_small(folder, seed=1)
    assert packed_cache.prepared_file(folder, "int8") != before
    # A file of the right name whose inside is of another layout.
    load(folder)
    file = packed_cache.prepared_file(folder, "int8")
    monkeypatch.setitem(packed_cache.LAYOUTS, "int8", 99)
    assert result_of(packed_cache.read(file, read_model_config(folder), "int8")) is None


def test_int4_of_the_former_layout_is_refused_with_the_remedy(folder, tmp_path, monkeypatch):
    """Its codes stood for other values. int8, of the same program, is still read."""
    model = result_of(checkpoint.load(folder, "int4", kernel=COMPILED))
    files = {precision: tmp_path / f"{precision}.safetensors" for precision in ("int4", "int8")}
    with monkeypatch.context() as former:
        former.setitem(packed_cache.LAYOUTS, "int4", 2)
        packed_cache.write_packed(model, files["int4"], "int4", "small")
    model = result_of(checkpoint.load(folder, "int8", kernel=COMPILED))
    packed_cache.write_packed(model, files["int8"], "int8", "small")
    config = read_model_config(folder)
    with pytest.raises(InputError, match=r"int4 in layout 2.*prepare the original model again"):
        result_of(packed_cache.read_packed(files["int4"], config, "int4"))
    assert result_of(packed_cache.read_packed(files["int8"], config, "int8"))


def test_what_no_start_will_read_again_is_removed(folder, tmp_path, own_cache, monkeypatch):
    """Gigabytes each: of a checkpoint that changed, of one that is gone, of an older layout."""
    gone, other = (write_small(tmp_path / name) for name in ("gone", "other"))
    with monkeypatch.context() as older:
        older.setitem(packed_cache.LAYOUTS, "int4", 0)
        load(other, "int4")
    for checkpoint_folder in (folder, gone, other):
        load(checkpoint_folder)
    before, kept = (packed_cache.prepared_file(one, "int8") for one in (folder, other))
    half, fresh = (before.with_name(f"bfloat16.1.{name}.part") for name in ("77", "78"))
    for part in (half, fresh):
        part.write_bytes(b"half")
    os.utime(half, (0, 0))
    fresh = fresh.rename(kept.with_name(fresh.name))
    shutil.rmtree(gone)
    write_small(folder, seed=1)
    load(folder)
    now = packed_cache.prepared_file(folder, "int8")
    assert now.parent != before.parent
    assert {one for one in own_cache.rglob("*") if one.is_file()} == {now, kept, fresh}
    assert {one.name for one in (own_cache / "prepared").iterdir()} == {
        now.parent.name,
        kept.parent.name,
    }
    load(folder, "int4")
    assert now.is_file() and kept.is_file(), "of a whole checkpoint every precision stays"


def test_a_full_disk_does_not_stop_the_model_from_loading(folder, own_cache, monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(packed_cache, "save_file", full)
    model, _, note = load(folder)
    assert "No space left on device" in note and str(own_cache) in note and "DIA_CACHE" in note
    assert len(codes_of(model)) and not list(own_cache.rglob("*.part"))


def test_a_take_tells_once_that_nothing_was_kept(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(packed_cache, "save_file", Mock(side_effect=OSError(errno.ENOSPC, "full")))
    synthesis = Synthesis(Settings(runtime(folder, precision="int8"), 2, tmp_path / "takes"))
    first, second = (
        [
            e
            for e in take(synthesis, make_request(synthesis, with_audio=False))
            if type(e) is Started
        ]
        for _ in range(2)
    )
    assert "could not be stored" in first[0].notes[0] and second[0].notes == ()


def test_a_folder_that_cannot_be_made_is_told_too(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(packed_cache, "cache_folder", lambda: tmp_path / "file")
    assert "could not be stored" in load(folder)[2]


def test_only_the_linears_of_a_step_have_four_bits(folder):
    dia = load(folder, "int4")[0].dia
    precisions = {
        name: module.precision
        for name, module in dia.named_modules()
        if isinstance(module, PackedLinear)
    }
    assert precisions["decoder.logits_dense"] == "int8"
    encoder = {each for name, each in precisions.items() if name.startswith("encoder")}
    assert encoder == {"int8"}
    assert precisions["decoder.layers.0.cross_attention.k_proj"] == "int8"
    assert precisions["decoder.layers.0.mlp.gate_up_proj"] == "int4"
    assert dia.decoder.embeddings.weight.dtype == torch.bfloat16

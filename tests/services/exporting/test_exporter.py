"""Exports: a model that loads without its original, whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import threading

import numpy as np
import pytest
import torch

from dia_demo.checkpoint_config import read_model_config
from dia_demo.checkpoint_files import MANIFEST, FileRecord, read_manifest, weight_files
from dia_demo.config import RuntimeConfig
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.errors import InputError, RunError
from dia_demo.families.dia import family
from dia_demo.families.resolve import resolve
from dia_demo.files import cache_folder
from dia_demo.machine.processor import classes_here
from dia_demo.model import loading
from dia_demo.model.linear import KERNELS, KernelChoice
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.model.weights import checkpoint, packed_cache
from dia_demo.services.bench.plan import BenchPlan
from dia_demo.services.diagnosis.doctor import examine
from dia_demo.services.exporting import exporter
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.task import result_of
from dia_demo.ui.generate.expectation import ExpectationHandlers, ExpectationPanel
from tests.helpers.models.checkpoints import load, write_small
from tests.helpers.models.exports import codes_of, export_of
from tests.helpers.page.page_stubs import expectation_values, parts_by_name
from tests.helpers.processes import run_python
from tests.helpers.stand_ins.disks import fill, mount_disk

pytestmark = [pytest.mark.processor, pytest.mark.kernels]


def use_kernel(monkeypatch, name: str) -> None:
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    monkeypatch.setattr(loading, "choose_kernel", lambda *_: KernelChoice(kernel, 1))


# The same model


@pytest.mark.long
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8", "int4"])
def test_an_export_without_its_original_gives_the_same_codes(precision, tmp_path, own_cache):
    folder = write_small(tmp_path / "small")
    expected = codes_of(folder, precision)
    export_of(folder, tmp_path / "export", precision)
    for original in (folder, own_cache):
        shutil.rmtree(original, ignore_errors=True)
    np.testing.assert_array_equal(codes_of(tmp_path / "export", precision), expected)


@pytest.mark.long
@pytest.mark.parametrize(
    "precision, kernel", [("float32", "plain"), ("bfloat16", "plain"), ("int8", "torch int8")]
)
def test_other_kernels_get_converted_weights(precision, kernel, original, tmp_path, monkeypatch):
    export_of(original, tmp_path / "export", precision)
    use_kernel(monkeypatch, kernel)
    np.testing.assert_array_equal(
        codes_of(tmp_path / "export", precision), codes_of(original, precision)
    )


BOTH = """
import sys
from pathlib import Path
from dia_demo.machine import processor
from dia_demo.model import loading
from dia_demo.model.linear import KERNELS, KernelChoice
from tests.helpers.models.exports import codes_of
loading.choose_kernel = lambda *_: KernelChoice(KERNELS[0], 1)
original, exported = (codes_of(Path(folder)) for folder in sys.argv[1:])
assert processor.override() == "avx2" and len(original) and (original == exported).all()
"""


@pytest.mark.long
def test_a_processor_of_another_class_reads_the_export(original, exported):
    if "avx2" not in classes_here():
        pytest.skip("needs a processor that runs AVX2 code")
    run_python(BOTH, str(original), str(exported), cache=cache_folder(), DIA_CPU="avx2")


def test_prepared_weights_in_the_cache_are_exported(original, tmp_path, monkeypatch):
    monkeypatch.setattr(packed_cache, "LEAST_BYTES", 0)
    expected = codes_of(original)
    monkeypatch.setattr(checkpoint, "load", lambda *_: pytest.fail("it was converted again"))
    export_of(original, tmp_path / "export")
    np.testing.assert_array_equal(codes_of(tmp_path / "export"), expected)


def test_an_export_that_gives_other_codes_is_not_kept(original, tmp_path, monkeypatch):
    write = exporter.write_packed

    def write_another(model, *arguments):
        blocks = model.decoder.logits_dense.blocks
        before = blocks.clone()
        blocks[:, :64] ^= 0xFF
        write(model, *arguments)
        blocks.copy_(before)

    monkeypatch.setattr(exporter, "write_packed", write_another)
    with pytest.raises(RunError, match="differs from the original"):
        export_of(original, tmp_path / "export")
    assert not list(tmp_path.glob("*export*")) and not list(tmp_path.glob(".dia-*"))


# Which precision


def test_auto_is_the_precision_of_the_export(exported):
    placement = place_on_cpu(RuntimeConfig(str(exported)), resolve(str(exported)))
    assert placement.precision == "int8" and "prepared" in placement.reason


def test_another_precision_is_refused_with_the_one_that_there_is(exported):
    runtime = RuntimeConfig(str(exported), precision="int4")
    with pytest.raises(InputError, match="in int8 and cannot run in int4: choose int8 or auto, or"):
        place_on_cpu(runtime, resolve(str(exported)))


def test_original_weights_where_they_are_needed_are_named(exported):
    with pytest.raises(InputError, match="prepared in int8 for CPUs.*use ./small"):
        load(exported)


def test_an_export_is_not_exported_again(exported, tmp_path):
    with pytest.raises(InputError, match="already contains prepared weights, in int8: copy"):
        export_of(exported, tmp_path / "again", "int4")


def test_the_choice_of_a_model_names_the_precision(exported):
    info = resolve(str(exported))
    assert info.title == f"{exported}, prepared in int8"
    assert info.note == "Weights of ./small, prepared in int8."


def test_an_export_of_the_nano_voice_reads_as_it_does(tmp_path):
    export_of("nano", tmp_path / "nano-float32", "float32")
    nano, ours = (resolve(name) for name in ("nano", str(tmp_path / "nano-float32")))
    assert ours.title == "Nano voice (embedded), prepared in float32"
    assert ours.reading("10 km").text == nano.reading("10 km").text != "10 km"
    assert ours.config.defaults == nano.config.defaults


def test_the_doctor_names_the_precision(exported):
    report = examine(RuntimeConfig(str(exported)))
    findings = {finding.topic: finding.text for finding in report.findings}
    assert findings["precision"].startswith("int8, chosen")
    assert "prepared in int8" in findings["weights"]
    assert "what auto chooses" in findings["in int8"] and "in int4" not in findings


def test_a_benchmark_measures_the_precision_that_there_is(exported):
    assert BenchPlan(str(exported)).check().precisions == ("int8",)


def test_a_benchmark_needs_the_original_to_compare_with(exported):
    with pytest.raises(InputError, match="cannot be compared.*Use --model ./small"):
        BenchPlan(str(exported), quality=True).check()


def test_the_page_says_the_precision(exported):
    settings = Settings(RuntimeConfig(str(exported)))
    handlers = ExpectationHandlers(Synthesis(settings), parts_by_name(ExpectationPanel))
    values = expectation_values(model=str(exported), precision="auto")
    html = " ".join(text for text in handlers.refresh(*values).values() if isinstance(text, str))
    assert f"{exported}, prepared in int8: a Dia checkpoint of your own." in html
    assert str(exported) in Synthesis(settings).models


def test_the_page_says_that_another_precision_cannot_run(exported):
    handlers = ExpectationHandlers(
        Synthesis(Settings(RuntimeConfig(str(exported)))), parts_by_name(ExpectationPanel)
    )
    values = expectation_values(model=str(exported), precision="int4")
    html = " ".join(text for text in handlers.refresh(*values).values() if isinstance(text, str))
    assert "prepared in int8 and cannot run in int4" in html


# What is in the folder


def test_a_folder_lists_what_loading_reads(original, exported):
    manifest = read_manifest(exported)
    assert set(manifest.files) == {
        "config.json",
        "codec/config.json",
        "codec/model.safetensors",
        "prepared-int8.safetensors",
    }
    assert weight_files(exported) == [exported / manifest.weights]
    for name, record in manifest.files.items():
        assert record == FileRecord.from_file(exported / name)


def test_everybody_who_may_read_the_config_may_read_the_weights(exported):
    modes = {path.stat().st_mode for path in exported.iterdir() if path.is_file()}
    assert len(modes) == 1


def test_the_manifest_names_the_original(original, exported):
    said = json.loads((exported / MANIFEST).read_text())
    (weights,) = weight_files(original)
    assert said["base_model"]["name"] == "./small" and said["base_model"]["revision"] is None
    assert said["base_model"]["files"] == {weights.name: vars(FileRecord.from_file(weights))}
    assert said["codec"] == {"folder": "codec"} and said["license"] is None


def test_the_config_is_the_originals(original, exported):
    config = json.loads((exported / "config.json").read_text())
    assert config.pop("quantization_config")["base_model"] == "./small"
    assert config == json.loads((original / "config.json").read_text())


def test_the_card_says_only_what_was_measured(exported):
    card = (exported / "README.md").read_text()
    assert card.startswith("---\nlicense: unknown\npipeline_tag:") and "base_model:" not in card
    assert "do not say its licence" in card and "nobody listened" in card
    assert re.search(r"\d+ codes of a short take, .* \| all equal \|", card)
    assert re.search(r"median of \d+, kernels: compiled \| \d+\.\d+ ms", card)
    for name, record in read_manifest(exported).files.items():
        assert f"| `{name}` | {record.bytes:,} | `{record.sha256}` |" in card


def test_the_licence_of_the_original_goes_along(tmp_path):
    folder = write_small(tmp_path / "tuned")
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n# Tuned\n")
    (folder / "LICENSE").write_text("the text")
    report = export_of(folder, tmp_path / "export")
    assert report.license == "cc-by-4.0" and (tmp_path / "export/LICENSE").read_text() == "the text"
    card = (tmp_path / "export" / "README.md").read_text()
    assert "license: cc-by-4.0" in card and "[LICENSE](LICENSE)" in card


def test_the_codec_that_is_fetched_is_named(tmp_path):
    export_of(write_small(tmp_path / "small"), tmp_path / "export")
    said = json.loads((tmp_path / "export" / MANIFEST).read_text())
    assert said["codec"]["repository"] == "descript/dac_44khz"
    assert "descript/dac_44khz" in (tmp_path / "export" / "README.md").read_text()


# Whole or not at all


def test_an_export_that_exists_is_not_overwritten(original, tmp_path):
    export_of(original, tmp_path / "export")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "export").rglob("*")}
    with pytest.raises(InputError, match="already exists and will not be overwritten"):
        export_of(original, tmp_path / "export", "int4")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "export").rglob("*")}


def test_an_empty_folder_is_used(original, tmp_path):
    (tmp_path / "export").mkdir()
    export_of(original, tmp_path / "export")
    assert (tmp_path / "export" / MANIFEST).is_file()


def test_a_folder_beside_nothing_is_refused(original, tmp_path):
    with pytest.raises(InputError, match="does not exist: create it first"):
        export_of(original, tmp_path / "missing" / "export")


def test_int4_that_cannot_be_calibrated_is_not_exported(original, tmp_path, monkeypatch):
    monkeypatch.setattr(family, "why_not_calibrated", lambda *_: "Too little memory.")
    with pytest.raises(InputError, match="less exact than it can be: Too little memory"):
        export_of(original, tmp_path / "export", "int4")
    assert not (tmp_path / "export").exists()


def test_a_disk_that_is_too_small_is_refused_before_the_work(original, tmp_path, monkeypatch):
    monkeypatch.setattr(family, "load_packed", lambda *_: pytest.fail("it was loaded"))
    with mount_disk(tmp_path / "disk", "16k") as disk:
        with pytest.raises(InputError, match="needs about .* and .* are free in"):
            export_of(original, disk / "export")
        assert not list(disk.iterdir())


@pytest.mark.parametrize("size", ["16k", "100k", "200k"])
def test_a_disk_that_fills_up_has_no_half_export(size, original, tmp_path, monkeypatch):
    monkeypatch.setattr(exporter, "_check_disk", lambda *_: None)
    with mount_disk(tmp_path / "disk", size) as disk:
        with pytest.raises(RunError, match="No space left.*was removed"):
            export_of(original, disk / "export")
        assert not list(disk.iterdir())
        fill(disk)


def test_a_stop_leaves_nothing(original, tmp_path):
    runtime = RuntimeConfig(str(original), "int8", threads=1)
    info = resolve(runtime.model)
    run = exporter.export(info, runtime, tmp_path / "whole", threading.Event())
    stages = list(dict.fromkeys(stage for stage, _ in run))
    for stopped in (stages[0], "Writing the prepared weights", stages[-2]):
        cancel = threading.Event()
        with pytest.raises(RunError, match="Stopped"):
            for stage, _ in exporter.export(info, runtime, tmp_path / "export", cancel):
                if stage == stopped:
                    cancel.set()
        assert not (tmp_path / "export").exists() and not list(tmp_path.glob(".dia-*"))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "Input/output error")])
def test_a_fault_while_writing_leaves_nothing(error, original, tmp_path, monkeypatch):
    def write_half(_model, file, *_):
        file.write_bytes(b"half")
        raise error

    monkeypatch.setattr(exporter, "write_packed", write_half)
    with pytest.raises((KeyboardInterrupt, RunError)):
        export_of(original, tmp_path / "export")
    assert not (tmp_path / "export").exists() and not list(tmp_path.glob(".dia-*"))


def test_what_a_killed_export_left_is_removed(original, tmp_path):
    left, running = (tmp_path / f".dia-{number}.part" for number in (1, 2))
    for folder in (left, running):
        folder.mkdir()
        (folder / "prepared-int8.safetensors").write_bytes(b"half")
    os.utime(left, (0, 0))
    export_of(original, tmp_path / "export")
    assert not left.exists() and running.exists()


def test_the_weights_are_the_same_bytes_as_those_prepared_here(original, exported, monkeypatch):
    monkeypatch.setattr(packed_cache, "LEAST_BYTES", 0)
    codes_of(original)
    ours, theirs = (
        result_of(packed_cache.read_packed(file, read_model_config(folder), "int8"))
        for file, folder in (
            (packed_cache.prepared_file(original, "int8"), original),
            (exported / "prepared-int8.safetensors", exported),
        )
    )
    for (name, one), (_, other) in zip(ours.named_modules(), theirs.named_modules(), strict=True):
        if isinstance(one, PackedLinear):
            assert torch.equal(one.blocks, other.blocks), name

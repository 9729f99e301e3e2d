"""`bench --quality` of a Dia2: the losses of formats for each part, and what auto makes of them."""

from __future__ import annotations

import json
import threading
from functools import partial

import pytest
import torch

pytest.importorskip("numba")

from safetensors.torch import load_file, save_file

from dia_demo.cli.commands import bench as cli_bench
from dia_demo.cli.main import main
from dia_demo.config import RuntimeConfig
from dia_demo.engine.loading import placement
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.families.resolve import resolve
from dia_demo.machine import system
from dia_demo.model import autotune
from dia_demo.services.bench import runner
from dia_demo.services.bench.plan import BenchPlan
from dia_demo.services.measurements import quality
from dia_demo.services.measurements.types import Job, JobKind
from dia_demo.task import Task
from tests.helpers.models.mimi import write_small_dia2
from tests.helpers.stand_ins.bench_stubs import CODEC, HARDWARE, RAW, fake_child

pytestmark = [pytest.mark.kernels, pytest.mark.long]

PRECISIONS = ("int8", "int8+int5", "int4")
MILLISECONDS = {"int8": 51.0, "int8+int5": 40.0, "int4": 30.0}


@pytest.fixture(scope="module")
def dia2(tmp_path_factory):
    return write_small_dia2(tmp_path_factory.mktemp("dia2"))


@pytest.fixture(scope="module")
def without_depth_layers(tmp_path_factory):
    """Layers of the depth add next to nothing: their format can hardly make a difference."""
    folder = write_small_dia2(tmp_path_factory.mktemp("dia2"))
    state = load_file(folder / "model.safetensors")
    for name, tensor in state.items():
        if name.startswith("depformer.layers.") and (".wo." in name or ".out_proj." in name):
            tensor *= 1e-6  # Zeros are refused, as damage.
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """What is measured here must not decide for this machine's owner."""
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(system, "memory_bytes", lambda: 64 * 10**9)
    monkeypatch.setattr(placement, "TINY_WEIGHTS", 0)  # Otherwise auto is float32 for this model.


def compared(folder) -> dict:
    """What the process of this part answers, as it arrives."""
    job = Job(JobKind.QUALITY, str(folder), threads=1, precisions=PRECISIONS)
    found = quality.run_job(job, lambda *_, **results: None).to_json()
    torch.set_num_threads(1)
    return json.loads(json.dumps(found))


def worker(folder, job, cancel):
    """Quality is measured; a step takes MILLISECONDS."""
    run = RAW | {"ms_per_step": MILLISECONDS.get(job.precision)}
    answers = {"hardware": HARDWARE, "codec": CODEC, "run": run}
    if job.kind == JobKind.QUALITY:
        answers["quality"] = compared(folder)
    return fake_child(**answers)(job, cancel)


def test_fewer_bits_lose_more_and_each_part_loses_its_own(dia2):
    precisions = compared(dia2)["precisions"]
    assert list(precisions) == ["float32", *PRECISIONS]
    loss = {name: its["kl_mean"] for name, its in precisions.items()}
    assert loss["float32"] == 0 < loss["int8"] < loss["int8+int5"] < loss["int4"] < 0.1
    # Codebook 0 is of the temporal part alone. What is calibrated is rounded to bfloat16 before.
    first = {name: its["kl"][0] for name, its in precisions.items()}
    assert first["int8+int5"] == pytest.approx(first["int8"], rel=0.05)
    assert first["int8"] < first["int4"]
    assert all(0.8 < its["top1_mean"] <= 1 for its in precisions.values())


@pytest.mark.parametrize(
    ("fixture", "chosen"), [("dia2", "int8"), ("without_depth_layers", "int8+int5")]
)
def test_auto_takes_five_bits_only_where_the_benchmark_found_no_loss(fixture, chosen, request):
    folder = request.getfixturevalue(fixture)
    plan = BenchPlan(str(folder), precisions=PRECISIONS, steps=8, threads=1, quality=True)
    measuring = Task(runner.measure(plan, threading.Event(), partial(worker, folder)))
    assert list(measuring)
    assert measuring.result.automatic == chosen and not measuring.result.failures
    placed = place_on_cpu(RuntimeConfig(str(folder), threads=1), resolve(str(folder)))
    assert placed.precision == chosen
    other = place_on_cpu(RuntimeConfig(str(folder), threads=1), resolve("nano"))
    assert other.precision != "int8+int5"


def test_the_command_prints_the_loss_of_each_precision(dia2, monkeypatch, capsys):
    child = partial(worker, dia2)
    monkeypatch.setattr(
        cli_bench, "measure", lambda plan, cancel: runner.measure(plan, cancel, child)
    )
    options = ["--precision", *PRECISIONS, "--steps", "8", "--threads", "1", "--quality"]
    assert main(["bench", "--model", str(dia2), *options]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert any(line.startswith("Compared with float32, on ") for line in printed)
    for precision in ("float32", *PRECISIONS):
        (line,) = (each for each in printed if each.startswith(f"  {precision} ") and "KL" in each)
        assert "nats" in line and "same top-1 code" in line

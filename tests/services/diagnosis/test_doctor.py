"""The doctor: looks without loading or fetching, and says what is wrong before a take does."""

import json
import re

import pytest
import torch
from huggingface_hub import constants

from dia_demo.cli.main import main
from dia_demo.config import ONE_PART, RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.errors import InputError
from dia_demo.files import ROOT
from dia_demo.machine import system
from dia_demo.model.autotune import Case, choose_correct
from dia_demo.services import system_info as machine_service
from dia_demo.services.diagnosis.doctor import examine
from dia_demo.services.settings import Settings
from tests.helpers.models.checkpoints import write_small
from tests.helpers.stand_ins.bench_stubs import QUICK, write_speed

pytestmark = pytest.mark.processor


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(Engine, "load", lambda *_: pytest.fail("a model was loaded"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("DIA_CACHE", str(tmp_path / "kept"))
    return write_small(tmp_path / "small", codec=True)


def findings(folder, **changes) -> dict:
    report = examine(RuntimeConfig(model=str(folder), **changes))
    assert report.ready == all(one.ok is not False for one in report.findings)
    return {one.topic: one for one in report.findings} | {"ready": report.ready}


def test_a_model_that_is_all_there_is_ready(folder):
    found = findings(folder)
    assert found["ready"] and found["weights"].ok and found["codec"].ok and found["room"].ok
    assert "1 file(s)" in found["weights"].text and str(folder) in found["weights"].text
    assert "float32" in found["precision"].text and "small" in found["precision"].text
    assert "off" in found["Intel XPU"].text


def test_the_speed_that_an_app_has_measured_is_said(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(system, "available_bytes", lambda: 10**11)
    assert "speed" not in findings(folder)
    (tmp_path / "kept").mkdir(exist_ok=True)
    write_speed(tmp_path / "kept", QUICK)
    assert "Dia-1.6B takes about" in findings(folder)["speed"].text


def test_a_route_with_wrong_results_is_named(folder):
    """As on a processor that announces instructions which it does not execute correctly."""
    assert "kernels" not in findings(folder)

    def wrong() -> list[Case]:
        return [Case(lambda: torch.zeros(2), torch.ones(2, dtype=torch.float64), 1e-5)]

    choose_correct("linears in int8", {"compiled, dot products": wrong})
    found = findings(folder)
    assert (
        found["ready"]
        and "compiled, dot products (relative error 1.0e+00)" in found["kernels"].text
    )


def test_missing_weights_are_said_before_a_take_says_them(folder):
    for weights in folder.glob("*.safetensors*"):
        weights.unlink()
    found = findings(folder)
    assert not found["ready"] and found["weights"].ok is False
    assert "model.safetensors" in found["weights"].text


def test_a_broken_config_is_said(folder):
    (folder / "config.json").write_text("{")
    found = findings(folder)
    assert not found["ready"] and "config.json" in found["model"].text


def test_too_little_memory_is_said(folder, monkeypatch):
    monkeypatch.setattr(system, "memory_bytes", lambda: 3 * 10**8)
    found = findings(folder)
    assert not found["ready"] and found["model"].ok is False
    assert "has 0.3 GB" in found["model"].text and "float32" in found["model"].text


def test_memory_that_others_hold_is_said(folder, monkeypatch):
    monkeypatch.setattr(system, "available_bytes", lambda: 10**8)
    found = findings(folder)
    assert not found["ready"] and found["room"].ok is False
    assert "0.1 GB are free" in found["room"].text and "close other programs" in found["room"].text


def test_the_doctor_estimates_memory_for_every_precision(folder, monkeypatch):
    found = findings("nari-labs/Dia-1.6B-0626")
    lines = [found[f"in {precision}"].text for precision in ONE_PART]
    assert sum("what auto chooses here" in line for line in lines) == 1
    sizes = [float(re.search(r"about ([\d.]+) GB", line)[1]) for line in lines]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 6.4
    monkeypatch.setattr(system, "memory_bytes", lambda: 5 * 10**9)
    found = findings("nari-labs/Dia-1.6B-0626")
    assert "more than the 5.0 GB of this machine" in found["in float32"].text


def test_a_cache_folder_that_cannot_be_written_is_told(folder, tmp_path, monkeypatch):
    assert findings(folder)["cache"].ok
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DIA_CACHE", str(tmp_path / "file" / "cache"))
    found = findings(folder)
    assert found["ready"] and found["cache"].ok is None
    assert str(tmp_path / "file") in found["cache"].text and "DIA_CACHE" in found["cache"].text


def test_a_cuda_build_of_torch_is_reported(folder, monkeypatch):
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    monkeypatch.setattr(machine_service.torch.version, "cuda", None)
    assert findings(folder)["torch"].text == machine_service.torch.__version__
    monkeypatch.setattr(machine_service.torch.version, "cuda", "13.0")
    found = findings(folder)
    assert "NVIDIA" in found["torch"].text and found["ready"]
    commands = found["torch"].text.rpartition(": ")[2]
    *_, file = commands.split()
    assert (ROOT / file).is_file()


def test_a_cuda_build_is_expected_on_zero_gpu(folder, monkeypatch):
    monkeypatch.setattr(machine_service.torch.version, "cuda", "13.0")
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    assert findings(folder)["torch"].text == machine_service.torch.__version__


@pytest.mark.parametrize(
    "name, size",
    [("Dia-1.6B-0626", "(6.4 GB)"), ("Dia2-1B", "(4.3 GB)"), ("Other", "(6.4 GB for Dia-1.6B)")],
)
def test_the_doctor_reports_that_a_hub_model_will_be_downloaded(folder, name, size):
    found = findings(f"nari-labs/{name}")["weights"]
    assert found.ok is None and f"will be downloaded from the hub {size}." in found.text


def test_what_cannot_run_is_said(folder):
    assert "XPU" in findings(folder, device="xpu")["model"].text
    assert "threads" in findings(folder, threads=1024)["model"].text
    assert not findings("no such model")["ready"]


def test_a_processor_of_64_bit_arm_has_its_vectors(monkeypatch):
    monkeypatch.setattr(machine_service.torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    told = {}
    for processor in ("aarch64", "arm64", "x86_64"):
        monkeypatch.setattr(machine_service.platform, "machine", lambda name=processor: name)
        told[processor] = machine_service.describe_machine().simd
    assert told == {"aarch64": "NEON", "arm64": "NEON", "x86_64": "no wide vectors"}


def test_the_exit_code_of_doctor_follows_the_report(folder, capsys):
    assert main(["doctor", "--model", str(folder)]) == 0
    assert ": ready\n" in capsys.readouterr().out
    assert main(["doctor", "--model", str(folder), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ready"] is True and report["model"] == str(folder)
    assert {"cpu", "cores", "memory_bytes"} <= report["machine"].keys()
    (folder / "config.json").unlink()
    assert main(["doctor", "--model", str(folder), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ready"] is False


# Settings from the environment


def test_the_environment_sets_what_the_app_starts_with(tmp_path):
    settings = Settings.from_env(
        {"DIA_MODEL": "a/b", "DIA_PRECISION": "bfloat16", "DIA_THREADS": "1", "DIA_QUEUE": "0",
         "DIA_TAKES": str(tmp_path)}
    )  # fmt: skip
    assert settings.runtime == RuntimeConfig("a/b", "bfloat16", "cpu", 1)
    assert settings.queue_size == 0 and settings.takes_folder == tmp_path


def test_an_empty_environment_is_the_default():
    empty = dict.fromkeys(("DIA_MODEL", "DIA_PRECISION", "DIA_THREADS", "DIA_QUEUE"), "")
    assert Settings.from_env(empty) == Settings.from_env({}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [("DIA_THREADS", "two"), ("DIA_THREADS", "0"), ("DIA_QUEUE", "-1"), ("DIA_QUEUE", "1.5"),
     ("DIA_PRECISION", "float16")],
)  # fmt: skip
def test_an_impossible_environment_names_the_variable(name, value):
    with pytest.raises(InputError) as caught:
        Settings.from_env({name: value})
    assert value in str(caught.value) and name in str(caught.value)

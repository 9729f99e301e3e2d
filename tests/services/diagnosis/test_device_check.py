"""The check as a service and as the command `doctor --device xpu`."""

import json
import threading

import pytest

from dia_demo.accelerator.selfcheck.report import STAGES
from dia_demo.cli import main
from dia_demo.cli.commands import device
from dia_demo.engine.events import Finished
from dia_demo.services.diagnosis.device_check import CheckStopped, check_device, last_report
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.task import result_of
from tests.helpers.stand_ins.accelerators import events_of, request, service, stand_in


def test_after_a_passed_check_the_device_runs(folder, in_threads):
    synthesis, xpu_request = service(stand_in(late=10**9)), request(folder, insist=True)
    assert last_report(synthesis, xpu_request.model, xpu_request.runtime) is None
    report = result_of(
        check_device(synthesis, xpu_request.model, xpu_request.runtime, threading.Event())
    )
    assert report.passed, report.as_text()
    assert last_report(synthesis, xpu_request.model, xpu_request.runtime) == report
    assert isinstance(events_of(synthesis, xpu_request)[-1], Finished)


def test_a_check_that_is_stopped_leaves_no_verdict(folder, in_threads):
    synthesis, cancel = service(stand_in("slow device")), threading.Event()
    xpu_request = request(folder)
    with pytest.raises(CheckStopped):
        for _ in check_device(synthesis, xpu_request.model, xpu_request.runtime, cancel):
            cancel.set()
    assert last_report(synthesis, xpu_request.model, xpu_request.runtime) is None


def doctor(synthesis, folder, capsys, *more) -> tuple[int, str]:
    arguments = ["doctor", "--device", "xpu", "--model", str(folder), "--threads", "1", *more]
    code = device.check(main._parser().parse_args(arguments), synthesis)
    return code, capsys.readouterr().out


def test_the_doctor_saves_the_report_of_the_check(folder, in_threads, capsys, tmp_path):
    file = tmp_path / "report.json"
    fault = "one head's values wrong by 1%"
    more = ("--json", "--report", str(file))
    code, out = doctor(service(stand_in(fault)), folder, capsys, *more)
    summary = json.loads(out)
    assert code == 1 and summary["usable"] and summary["passed"] is False
    assert "stage 3" in summary["problems"][0] and json.loads(file.read_text())["stages"]
    code, out = doctor(service(stand_in(late=10**9)), folder, capsys)
    assert code == 0 and "PASSED" in out and "Race: " in out
    assert all(title in out for title in STAGES.values())


def test_the_doctor_says_why_there_is_nothing_to_check(folder, capsys):
    real = Synthesis(Settings())
    code, out = doctor(real, folder, capsys, "--json")
    summary = json.loads(out)
    assert code == 1 and summary["usable"] is False and "no XPU support" in summary["reason"]

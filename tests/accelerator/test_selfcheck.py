"""The self-check: a healthy device passes, and every known fault is caught where it should be."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
import torch

from dia_demo.accelerator.backend import explain
from dia_demo.accelerator.selfcheck.context import CheckContext, CheckPlan
from dia_demo.accelerator.selfcheck.report import STAGES, SelfCheckReport, VerdictKey
from dia_demo.accelerator.selfcheck.runner import CheckSpec, check
from dia_demo.accelerator.selfcheck.stages import ALL, run_stage, run_stages
from dia_demo.accelerator.selfcheck.verdicts import VerdictStore
from dia_demo.checkpoint_files import fingerprint
from dia_demo.families.resolve import resolve
from dia_demo.task import Task, result_of
from dia_demo.untrusted import parse_as
from tests.helpers.long import long_after
from tests.helpers.models.checkpoints import load, write_small
from tests.helpers.stand_ins.faults import CARD, FAULTS, FaultyBackend

PLAN = CheckPlan(
    linear_rows=(2, 8),
    linear_repeats=5,
    attention_repeats=3,
    fused_repeats=2,
    self_lengths=(1, 17, 300),
    cross_lengths=(16, 77),
    same_repeats=3,
    codec_channels=8,
    steps=8,
    soak_steps=24,
    race_steps=8,
    poison_bytes=2**16,
)
KEY = VerdictKey("cpu", CARD.name, CARD.driver, torch.__version__, "0", "float32")

# Which stage is meant to catch which fault, its verdict, and words of the message that name it.
CAUGHT = {
    "zeros from linears at one shape only": (2, "fail", "linear 32 to 96, rows 8 gives all zeros"),
    "NaN every n-th call": (2, "fail", "gives NaN or infinity in"),
    "NaN only from fused attention": (3, "pass", "fused attention gives NaN"),
    "one head's values wrong by 1%": (
        3,
        "fail",
        "is off by 1.0e-02 (allowed 1e-04) in 3 of 3 calls, worst at head 3 of 4",
    ),
    "norm wrong by 1%": (4, "fail", "RMSNorm of the decoder is off by 1.0e-02 (allowed 1e-05)"),
    "topk indices swapped": (5, "note", "topk indices comes out changed"),
    "stale cache write": (4, "fail", "cache write of k comes out changed"),
    "transposed non-contiguous copy": (6, "fail", "copy of transposed data on the device"),
    "bf16 op not implemented": (2, "fail", "does not exist on the device in this precision"),
    "could not create a primitive": (2, "fail", "could not create a primitive"),
    "codec convolution fails": (7, "note", "dilated by 9 does not run: could not create"),
    "out of memory": (1, "fail", "ran out of memory"),
    "wrong device index": (1, "fail", "lands on the wrong device xpu:1"),
    "a different card responds": (
        1,
        "fail",
        "a different card responded: Integrated, not Stand-in",
    ),
    "growth of memory": (9, "fail", "memory in use after 24 steps is off"),
    "drift that starts after 1,000 steps": (9, "fail", "the device drifts"),
    "wrong in the whole model only": (8, "fail", "step 5"),
}
# These hang, kill or slow down: the processes and the race below catch them.
CAUGHT_ELSEWHERE = {"abort of the process", "hang", "slow device", "healthy"} | {
    "NaN mid-take",
    "device lost mid-take",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("selfcheck") / "small")


@pytest.fixture(scope="module")
def model(folder):
    return load(folder)


def context(model, fault, precision="float32", **plan) -> CheckContext:
    return CheckContext(FaultyBackend(fault), model, precision, CARD, replace(PLAN, **plan))


def spec(folder, fault, late=0, **plan) -> CheckSpec:
    backend = partial(FaultyBackend, fault, late)
    return CheckSpec(backend, resolve(str(folder)), KEY, CARD, 1, replace(PLAN, **plan))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_healthy_device_passes_every_stage(model, precision):
    reports = list(run_stages(context(model, "healthy", precision)))
    assert [report.number for report in reports] == list(STAGES)
    for report in reports:
        assert report.verdict == "pass", report.as_text()
        assert report.error is not None and report.error <= report.tolerance


def test_every_fault_has_its_catcher():
    assert set(CAUGHT) | CAUGHT_ELSEWHERE == set(FAULTS)


@pytest.mark.parametrize("fault", long_after(4, CAUGHT))
def test_a_fault_is_caught_by_the_stage_meant_for_it(model, fault):
    number, verdict, words = CAUGHT[fault]
    precision = "bfloat16" if fault.startswith("bf16") else "float32"
    drifts = fault.startswith("drift")
    checked = context(model, fault, precision, soak_steps=1100 if drifts else 24)
    report = run_stage(ALL[number - 1], checked)
    assert report.verdict == verdict, report.as_text()
    text = "; ".join((*report.findings, *report.facts))
    assert words in text


@pytest.mark.parametrize("fault", [name for name, (_, v, _) in CAUGHT.items() if v != "fail"])
def test_what_is_never_used_does_not_fail_the_check(model, fault):
    reports = list(run_stages(context(model, fault)))
    assert "fail" not in {report.verdict for report in reports}


def test_without_the_plain_form_the_attention_stage_fails(model, monkeypatch):
    """The pin to MATH is what keeps fused attention's NaN out: without it the stage must see it."""
    from dia_demo.accelerator import backend

    forms = [backend.SDPBackend.FLASH_ATTENTION, backend.SDPBackend.MATH]
    monkeypatch.setattr(backend, "sdpa_kernel", lambda _, pin=backend.sdpa_kernel: pin(forms))
    report = run_stage(ALL[2], context(model, "NaN only from fused attention"))
    assert report.verdict == "fail" and "NaN" in report.findings[0]


def test_nothing_follows_a_device_that_is_not_there(model):
    reports = list(run_stages(context(model, "out of memory")))
    assert [report.verdict for report in reports] == ["fail"] + ["skipped"] * 8


def test_a_fault_in_a_kernel_spares_the_soak_but_not_the_other_stages(model):
    reports = list(run_stages(context(model, "one head's values wrong by 1%")))
    verdicts = [report.verdict for report in reports]
    assert verdicts[2] == "fail" and verdicts[8] == "skipped" and "skipped" not in verdicts[:8]


# In a process of its own


@pytest.mark.long
def test_an_abort_or_hang_is_reported_with_its_stage(folder):
    """A driver that aborts takes its own process along, and nothing else; a hang has a limit."""
    specs = [spec(folder, "abort of the process"), spec(folder, "hang", stage_limit=3.0)]
    with ThreadPoolExecutor() as both:
        aborted, hung = both.map(lambda each: result_of(check(each)), specs)
    for report, words in ((aborted, "SIGABRT"), (hung, "no answer for 3 s, the device hangs")):
        assert not report.passed
        # Steps begin in stage 8; the stages before it have passed in that process.
        assert [stage.number for stage in report.stages] == list(range(1, 9))
        assert {stage.verdict for stage in report.stages[:7]} == {"pass"}
        assert words in report.problems[0] and "stage 8" in report.problems[0]
        assert words in report.headline()


def test_a_check_reports_progress_up_to_the_race(folder, in_threads):
    checking = Task(check(spec(folder, "healthy", 1000)))
    events = list(checking)
    report = checking.result
    assert report.passed and report.race.device_steps > 0 and report.race.cpu_steps > 0
    fractions = [event.fraction for event in events]
    assert fractions == sorted(fractions) and 0 <= fractions[0] and fractions[-1] < 1
    for number, title in STAGES.items():
        assert any(event.doing == f"{number}. {title}" for event in events)


@pytest.mark.long
def test_a_slow_device_passes_but_loses_the_race(folder, in_threads):
    plan = dict(linear_repeats=1, attention_repeats=1, linear_rows=(2,), steps=2, soak_steps=4)
    report = result_of(check(spec(folder, "slow device", **plan)))
    assert report.passed and not report.worth_it
    assert "NOT faster" in report.headline()


def test_a_checkpoint_that_cannot_be_read_ends_the_check(folder, tmp_path, in_threads):
    copy = shutil.copytree(folder, tmp_path / "copy")
    checking = spec(copy, "healthy")
    for file in copy.glob("model*"):
        file.unlink()
    report = result_of(check(checking))
    assert not report.passed and not report.stages and "no weights" in report.headline()


# Reports and verdicts


@pytest.fixture(scope="module")
def report(model):
    stages = tuple(run_stages(context(model, "NaN every n-th call")))
    return SelfCheckReport(KEY, CARD, "small", "2026-11-21T09:00:00+00:00", stages, None, 1.5)


def test_a_report_survives_json(report, tmp_path):
    """What a bug report holds: strict JSON (no NaN), device, driver, torch, model, each stage."""
    file = report.save(tmp_path / "report.json")
    raw = json.loads(file.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert parse_as(SelfCheckReport, raw) == report
    assert raw["passed"] is False and "stage 2" in raw["problems"][0]
    text = report.save(tmp_path / "report.txt").read_text()
    for words in (CARD.name, CARD.driver, torch.__version__, "float32", "DID NOT PASS", "NaN"):
        assert words in text
    assert all(title in text for title in STAGES.values())


def passed(key: VerdictKey) -> SelfCheckReport:
    from dia_demo.accelerator.selfcheck.report import Race, StageReport

    stages = tuple(StageReport(n, title, "pass", 1e-4, "L2", 0.0) for n, title in STAGES.items())
    return SelfCheckReport(key, CARD, "small", "now", stages, Race(2.0, 1.0, "float32"))


@pytest.mark.parametrize("field", ["device", "driver", "torch", "checkpoint", "precision", "card"])
def test_a_verdict_expires_when_anything_changes(tmp_path, field):
    VerdictStore(tmp_path / "v.json").keep(passed(KEY))
    store = VerdictStore(tmp_path / "v.json")
    assert store.find(KEY).passed and store.expired_fields(KEY) == ()
    changed = replace(KEY, **{field: "other"})
    assert store.find(changed) is None and store.expired_fields(changed) == (field,)


def test_a_later_verdict_takes_the_place_of_an_earlier_one(tmp_path):
    store = VerdictStore(tmp_path / "deep" / "v.json")
    store.keep(passed(KEY))
    store.revoke(KEY, "a run failed")
    again = VerdictStore(store.path).find(KEY)
    assert not again.passed and "a run failed" in again.headline()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"reports": [{"key": 1}]}', "\xff"])
def test_a_damaged_file_is_ignored_with_a_note(tmp_path, damage):
    file = tmp_path / "v.json"
    file.write_text(damage, encoding="latin-1")
    store = VerdictStore(file)
    assert store.find(KEY) is None and "run the check again" in store.note
    store.keep(passed(KEY))
    assert VerdictStore(file).find(KEY).passed


def test_a_verdict_holds_although_its_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    store = VerdictStore(tmp_path / "file" / "v.json")
    store.keep(passed(KEY))
    assert store.find(KEY).passed and "could not be written" in store.note


def test_a_fingerprint_changes_with_each_file(folder, tmp_path):
    copy = write_small(tmp_path / "copy")
    first = fingerprint(copy)
    assert first == fingerprint(copy)
    weights = next(copy.glob("*.safetensors"))
    os.utime(weights, ns=(1, 1))
    assert fingerprint(copy) != first
    (copy / "config.json").write_text((copy / "config.json").read_text() + "\n")
    assert len({first, fingerprint(copy), fingerprint(folder)}) == 3


def test_errors_are_explained_before_they_are_quoted():
    message = explain(RuntimeError("UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"))
    assert message.startswith("the device ran out of memory (UR_")

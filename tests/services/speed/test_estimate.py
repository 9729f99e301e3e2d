"""How long a take is expected to take, derived from rates; the rates are those of one machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.families.resolve import resolve
from dia_demo.machine import system
from dia_demo.services.speed.estimate import derived_pace, memory_shortage, precision_here
from tests.helpers.models.known import DIA_MEMORY, DIA_NAME
from tests.helpers.stand_ins.bench_stubs import QUICK

DIA, NANO = (resolve(name) for name in (DIA_NAME, "nano"))


@pytest.mark.parametrize(
    ("precision", "read_gb_s", "ms"),
    # docs/performance.md: the bandwidth between the steps of a run, and what its step took.
    [("bfloat16", 49, 57), ("int8", 46, 32), ("int4", 69, 14), ("int8", 52, 30), ("int4", 70, 14)],
)
def test_the_step_of_dia_is_near_what_was_measured(precision, read_gb_s, ms):
    pace = derived_pace(DIA, precision, replace(QUICK, read_gb_s=read_gb_s), 3.0)
    assert 1000 * pace.per_frame == pytest.approx(ms, rel=0.15)


def test_a_step_takes_longer_in_a_longer_take():
    short, long = (derived_pace(DIA, "int8", QUICK, seconds).per_frame for seconds in (5, 30))
    assert 1.02 < long / short < 1.2


def test_twice_the_bandwidth_halves_the_step():
    fast = replace(QUICK, read_gb_s=2 * QUICK.read_gb_s)
    paces = [derived_pace(DIA, "int4", quick, 10.0).per_frame for quick in (QUICK, fast)]
    assert paces[0] / paces[1] == pytest.approx(2)


def test_the_embedded_voice_is_known_in_its_own_precision_only():
    own, reason = precision_here(NANO, RuntimeConfig())
    assert reason is None
    pace = derived_pace(NANO, own, QUICK, 10.0)
    assert pace.per_frame == QUICK.nano_ms_per_step / 1000
    others = {"float32", "bfloat16", "int8", "int4"} - {own}
    assert not any(derived_pace(NANO, name, QUICK, 10.0) for name in others)


def test_nothing_follows_for_a_small_model_of_ones_own(folder):
    info = resolve(str(folder))
    assert derived_pace(info, "float32", QUICK, 10.0) is None


def test_a_longer_script_takes_longer():
    pace = derived_pace(DIA, "int8", QUICK, 10.0)
    seconds = [pace.take_seconds(DIA, audio, 100) for audio in (5.0, 10.0, 20.0)]
    assert seconds == sorted(seconds) and seconds[2] > 1.8 * seconds[1]


def test_the_shortage_names_both_amounts(monkeypatch):
    monkeypatch.setattr(system, "memory_bytes", lambda: 10**9)
    text = memory_shortage(DIA, "int8")
    assert text == f"it needs {DIA_MEMORY['int8']} of memory in int8, and this machine has 1.0 GB"


def test_memory_that_others_hold_is_a_shortage(monkeypatch):
    monkeypatch.setattr(system, "memory_bytes", lambda: 10**11)
    monkeypatch.setattr(system, "available_bytes", lambda: 10**9)
    monkeypatch.setattr(system, "resident_bytes", lambda: 4 * 10**8)
    assert "1.0 GB are free now" in memory_shortage(DIA, "int8")


def test_memory_that_this_process_holds_is_freed_for_the_next_model(monkeypatch):
    monkeypatch.setattr(system, "memory_bytes", lambda: 10**11)
    monkeypatch.setattr(system, "available_bytes", lambda: 10**9)
    monkeypatch.setattr(system, "resident_bytes", lambda: 3 * 10**9)
    assert memory_shortage(DIA, "int8") is None


def test_what_cannot_run_for_another_reason_gives_it():
    threads = RuntimeConfig(DIA_NAME, "int8", threads=1024)
    assert "threads must be from 1 to" in precision_here(DIA, threads)[1]

"""The cores and the memory that this process may use."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dia_demo.machine import system


@pytest.fixture(autouse=True)
def looked_up(monkeypatch):
    """Limits are looked up at every call."""
    monkeypatch.setattr(system, "KEPT_SECONDS", 1e-9)


def test_cores_are_those_granted(monkeypatch, tmp_path):
    """A container with half a core on a machine of 64 must not start 64 threads."""
    monkeypatch.setattr(system, "CGROUP", tmp_path)
    monkeypatch.setattr(system.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert system.granted_cores() == 8
    for content, cores in (("max 100000", 8), ("200000 100000", 2), ("50000 100000", 1),
                           ("3200000 100000", 8), ("", 8), ("nonsense", 8)):  # fmt: skip
        (tmp_path / "cpu.max").write_text(content)
        assert system.granted_cores() == cores, content
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    for quota, cores in (("-1\n", 8), ("300000\n", 3)):
        (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota)
        assert system.granted_cores() == cores, quota


def test_the_quota_of_a_service_counts(monkeypatch, tmp_path):
    """systemd's CPUQuota and MemoryMax limit a group below the root, where nothing is limited."""
    group = tmp_path / "cgroup" / "system.slice" / "dia.service"
    group.mkdir(parents=True)
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("1:cpu:/old\n0::/system.slice/dia.service\n")
    monkeypatch.setattr(system, "CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(system, "PROC", tmp_path)
    monkeypatch.setattr(system.os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    (group / "cpu.max").write_text("max 100000\n")
    assert system.granted_cores() == 64
    (group.parent / "cpu.max").write_text("600000 100000\n")
    assert system.granted_cores() == 6, "the group above limits all of its services"
    (group / "cpu.max").write_text("200000 100000\n")
    assert system.granted_cores() == 2
    (group / "memory.max").write_text("1000000\n")
    assert system.memory_bytes() == 1000000
    (tmp_path / "self" / "cgroup").write_text("0::/../../other\n")
    assert system.granted_cores() == 64, "another container's group says nothing of this one"


def test_memory_is_the_containers_where_it_is_less(monkeypatch, tmp_path):
    monkeypatch.setattr(system, "CGROUP", tmp_path)
    whole = system.memory_bytes()
    (tmp_path / "memory.max").write_text("1000000\n")
    assert system.memory_bytes() == 1000000
    for unlimited in ("max\n", f"{2**63 - 4096}\n"):
        (tmp_path / "memory.max").write_text(unlimited)
        assert system.memory_bytes() == whole


def test_peak_memory_is_in_bytes():
    assert 20e6 < system.peak_rss_bytes() < 1e12
    assert 20e6 < system.watch_peak()() < 1e12


def test_free_memory_is_the_containers_where_it_is_less(monkeypatch, tmp_path):
    def untold():
        raise FileNotFoundError("/proc/meminfo")

    monkeypatch.setattr(system, "CGROUP", tmp_path)
    monkeypatch.setattr(system.psutil, "virtual_memory", untold)
    assert system.available_bytes() is None and system.memory_bytes() is None
    whole = SimpleNamespace(total=8192000, available=2048000)
    monkeypatch.setattr(system.psutil, "virtual_memory", lambda: whole)
    assert system.available_bytes() == 2048000 and system.memory_bytes() == 8192000
    for name, content in (("max", "1000000"), ("current", "700000")):
        (tmp_path / f"memory.{name}").write_text(content)
    (tmp_path / "memory.stat").write_text("anon 500000\ninactive_file 200000\n")
    assert system.available_bytes() == 500000, "what is kept of files is as good as free"
    (tmp_path / "memory.max").write_text("max\n")
    assert system.available_bytes() == 2048000


def test_limits_are_kept_for_some_seconds(monkeypatch, tmp_path):
    """Requests ask for them again and again."""
    now = 1000.0
    monkeypatch.setattr(system, "KEPT_SECONDS", 5.0)
    monkeypatch.setattr(system.time, "monotonic", lambda: now)
    monkeypatch.setattr(system, "CGROUP", tmp_path)
    for size in (1000000, 900000):
        (tmp_path / "memory.max").write_text(f"{size}\n")
        assert system.memory_bytes() == 1000000
    now = 1005.0
    assert system.memory_bytes() == 900000

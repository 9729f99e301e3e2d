"""The resources of this process: cores, memory, open files. No torch here."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TypeVar

import psutil

if sys.platform != "win32":
    import resource

MOST_DESCRIPTORS = 16_384
CGROUP = Path("/sys/fs/cgroup")
RENDER_NODES = Path("/sys/class/drm")
PROC = Path("/proc")
INTEL = "0x8086"
LOW_PRIORITY = 10
# Every request asks for these limits several times, and while one thread reads a file, others run
# first. They may change while the program runs, but hardly ever do.
KEPT_SECONDS = 5.0
_M_ARENA_MAX = -8
# Threads that compute wait for Python's lock this long at most while another has it. With Python's
# own 5 ms, 64 clients got 9% fewer takes of the embedded voice, and 8 clients 7% (Zen 5, 2 cores).
_SWITCH_SECONDS = 0.0005

Limit = TypeVar("Limit", int, int | None)


def granted_cores() -> int:
    """Cores this process may use: its affinity, limited by a container's CPU quota. It may be
    KEPT_SECONDS old."""
    return _cached_limit(_granted_cores, _moment())


def memory_bytes() -> int | None:
    """Memory of the machine or of the container, whichever is less; None if unknown. It may be
    KEPT_SECONDS old."""
    return _cached_limit(_memory_bytes, _moment())


def _moment() -> int:
    return int(time.monotonic() / KEPT_SECONDS)


@lru_cache(maxsize=8)
def _cached_limit(look_up: Callable[[], Limit], _moment: int) -> Limit:
    return look_up()


def _granted_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _cpu_quota()
    return cores if quota is None else max(1, min(cores, int(quota + 0.5)))


def _cpu_quota() -> float | None:
    """The CPU quota of cgroup v2 or v1 in cores, None without a limit."""
    quotas = []
    for group in _control_groups():
        with suppress(OSError, ValueError, ZeroDivisionError):
            limit, period = (group / "cpu.max").read_text().split()
            quotas.append(int(limit) / int(period))  # ValueError for "max".
    try:
        quota_us = int((CGROUP / "cpu" / "cpu.cfs_quota_us").read_text())
        period_us = int((CGROUP / "cpu" / "cpu.cfs_period_us").read_text())
        if quota_us > 0:
            quotas.append(quota_us / period_us)
    except (OSError, ValueError, ZeroDivisionError):
        pass
    return min(quotas, default=None)


def _control_groups() -> Iterator[Path]:
    """The folders of this process's control group (cgroup v2) and of those above it.

    In a container the first is usually the container's; a service of systemd has one of its own.
    """
    parts: tuple[str, ...] = ()
    with suppress(OSError):
        for line in (PROC / "self" / "cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                parts = PurePosixPath(line.removeprefix("0::/")).parts
    if ".." in parts:  # A group outside of the container's namespace.
        parts = ()
    for count in range(len(parts), -1, -1):
        yield CGROUP.joinpath(*parts[:count])


def _memory_bytes() -> int | None:
    limits = []
    files = [group / "memory.max" for group in _control_groups()]
    for file in (*files, CGROUP / "memory" / "memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            limits.append(int(file.read_text()))
    with suppress(OSError, RuntimeError):
        limits.append(psutil.virtual_memory().total)
    return min(limits) if limits else None


def descriptor_limit() -> int:
    """The number of files and connections that this process may have open."""
    if sys.platform == "win32":
        return MOST_DESCRIPTORS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if 0 < soft < MOST_DESCRIPTORS else MOST_DESCRIPTORS


def raise_descriptor_limit() -> None:
    """Raise the limit of open files as far as allowed, up to MOST_DESCRIPTORS: connections that
    nobody closes soon use up the usual 1,024."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    raised = MOST_DESCRIPTORS if hard < 0 else min(hard, MOST_DESCRIPTORS)
    if 0 < soft < raised:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))


def available_bytes() -> int | None:
    """Memory that can be allocated now without swapping; None if unknown."""
    limits = []
    with suppress(OSError, RuntimeError):
        limits.append(psutil.virtual_memory().available)
    for group in _control_groups():
        with suppress(OSError, ValueError):
            limit = int((group / "memory.max").read_text())
            # The page cache of inactive files can be dropped at once, so it counts as free.
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            used = int((group / "memory.current").read_text()) - int(stat.get("inactive_file", 0))
            limits.append(max(0, limit - used))
    return min(limits) if limits else None


def resident_bytes() -> int:
    """Memory that this process holds now."""
    return psutil.Process().memory_info().rss


def seconds_since_start() -> float:
    """Seconds since this process started."""
    return time.time() - psutil.Process().create_time()


def lower_priority() -> None:
    """Give way to other processes: a busy core gives this one a tenth of its time."""
    with suppress(psutil.Error, OSError):
        windows = sys.platform == "win32"
        psutil.Process().nice(psutil.IDLE_PRIORITY_CLASS if windows else LOW_PRIORITY)


def has_intel_graphics() -> bool | None:
    """Whether Linux has detected an Intel graphics device; None on other systems."""
    if not sys.platform.startswith("linux"):
        return None
    for file in RENDER_NODES.glob("renderD*/device/vendor"):
        try:
            if file.read_text().strip() == INTEL:
                return True
        except OSError:
            continue
    return False


def is_zero_gpu() -> bool:
    """Whether this is a Space on ZeroGPU, as its package `spaces` finds out."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def peak_rss_bytes() -> int:
    """The peak resident memory of this process."""
    if sys.platform == "win32":
        return psutil.Process().memory_info().peak_wset
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB


def watch_peak() -> Callable[[], int]:
    """A function that returns the peak resident memory since this call (not on Linux: since the
    process started)."""
    try:
        (PROC / "self" / "clear_refs").write_text("5")  # Linux: forget the peak so far.
    except OSError:
        return peak_rss_bytes
    return _linux_peak_bytes


def _linux_peak_bytes() -> int:
    for line in (PROC / "self" / "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    return peak_rss_bytes()


def share_malloc_arenas(count: int = 2) -> None:
    """Let all threads allocate from a few arenas of glibc. Otherwise each worker thread that runs
    the model would fill its own, 15 MB each. Call it before threads start."""
    _call_glibc("mallopt", _M_ARENA_MAX, count)


def prepare_to_serve() -> None:
    """Set up a process that serves many people at once. Call it before threads start."""
    share_malloc_arenas()
    raise_descriptor_limit()
    sys.setswitchinterval(_SWITCH_SECONDS)


def release_free_memory() -> None:
    """Return freed memory to the system, which glibc otherwise keeps."""
    _call_glibc("malloc_trim", 0)


def exclude_from_collection() -> None:
    """Exclude all objects that exist now from garbage collection. A full collection walks through
    every object of torch, numba and gradio: 0.3 s in which no thread runs."""
    gc.freeze()


def collect_excluded() -> None:
    """Collect all garbage, also what was excluded from collection before it was garbage."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _call_glibc(function: str, *arguments: int) -> None:
    """Call a function of glibc; does nothing with another C library."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(None), function)(*arguments)

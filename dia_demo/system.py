"""What the machine grants this process: cores, memory. No torch here."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

try:
    import resource
except ImportError:  # Windows has no such limit.
    resource = None

MOST_DESCRIPTORS = 16_384
CGROUP = Path("/sys/fs/cgroup")
RENDER_NODES = Path("/sys/class/drm")
PROC = Path("/proc")
INTEL = "0x8086"
_M_ARENA_MAX = -8


def granted_cores() -> int:
    """Cores this process may use: its affinity, cut by a container's CPU quota."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _cpu_quota()
    return cores if quota is None else max(1, min(cores, int(quota + 0.5)))


def _cpu_quota() -> float | None:
    """Cores granted by cgroup v2 or v1, None where there is no limit."""
    try:
        limit, period = (CGROUP / "cpu.max").read_text().split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        pass
    try:
        limit = int((CGROUP / "cpu" / "cpu.cfs_quota_us").read_text())
        period = int((CGROUP / "cpu" / "cpu.cfs_period_us").read_text())
        return None if limit <= 0 else limit / period
    except (OSError, ValueError):
        return None


def memory_bytes() -> int | None:
    """Memory of the machine or of the container, whichever is less; None where it is not told."""
    found = []
    for file in (CGROUP / "memory.max", CGROUP / "memory" / "memory.limit_in_bytes"):
        try:
            found.append(int(file.read_text()))
        except (OSError, ValueError):
            continue
    with suppress(OSError, RuntimeError):
        found.append(psutil.virtual_memory().total)
    return min(found) if found else None


def descriptor_limit() -> int:
    """How many files and connections this process may have open."""
    if resource is None:
        return MOST_DESCRIPTORS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if 0 < soft < MOST_DESCRIPTORS else MOST_DESCRIPTORS


def raise_descriptor_limit() -> None:
    """Let this process open as many as it is granted, up to MOST_DESCRIPTORS: 1,024 are soon used
    up by connections that nobody closes."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard < 0 else min(hard, MOST_DESCRIPTORS)
    if 0 < soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def available_bytes() -> int | None:
    """Memory that could be had now without driving others out; None where it is not told."""
    found = []
    with suppress(OSError, RuntimeError):
        found.append(psutil.virtual_memory().available)
    try:
        limit = int((CGROUP / "memory.max").read_text())
        # What is kept of files can be dropped at once: it counts as free.
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        used = int((CGROUP / "memory.current").read_text()) - int(stat.get("inactive_file", 0))
        found.append(max(0, limit - used))
    except (OSError, ValueError):
        pass
    return min(found) if found else None


def has_intel_graphics() -> bool | None:
    """Whether Linux sees a graphics device by Intel; None on other systems."""
    if not sys.platform.startswith("linux"):
        return None
    for file in RENDER_NODES.glob("renderD*/device/vendor"):
        try:
            if file.read_text().strip() == INTEL:
                return True
        except OSError:
            continue
    return False


def give_back_memory() -> None:
    """Return to the system what was freed but is kept for later; only glibc can be asked to."""
    if sys.platform.startswith("linux"):
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def peak_rss_bytes() -> int:
    """The most memory this process has held since it started."""
    if sys.platform == "win32":
        return psutil.Process().memory_info().peak_wset
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB


def watch_peak() -> Callable[[], int]:
    """A function that gives the most memory held since now (where only the whole life of the
    process is known, since it started)."""
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
    """Let all threads allocate from a few arenas, where the C library is glibc. Each worker thread
    that runs the model would fill one of its own otherwise, 15 MB each. Before threads start."""
    _glibc("mallopt", _M_ARENA_MAX, count)


def release_free_memory() -> None:
    """Give memory that was freed back to the system, which glibc otherwise keeps for later."""
    _glibc("malloc_trim", 0)


def _glibc(function: str, *arguments: int) -> None:
    """Call a function of glibc's own; nothing where the C library is another one."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(None), function)(*arguments)

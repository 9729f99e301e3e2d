"""What threads share of the C library's memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dia_demo.files import ROOT

# Threads that all allocate at the same time, each in an arena of its own where it may.
COUNT_ARENAS = """
import ctypes, sys, threading
from dia_demo.machine.system import share_malloc_arenas
if sys.argv[1] == "shared":
    share_malloc_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.fclose.argtypes = [ctypes.c_void_p]
libc.fopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
together = threading.Barrier(8)
def allocate():
    together.wait()
    for _ in range(1000):
        libc.malloc(ctypes.c_size_t(1000))
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
file = libc.fopen(sys.argv[2].encode(), b"w")
libc.malloc_info(0, file)
libc.fclose(file)
print(open(sys.argv[2]).read().count("<heap nr="))
"""


def arenas(how: str, path) -> int:
    command = [sys.executable, "-c", COUNT_ARENAS, how, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's arenas")
def test_all_threads_allocate_from_two_arenas(tmp_path):
    try:
        free = arenas("free", tmp_path / "info.xml")
    except AssertionError as error:
        pytest.skip(f"not glibc: {error}")
    assert free > 2, "the test could not fail here"
    assert arenas("shared", tmp_path / "info.xml") <= 2

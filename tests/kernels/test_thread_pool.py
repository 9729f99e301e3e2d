"""Threads of compiled functions: what fails in one is raised in the caller, and the next run works.

Guards a bug: numba raised in one thread where the cache folder's disk was full, the other waited in
the barrier for ever, and so did every later run.
"""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from numba import int64
from numba.core.caching import FunctionCache

from dia_demo.kernels import jit
from dia_demo.kernels.intrinsics import barrier_wait
from dia_demo.kernels.thread_pool import ThreadPool, yield_core
from tests.helpers.processes import run_python
from tests.helpers.stand_ins.disks import mount_disk

pytestmark = pytest.mark.processor

SECONDS = 60  # far more than any of these runs takes


@jit.compiled()
def wait_twice(barrier, size, yield_core):
    barrier_wait(barrier, size, yield_core)
    barrier_wait(barrier, size, yield_core)


def within_time(run) -> list:
    """What `run` returned or raised; fails where it does not come back."""
    outcome = []

    def call() -> None:
        try:
            outcome.append(run())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive(), "it hangs"
    return outcome


@pytest.fixture(scope="module")
def compiled_wait():
    """The barrier, compiled before any thread waits in it."""
    wait_twice.compile((int64, int64, int64))
    return wait_twice


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_the_pool_survives_an_exception_in_one_thread(compiled_wait, failing):
    pool = ThreadPool(3)
    arguments = pool.barrier, pool.size, yield_core()
    done = []

    def fails(thread_index):
        if thread_index == failing:
            raise ValueError(f"thread {thread_index}")
        compiled_wait(*arguments)

    def works(thread_index):
        compiled_wait(*arguments)
        done.append(thread_index)

    for _ in range(2):
        (error,) = within_time(lambda: pool.run(fails))
        assert isinstance(error, ValueError) and str(error) == f"thread {failing}"
        done.clear()
        assert within_time(lambda: pool.run(works)) == [None]
        # The others may append a moment after the caller has come back, but before the next run.
        pool.run(lambda _: compiled_wait(*arguments))
        assert sorted(done) == [0, 1, 2]


def test_every_member_failing_is_one_error():
    pool = ThreadPool(3)

    def fails(thread_index):
        raise KeyError(thread_index)

    (error,) = within_time(lambda: pool.run(fails))
    assert isinstance(error, KeyError)
    assert within_time(lambda: pool.run(lambda _: None)) == [None]


def test_a_kernel_is_compiled_before_any_thread_runs(monkeypatch):
    """Compiling fails in the caller's thread alone, however many threads there are."""
    started = []

    class Uncompilable:
        overloads: dict = {}

        def compile(self, arguments):
            raise RuntimeError("no compiler")

        def __call__(self, thread_index):
            started.append(thread_index)

    pool = ThreadPool(2)
    (error,) = within_time(lambda: pool.run(Uncompilable()))
    assert str(error) == "no compiler" and started == []
    assert within_time(lambda: pool.run(lambda _: None)) == [None]


# A cache folder on a full disk


def test_a_save_that_fails_is_one_warning(monkeypatch, caplog, tmp_path):
    def full(self, sig, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    monkeypatch.setattr(jit, "_failures", {})
    twice = jit.compiled()(lambda x: 2 * x)
    thrice = jit.compiled()(lambda x: twice(x) + x)
    assert thrice(7) == 21 and twice(np.float32(1.5)) == 3.0
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "No space left" in warning and "DIA_CACHE" in warning
    assert jit.new_failures() == [warning] and jit.new_failures() == []


@pytest.mark.long
def test_compiled_code_that_is_damaged_is_compiled_again(tmp_path):
    """Two processes: the second finds what the first left, cut short as a full disk leaves it."""
    code = (
        "from dia_demo.kernels.matmul.linear import block_function, padded_size\n"
        "print(padded_size(65), block_function(2, False) > 0)"
    )
    for _ in range(2):
        assert run_python(code, cache=tmp_path).stdout == "128 True\n"
        files = [file for kind in ("nbi", "nbc") for file in tmp_path.rglob(f"*.{kind}")]
        assert files
        for file in files:
            file.write_bytes(file.read_bytes()[:100])


@pytest.fixture
def full_disk(tmp_path):
    """A folder on a small file system of its own, which compiled kernels do not fit on."""
    with mount_disk(tmp_path / "small", "256k") as folder:
        yield folder


SPEAK_TWICE = """
import sys
from dia_demo.cli.main import main
say = ["say", "[S1] Hello there. [S2] Hi.", "--max-tokens", "60", "--threads", sys.argv[1]]
sys.exit(main([*say, "-o", sys.argv[2]]) or main([*say, "-o", sys.argv[3]]))
"""


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
def test_takes_are_made_on_a_full_disk_with_one_warning(full_disk, tmp_path, threads):
    takes = [str(tmp_path / f"{n}.wav") for n in range(2)]
    done = run_python(SPEAK_TWICE, str(threads), *takes, cache=full_disk)
    assert all(Path(take).stat().st_size > 10_000 for take in takes)
    assert done.stderr.count("could not be saved") == 1, done.stderr


def test_runs_of_one_thread_do_not_wait_for_one_another():
    """So that a codec decodes beside the steps."""
    pool, meeting = ThreadPool(1), threading.Barrier(2)

    def meet(thread_index: int) -> None:
        assert thread_index == 0
        meeting.wait(SECONDS)

    other = threading.Thread(target=pool.run, args=(meet,), daemon=True)
    other.start()
    pool.run(meet)
    other.join(SECONDS)
    assert not other.is_alive() and not meeting.broken

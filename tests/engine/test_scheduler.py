"""The scheduler: a row is the same in any company, stops within a step and leaves no memory."""

import gc
import threading
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from dia_demo.engine.batch import Prefill
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import FirstCome, Scheduler, run, run_to_end
from dia_demo.errors import RunError
from dia_demo.model.dia import Dia
from dia_demo.model.linear import KERNELS, can_compile
from dia_demo.model.weights import checkpoint
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import (
    SMALL,
    load,
    marks_for_case,
    random_codes,
    threads_for,
    write_small,
)

pytestmark = pytest.mark.processor

TEXT = b"\x01 Hello there.\n\x02 Hi."


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load(write_small(tmp_path_factory.mktemp("small")))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((kernel, precision), marks=marks_for_case(kernel, precision))
        for kernel in KERNELS
        for precision in kernel.precisions
        # torch's kernels round a row of bfloat16 otherwise where more stand beside it.
        if kernel.compiled or precision == "float32"
    ],
    ids=lambda param: f"{param[0].name}, {param[1]}",
)
def fast_model(request, tmp_path_factory):
    """The model as an engine may run it: with each kernel that the machine could choose."""
    kernel, precision = request.param
    folder = write_small(tmp_path_factory.mktemp("small"))
    try:
        dia = result_of(checkpoint.load(folder, precision, kernel=kernel))
        return kernel.install(dia, threads_for(kernel))
    except (RuntimeError, NotImplementedError) as reason:
        pytest.skip(f"{kernel.name} does not run on this machine: {reason}")


def make_row(text=TEXT, prompt=None, cancel=None, **params) -> Row:
    settings = dict(temperature=1.0, max_tokens=60) | params
    return Row(SMALL, text, replace(SMALL.defaults, **settings), prompt, cancel)


def different_rows() -> list[Row]:
    """Nothing in common: texts, lengths, settings, guidance, prompts."""
    return [
        make_row(seed=3),
        make_row(b"\x02 A much longer line to say, with more in it.", cfg_scale=0.0, top_k=7,
                 temperature=1.7, top_p=0.8, seed=5, max_tokens=45),
        make_row(b"x", random_codes(SMALL, 14), cfg_scale=5.0, seed=3, max_tokens=75),
        make_row(TEXT, random_codes(SMALL, 3, seed=9), temperature=0.0, cfg_scale=0.0),
    ]  # fmt: skip


def finish(model, rows) -> list[np.ndarray]:
    run_to_end(model, rows)
    return [row.codes() for row in rows]


def test_a_row_alone_is_the_row_in_a_batch(fast_model):
    alone = [finish(fast_model, [row])[0] for row in different_rows()]
    assert len({codes.tobytes() for codes in alone}) == len(alone)
    for chosen in ([0, 1, 2], [2, 0, 3], [3, 2, 1, 0]):
        together = finish(fast_model, [different_rows()[index] for index in chosen])
        for index, codes in zip(chosen, together, strict=True):
            np.testing.assert_array_equal(codes, alone[index], err_msg=f"{index} in {chosen}")


def test_a_row_that_ends_early_leaves_the_others_unchanged(fast_model):
    long = finish(fast_model, [make_row(seed=1, max_tokens=80)])[0]
    rows = [make_row(seed=2, max_tokens=8), make_row(seed=1, max_tokens=80), make_row(seed=4)]
    codes = finish(fast_model, rows)
    assert [row.done for row in rows] == [True] * 3 and len(codes[0]) == SMALL.frames_within(8)
    np.testing.assert_array_equal(codes[1], long)


def test_a_waiting_row_takes_the_place_of_one_that_is_done(fast_model):
    """Never more than two go forward, and each row says what it says alone."""
    alone = [finish(fast_model, [row])[0] for row in different_rows()]
    rows = different_rows()
    most = 0
    for _ in run(fast_model, rows, places=2):
        most = max(most, sum(row.cache is not None for row in rows))
    assert most == 2 and all(row.done for row in rows)
    assert all(row.cache is None for row in rows)
    for row, codes in zip(rows, alone, strict=True):
        np.testing.assert_array_equal(row.codes(), codes)


def test_a_row_cancelled_while_it_waits_never_steps(model):
    rows = [make_row(max_tokens=30), make_row(max_tokens=10), make_row(max_tokens=12)]
    rows[1].cancel.set()
    yielded = list(run(model, rows, places=1))
    assert yielded.count(rows[1]) == 1 and rows[1].steps == 0
    assert rows[1].finish_reason == "cancelled" and rows[2].done


@pytest.mark.parametrize("places", [1, 3])
def test_a_row_that_cannot_be_read_fails_alone(model, monkeypatch, places):
    rows = [make_row(seed=seed, max_tokens=10) for seed in range(3)]
    alone, encode = finish(model, [make_row(seed=2, max_tokens=10)])[0], Dia.encode

    def broken(self, text, *args, **kwargs):
        if text == b"broken":
            raise RunError("no memory left")
        return encode(self, text, *args, **kwargs)

    monkeypatch.setattr(Dia, "encode", broken)
    rows[1] = make_row(b"broken", max_tokens=10)
    yielded = list(run(model, rows, places))
    assert yielded.count(rows[1]) == 1 and rows[1].failure == "no memory left"
    assert rows[0].done and all(row.cache is None for row in rows)
    np.testing.assert_array_equal(rows[2].codes(), alone)


def test_rows_that_join_in_the_middle_are_those_alone(fast_model, monkeypatch):
    """Each of them comes when the one before it has made some steps, as requests of several people
    do, and leaves by its own end."""
    begin = Prefill.begin

    def begin_and_wait(prefill, row):  # Steps of a small model are faster than its prefill.
        begin(prefill, row)
        prefill._cache.exception()  # Waits.

    monkeypatch.setattr(Prefill, "begin", begin_and_wait)
    alone = [finish(fast_model, [row])[0] for row in different_rows()]
    scheduler, rows, most = Scheduler(fast_model), different_rows(), 0
    coming = rows[::-1]
    while coming or scheduler.waiting or scheduler.running:
        if coming and (not scheduler.running or scheduler.running[-1].steps > 5):
            scheduler.add([coming.pop()])
        scheduler.schedule()
        scheduler.step()
        most = max(most, sum(row.steps > 0 for row in scheduler.running))
    assert most >= 3, "they never ran together"
    for row, codes in zip(rows, alone, strict=True):
        np.testing.assert_array_equal(row.codes(), codes)


def test_a_row_whose_turn_comes_first_overtakes_one_that_was_read_ahead(model):
    alone = [finish(model, [make_row(seed=seed, max_tokens=12)])[0] for seed in range(3)]
    rows = [make_row(seed=seed, max_tokens=12) for seed in range(3)]

    class LastCome(FirstCome):
        def next(self, waiting):
            return waiting[-1]

    scheduler, begun = Scheduler(model, 1, LastCome()), []
    for row in rows[:2]:
        scheduler.add([row])
        begun += scheduler.schedule()[1]
        scheduler.step()
    scheduler.add([rows[2]])
    while scheduler.waiting or scheduler.running:
        begun += scheduler.schedule()[1]
        scheduler.step()
    assert begun == [rows[0], rows[2], rows[1]]
    for row, codes in zip(rows, alone, strict=True):
        np.testing.assert_array_equal(row.codes(), codes)


def test_only_the_same_seed_gives_the_same_take(model):
    first, again, other = (finish(model, [make_row(seed=seed)])[0] for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.5


def test_global_randomness_does_not_count(model):
    torch.manual_seed(0)
    first = finish(model, [make_row(seed=7)])[0]
    torch.manual_seed(1)
    before = torch.get_rng_state()
    np.testing.assert_array_equal(finish(model, [make_row(seed=7)])[0], first)
    assert torch.equal(torch.get_rng_state(), before), "the loop touched the global generator"


def test_every_row_is_yielded_once_a_step(model):
    rows = [make_row(max_tokens=10), make_row(max_tokens=14)]
    yielded = [rows.index(row) for row in run(model, rows)]
    assert yielded == [0, 1] * rows[0].steps + [1] * (rows[1].steps - rows[0].steps)


# Stop


@pytest.mark.parametrize("after", [1, 2, 10, 40])
def test_cancel_stops_within_a_step(model, after):
    whole = finish(model, [make_row(seed=1)])[0]
    row = make_row(seed=1)
    for _ in run(model, [row]):
        if row.steps == after:
            row.cancel.set()
    assert row.steps == after and row.finish_reason == "cancelled" and not row.done
    assert len(row.codes()) == max(0, after - SMALL.max_delay)
    np.testing.assert_array_equal(row.codes(), whole[: len(row.codes())])


def test_cancelling_one_row_leaves_the_others_unchanged(model):
    alone = [finish(model, [row])[0] for row in different_rows()]
    rows = different_rows()
    for row in run(model, rows):
        if row is rows[1] and row.steps == 20:
            row.cancel.set()
    assert rows[1].steps == 20
    for index in (0, 2, 3):
        np.testing.assert_array_equal(rows[index].codes(), alone[index])


def test_a_row_cancelled_before_it_starts_takes_no_step(model):
    cancel = threading.Event()
    cancel.set()
    row = make_row(cancel=cancel)
    assert [yielded is row for yielded in run(model, [row])] == [True]
    assert row.steps == 0 and row.finish_reason == "cancelled" and len(row.codes()) == 0


def test_memory_goes_when_a_row_ends_is_cancelled_or_the_loop_is_closed(model):
    """The caches are the memory of a run; each is free while the others go on."""
    rows = [make_row(max_tokens=8), make_row(seed=1), make_row(seed=2)]
    steps = run(model, rows)
    next(steps)
    caches = [weakref.ref(row.cache) for row in rows]
    for row in steps:
        if row is rows[1] and row.steps == 15:
            row.cancel.set()
        if row.steps == 20:
            break
    del row
    gc.collect()
    assert [cache() is None for cache in caches] == [True, True, False]
    steps.close()
    gc.collect()
    assert caches[2]() is None


def test_a_compiled_step_asks_for_no_memory(tmp_path):
    """But a few hundred bytes within torch's sort."""
    if not can_compile():
        pytest.skip("needs numba")
    compiled = next(kernel for kernel in KERNELS if kernel.compiled and not kernel.use_dot)
    dia = result_of(checkpoint.load(write_small(tmp_path), "float32", kernel=compiled))
    model = compiled.install(dia, threads=2)
    rows = [make_row(seed=1), make_row(seed=2, cfg_scale=0.0, top_k=5)]
    steps = run(model, rows)
    for _ in range(2 * 3):
        next(steps)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        for _ in range(2 * 5):
            next(steps)
    asked = [max(0, event.self_cpu_memory_usage) for event in watched.events()]
    assert len(asked) > 100 and sum(asked) / 5 < 1024


# Damage


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_logit_that_is_no_number_fails_the_row_with_a_remedy(model, value):
    expected = finish(model, [make_row(seed=1)])[0]
    weight = model.decoder.logits_dense.weight
    original = weight[5, 0].item()
    row = make_row(seed=1)
    steps = run(model, [row])
    for _ in range(6):
        next(steps)
    weight[5, 0] = value
    try:
        assert list(steps) == [row]
        with pytest.raises(RunError, match="step 1"):
            run_to_end(model, [make_row()])
    finally:
        weight[5, 0] = original
    assert row.done and row.cache is None and row.finish_reason == "failed"
    assert "step 7" in row.failure and "float32" in row.failure and "fetch" in row.failure
    np.testing.assert_array_equal(finish(model, [make_row(seed=1)])[0], expected)


@pytest.mark.parametrize("where", ["own key", "own value", "text key", "text value"])
def test_every_kernel_keeps_a_nan_in_its_own_row(fast_model, where):
    """A slot that was never written is NaN, so that reading it is loud: with every kernel."""
    rows = [make_row(seed=1), make_row(seed=2), make_row(seed=3)]
    steps = run(fast_model, rows)
    for _ in range(3 * len(rows)):
        next(steps)
    cache = rows[1].cache
    spoilt = {
        "own key": cache._keys[0][0, :, 1],
        "own value": cache._values[0][0, :, 1],
        "text key": cache.cross[0][0][0],
        "text value": cache.cross[0][0][1],
    }[where]
    with torch.inference_mode():
        spoilt.fill_(float("nan"))
    result_of(steps)
    assert [row.finish_reason == "failed" for row in rows] == [False, True, False]
    for row in (rows[0], rows[2]):
        alone = finish(fast_model, [make_row(seed=row.params.seed)])[0]
        np.testing.assert_array_equal(row.codes(), alone)

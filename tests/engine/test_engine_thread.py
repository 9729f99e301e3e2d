"""Requests of several threads on one engine: each has its own events, and nobody stalls another."""

import gc
import threading
import weakref
from dataclasses import replace
from time import monotonic, sleep

import numpy as np
import pytest
import torch

from dia_demo.config import RuntimeConfig
from dia_demo.engine import engine_thread, events, scheduler
from dia_demo.engine.decoder_model import DeviceFailed
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Cancelled, Failed, Finished, Progress, Started
from dia_demo.engine.row import Row
from dia_demo.engine.row_stream import PIECE_SECONDS, RowStream, StreamSettings
from dia_demo.engine.scheduler import PLACES
from dia_demo.engine.sound import side_threads
from dia_demo.engine.sound.side_threads import SideThreads
from dia_demo.errors import RunError
from dia_demo.families.resolve import resolve
from dia_demo.model.cpu_model import torch_threads
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import SMALL, write_small

LONG = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("engine") / "small", codec=True)


@pytest.fixture
def engine(folder):
    engine = result_of(Engine.load(resolve(str(folder)), RuntimeConfig(str(folder), threads=1)))
    yield engine
    engine.close()


@pytest.fixture(autouse=True)
def talkative(monkeypatch):
    monkeypatch.setattr(events, "REPORT_SECONDS", 0.0)


def make_row(**params) -> Row:
    settings = dict(temperature=1.0, max_tokens=60) | params
    return Row(SMALL, b"\x01 Hello.", replace(SMALL.defaults, **settings))


def submit(engine, *rows):
    return engine.submit(rows, [1.0] * len(rows))


def take(engine, row):
    return list(submit(engine, row))[-1].result


def until(stream, kind):
    return next(event for event in stream if isinstance(event, kind))


def test_takes_of_several_threads_are_those_made_alone(engine):
    """They join in the middle of each other's steps, and say that they were not alone."""
    alone = {seed: take(engine, make_row(seed=seed, max_tokens=90)) for seed in range(5)}
    beside = submit(engine, make_row(seed=99, max_tokens=LONG))
    until(beside, Progress)
    made = {}

    def work(seed: int) -> None:
        made[seed] = take(engine, make_row(seed=seed, max_tokens=90))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    beside.close()
    for seed, result in alone.items():
        np.testing.assert_array_equal(made[seed].codes, result.codes)
        np.testing.assert_array_equal(made[seed].samples, result.samples)
        assert result.figures.shared_with == 0 < made[seed].figures.shared_with


def test_what_surrounds_the_model_uses_one_thread_of_torch(engine):
    """Further threads would wait actively, and take the core of another request."""
    counts: dict[str, set[int]] = {"read": set(), "drawn": set()}

    class Watched(Row):
        def read(self, model):
            counts["read"].add(torch.get_num_threads())
            return super().read(model)

        def draw_uniforms(self, out):
            counts["drawn"].add(torch.get_num_threads())
            super().draw_uniforms(out)

    def watched(seed: int) -> Watched:
        params = replace(SMALL.defaults, temperature=1.0, max_tokens=60, seed=seed)
        return Watched(SMALL, b"\x01 Hello.", params)

    with torch_threads(2):
        rows = [watched(seed) for seed in range(2 * PLACES)]  # Some are read beside the steps.
        events_of_all = list(submit(engine, *rows))
    assert sum(isinstance(event, Finished) for event in events_of_all) == len(rows)
    assert counts == {"read": {1}, "drawn": {1}}


def test_what_was_heard_is_freed_at_once(engine):
    """A cycle would keep it, with all its audio, until a full collection, minutes later."""
    row = make_row()
    take(engine, row)
    engine.close()
    reference = weakref.ref(row)
    gc.disable()
    try:
        del row
        assert reference() is None
    finally:
        gc.enable()


def test_who_reads_nothing_delays_nobody(engine):
    """The take is made all the same, and its events wait."""
    unread = submit(engine, *(make_row(seed=seed) for seed in range(PLACES)))
    assert isinstance(list(submit(engine, make_row(seed=50)))[-1], Finished)
    ends = [event for event in unread if isinstance(event, Finished)]
    assert sorted(event.row for event in ends) == list(range(PLACES))


def test_whoever_listens_does_not_wait_while_the_sound_of_others_is_decoded(engine, monkeypatch):
    """The thread of the steps decodes it only where nobody waits."""
    monkeypatch.setattr(side_threads, "MOST_UNDONE", 1)
    monkeypatch.setattr(scheduler, "LONGEST_BREAK_SECONDS", 0.0)  # All rows take part in all steps.
    engine._thread._side = SideThreads(1, engine._thread._is_somebody_waiting)
    decode, may_go_on, found = RowStream._decode, threading.Event(), []

    def decode_and_note(stream, part):
        if stream.is_heard:
            assert may_go_on.wait(20)
        found.append((stream.is_heard, threading.current_thread().name))
        yield from decode(stream, part)

    monkeypatch.setattr(RowStream, "_decode", decode_and_note)
    listened = submit(engine, make_row())
    until(listened, Started)
    others = submit(engine, make_row(seed=1), make_row(seed=2))
    for _ in range(2):
        until(others, Started)
    latest = monotonic() + 20
    while engine._thread._streams and monotonic() < latest:  # Until all rows have left.
        sleep(0.01)
    may_go_on.set()
    assert [type(list(each)[-1]) for each in (listened, others)] == [Finished, Finished]
    assert {name for _, name in found} == {"decoder"}
    found.clear()
    monkeypatch.setattr(side_threads, "MOST_UNDONE", 0)
    assert isinstance(list(submit(engine, make_row(seed=3), make_row(seed=4)))[-1], Finished)
    assert set(found) == {(False, "engine")}


def test_long_audio_is_decoded_in_pieces(engine):
    """Between them, a thread can turn to somebody who waits."""
    row = make_row(max_tokens=LONG)
    settings = StreamSettings("", engine.placement, engine.info.codec, engine.codec, {}, None)
    stream = RowStream(0, row, 1.0, 1.0, settings)
    list(engine.stream([row], [1.0], False))
    *pieces, last = stream.next_parts()
    longest = round(PIECE_SECONDS * settings.format.frames_per_second)
    assert {len(piece.codes) for piece in pieces} == {longest} and len(last.codes) <= longest
    np.testing.assert_array_equal(
        np.concatenate([piece.codes for piece in [*pieces, last]]), row.codes()
    )
    assert last.is_last and not any(piece.is_last or piece.is_report for piece in pieces)


def test_closing_frees_the_places_for_those_who_wait(engine):
    full = submit(engine, *(make_row(seed=seed, max_tokens=LONG) for seed in range(PLACES)))
    until(full, Progress)
    waiting = submit(engine, make_row(max_tokens=10))
    assert waiting.get(timeout=0.05) is None
    rows = [stream.row for stream in full._rows]
    full.close()
    assert all(row.cache is None and row.finish_reason == "cancelled" for row in rows)
    assert full.is_over and list(full) == []
    assert isinstance(list(waiting)[-1], Finished)


def test_a_row_whose_audio_cannot_be_decoded_fails_alone(engine):
    broken, fine = make_row(seed=1), make_row(seed=2, max_tokens=90)
    broken.codes = lambda *_: 1 / 0
    streams = submit(engine, broken), submit(engine, fine)
    assert "ZeroDivisionError" in list(streams[0])[-1].message
    assert isinstance(list(streams[1])[-1], Finished)


def test_a_step_that_fails_fails_the_rows_in_it_but_none_that_wait(engine, monkeypatch):
    rows = [make_row(seed=seed, max_tokens=LONG) for seed in range(PLACES)]
    full, waiting = submit(engine, *rows), submit(engine, make_row(max_tokens=10))
    until(full, Progress)
    monkeypatch.setattr(rows[0], "draw_uniforms", lambda _: 1 / 0)
    ends = [event for event in full if isinstance(event, Failed | Finished | Cancelled)]
    assert len(ends) == PLACES and all("ZeroDivision" in event.message for event in ends)
    assert isinstance(list(waiting)[-1], Finished)


def test_a_device_that_fails_ends_all_rows_and_the_engine(engine, monkeypatch):
    def fail(_):
        raise DeviceFailed("The device is gone.")

    rows = [make_row(seed=seed, max_tokens=LONG) for seed in range(PLACES)]
    full, waiting = submit(engine, *rows), submit(engine, make_row())
    until(full, Progress)
    monkeypatch.setattr(rows[0], "draw_uniforms", fail)
    ends = [event for event in full if isinstance(event, Failed)]
    assert {event.message for event in ends} == {"The device is gone."} and len(ends) == PLACES
    assert isinstance(list(waiting)[-1], Failed) and engine.closed
    with pytest.raises(RunError, match="closed"):
        submit(engine, make_row())


def test_closing_the_engine_fails_what_runs_and_ends_its_thread(engine):
    running = submit(engine, make_row(max_tokens=LONG))
    until(running, Started)
    thread = engine._thread._thread
    engine.close()
    assert not thread.is_running and isinstance(list(running)[-1], Failed)
    with pytest.raises(RunError, match="closed"):
        submit(engine, make_row())


def test_an_idle_engine_has_no_thread(engine, monkeypatch):
    monkeypatch.setattr(engine_thread, "IDLE_SECONDS", 0.01)
    for _ in range(2):
        assert isinstance(list(submit(engine, make_row(max_tokens=10)))[-1], Finished)
        if (thread := engine._thread._thread) is not None:
            thread.join(10)
        assert engine._thread._thread is None


def test_a_stream_forgotten_in_the_engines_own_thread_does_not_wait_for_itself(engine):
    """The garbage collector may close it there."""
    forgotten = submit(engine, make_row(seed=1, max_tokens=LONG))
    row = make_row(seed=2, max_tokens=90)
    accept = row.accept

    def accept_and_close(codes):
        accept(codes)
        if row.steps == 20:
            forgotten.close()

    row.accept = accept_and_close
    assert isinstance(list(submit(engine, row))[-1], Finished)
    assert forgotten.is_over

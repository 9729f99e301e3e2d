"""The engine: rows in, one well-formed stream of events out for each."""

import gc
import json
import re
import weakref
from dataclasses import asdict, replace

import numpy as np
import pytest

from dia_demo.codec import codec
from dia_demo.codec.codec import DacCodec, load_codec
from dia_demo.config import RuntimeConfig
from dia_demo.engine import events
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Failed,
    Finished,
    FinishReason,
    Loading,
    Progress,
    Started,
    Waiting,
)
from dia_demo.engine.row import Row
from dia_demo.errors import RunError
from dia_demo.families.resolve import resolve
from dia_demo.model import linear
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import SMALL, random_codes, write_small

pytestmark = pytest.mark.processor

LETTERS = {
    Waiting: "w", Loading: "l", Started: "s", Progress: "p", AudioChunk: "a",
    Finished: "F", Cancelled: "C", Failed: "X",
}  # fmt: skip
GRAMMAR = re.compile("s[pa]*[FCX]|C")


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """With torch's own kernel, whatever is fastest here: tests reach for its weights."""
    folder = write_small(tmp_path_factory.mktemp("engine") / "small", codec=True)
    with pytest.MonkeyPatch.context() as patch:
        plain = [kernel for kernel in linear.KERNELS if kernel.name == "plain"]
        patch.setattr(linear, "KERNELS", plain)
        yield load_engine(folder)


def load_engine(folder) -> Engine:
    return result_of(Engine.load(resolve(str(folder)), RuntimeConfig(str(folder), threads=1)))


@pytest.fixture(autouse=True)
def talkative(monkeypatch):
    """Say something after every step, so that a run of milliseconds has a full stream."""
    monkeypatch.setattr(events, "REPORT_SECONDS", 0.0)


def make_row(prompt=None, **params) -> Row:
    settings = dict(temperature=1.0, max_tokens=60) | params
    return Row(SMALL, b"\x01 Hello.", replace(SMALL.defaults, **settings), prompt)


def stop_after(row: Row, steps: int) -> None:
    """Set the row's cancel flag during a step, as another thread may."""
    accept = row.accept

    def accept_and_stop(codes):
        accept(codes)
        if row.steps == steps:
            row.cancel.set()

    row.accept = accept_and_stop


def stream(engine, rows, with_audio=True) -> dict[int, list]:
    """The events of each row."""
    events = {index: [] for index in range(len(rows))}
    for event in engine.stream(rows, [1.0] * len(rows), with_audio):
        events[event.row].append(event)
    for received in events.values():
        assert GRAMMAR.fullmatch("".join(LETTERS[type(event)] for event in received)), received
    return events


def only(events, kind):
    return [event for event in events if isinstance(event, kind)]


def test_loading_tells_how_far_it_is(engine):
    loading = Engine.load(engine.info, RuntimeConfig(engine.info.name, threads=1))
    fractions = [event.fraction for event in loading]
    assert len(fractions) > 3 and fractions == sorted(fractions)
    assert fractions[0] == 0 and fractions[-1] == 1


def test_every_row_has_a_stream_of_its_own(engine):
    rows = [make_row(seed=1), make_row(seed=2, max_tokens=20), make_row(random_codes(SMALL, 9))]
    for index, received in stream(engine, rows).items():
        (started,) = only(received, Started)
        assert started.seed == rows[index].params.seed and started.sample_rate == 16000
        assert only(received, Progress) and only(received, AudioChunk)
        assert isinstance(received[-1], Finished)


def test_chunks_put_together_are_the_take(engine):
    """What was heard while it ran, the result, and the codec on the whole are one sound, but for
    5 ms at either end."""
    received = stream(engine, [make_row(max_tokens=100)])[0]
    chunks, result = only(received, AudioChunk), received[-1].result
    assert len(chunks) > 1
    np.testing.assert_array_equal(
        np.concatenate([chunk.samples for chunk in chunks]), result.samples
    )
    whole = load_codec(engine.info.folder).decode(result.codes)
    np.testing.assert_allclose(result.samples[80:-80], whole[80:-80], atol=1e-4)
    assert result.samples[0] == result.samples[-1] == 0
    assert len(result.samples) == len(result.codes) * 256
    at = 0
    for chunk in chunks:
        assert chunk.start_seconds == pytest.approx(at / 16000) and chunk.sample_rate == 16000
        at += len(chunk.samples)


def test_progress_only_moves_on(engine):
    received = stream(engine, [make_row()])[0]
    progress = only(received, Progress)
    steps = [event.step for event in progress]
    assert steps == sorted(set(steps))
    for event in progress:
        assert event.audio_seconds == pytest.approx(
            max(0, event.step - SMALL.max_delay) * 256 / 16000
        )
        assert event.realtime_factor == pytest.approx(event.audio_seconds / event.wall_seconds)
        assert event.expected_seconds >= event.audio_seconds


def test_an_estimate_never_exceeds_what_max_tokens_can_hold(engine):
    row = make_row(random_codes(SMALL, 9))
    room = SMALL.frames_within(60, 9) * 256 / 16000
    received = list(engine.stream([row], [1000.0]))
    assert only(received, Started)[0].expected_seconds == pytest.approx(room)
    assert all(event.expected_seconds <= room + 1e-9 for event in only(received, Progress))


def test_figures_are_consistent(engine):
    row = make_row(random_codes(SMALL, 9), seed=11)
    result = stream(engine, [row])[0][-1].result
    figures = result.figures
    assert result.codes.dtype == np.int16 and result.codes.shape == (SMALL.frames_within(60, 9), 3)
    assert figures.audio_seconds == pytest.approx(len(result.codes) * 256 / 16000)
    assert figures.audio_seconds == pytest.approx(len(result.samples) / figures.sample_rate)
    assert figures.realtime_factor == pytest.approx(figures.audio_seconds / figures.wall_seconds)
    assert figures.token_seconds + figures.codec_seconds <= figures.wall_seconds
    assert 0 < figures.first_audio_seconds <= figures.wall_seconds
    assert figures.steps == row.steps and figures.seed == 11
    assert (figures.finish_reason, figures.precision) == ("max_tokens", "float32")
    assert (figures.model, figures.device) == (str(engine.info.folder), "cpu")
    assert figures.peak_rss_bytes > 50e6


def test_without_audio_no_codec_is_loaded(engine, monkeypatch):
    """--codes alone must work on a machine that has no codec and no way to fetch one."""
    monkeypatch.setattr(codec, "find_codec", lambda *_, **__: pytest.fail("a codec was loaded"))
    received = stream(load_engine(engine.info.folder), [make_row()], with_audio=False)[0]
    assert not only(received, AudioChunk)
    result = received[-1].result
    assert result.samples is None and len(result.codes) == SMALL.frames_within(60)
    assert result.figures.codec_seconds == 0 and result.figures.first_audio_seconds is None


def test_audio_changes_no_code(engine):
    with_audio, without = (stream(engine, [make_row(seed=4)], audio)[0] for audio in (True, False))
    np.testing.assert_array_equal(with_audio[-1].result.codes, without[-1].result.codes)


# Ends


def test_a_stopped_row_keeps_its_audio(engine):
    whole = stream(engine, [make_row(seed=1)])[0][-1].result
    rows = [make_row(seed=1), make_row(seed=2)]
    stop_after(rows[0], 30)
    received = stream(engine, rows)
    assert isinstance(received[0][-1], Cancelled) and isinstance(received[1][-1], Finished)
    partial = received[0][-1].result
    assert rows[0].steps == 30 and partial.figures.finish_reason == "cancelled"
    assert len(partial.codes) == 27 and len(partial.samples) == 27 * 256
    np.testing.assert_array_equal(partial.codes, whole.codes[:27])
    assert (
        np.concatenate([event.samples for event in only(received[0], AudioChunk)]).size == 27 * 256
    )


def test_a_row_stopped_before_its_first_frame_has_no_result(engine):
    row = make_row()
    row.cancel.set()
    (received,) = stream(engine, [row]).values()
    assert received == [Cancelled(None)]


def test_a_row_that_ends_at_once_is_finished_without_audio(engine):
    """EOS takes the place of the code that would have been said first."""
    first = stream(engine, [make_row(temperature=0.0)])[0][-1].result.codes[0, 0]
    weight, eos = engine.model.dia.decoder.logits_dense.weight, SMALL.decoder.eos
    original = weight.clone()
    weight[eos], weight[first] = original[first], original[eos]
    try:
        received = stream(engine, [make_row(temperature=0.0)])[0]
    finally:
        weight.copy_(original)
    result = received[-1].result
    assert result.figures.finish_reason == "end" and not only(received, AudioChunk)
    assert result.codes.shape == (0, 3) and result.samples.shape == (0,)
    assert result.figures.first_audio_seconds is None and result.figures.realtime_factor == 0


def test_closing_the_stream_gives_the_memory_back(engine):
    row = make_row()
    events = engine.stream([row], [1.0])
    while row.cache is None:
        next(events)
    cache = weakref.ref(row.cache)
    events.close()
    gc.collect()
    assert row.cache is None and cache() is None


# Failures


def test_a_nan_weight_fails_every_row_but_not_the_engine(engine):
    expected = stream(engine, [make_row(seed=1)])[0][-1].result.codes
    weight = engine.model.dia.decoder.logits_dense.weight
    original = weight[5, 0].item()
    weight[5, 0] = float("nan")
    try:
        for received in stream(engine, [make_row(seed=1), make_row(seed=2)]).values():
            assert isinstance(received[-1], Failed) and "float32" in received[-1].message
            assert not only(received, AudioChunk)
    finally:
        weight[5, 0] = original
    again = stream(engine, [make_row(seed=1)])[0][-1].result.codes
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("error", [RunError("The codec broke. Fetch it."), MemoryError("no room")])
def test_an_error_during_a_run_fails_the_row_but_not_the_engine(engine, monkeypatch, error):
    def broken(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(DacCodec, "advance", broken)
        received = stream(engine, [make_row()])[0]
    assert isinstance(received[-1], Failed) and str(error) in received[-1].message
    assert isinstance(stream(engine, [make_row()])[0][-1], Finished)


def test_an_ended_row_stays_ended_when_another_breaks(engine, monkeypatch):
    """Exactly one end a row: the finished one is not failed after the fact."""
    ends, breaks = make_row(max_tokens=10), make_row(seed=2)
    draw = breaks.draw_uniforms

    def draw_until_alone(out):
        if ends.done:
            raise ZeroDivisionError
        draw(out)

    monkeypatch.setattr(breaks, "draw_uniforms", draw_until_alone)
    received = stream(engine, [ends, breaks])
    assert isinstance(received[0][-1], Finished) and isinstance(received[1][-1], Failed)
    assert "ZeroDivisionError" in received[1][-1].message


def test_figures_are_plain_values(engine):
    """JSON of the command line, metadata of the files: no tensor, no numpy scalar."""
    figures = stream(engine, [make_row()])[0][-1].result.figures
    values = asdict(figures)
    numerics = values.pop("numerics")
    assert values.pop("surplus_turns") is None, "the model has no turns that can be counted"
    assert {type(value) for value in values.values()} <= {str, int, float, FinishReason}
    assert numerics and {type(value) for value in numerics.values()} == {str}
    assert json.dumps(figures.finish_reason) == '"max_tokens"'

"""A dialogue from its plan to its file, with a small model of random weights: every part is made,
an interrupted run goes on, and its file is the same."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from dia_demo.audio import read_metadata
from dia_demo.engine.events import AudioChunk, Failed, Finished
from dia_demo.engine.row_stream import RowStream
from dia_demo.errors import InputError, RunError
from dia_demo.services.dialogue.events import (
    ChunkFinished,
    ChunkProgress,
    DialogueFailed,
    DialogueFinished,
    DialoguePlanned,
    DialogueStopped,
)
from dia_demo.services.dialogue.output import joined_samples, whole_figures, write_dialogue
from dia_demo.services.dialogue.plan import Join, make_plan, needs_chunks
from dia_demo.services.dialogue.run import MORE_FOR_VOICE, DialogueRun
from dia_demo.services.dialogue.store import DialogueStore
from dia_demo.services.judging.judge import Fault, Verdict
from dia_demo.services.models import find_model
from dia_demo.services.voices.seeds import seeds_like
from tests.helpers.dialogues import BAD, SCRIPT, judge_by_test, stop_at_step
from tests.helpers.stand_ins.disks import fill, mount_disk
from tests.helpers.synthesis_requests import make_request


@pytest.fixture
def judged(monkeypatch):
    """The verdicts by the test, one for each attempt."""
    return judge_by_test(monkeypatch)


@pytest.fixture
def make_run(synthesis, tmp_path, judged):
    def make(join=Join.STEADY, retries=1, script=SCRIPT, folder=None, **changes) -> DialogueRun:
        request = make_request(synthesis, script, **({"max_tokens": 500} | changes))
        plan = make_plan(request, join, retries)
        output = (folder or tmp_path) / "out.wav"
        return DialogueRun(synthesis, plan, DialogueStore.for_output(output, plan))

    return make


def events_of(run: DialogueRun, cancel=None) -> list:
    return list(run.stream(cancel or threading.Event()))


def files_of(run: DialogueRun) -> list[str]:
    return sorted(path.name for path in run.store.folder.glob("*"))


@pytest.mark.parametrize("join", list(Join))
def test_every_part_is_made_once_and_joined_in_order(make_run, join):
    run = make_run(join)
    events = events_of(run)
    count = len(run.plan.chunks)
    assert count >= 3 and isinstance(events[0], DialoguePlanned)
    finished = [event.chunk for event in events if isinstance(event, ChunkFinished)]
    assert sorted(finished) == list(range(count))
    assert finished == sorted(finished) or join is Join.STEADY
    assert isinstance(events[-1], DialogueFinished)
    heard = np.concatenate([e.samples for e in events if isinstance(e, AudioChunk)])
    np.testing.assert_array_equal(heard, joined_samples(run))
    assert all(r.verdict == "good" and r.remade == 0 for r in run.reports())
    assert any(isinstance(event, ChunkProgress) for event in events)


def test_a_part_with_a_fault_is_made_again_with_another_seed(make_run, judged):
    judged |= {(1, 0): BAD, (2, 0): BAD, (2, 1): BAD}
    run = make_run()
    events = events_of(run)
    reports = run.reports()
    assert [(r.remade, r.verdict) for r in reports[:3]] == [
        (0, "good"),
        (1, "good"),
        (1, "too fast"),
    ]
    assert reports[0].seed == 1 and reports[1].seed == 2
    again = [(e.chunk, e.attempt) for e in events if isinstance(e, ChunkFinished) and e.is_remade]
    assert sorted(again) == [(1, 0), (2, 0)]


@pytest.mark.parametrize("retries, remade", [(0, 0), (1, 1 + MORE_FOR_VOICE)])
def test_a_part_in_another_voice_is_made_again_more_often(make_run, judged, retries, remade):
    judged |= {(1, attempt): Verdict((Fault.VOICE,), True, 2.0) for attempt in range(9)}
    run = make_run(retries=retries)
    events_of(run)
    assert [report.remade for report in run.reports()[:3]] == [0, remade, 0]
    again = make_run(retries=retries)
    assert events_of(again)[0].found == len(run.plan.chunks)


def test_the_other_parts_continue_the_voices_of_those_in_which_all_speak_first(make_run):
    run = make_run()
    events_of(run)
    first, *others = run.plan.chunks
    assert first.speakers == {1, 2} and run.take(first).said == 0
    for chunk in others:
        take = run.take(chunk)
        assert run.plan.sources(chunk) == (first,)
        assert take.text[: take.said].decode().startswith("\x01 One two three four. \x02 Five")


def test_speakers_who_never_share_a_part_have_a_part_each_as_prompt(make_run):
    script = " ".join(f"[S{1 + k % 2}] These are words." for k in range(6))
    plan = make_run(script=script, max_tokens=300).plan
    assert all(len(chunk.speakers) == 1 for chunk in plan.chunks) and plan.parts_of_take == 3
    indexes = [[source.index for source in plan.sources(chunk)] for chunk in plan.chunks]
    assert indexes[:3] == [[], [0], [0, 1]] and indexes[-1] == [0, 1]
    flowing = make_run(Join.FLOWING, script=script, max_tokens=300).plan
    assert flowing.parts_of_take == 2
    indexes = [[source.index for source in flowing.sources(chunk)] for chunk in flowing.chunks]
    assert indexes[2:5] == [[0], [1], [2]]


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_an_interrupted_run_makes_the_missing_parts_and_the_same_file(make_run, kept, tmp_path):
    whole = make_run()
    events_of(whole)
    expected = joined_samples(whole)
    for path in sorted(whole.store.folder.glob("*"))[kept:]:
        path.unlink()
    again = make_run()
    events = events_of(again)
    made = {event.chunk for event in events if isinstance(event, ChunkFinished)}
    assert events[0].found == kept == len(whole.plan.chunks) - len(made)
    np.testing.assert_array_equal(joined_samples(again), expected)


def test_a_part_that_is_damaged_on_the_disk_is_made_again(make_run):
    run = make_run()
    events_of(run)
    expected = joined_samples(run)
    damaged = sorted(run.store.folder.glob("*"))[1]
    damaged.write_bytes(damaged.read_bytes()[:1000])
    again = make_run()
    assert events_of(again)[0].found == len(run.plan.chunks) - 1
    np.testing.assert_array_equal(joined_samples(again), expected)


def test_stop_keeps_what_is_complete(make_run):
    run, cancel, seen = make_run(Join.FLOWING), threading.Event(), []
    for event in run.stream(cancel):
        seen.append(event)
        if isinstance(event, ChunkFinished):
            cancel.set()
    assert seen[-1] == DialogueStopped(1, len(run.plan.chunks))
    assert len(files_of(run)) == 1
    assert events_of(make_run(Join.FLOWING))[0].found == 1


def test_stop_after_the_last_part_finds_the_dialogue_complete(make_run):
    """There is nothing left to resume."""
    run, cancel, seen = make_run(), threading.Event(), []
    for event in run.stream(cancel):
        seen.append(event)
        if run.made == len(run.plan.chunks):
            cancel.set()
    assert seen[-1] == DialogueFinished(run.reports())
    heard = np.concatenate([e.samples for e in seen if isinstance(e, AudioChunk)])
    np.testing.assert_array_equal(heard, joined_samples(run))


def stop_in_the_first_wave(run: DialogueRun, monkeypatch) -> list:
    """The events of a run that is stopped by the step after which there is something of every part
    of a wave."""
    cancel, begun = threading.Event(), set()
    wave = [chunk for chunk in run.plan.chunks if not run.plan.sources(chunk)]

    def all_begun(stream: RowStream) -> bool:
        if stream.audio_seconds > 0.2:
            begun.add(stream.index)
        return len(begun) == len(wave)

    stop_at_step(monkeypatch, all_begun, cancel.set)
    return events_of(run, cancel)


def test_what_was_made_of_stopped_parts_is_kept_for_listening(make_run, monkeypatch):
    run = make_run()
    events = stop_in_the_first_wave(run, monkeypatch)
    assert events[-1] == DialogueStopped(0, len(run.plan.chunks))
    again = make_run()
    again.find_made()
    assert again.made == 0 and again.stopped == run.stopped and 0 in run.stopped
    take = again.store.read_stopped(0)
    assert take.figures.audio_seconds == run.stopped[0] > 0.2
    heard = [event for event in events if isinstance(event, AudioChunk)]
    assert len(heard) == 1 and heard[0].start_seconds == 0
    np.testing.assert_array_equal(heard[0].samples, take.samples)


def test_stopped_parts_are_made_again_and_the_file_is_the_same(make_run, tmp_path, monkeypatch):
    whole = make_run(folder=tmp_path / "whole")
    events_of(whole)
    run = make_run()
    stop_in_the_first_wave(run, monkeypatch)
    resumed = make_run()
    assert isinstance(events_of(resumed)[-1], DialogueFinished)
    np.testing.assert_array_equal(joined_samples(resumed), joined_samples(whole))
    assert not resumed.stopped and resumed.store.read_stopped(0) is None


def test_the_first_part_is_made_alone_where_others_beside_it_only_delay_it(make_run, monkeypatch):
    run = make_run(script=SCRIPT * 2)
    info, chunks = run.plan.info, run.plan.chunks
    monkeypatch.setattr(type(run.plan), "sources", lambda plan, chunk: ())
    assert run._next_wave() == list(chunks[: len(run._next_wave())]) and len(chunks) > 1
    slow = replace(info, profile=replace(info.profile, batch_exponent=0.97))
    request = replace(run.plan.request, model=slow)
    run.plan = replace(run.plan, request=request)
    assert run._next_wave() == [chunks[0]]
    monkeypatch.setattr(run, "is_done", lambda chunk: chunk is chunks[0])
    assert run._next_wave() == list(chunks[1:])


def test_a_part_is_on_the_disk_as_soon_as_it_is_complete_while_others_run(make_run):
    run = make_run()
    running = {chunk.index for chunk in run.plan.chunks if not run.plan.sources(chunk)}
    for event in run.stream(threading.Event()):
        if isinstance(event, ChunkFinished):
            assert run.store.read(event.chunk, event.attempt) is not None
            running.discard(event.chunk)
    assert not running


def test_other_settings_have_another_folder(make_run):
    runs = [
        make_run(),
        make_run(seed=5),
        make_run(script=SCRIPT + " More."),
        make_run(Join.FLOWING),
    ]
    assert len({run.store.folder for run in runs}) == 4
    assert make_run().store.folder == make_run(retries=3).store.folder


def test_a_part_that_fails_ends_the_run_and_loses_nothing(make_run, synthesis, monkeypatch):
    run = make_run(Join.FLOWING)
    together = synthesis.stream_together

    def failing(requests, cancel):
        for event in together(requests, cancel):
            is_last = isinstance(event, Finished) and len(files_of(run)) == 2
            yield Failed("The decoder broke.", event.row) if is_last else event

    monkeypatch.setattr(synthesis, "stream_together", failing)
    last = events_of(run)[-1]
    assert last == DialogueFailed(
        "Part 3 could not be made: The decoder broke.", 2, len(run.plan.chunks)
    )
    assert len(files_of(run)) == 2


def test_a_full_disk_ends_the_run_with_what_to_do(make_run, tmp_path):
    with mount_disk(tmp_path / "disk", "2m") as disk:
        run = make_run(folder=disk)
        filler = fill(disk)
        last = events_of(run)[-1]
        assert isinstance(last, DialogueFailed) and "No space left" in last.message
        assert "Free some space and run it again" in last.message
        filler.unlink()
        assert isinstance(events_of(make_run(folder=disk))[-1], DialogueFinished)


def test_its_own_chunks_are_no_other_takes(make_run):
    run = make_run()
    events_of(run)
    first = run.attempts[0]
    first[0] = replace(first[0], figures=replace(first[0].figures, shared_with=7))
    assert whole_figures(run, 2.0, 0.5).shared_with == 0


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".mp3", ".opus"])
def test_the_file_has_the_joined_sound_and_says_what_it_is(make_run, tmp_path, suffix):
    run = make_run()
    events_of(run)
    path = tmp_path / f"out{suffix}"
    write_dialogue(path, run, whole_figures(run, 2.0, 0.5))
    samples, rate = soundfile.read(path)
    assert rate == 16000 and abs(len(samples) - len(joined_samples(run))) < 2500
    metadata = read_metadata(path)
    assert metadata["script"] == SCRIPT and metadata["settings"]["seed"] == 1
    assert len(metadata["chunks"]) == len(run.plan.chunks) and metadata["words"]


def test_a_file_that_cannot_be_written_leaves_the_parts(make_run, tmp_path):
    run = make_run()
    events_of(run)
    with pytest.raises(RunError, match="its parts are kept in"):
        write_dialogue(tmp_path / "missing" / "out.wav", run, whole_figures(run, 2.0, 0.5))
    assert files_of(run)


def test_what_needs_parts(synthesis):
    def needs(script: str, **changes) -> bool:
        return needs_chunks(make_request(synthesis, script, **changes))

    assert not needs("[S1] Hello there. [S2] Hi.") and not needs("") and not needs("[S1]")
    assert needs("[S1] Hello (pause 1) there.") and needs("[S1] " + "word " * 100)
    assert not needs("[S1] Hello there. [S2] Hi.", max_tokens=20)


@pytest.mark.parametrize(
    "changes, message",
    [({"max_tokens": 20}, "raise max tokens"), ({"script": "a" * 80_001}, "80,000 are allowed")],
)
def test_what_cannot_be_planned_is_refused(make_run, changes, message):
    with pytest.raises(InputError, match=message):
        make_run(**changes)


def test_retries_have_a_range(make_run):
    with pytest.raises(InputError, match="retries must be a whole number from 0 to 10"):
        make_run(retries=11)


def test_seeds_of_attempts_draw_the_same_voices():
    nano = find_model("nano").config
    for seed in (0, 3, 77, 2**32 - 1):
        seeds = seeds_like(nano, seed, 5)
        assert seeds[0] == seed and len(set(seeds)) == 5
        assert len({nano.voices.draw(each) for each in seeds}) == 1
        assert len({nano.voices.draw_apart_from(each, 3.0, 2) for each in seeds}) == 1
    without = replace(nano, voices=None)
    assert seeds_like(without, 2**32 - 1, 3) == (2**32 - 1, 0, 1)

"""A voice is kept from a long take: the exact codes and words of one of its parts."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.audio import read_metadata
from dia_demo.engine.events import FinishReason
from dia_demo.errors import InputError
from dia_demo.services.dialogue.output import whole_figures, write_dialogue
from dia_demo.services.dialogue.part_voice import is_joined, keep_part
from dia_demo.services.dialogue.plan import make_plan
from dia_demo.services.dialogue.run import DialogueRun, JoinedSound
from dia_demo.services.dialogue.store import DialogueStore
from dia_demo.services.voices.keep import keep_take
from tests.helpers.dialogues import BAD, SCRIPT, judge_by_test
from tests.helpers.synthesis_requests import make_request


@pytest.fixture
def judged(monkeypatch):
    return judge_by_test(monkeypatch)


@pytest.fixture
def make_run(synthesis, tmp_path, judged):
    def make(**changes) -> tuple[DialogueRun, dict]:
        plan = make_plan(make_request(synthesis, SCRIPT, **({"max_tokens": 500} | changes)))
        run = DialogueRun(synthesis, plan, DialogueStore.for_output(tmp_path / "out.wav", plan))
        list(run.stream(threading.Event()))
        for chunk in plan.chunks:  # Random weights never end by themselves.
            take = run.take(chunk)
            figures = replace(take.figures, finish_reason=FinishReason.END)
            run.store.write(replace(take, figures=figures))
        write_dialogue(tmp_path / "out.wav", run, whole_figures(run, 2.0, 0.5))
        return run, read_metadata(tmp_path / "out.wav")

    return make


def test_the_whole_is_kept_as_the_best_part_without_a_fault(make_run, judged):
    judged |= {(0, attempt): BAD for attempt in range(5)}
    run, contents = make_run()
    assert is_joined(contents)
    voice = keep_part(run, contents, "Anna")
    parts = {chunk.script: run.take(chunk).codes for chunk in run.plan.chunks}
    np.testing.assert_array_equal(voice.codes, parts[voice.transcript])
    assert voice.transcript != run.plan.chunks[0].script and voice.seed in (1, 2, 3)


def test_seconds_of_the_file_are_those_of_the_part_that_is_heard_there(make_run):
    run, contents = make_run()
    chunk = run.plan.chunks[1]
    placed = [piece.placed for piece in JoinedSound(run).ready_pieces()][1]
    take = run.take(chunk)
    rate, fps = take.sample_rate, run.plan.info.frames_per_second
    start, end = (placed.start / rate + after for after in (0.5, 2.0))
    voice = keep_part(run, contents, "Anna", (start, end), "[S1] These words.")
    first = round((placed.first / rate + 0.5) * fps)
    np.testing.assert_array_equal(voice.codes, take.codes[first : first + len(voice.codes)])
    assert abs(len(voice.codes) / fps - 1.5) < 0.05 and voice.transcript == "[S1] These words."


def test_seconds_of_two_parts_are_refused_with_those_that_can_be_chosen(make_run):
    run, contents = make_run()
    start = next(p.start for p in list(JoinedSound(run).ready_pieces())[1:])
    with pytest.raises(InputError, match=r"not within one part.*within 0\.0 to .* or "):
        keep_part(run, contents, "Anna", (start - 1, start + 1), "Words.")


def test_another_dialogue_and_a_file_alone_say_what_to_do(make_run):
    run, contents = make_run()
    with pytest.raises(InputError, match="no longer kept"):
        keep_part(run, contents | {"script": "[S1] Others."}, "Anna")
    with pytest.raises(InputError, match="Keep the voice of a long take on the page"):
        keep_take(contents, "Anna")


def test_a_take_with_faults_everywhere_asks_for_seconds(make_run, judged):
    judged |= {(part, attempt): BAD for part in range(9) for attempt in range(5)}
    with pytest.raises(InputError, match="choose from and to"):
        keep_part(*make_run(), "Anna")

"""What the page says of a run: states, durations, figures, and text from outside as text."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Failed,
    Finished,
    FinishReason,
    Loading,
    Waiting,
)
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import InputError
from dia_demo.services.wording import duration, length_remark
from dia_demo.text.checks.script_check import Finding, check_script
from dia_demo.ui.html import figures_table, script_report, status_card
from dia_demo.ui.status import (
    PREPARING,
    UNEXPECTED,
    explain,
    failed_status,
    figure_rows,
    status_of,
    tokens_hint,
    with_remarks,
)
from tests.helpers.page.page_stubs import FIGURES, RUNNING, STARTED, result


@pytest.mark.parametrize(
    ("event", "state", "words"),
    [
        (Waiting(2, TimeLeft(35, 45)), "waiting", "Place 2 in the queue, about 40 s left."),
        (Waiting(1), "waiting", "Place 1 in the queue."),
        (Loading("Reading the weights", 0.4), "loading", "Reading the weights, 40%"),
        (
            Loading("Reading the weights", 0.4, left=TimeLeft(130, 300)),
            "loading",
            "Reading the weights, 40%, about 2 to 5 min left.",
        ),
        (Loading("Getting the voice ready", None), "loading", "Getting the voice ready"),
        (STARTED, "running", "seed 7"),
        (RUNNING, "running", "12.4 s of audio, 0.31x realtime, about 20 s left"),
        (replace(RUNNING, left=TimeLeft(0, 0.4)), "running", "under 1 s left"),
        (replace(RUNNING, others=3), "running", "0.31x realtime, beside 3 other takes, about"),
        (Finished(result()), "done", "14.2 s of audio in 45.8 s, 0.31x realtime"),
        (
            Finished(replace(result(), figures=replace(FIGURES, shared_with=1))),
            "done",
            "in 45.8 s, 0.31x realtime beside 1 other take.",
        ),
        (Finished(result("max_tokens")), "cut", "raise Max tokens or shorten"),
        (Cancelled(result("cancelled")), "stopped", "14.2 s of audio kept"),
        (Cancelled(None), "stopped", "There was no speech yet"),
        (Failed("The disk is full."), "failed", "The disk is full."),
    ],
)
def test_every_event_is_said_in_plain_words(event, state, words):
    status = status_of(event, PREPARING)
    assert status.state == state and words in status.detail
    assert f'data-state="{state}"' in status_card(status)


LONG = "It continued after the end of the script (24 s for about 0.3 s of text): try another seed."
SHORT = (
    "It is much shorter than the script (0.7 s for about 4.0 s of text): words are probably "
    "missing. Try another seed."
)


@pytest.mark.parametrize(
    ("made", "expected", "reason", "remark"),
    [
        (24.5, 0.3, "end", LONG),
        (24.5, 0.3, "max_tokens", LONG),
        (0.7, 4.0, "end", SHORT),
        (0.7, 4.0, "max_tokens", None),
        (0.7, 4.0, "cancelled", None),
        (24.5, 20.0, "max_tokens", None),
        # A word: the silence around it weighs more than the word.
        (0.7, 0.26, "end", None),
        (24.5, None, "end", None),
    ],
)
def test_an_odd_length_is_remarked(made, expected, reason, remark):
    figures = replace(
        FIGURES, audio_seconds=made, expected_seconds=expected, finish_reason=FinishReason(reason)
    )
    assert length_remark(figures) == remark


@pytest.mark.parametrize(
    ("surplus", "said"),
    [(1, "has one turn more than"), (-2, "ended 2 turns before the end"), (0, None), (None, None)],
)
def test_a_turn_too_many_or_too_few_is_remarked_at_any_length(surplus, said):
    figures = replace(FIGURES, audio_seconds=4.0, expected_seconds=4.0, surplus_turns=surplus)
    remark = length_remark(figures)
    assert remark is None if said is None else said in remark


def test_a_take_that_went_on_to_max_tokens_is_not_told_to_raise_them():
    over = result("max_tokens")
    over = replace(over, figures=replace(over.figures, audio_seconds=24.5, expected_seconds=0.3))
    status = status_of(Finished(over), PREPARING)
    assert LONG in status.detail and "raise Max tokens" not in status.detail
    assert with_remarks(status, [LONG]).notes == (), "it is said once"


def test_the_status_keeps_its_notes_for_the_whole_run():
    running = status_of(STARTED, PREPARING)
    assert status_of(AudioChunk(np.zeros(4, np.float32), 16000, 0.0), running) == running
    later = status_of(RUNNING, running)
    assert later.notes == STARTED.notes
    assert STARTED.notes[0] in status_card(later)


def test_only_the_end_fills_the_bar():
    over = replace(RUNNING, audio_seconds=30.0)
    status = status_of(over, PREPARING)
    assert status.fraction < 1
    assert status_of(Finished(result()), status).fraction == 1


def test_a_screen_reader_hears_states_not_every_figure():
    one = status_of(RUNNING, PREPARING)
    two = status_of(replace(RUNNING, audio_seconds=13.0), one)
    assert one.detail != two.detail and one.announcement == two.announcement


def test_an_unexpected_error_is_logged_instead_of_shown(caplog):
    assert explain(InputError("The disk is full.")) == "The disk is full."
    with caplog.at_level(logging.ERROR):
        assert explain(KeyError("secret path")) == UNEXPECTED
    assert "secret path" in caplog.text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "0 s"),
        (20.4, "20 s"),
        (-3, "0 s"),
        (130, "2 min 10 s"),
        (180, "3 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_read_like_words(seconds, words):
    assert duration(seconds) == words


def test_figures_are_worded_for_people():
    assert tokens_hint(1720, 19.97) == "1,720 tokens ≈ 20 s"
    rows = dict(figure_rows(FIGURES))
    assert rows["Seed"] == "421337" and rows["Realtime factor"] == "0.31x"
    assert rows["Tokens only"] == "0.34x" and rows["Model"] == "Dia-1.6B-0626"
    assert "cut off" in dict(figure_rows(replace(FIGURES, finish_reason="max_tokens")))["Ended"]


def test_text_from_outside_stays_text():
    evil = '<img src=x onerror="alert(1)">'
    finding = Finding("x", "warning", evil, 1, evil, evil)
    report = replace(check_script(""), findings=(finding,))
    for html in (
        script_report(report, 10),
        status_card(failed_status(evil)),
        figures_table([(evil, evil)]),
    ):
        assert "<img" not in html and 'onerror="' not in html

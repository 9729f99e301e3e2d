"""The offline test: no answers in it; results files are merged once, or refused with a sentence."""

import json

import pytest

from dia_demo.errors import InputError
from dia_demo.services.listening.panel.offline import (
    checksum,
    merge_results,
    offline_bundle,
    offline_clips,
)
from dia_demo.services.listening.panel.sessions import OFFLINE_FIRST
from tests.services.listening.panel.helpers import answer_to, make_panel, new_id


@pytest.fixture
def panel(tmp_path):
    return make_panel(tmp_path / "test", "cmos")


def results_of(panel, place=0, rater=None, **changes):
    """What the page would write after one of its sessions."""
    session = panel.session_json(OFFLINE_FIRST + place)
    answers = [answer_to(shown, "cmos") for shown in session["presentations"]]
    data = {
        "session": session["session"],
        "rater": {"id": rater or new_id(), "name": "Bo", "recruitment": {}, "headphones": True},
        "answers": answers,
    }
    return data | changes


def file_of(panel, results, **changes):
    text = json.dumps(results)
    raw = {
        "format": "dia-listening-results",
        "version": 1,
        "test": panel.plan.id,
        "data": text,
        "checksum": checksum(panel.plan.id, text),
    }
    return json.dumps(raw | changes).encode()


def test_results_are_added_once(panel):
    data = results_of(panel)
    screens = len(data["answers"]) - 2
    report = merge_results(panel, file_of(panel, data))
    assert (report.added, report.known, report.refused) == (screens, 0, ())
    again = merge_results(panel, file_of(panel, data))
    assert (again.added, again.known) == (0, screens) and "already counted" in again.sentence
    assert len(panel.votes()[data["rater"]["id"]]) == screens
    assert panel.progress()[0].complete and panel.raters()[0].offline


def test_a_part_and_then_the_whole(panel):
    data = results_of(panel)
    merge_results(panel, file_of(panel, data | {"answers": data["answers"][:4]}))
    report = merge_results(panel, file_of(panel, data))
    assert (report.added, report.known) == (len(data["answers"]) - 4, 2)


def test_a_vote_twice_counts_once_and_the_rest_is_kept(panel):
    data = results_of(panel)
    second = data["answers"][3] | {"id": new_id(), "answer": {"score": 3}}
    report = merge_results(panel, file_of(panel, data | {"answers": [*data["answers"], second]}))
    assert report.added == len(data["answers"]) - 2
    assert len(report.refused) == 1 and "twice" in report.sentence
    kept = panel.votes()[data["rater"]["id"]][second["presentation"]]
    assert kept.value == {"score": -2}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"checksum": "00000000"}, "was changed after"),
        ({"test": "0" * 24}, "another listening test"),
        ({"version": 2}, "version 2"),
        ({"format": "other"}, "not the results file"),
        ({"data": 3}, "not the results file"),
    ],
)
def test_other_files_are_refused_and_nothing_is_lost(panel, changes, sentence):
    kept = results_of(panel)
    merge_results(panel, file_of(panel, kept))
    before = panel.votes()
    with pytest.raises(InputError, match=sentence) as refused:
        merge_results(panel, file_of(panel, results_of(panel, 1), **changes))
    assert "Nothing was added." in str(refused.value)
    assert panel.votes() == before


def test_a_file_edited_by_hand_is_noticed(panel):
    contents = file_of(panel, results_of(panel))
    edited = contents.replace(b'\\"score\\": -2', b'\\"score\\": 3')
    assert edited != contents
    with pytest.raises(InputError, match="was changed after"):
        merge_results(panel, edited)


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b"\xff", b'{"format": 1}'])
def test_damaged_files_are_refused(panel, damage):
    with pytest.raises(InputError, match="not the results file"):
        merge_results(panel, damage)


@pytest.mark.parametrize(
    "changes",
    [{"session": 0}, {"session": "x"}, {"rater": {}}, {"answers": {}}, {"rater": {"id": "x"}}],
)
def test_results_that_no_page_writes_are_refused(panel, changes):
    with pytest.raises(InputError):
        merge_results(panel, file_of(panel, results_of(panel) | changes))
    assert not panel.raters()


def test_a_rater_of_the_link_cannot_come_again_in_a_file(panel):
    rater = panel.start_rater(new_id()).id
    with pytest.raises(InputError, match="took the test already"):
        merge_results(panel, file_of(panel, results_of(panel, rater=rater)))


def test_the_bundle_has_neither_names_nor_the_key(panel):
    bundle = offline_bundle(panel)
    text = json.dumps(bundle)
    assert "system" not in text and panel.plan.key not in text
    assert panel.plan.invitation.token not in text
    files = {path.name for path in offline_clips(panel)}
    named = {
        file
        for session in bundle["sessions"]
        for shown in session["presentations"]
        for file in shown["clips"]
    }
    assert named <= files and all(path.is_file() for path in offline_clips(panel))

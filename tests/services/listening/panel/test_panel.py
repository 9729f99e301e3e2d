"""A panel test in its folder: raters, votes that are never lost or counted twice, its end."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import soundfile

from dia_demo.errors import InputError
from dia_demo.services.listening.panel.panel import COUNTED, KNOWN, Panel
from dia_demo.services.listening.panel.plan_file import NAME
from dia_demo.services.listening.panel.store import PanelStore
from dia_demo.services.listening.panel.votes import NAME as VOTES
from dia_demo.services.listening.panel.votes import VERSION
from dia_demo.services.people import new_key
from tests.services.listening.panel.helpers import (
    answer_to,
    make_panel,
    new_id,
    panel_plan,
    synthetic_source,
)


@pytest.fixture
def panel(tmp_path):
    return make_panel(tmp_path / "test")


def shown_to(panel, rater):
    session = panel.session(rater)
    return [one for one in session["presentations"] if one["part"] == "test"]


@pytest.mark.parametrize("design", ["preference", "abx", "cmos", "mushra", "bws", "mos"])
def test_a_rater_takes_the_test_and_it_is_read_back(tmp_path, design):
    more = {"reference": 0} if design == "mushra" else {}
    panel = make_panel(tmp_path / "test", design, systems=4 if design == "bws" else 2, **more)
    rater = panel.start_rater(new_id(), "Ann").id
    with pytest.raises(InputError, match="have no answer yet"):
        panel.finish(rater)
    for shown in shown_to(panel, rater):
        for file in shown["clips"]:
            assert panel.clip_path(rater, file).is_file()
        assert panel.vote(rater, answer_to(shown, design)) == COUNTED
    panel.finish(rater)
    again = Panel.open(tmp_path / "test")
    assert again.plan == panel.plan
    assert again.votes() == panel.votes() and len(again.votes()[rater]) == len(
        shown_to(panel, rater)
    )
    (progress,) = again.progress()
    assert progress.complete and progress.rater.finished


def test_an_answer_sent_again_counts_once_and_another_one_is_refused(panel):
    rater = panel.start_rater(new_id()).id
    answer = answer_to(shown_to(panel, rater)[0], "preference")
    assert panel.vote(rater, answer) == COUNTED
    assert panel.vote(rater, answer) == KNOWN
    with pytest.raises(InputError, match="the first one counts"):
        panel.vote(rater, answer | {"id": new_id()})
    assert len(Panel.open(panel.folder).votes()[rater]) == 1


def test_many_raters_at_once_in_several_processes_lose_nothing(panel):
    """Two objects on one folder are what two processes have."""
    other = Panel.open(panel.folder)
    barrier = threading.Barrier(6)

    def take(number):
        mine = (panel, other)[number % 2]
        barrier.wait()
        rater = mine.start_rater(new_id()).id
        for shown in shown_to(mine, rater):
            answer = answer_to(shown, "preference")
            assert (panel.vote(rater, answer), other.vote(rater, answer)) == (COUNTED, KNOWN)
        return rater

    with ThreadPoolExecutor(6) as pool:
        raters = list(pool.map(take, range(6)))
    count = len(shown_to(panel, raters[0]))
    assert {rater: len(votes) for rater, votes in panel.votes().items()} == dict.fromkeys(
        raters, count
    )
    assert len({rater.session for rater in panel.raters()}) == 6


def test_a_crash_in_the_middle_of_a_line_loses_that_line_alone(panel):
    rater = panel.start_rater(new_id()).id
    first, second = shown_to(panel, rater)[:2]
    panel.vote(rater, answer_to(first, "preference"))
    with open(panel.folder / VOTES, "ab") as file:
        file.write(b"2,half a li")
    again = Panel.open(panel.folder)
    assert len(again.votes()[rater]) == 1
    again.vote(rater, answer_to(second, "preference"))
    assert len(Panel.open(panel.folder).votes()[rater]) == 2


def test_votes_of_a_newer_version_are_refused_with_a_sentence(panel):
    rater = panel.start_rater(new_id()).id
    panel.vote(rater, answer_to(shown_to(panel, rater)[0], "preference"))
    text = (panel.folder / VOTES).read_text()
    (panel.folder / VOTES).write_text(text.replace(f"\n{VERSION},", "\n9,"))
    with pytest.raises(InputError, match="version '9'"):
        Panel.open(panel.folder).votes()


def test_clips_must_be_heard_before_an_answer(panel):
    rater = panel.start_rater(new_id()).id
    shown = shown_to(panel, rater)[0]
    for heard in ([], [0.1, 0.1], [shown["hear_seconds"]]):
        with pytest.raises(InputError, match="Listen to each clip"):
            panel.vote(rater, answer_to(shown, "preference") | {"heard": heard})


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "1"},
        {"presentation": "0" * 24},
        {"answer": {"better": 7}},
        {"attributes": ["colour"]},
        {"heard": [float("nan"), 1]},
        {"time": "=1+1"},
    ],
)
def test_answers_that_no_page_sends_are_refused(panel, wrong):
    rater = panel.start_rater(new_id()).id
    with pytest.raises(InputError):
        panel.vote(rater, answer_to(shown_to(panel, rater)[0], "preference") | wrong)
    assert not panel.votes()


def test_training_is_checked_and_not_stored(panel):
    rater = panel.start_rater(new_id()).id
    training = panel.session(rater)["presentations"][0]
    assert panel.vote(rater, answer_to(training, "preference")) == COUNTED
    assert not panel.votes()


def test_a_person_of_a_recruiting_platform_is_one_rater(panel):
    given = {"PROLIFIC_PID": "p1", "STUDY_ID": "s", "other": "x"}
    first = panel.start_rater(new_id(), recruitment=given)
    assert panel.start_rater(new_id(), recruitment=given).id == first.id
    assert first.recruitment == {"PROLIFIC_PID": "p1", "STUDY_ID": "s"}
    assert panel.start_rater(new_id(), recruitment=given | {"PROLIFIC_PID": "p2"}) != first


def test_a_closed_test_takes_nobody_new_and_no_answers(panel):
    rater = panel.start_rater(new_id()).id
    answer = answer_to(shown_to(panel, rater)[0], "preference")
    panel.close()
    with pytest.raises(InputError, match="is closed"):
        panel.vote(rater, answer)
    with pytest.raises(InputError, match="is closed"):
        panel.start_rater(new_id())
    panel.reopen()
    assert panel.vote(rater, answer) == COUNTED


def test_a_rater_is_left_out_with_a_reason(panel):
    rater = panel.start_rater(new_id()).id
    with pytest.raises(InputError, match="reason is recorded"):
        panel.exclude(rater, " ")
    panel.exclude(rater, "a colleague\nwho knows")
    assert panel.rater(rater).excluded == "a colleague who knows" and panel.rater(rater).excluded_at
    panel.include(rater)
    assert not panel.rater(rater).excluded


def test_clips_are_of_one_level_and_length_and_differ_in_their_bytes(panel):
    plan, random_bytes = panel.plan, set()
    levels = {}
    for name, file in plan.clips.items():
        samples, _ = soundfile.read(panel.folder / "clips" / file)
        kind, _, item = name.split(":")
        levels.setdefault(item, []).append((kind, len(samples), np.sqrt(np.mean(samples**2))))
        random_bytes.add((panel.folder / "clips" / file).read_bytes())
    assert len(random_bytes) == len(plan.clips)
    for clips in levels.values():
        assert len({length for _, length, _ in clips}) == 1
        mains = [level for kind, _, level in clips if kind != "anchor"]
        assert max(mains) / min(mains) < 1.02


def test_clips_of_others_are_not_served(panel):
    rater = panel.start_rater(new_id()).id
    for file in ("0" * 24 + ".wav", f"../{NAME}", ""):
        with pytest.raises(InputError):
            panel.clip_path(rater, file)


def test_only_the_whole_link_opens_a_test(tmp_path):
    store, key = PanelStore(tmp_path), new_key()
    identity = store.create(key, panel_plan(), synthetic_source())
    panel = store.get(key, identity)
    assert store.by_link(panel.plan.link) is panel and store.list(key) == [panel]
    wrong = (identity, identity + "0" * 32, panel.plan.link[:-1], "*" * 56, "../" + panel.plan.link)
    for link in wrong:
        with pytest.raises(InputError, match="belongs to no listening test"):
            store.by_link(link)
    with pytest.raises(InputError):
        store.get(new_key(), identity)
    store.delete(key, identity)
    with pytest.raises(InputError):
        store.by_link(panel.plan.link)


def test_the_file_of_the_plan_names_no_system(panel):
    text = (panel.folder / NAME).read_text()
    assert "system 0" not in text and panel.plan.key not in text
    assert panel.plan.invitation.token not in text

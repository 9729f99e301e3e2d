"""What a page says it has heard is bounded by the server's own clock."""

from __future__ import annotations

import pytest

from dia_demo.services.listening.audience.hearing import Hearing, UnheardError
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import new_key
from dia_demo.ui.compare.room_api import RoomApi
from tests.helpers.comparisons import HEARD


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hearing():
    hearing = Hearing()
    hearing.clock = Clock()
    return hearing


def test_a_clip_is_heard_after_it_was_sent(hearing):
    with pytest.raises(UnheardError, match="have not been sent to this page"):
        hearing.check("1", "AB", {"A": 1.0, "B": 1.0})
    hearing.note_sent("1", "A")
    with pytest.raises(UnheardError, match="have not been sent to this page"):
        hearing.check("1", "AB", {"A": 1.0, "B": 1.0})
    hearing.note_sent("1", "B")
    with pytest.raises(UnheardError, match=r"claims 3\.0 s of listening, .* only 0\.0 s before"):
        hearing.check("1", "AB", {"A": 3.0, "B": 1.0})
    hearing.clock.now += 4.0
    hearing.check("1", "AB", {"A": 3.0, "B": 1.0})
    with pytest.raises(UnheardError, match="have not been sent"):
        hearing.check("2", "AB", {"A": 1.0, "B": 1.0})


def test_only_one_clip_is_played_at_a_time(hearing):
    for letter in "ABX":
        hearing.note_sent("1", letter)
    hearing.clock.now += 10.0
    hearing.check("1", "ABX", {"A": 3.0, "B": 3.0, "X": 4.0})
    with pytest.raises(UnheardError, match=r"claims 15\.0 s"):
        hearing.check("1", "ABX", {"A": 5.0, "B": 5.0, "X": 5.0})


def test_a_clip_that_is_sent_again_was_heard_from_the_first_time_on(hearing):
    """After a reload the page knows what was heard of it before."""
    for _ in range(2):
        for letter in "AB":
            hearing.note_sent("1", letter)
        hearing.clock.now += 5.0
    hearing.check("1", "AB", {"A": 5.0, "B": 5.0})


def test_votes_within_seconds_are_refused(finished, synthesis, tmp_path):
    """A program that votes without listening, past the page's own script."""
    store, key = ComparisonStore(tmp_path / "kept", synthesis, shared=finished.folder), new_key()
    room, own = RoomApi(store), {"key": key, "id": finished.plan.id}
    heard = store.get(key, finished.plan.id)
    heard.hearing.clock = clock = Clock()
    listened = {"heard": HEARD, "covered": HEARD}
    for trial in heard.plan.trials:
        answer = room.ask(own | listened | {"do": "vote", "trial": trial.id, "vote": "A"})
        assert answer["again"] and "have not been sent" in answer["error"]
    trial = room.ask(own | {"do": "look"})["trial"]["id"]
    for letter in "AB":
        assert "clip" in room.ask(own | {"do": "clip", "trial": trial, "letter": letter})
    answer = room.ask(own | listened | {"do": "vote", "trial": trial, "vote": "A"})
    assert answer["again"] and "claims" in answer["error"]
    assert not heard.votes and not (finished.folder / "listeners").exists()
    clock.now += 20.0
    own |= {"do": "vote", "trial": trial, "vote": "?"}
    assert "A vote is one of" in room.ask(own | listened)["error"], "the hearing passes"

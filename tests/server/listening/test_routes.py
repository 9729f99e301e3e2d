"""The routes of invited listeners: what a link opens, what counts, what nobody learns."""

from __future__ import annotations

from functools import partial

import pytest
from fastapi import APIRouter, FastAPI
from starlette.testclient import TestClient

from dia_demo.server.listening import limits, routes
from dia_demo.server.listening.routes import ListeningRoutes
from dia_demo.services.listening.panel.analysis.ending import reveal_panel
from dia_demo.services.listening.panel.offline import offline_clips
from dia_demo.services.listening.panel.panel import Panel
from tests.services.listening.link.panels import SYSTEMS, answer_to, make_panel, mirrored, new_rater

CLOCK = "dia_demo.services.listening.link.guest.time"


class Listener:
    """A browser at a link. Its clock is the server's, which it can turn."""

    def __init__(self, store, panel, monkeypatch) -> None:
        application, router = FastAPI(), APIRouter()
        ListeningRoutes(store).add_to(router)
        application.include_router(router)
        self.client = TestClient(application)
        self.panel, self.link = panel, f"/listen/{panel.plan.link}"
        self.now = 1_000_000.0
        monkeypatch.setattr(CLOCK, lambda: self.now)

    def ask(self, what: str, **body):
        return self.client.post(f"{self.link}/{what}", json=body)

    def enter(self, **other) -> tuple[str, list[dict]]:
        """A new listener's id and screens."""
        state = self.ask("enter", rater=new_rater(), name="", **other).json()
        return state["rater"], state["session"]["presentations"]

    def receipts(self, rater: str, screen: dict) -> list[str]:
        return [
            self.ask("clip", rater=rater, clip=clip).headers["x-receipt"]
            for clip in screen["clips"]
        ]

    def hear(self, rater: str, screen: dict) -> list[str]:
        """The receipts of a screen's clips, and the time to hear them passes."""
        receipts = self.receipts(rater, screen)
        self.now += 2.0
        return receipts

    def send(self, rater: str, *answers: dict) -> list[str]:
        """What became of each answer."""
        results = self.ask("answers", rater=rater, answers=list(answers)).json()["results"]
        return [result["state"] for result in results]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A test nobody may change."""
    return make_panel(tmp_path_factory.mktemp("panels"))


@pytest.fixture
def listener(tmp_path, monkeypatch):
    return Listener(*make_panel(tmp_path / "home", size=(2, 2)), monkeypatch)


def test_a_link_opens_its_page_and_nothing_else(made, monkeypatch):
    listener = Listener(*made, monkeypatch)
    page = listener.client.get(listener.link)
    assert (
        page.status_code == 200
        and "frame-ancestors 'none'" in page.headers["content-security-policy"]
    )
    wrong = listener.link[:-1] + ("0" if listener.link[-1] != "0" else "1")
    for path in (wrong, "/listen/x", f"{listener.link}/clips", "/listen/", "/listen/..%2f..%2fetc"):
        assert listener.client.get(path).status_code == 404, path
    assert listener.client.post(f"{wrong}/about", json={}).status_code == 404
    moved = listener.client.get(f"{listener.link}/?PROLIFIC_PID=p", follow_redirects=False)
    assert moved.headers["location"] == f"../{made[1].plan.link}?PROLIFIC_PID=p"


def test_an_answer_counts_once_however_often_it_is_sent(listener):
    rater, (first, second) = listener.enter()
    answer = answer_to(first, listener.hear(rater, first))
    assert listener.send(rater, answer, answer) == ["counted"] * 2
    assert listener.send(rater, answer) == ["counted"], "its confirmation may have been lost"
    other = answer_to(first, answer["receipts"])
    last = answer_to(second, listener.hear(rater, second))
    assert listener.send(rater, other, last) == ["refused", "counted"], "each on its own"
    counted = {vote.id for vote in listener.panel.votes()[rater].values()}
    assert counted == {answer["id"], last["id"]}
    state = listener.ask("enter", rater=rater, name="").json()
    assert sorted(state["answered"]) == sorted((first["id"], second["id"]))
    assert listener.ask("finish", rater=rater, headphones=None).status_code == 200


def test_the_server_decides_what_can_have_been_heard(listener):
    rater, (first, second) = listener.enter()
    receipts = listener.receipts(rater, first)
    assert listener.send(rater, answer_to(first, receipts)) == ["unheard"], "too soon"
    listener.now += 2.0
    hour_ago = f"{listener.now - 3600:.2f} {receipts[0].split()[1]}"
    for wrong in ([], receipts[:1], [hour_ago, receipts[1]], listener.hear(rater, second), None):
        assert listener.send(rater, answer_to(first, wrong)) == ["unheard"], wrong
    short = answer_to(first, receipts, covered=[0.1, 0.8])
    assert listener.send(rater, short) == ["unheard"], "the same part twice"
    assert not listener.panel.votes()
    assert listener.send(rater, answer_to(first, receipts)) == ["counted"]


def test_an_answer_counts_that_waited_for_a_server_to_start_again(listener, tmp_path, monkeypatch):
    rater, (first, _) = listener.enter()
    answer = answer_to(first, listener.hear(rater, first))
    panel = listener.panel
    again = Listener(type(listener.panel).open(panel.folder), panel, monkeypatch)
    again.client = listener.client
    again.now = listener.now + 86_400
    assert again.send(rater, answer) == ["counted"]


def test_nobody_gets_far_with_what_belongs_to_others(listener):
    """Ids, clips and receipts of another listener; names that are paths."""
    ann, (screen, _) = listener.enter()
    bob, screens = listener.enter()
    anns = listener.hear(ann, screen)
    assert listener.ask("clip", rater=bob, clip=screen["clips"][0]).status_code == 400
    own = next(one for one in screens if one["text"] == screen["text"])
    assert not set(own["clips"]) & set(screen["clips"]), "clips have other names for everybody"
    assert listener.send(bob, answer_to(own, anns)) == ["unheard"]
    assert listener.send(bob, answer_to(screen, anns)) == ["refused"]
    file = offline_clips(listener.panel)[0].name
    names = (file, "../panel.json", "/etc/passwd", "panel.json", "", None, ["x"], {"a": 1})
    for name in names:
        assert listener.ask("clip", rater=ann, clip=name).status_code == 400, name
    for rater in (new_rater(), "", None, 5, "../x", ann.upper(), [ann]):
        for what in ("clip", "answers", "finish"):
            body = {"rater": rater, "clip": screen["clips"][0], "answers": [], "headphones": True}
            assert listener.ask(what, **body).status_code == 400, (what, rater)
    for link in ("..", "%2e%2e", f"{listener.panel.plan.id}{'0' * 32}", listener.panel.plan.id):
        assert listener.client.post(f"/listen/{link}/about", json={}).status_code in (404, 405)


def test_bodies_are_small_json_objects(listener):
    address = f"{listener.link}/answers"
    assert listener.client.post(address, content=b"x" * 100_001).status_code == 413
    for body in (b"", b"[]", b"null", b"\xff", b"[" * 50_000, b'{"rater": NaN}'):
        assert listener.client.post(address, content=body).status_code == 400, body[:10]
    rater, (screen, _) = listener.enter()
    for answers in (None, [], {}, [{}] * 21):
        assert listener.ask("answers", rater=rater, answers=answers).status_code == 400
    receipts = listener.hear(rater, screen)
    for wrong in (
        {"heard": ["0.8", 0.8]},
        {"covered": [True, 0.8]},
        {"answer": {"better": 7}},
        {"attributes": ["taste"]},
        {"id": "x"},
        {"presentation": ["x"]},
        {"covered": [1e9, 1e9]},
    ):
        (state,) = listener.send(rater, answer_to(screen, receipts) | wrong)
        assert state in ("refused", "unheard"), wrong
    assert not listener.panel.votes()


@pytest.mark.parametrize("end", [Panel.close, partial(reveal_panel, early=True)])
def test_a_test_that_has_ended_takes_nobody_and_nothing(listener, end):
    rater, (first, second) = listener.enter()
    answer = answer_to(first, listener.hear(rater, first))
    assert listener.send(rater, answer) == ["counted"]
    end(listener.panel)
    assert listener.ask("about").json()["closed"]
    assert listener.ask("enter", rater=new_rater(), name="").status_code == 400
    late = answer_to(second, listener.hear(rater, second))
    assert listener.send(rater, answer, late) == ["counted", "refused"]
    assert len(listener.panel.votes()[rater]) == 1


def test_one_address_has_so_many_places_and_listeners(listener, monkeypatch):
    monkeypatch.setattr(limits, "NEW_LISTENERS", 2)
    ann, _ = listener.enter()
    listener.enter()
    refused = listener.ask("enter", rater=new_rater(), name="")
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 1
    assert listener.ask("enter", rater=ann, name="").status_code == 200, "one who comes again"
    monkeypatch.setattr(limits, "AT_ONCE", 0)
    assert listener.ask("about").status_code == 429


def everything(listener: Listener, rater: str) -> tuple[list[tuple], list[bytes]]:
    """Every answer to a listener from the page to the end, with its headers; and the audio."""
    seen, sounds = [], []

    def note(response, is_sound=False):
        headers = {name: value for name, value in response.headers.items() if name != "date"}
        seen.append((headers, len(response.content) if is_sound else response.content))
        return response

    for path in (listener.link, "/listen/listen.js", "/listen/listen.css"):
        note(listener.client.get(path))
    note(listener.ask("about"))
    state = note(listener.ask("enter", rater=rater, name="")).json()
    for screen in state["session"]["presentations"]:
        asked = [listener.ask("clip", rater=rater, clip=clip) for clip in screen["clips"]]
        answers = [note(response, is_sound=True) for response in asked]
        sounds += [one.content for one in answers]
        listener.now += 2.0
        receipts = [one.headers["x-receipt"] for one in answers]
        answer = answer_to(screen, receipts, id=screen["id"] + "0" * 8)
        note(listener.ask("answers", rater=rater, answers=[answer]))
    note(listener.ask("finish", rater=rater, headphones=True))
    return seen, sounds


def test_no_byte_but_the_audio_depends_on_the_sides(made, tmp_path, monkeypatch):
    """All that one listener gets of a test and of its mirror image, whose sides are exchanged."""
    store, panel = made
    home = tmp_path / "mirror" / "person" / "panels"
    home.mkdir(parents=True)
    mirror = mirrored(panel, home / panel.plan.id)
    (tmp_path / "one" / "person" / "panels").mkdir(parents=True)
    rater = new_rater()
    mirror_store = type(store)(tmp_path / "mirror")
    seen, sounds = everything(Listener(store, panel, monkeypatch), rater)
    seen_mirrored, sounds_mirrored = everything(Listener(mirror_store, mirror, monkeypatch), rater)
    assert seen == seen_mirrored
    pairs = list(zip(sounds[::2], sounds[1::2], strict=True))
    pairs_mirrored = list(zip(sounds_mirrored[::2], sounds_mirrored[1::2], strict=True))
    assert pairs == [pair[::-1] for pair in pairs_mirrored], "the audio was exchanged"
    text = repr(seen)
    for secret in (*SYSTEMS, panel.plan.key, *panel.plan.clips.values()):
        assert secret not in text


def test_the_policy_of_the_page_names_no_other_site():
    assert "http" not in routes._POLICY

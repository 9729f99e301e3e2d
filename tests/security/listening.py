"""Attacks on a listening test by its link: guessed links, others' clips, paths, bodies, its end."""

from __future__ import annotations

import json
import time
from functools import partial

from dia_demo.services.listening.panel.analysis.ending import reveal_panel
from dia_demo.services.listening.panel.panel import Panel
from tests.security.client import App, attack
from tests.services.listening.link.panels import SYSTEMS, answer_to, make_panel, new_rater


def make_link(app: App) -> tuple[Panel, str]:
    """A new test among what the app keeps, and the path of its link."""
    _, panel = make_panel(app.folder / "kept", size=(2, 2))
    return panel, f"/listen/{panel.plan.link}"


def ask(app: App, link: str, what: str, body: object) -> tuple[int, bytes]:
    return app.post(f"{link}/{what}", body)


def enter(app: App, link: str) -> tuple[str, list[dict]]:
    """A new listener's id and screens."""
    rater = new_rater()
    _, body = ask(app, link, "enter", {"rater": rater, "name": "", "recruitment": {}})
    return rater, json.loads(body)["session"]["presentations"]


@attack("a listening test's link, guessed and bent", expected="opens nothing")
def guessed_links(app: App) -> tuple[bool, str]:
    panel, link = make_link(app)
    files = ("panel.json", "votes.csv", "raters.json", "../panel.json", "..%2fpanel.json", "clips/")
    guesses = [f"/listen/{panel.plan.id}{'0' * 32}", f"/listen/{panel.plan.id}", f"{link}0"]
    guesses += [f"{link}/{name}" for name in files]
    guesses += ["/listen/..%2f..%2f..%2fetc%2fpasswd", "/listen/%00", f"/listen/{'a' * 5000}"]
    opened = [path for path in guesses if app.get(path)[0] == 200]
    status, page = app.get(link)
    leaks = [name for name in SYSTEMS if name.encode() in page]
    return status == 200 and not opened and not leaks, f"{len(opened)} opened"


@attack("another listener's clips, id and answers", expected="refused")
def foreign_listeners(app: App) -> tuple[bool, str]:
    panel, link = make_link(app)
    (ann, screens), (bob, _) = enter(app, link), enter(app, link)
    clip = screens[0]["clips"][0]
    own, _ = ask(app, link, "clip", {"rater": ann, "clip": clip})
    names = [clip, "../../panel.json", "/etc/passwd", ["x"], None, {}, "\x00"]
    found = [ask(app, link, "clip", {"rater": bob, "clip": name})[0] for name in names]
    strangers = [new_rater(), ann[:-1], "", None, [ann], {"id": ann}]
    found += [ask(app, link, "clip", {"rater": one, "clip": clip})[0] for one in strangers]
    answer = answer_to(screens[0], ["", ""])
    found += [
        ask(app, link, "answers", {"rater": one, "answers": [answer]})[0] for one in strangers
    ]
    _, body = ask(app, link, "answers", {"rater": bob, "answers": [answer]})
    state = json.loads(body)["results"][0]["state"]
    held = own == 200 and set(found) == {400} and state == "refused" and not panel.votes()
    return held, f"statuses {sorted(set(found))}, an answer {state}"


@attack("hostile bodies to a listening test", expected="one sentence each, no answer counts")
def hostile_answers(app: App) -> tuple[bool, str]:
    panel, link = make_link(app)
    rater, (screen, _) = enter(app, link)
    bodies = [b"", b"[]", b"\xff", b"[" * 90_000, b'{"rater": NaN}', b"x" * 200_000]
    statuses = {app.post(f"{link}/answers", body)[0] for body in bodies}
    answer = answer_to(screen, ["9e99 x", "nan x"])
    values = (
        None,
        -1,
        1e308,
        [10**400] * 2,
        "x",
        [],
        {},
        [[]],
        [None] * 2,
        "\ud800",
        ["\ud800"] * 2,
        True,
    )
    for field in answer:
        for value in values:
            body = {"rater": rater, "answers": [answer | {field: value}]}
            statuses.add(ask(app, link, "answers", body)[0])
    return statuses <= {200, 400, 413} and not panel.votes(), f"statuses {sorted(statuses)}"


@attack("answers to a closed and to a revealed listening test", expected="none counts")
def late_answers(app: App) -> tuple[bool, str]:
    panel, link = make_link(app)
    rater, screens = enter(app, link)
    answers = [answer_to(screen, receipts(app, link, rater, screen)) for screen in screens]
    time.sleep(2 * 0.8)  # Both clips of a screen could be heard.
    in_time, late = answers
    states = []
    for end in (None, panel.close, partial(reveal_panel, panel, early=True)):
        if end:
            end()
        _, body = ask(app, link, "answers", {"rater": rater, "answers": [late if end else in_time]})
        states.append(json.loads(body)["results"][0]["state"])
    status, _ = ask(app, link, "enter", {"rater": new_rater(), "name": "", "recruitment": {}})
    held = states == ["counted", "refused", "refused"] and status == 400
    return held and len(panel.votes()[rater]) == 1, f"{', '.join(states)}; a new listener {status}"


def receipts(app: App, link: str, rater: str, screen: dict) -> list[str]:
    """What the server sends with each clip, and wants back with the answer."""
    found = []
    for clip in screen["clips"]:
        ask(app, link, "clip", {"rater": rater, "clip": clip})
        found.append(app.headers["x-receipt"])
    return found


QUICK = (guessed_links, foreign_listeners, hostile_answers, late_answers)

"""A panel test as an invited browser sees it: nothing that an answer contains, but the audio,
depends on which side is which.

Clips have names of their own for every listener and screen, so that neither two listeners nor two
screens can be compared by them. What a listener can have heard is bounded by the server's clock: a
clip comes with a receipt, which says when it was first sent and which only this server can sign. So
an answer that was kept in the browser while the connection or the server was away still counts.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

from dia_demo.audio import STORED_SUFFIX
from dia_demo.errors import InputError, RunError
from dia_demo.services.listening.audience.hearing import UnheardError, check_claims
from dia_demo.services.listening.clips import MISSING
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.sessions import ScreenPart
from dia_demo.services.listening.panel.votes import MAX_HEARD

MOST_ANSWERS = 20
# Of an entry in the results of `add_answers`.
COUNTED, UNHEARD, REFUSED = "counted", "unheard", "refused"
_RECEIPT = re.compile(r"(\d{1,12}\.\d\d) ([0-9a-f]{32})", re.ASCII)
_UNHEARD = "Listen to each clip to the end, or for 10 s, before you answer."


def about(panel: Panel) -> dict[str, Any]:
    """What a person may read before taking part."""
    plan, state = panel.plan, panel.state
    parts = [screen.part for screen in panel.screens(0).values()]
    training = parts.count(ScreenPart.TRAINING)
    return {
        "title": plan.title,
        "consent": plan.invitation.consent,
        "training": training,
        "trials": len(parts) - training,
        "closed": bool(state.closed or state.revealed),
    }


class Guest:
    """One listener at the link of a panel test."""

    def __init__(self, panel: Panel, rater: object) -> None:
        """Raises InputError for somebody who has not entered."""
        self._panel = panel
        self._rater = panel.rater(rater)  # type: ignore[arg-type]

    @classmethod
    def enter(cls, panel: Panel, rater: object, name: object, recruitment: object) -> Guest:
        """A listener who comes for the first time, or again. Raises InputError for a new one if
        the test is closed, and for values that no page sends."""
        if not isinstance(rater, str) or not isinstance(name, str):
            raise InputError("This page sent no listener: reload it.")
        given = recruitment if isinstance(recruitment, Mapping) else {}
        return cls(panel, panel.start_rater(rater, name, given).id)

    def state(self) -> dict[str, Any]:
        """The listener's id, session and answered screens."""
        session = self._panel.session(self._rater.id)
        screens = [self._rename_clips(screen) for screen in session["presentations"]]
        return {
            "rater": self._rater.id,
            "session": session | {"presentations": screens},
            "answered": sorted(self._panel.answered_screens(self._rater.id)),
        }

    def _rename_clips(self, screen: Mapping[str, Any]) -> dict[str, Any]:
        """A screen with the names of clips that this listener knows."""
        clips = [self._name(screen, index) for index in range(len(screen["clips"]))]
        reference = self._name(screen, -1) if screen["reference"] else None
        return {**screen, "clips": clips, "reference": reference}

    def _name(self, screen: Mapping[str, Any], index: int) -> str:
        drawn = self._panel.plan.draw("guest", self._rater.id, screen["id"], index)
        return f"{drawn[:24]}{STORED_SUFFIX}"

    def clip(self, name: object) -> tuple[bytes, str]:
        """A clip of the listener's session, and its receipt. Raises InputError for others."""
        path = self._path(name)
        sent = f"{time():.2f}"
        try:
            return path.read_bytes(), f"{sent} {self._signature(name, sent)}"
        except OSError as error:
            raise RunError(MISSING) from error

    def _path(self, name: object) -> Path:
        name = name if isinstance(name, str) else ""
        for screen in self._panel.session(self._rater.id)["presentations"]:
            files = {self._name(screen, n): file for n, file in enumerate(screen["clips"])}
            if screen["reference"]:
                files[self._name(screen, -1)] = screen["reference"]
            if name in files:
                return self._panel.clip_path(self._rater.id, files[name])
        raise InputError("This test has no such clip for you: reload the page.")

    def _signature(self, name: object, sent: str) -> str:
        return self._panel.plan.draw("receipt", self._rater.id, name, sent)[:32]

    def add_answers(self, answers: object) -> list[dict[str, str]]:
        """Count answers, each once; returns for each what became of it, and why. Raises InputError
        for what is no list of answers."""
        if not isinstance(answers, list) or not 0 < len(answers) <= MOST_ANSWERS:
            raise InputError(f"Send a list of 1 to {MOST_ANSWERS} answers.")
        return [self._add(answer) for answer in answers]

    def _add(self, answer: object) -> dict[str, str]:
        identity = str(answer.get("id"))[:32] if isinstance(answer, dict) else ""
        try:
            self._check_heard(answer)
            self._panel.vote(self._rater.id, answer)
        except UnheardError as error:
            return {"id": identity, "state": UNHEARD, "message": str(error)}
        except InputError as error:
            return {"id": identity, "state": REFUSED, "message": str(error)}
        return {"id": identity, "state": COUNTED, "message": ""}

    def _check_heard(self, answer: object) -> None:
        """Raise UnheardError if the clips of an answer were not heard, or cannot have been."""
        if not isinstance(answer, dict):
            raise InputError("An answer is a JSON object.")
        screens = self._panel.session(self._rater.id)["presentations"]
        shown = [screen for screen in screens if screen["id"] == answer.get("presentation")]
        if not shown:
            raise InputError("This test has no such screen for you: reload the page.")
        (screen,) = shown
        count = len(screen["clips"])
        heard = _numbers(answer.get("heard"), count)
        covered = _numbers(answer.get("covered"), count)
        if min(covered) < screen["hear_seconds"] - 0.05:
            raise UnheardError(_UNHEARD)
        receipts = answer.get("receipts")
        receipts = receipts if isinstance(receipts, list) else []
        names = [self._name(screen, index) for index in range(count)]
        sent = [self._sent_time(*both) for both in zip(names, receipts, strict=False)]
        sent += [None] * (count - len(sent))
        for claims in (heard, covered):
            check_claims(sent, claims, time())

    def _sent_time(self, name: str, receipt: object) -> float | None:
        """When a clip was sent, by its receipt; None for a wrong one."""
        match = _RECEIPT.fullmatch(receipt) if isinstance(receipt, str) else None
        if match is None:
            return None
        is_ours = hmac.compare_digest(match[2], self._signature(name, match[1]))
        return float(match[1]) if is_ours else None

    def finish(self, headphones: object) -> dict[str, str]:
        """Record that the listener is done; returns the completion code and the address for a
        recruiting platform. Raises InputError while screens are unanswered."""
        if isinstance(headphones, bool):
            self._panel.set_headphones(self._rater.id, headphones)
        return self._panel.finish(self._rater.id)


def _numbers(values: object, count: int) -> list[float]:
    """Seconds for each clip. Raises InputError for anything else."""
    numbers = values if isinstance(values, list) else []
    is_valid = all(type(value) in (int, float) and 0 <= value <= MAX_HEARD for value in numbers)
    if len(numbers) != count or not is_valid:
        raise InputError(f"An answer has the seconds heard of each of its {count} clips.")
    return [float(value) for value in numbers]

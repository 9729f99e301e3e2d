"""A panel test in its folder: its raters, their sessions and votes, its end.

A folder has panel.json (the plan), clips/, raters.json, votes.csv and state.json. Several threads
and processes may use it at once: what is written is written under the folder's lock, after reading
what others wrote. The result and the reveal are in `analysis`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from dia_demo.errors import InputError, RunError
from dia_demo.services.listening.clips import wave_seconds
from dia_demo.services.listening.panel.plan import PanelPlan
from dia_demo.services.listening.panel.plan_file import read_panel_plan, write_panel_plan
from dia_demo.services.listening.panel.raters import (
    MAX_NAME,
    MAX_REASON,
    Rater,
    check_rater_id,
    check_recruitment,
    find_person,
    now,
    plain_line,
    read_raters,
    write_raters,
)
from dia_demo.services.listening.panel.sessions import (
    OFFLINE_FIRST,
    Presentation,
    ScreenPart,
    make_session,
    session_json,
)
from dia_demo.services.listening.panel.stimuli import Source, write_stimuli
from dia_demo.services.listening.panel.votes import (
    PanelVote,
    VoteFile,
    append_panel_votes,
    make_panel_vote,
)
from dia_demo.services.listening.plan.plan_file import write_whole
from dia_demo.services.listening.render import CLIPS

STATE, LOCK = "state.json", ".lock"
# The seconds of each clip that must be heard, and the margin at a clip's end.
HEARD_SECONDS, HEARD_MARGIN = 10.0, 0.2
COUNTED, KNOWN = "counted", "already counted"
CLOSED = "This listening test is closed, so this answer was not counted. Thank you."


@dataclass(frozen=True)
class PanelState:
    """closed, revealed: when, blank if not. early: revealed before the planned number of raters."""

    closed: str = ""
    revealed: str = ""
    early: bool = False


@dataclass(frozen=True)
class RaterProgress:
    """How far a rater is. screens: of the session, without training."""

    rater: Rater
    answered: int
    screens: int

    @property
    def complete(self) -> bool:
        return self.answered >= self.screens


class Panel:
    """A panel test in its folder. Safe to use from several threads and processes."""

    def __init__(self, folder: Path, plan: PanelPlan) -> None:
        self.folder = folder
        self.plan = plan
        self._lock = FileLock(folder / LOCK)
        self._file = VoteFile(folder)
        self._screens = lru_cache(maxsize=256)(self._make_screens)
        self._seconds = lru_cache(maxsize=None)(self._seconds_of)
        self.session_json = lru_cache(maxsize=256)(self._make_json)

    @classmethod
    def create(cls, folder: Path, plan: PanelPlan, source: Source) -> Panel:
        """Write a new test with its clips. Raises InputError if the folder is in use or a wave
        cannot be used, RunError if levels cannot be matched or the disk is full."""
        if (source.systems, source.items) != (plan.systems, plan.items):
            raise InputError("The plan names other systems or sentences than its source.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise InputError(f"{folder} is not empty: choose a new folder.")
            (folder / CLIPS).mkdir()
            plan = write_stimuli(folder / CLIPS, plan, source)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"The clips could not be written: {reason}. Free some space.") from error
        write_panel_plan(folder, plan)
        return cls(folder, plan)

    @classmethod
    def open(cls, folder: Path) -> Panel:
        """An existing test. Raises InputError if the folder has none, or a damaged one."""
        return cls(folder, read_panel_plan(folder))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """No other thread or process writes in the folder within the block."""
        try:
            with self._lock:
                yield
        except OSError as error:
            raise RunError(f"The test cannot be written: {error.strerror or error}.") from error

    # -- raters --------------------------------------------------------------------------------

    def start_rater(
        self, identity: str, name: str = "", recruitment: Mapping[str, str] | None = None
    ) -> Rater:
        """The rater with this id, new or known. A person whom a recruiting platform already sent
        continues as the rater they were: use the id of what is returned.

        Raises InputError for a new rater of a closed test.
        """
        identity = check_rater_id(identity)
        given = check_recruitment(recruitment or {})
        with self.lock():
            raters = read_raters(self.folder)
            known = raters.get(identity) or find_person(raters, given)
            if known is None:
                self._refuse_closed()
                used = {rater.session for rater in raters.values()}
                session = next(n for n in range(OFFLINE_FIRST) if n not in used)
                name = plain_line(name, MAX_NAME)
                known = Rater(identity, session, name, given, started=now())
                write_raters(self.folder, raters | {identity: known})
            elif name and not known.name:
                known = self._change(raters, replace(known, name=plain_line(name, MAX_NAME)))
        return known

    def rater(self, identity: str) -> Rater:
        """A rater by the id. Raises InputError if there is none."""
        known = read_raters(self.folder).get(check_rater_id(identity))
        if known is None:
            raise InputError("This test does not know this listener: open its link again.")
        return known

    def raters(self) -> list[Rater]:
        """All raters in the order in which they came."""
        return list(read_raters(self.folder).values())

    def set_headphones(self, identity: str, passed: bool) -> None:
        """Record the headphone check."""
        with self.lock():
            raters = read_raters(self.folder)
            self._change(raters, replace(self.rater(identity), headphones=bool(passed)))

    def finish(self, identity: str) -> dict[str, str]:
        """Record that a rater is done; returns what a recruiting platform needs. Raises InputError
        while screens are unanswered."""
        with self.lock():
            rater = self.rater(identity)
            missing = self._test_screens(rater).keys() - self.answered_screens(rater.id)
            if missing:
                raise InputError(f"{len(missing)} screens have no answer yet.")
            if not rater.finished:
                self._change(read_raters(self.folder), replace(rater, finished=now()))
        invitation = self.plan.invitation
        return {
            "completion_code": invitation.completion_code,
            "completion_url": invitation.completion_url,
        }

    def exclude(self, identity: str, reason: str) -> None:
        """Leave a rater out of the result. Raises InputError without a reason, and after the
        reveal."""
        if not (reason := plain_line(reason, MAX_REASON)):
            raise InputError("Write why this listener is left out: the reason is recorded.")
        self._exclude(identity, reason, now())

    def include(self, identity: str) -> None:
        """Undo `exclude`. Raises InputError after the reveal."""
        self._exclude(identity, "", "")

    def _exclude(self, identity: str, reason: str, time: str) -> None:
        with self.lock():
            self.refuse_revealed("Listeners can be left out only before the reveal.")
            raters = read_raters(self.folder)
            self._change(raters, replace(self.rater(identity), excluded=reason, excluded_at=time))

    def _change(self, raters: dict[str, Rater], rater: Rater) -> Rater:
        write_raters(self.folder, raters | {rater.id: rater})
        return rater

    # -- sessions ------------------------------------------------------------------------------

    def session(self, identity: str) -> dict[str, Any]:
        """What the browser of a rater receives (see `session_json`)."""
        return self.session_json(self.rater(identity).session)

    def answered_screens(self, identity: str) -> set[str]:
        """The screens that a rater has answered."""
        return set(self._votes().get(identity, {}))

    def clip_path(self, identity: str, file: str) -> Path:
        """A clip of a rater's session by its file name. Raises InputError for others."""
        for screen in self._screens(self.rater(identity).session).values():
            names = (*screen.names, *([screen.reference] if screen.reference else ()))
            if file in {self.plan.clips[name] for name in names}:
                return self.folder / CLIPS / file
        raise InputError("This test has no such clip for this listener.")

    def screens(self, session: int) -> dict[str, Presentation]:
        """The screens of a session by their ids, with their sides: for the owner alone."""
        return self._screens(session)

    def _make_screens(self, number: int) -> dict[str, Presentation]:
        return {screen.id: screen for screen in make_session(self.plan, number)}

    def _make_json(self, number: int) -> dict[str, Any]:
        session = session_json(self.plan, number)
        for shown in session["presentations"]:
            shown["hear_seconds"] = round(self._needed_seconds(shown["clips"][0]), 1)
        return session

    def _needed_seconds(self, file: str) -> float:
        """The seconds of each clip of a screen that must be heard: all have the same length."""
        return max(0.0, min(HEARD_SECONDS, self._seconds(file)) - HEARD_MARGIN)

    def _seconds_of(self, file: str) -> float:
        return wave_seconds(self.folder / CLIPS / file)

    def _test_screens(self, rater: Rater) -> dict[str, Presentation]:
        screens = self._screens(rater.session)
        return {name: one for name, one in screens.items() if one.part is not ScreenPart.TRAINING}

    # -- votes ---------------------------------------------------------------------------------

    def vote(self, identity: str, answer: object) -> str:
        """Count one answer: COUNTED, or KNOWN for one that was counted before, by its id.

        Raises InputError if it is invalid, the second one to a screen, or too late.
        """
        rater = self.rater(identity)
        vote = make_panel_vote(
            self.plan, rater.id, rater.session, self._screens(rater.session), answer
        )
        self.check_heard(vote)
        if self._screens(rater.session)[vote.presentation].part is ScreenPart.TRAINING:
            return COUNTED
        with self.lock():
            earlier = self._votes().get(rater.id, {}).get(vote.presentation)
            if earlier is not None:
                if earlier.id == vote.id:
                    return KNOWN
                raise InputError("This screen already has an answer, and the first one counts.")
            self._refuse_closed()
            append_panel_votes(self.folder, [vote])
        return COUNTED

    def check_heard(self, vote: PanelVote) -> None:
        """Raise InputError if a clip was not heard for as long as a vote needs."""
        screen = self._screens(vote.session)[vote.presentation]
        needed = self._needed_seconds(self.plan.clips[screen.names[0]])
        if len(vote.seconds) != len(screen.names) or min(vote.seconds) < round(needed, 1) - 0.05:
            raise InputError(
                f"Listen to each clip to the end, or for {HEARD_SECONDS:.0f} s, before you answer."
            )

    def _votes(self) -> dict[str, dict[str, PanelVote]]:
        with self.lock():
            return self._file.by_rater()

    def votes(self) -> dict[str, dict[str, PanelVote]]:
        """The votes of each rater by screen."""
        return {rater: dict(votes) for rater, votes in self._votes().items()}

    def progress(self) -> list[RaterProgress]:
        """How far each rater is, in the order in which they came."""
        votes = self._votes()
        return [
            RaterProgress(rater, len(votes.get(rater.id, {})), len(self._test_screens(rater)))
            for rater in self.raters()
        ]

    # -- the end -------------------------------------------------------------------------------

    @property
    def state(self) -> PanelState:
        try:
            return PanelState(**json.loads((self.folder / STATE).read_text()))
        except FileNotFoundError:
            return PanelState()
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"{STATE} is damaged.") from error

    def close(self) -> None:
        """Accept no more raters and answers by the link; results files are still accepted."""
        with self.lock():
            self.write_state(replace(self.state, closed=self.state.closed or now()))

    def reopen(self) -> None:
        """Undo `close`. Raises InputError after the reveal."""
        with self.lock():
            self.refuse_revealed("The sides are revealed, so the test cannot be opened again.")
            self.write_state(replace(self.state, closed=""))

    def write_state(self, state: PanelState) -> None:
        """Write the state. Raises RunError if that fails."""
        write_whole(self.folder / STATE, json.dumps(asdict(state)).encode())

    def _refuse_closed(self) -> None:
        if self.state.closed or self.state.revealed:
            raise InputError(CLOSED)

    def refuse_revealed(self, sentence: str) -> None:
        """Raise InputError with this sentence after the reveal."""
        if self.state.revealed:
            raise InputError(sentence)

"""The offline test: what its page reads, and the results files that it writes.

A results file is checked as a whole before anything of it is added.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dia_demo.errors import InputError
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.plan import PanelPlan
from dia_demo.services.listening.panel.raters import (
    MAX_NAME,
    Rater,
    check_rater_id,
    check_recruitment,
    find_person,
    plain_line,
    read_raters,
    write_raters,
)
from dia_demo.services.listening.panel.sessions import OFFLINE_FIRST, OFFLINE_SESSIONS, ScreenPart
from dia_demo.services.listening.panel.votes import PanelVote, append_panel_votes, make_panel_vote
from dia_demo.services.listening.render import CLIPS
from dia_demo.services.wording import plural

BUNDLE_FORMAT, BUNDLE_VERSION = "dia-listening-offline", 1
FORMAT, VERSION = "dia-listening-results", 1
MAX_BYTES = 4_000_000
MAX_ANSWERS = 1000
NOTHING = "Nothing was added."


@dataclass(frozen=True)
class MergeReport:
    """What became of the answers of a results file. added: counted now. known: counted before.
    refused: the reason of each that was not."""

    rater: str
    added: int
    known: int
    refused: tuple[str, ...]

    @property
    def sentence(self) -> str:
        parts = [f"{plural(self.added, 'answer')} added"]
        if self.known:
            parts.append(f"{self.known} already counted")
        text = ", ".join(parts) + "."
        if self.refused:
            text += f" {plural(len(self.refused), 'answer')} refused: {self.refused[0]}"
        return text


def offline_bundle(panel: Panel) -> dict[str, Any]:
    """What the page of the offline test reads: sessions made ahead, without their answers."""
    return {
        "format": BUNDLE_FORMAT,
        "version": BUNDLE_VERSION,
        "test": panel.plan.id,
        "sessions": [
            panel.session_json(number)
            for number in range(OFFLINE_FIRST, OFFLINE_FIRST + OFFLINE_SESSIONS)
        ],
    }


def offline_clips(panel: Panel) -> list[Path]:
    """The clips of the offline test, in the order of their names."""
    return [panel.folder / CLIPS / file for file in sorted(panel.plan.clips.values())]


def merge_results(panel: Panel, contents: bytes) -> MergeReport:
    """Add the answers of a results file that are not counted yet.

    Raises InputError, and adds nothing, for a file that was edited, of another test or of a newer
    version, and for a person who took the test by the link.
    """
    rater, answers = read_results(panel.plan, contents)
    with panel.lock():
        panel.refuse_revealed(f"The sides are revealed, so no more answers count. {NOTHING}")
        raters = read_raters(panel.folder)
        known = raters.get(rater.id) or find_person(raters, rater.recruitment)
        if known is not None and (known.id, known.session) != (rater.id, rater.session):
            raise InputError(f"This listener took the test already, elsewhere. {NOTHING}")
        added, familiar, refused = _sort_answers(panel, rater, answers)
        append_panel_votes(panel.folder, added)
        if known is not None:
            finished = rater.finished or known.finished
            rater = replace(known, finished=finished, headphones=rater.headphones)
        write_raters(panel.folder, raters | {rater.id: rater})
    return MergeReport(rater.id, len(added), familiar, tuple(refused))


def _sort_answers(
    panel: Panel, rater: Rater, answers: list[Any]
) -> tuple[list[PanelVote], int, list[str]]:
    """Those to add, the number of those known, and why the others are refused."""
    screens = panel.screens(rater.session)
    seen = panel.votes().get(rater.id, {})
    added: list[PanelVote] = []
    known, refused = 0, []
    for answer in answers:
        try:
            vote = make_panel_vote(panel.plan, rater.id, rater.session, screens, answer)
            panel.check_heard(vote)
        except InputError as error:
            refused.append(str(error))
            continue
        if screens[vote.presentation].part is ScreenPart.TRAINING:
            continue
        earlier = seen.get(vote.presentation)
        if earlier is None:
            seen[vote.presentation] = vote
            added.append(vote)
        elif earlier.id == vote.id:
            known += 1
        else:
            refused.append("A screen was answered twice, and the first answer counts.")
    return added, known, refused


def checksum(test: str, data: str) -> str:
    """8 hexadecimal digits, which notice a file that was edited; they do not prevent it."""
    return f"{zlib.crc32((test + data).encode('utf-8', 'surrogatepass')):08x}"


def read_results(plan: PanelPlan, contents: bytes) -> tuple[Rater, list[Any]]:
    """The rater of a results file, and the answers as they are in it.

    Raises InputError for a file of another test or a newer version, and for one that was changed.
    """
    raw = _parse(contents)
    if raw["test"] != plan.id:
        raise InputError(f"This file has the results of another listening test. {NOTHING}")
    if raw.get("checksum") != checksum(plan.id, raw["data"]):
        raise InputError(
            "This file was changed after the test wrote it, so its answers may not be the "
            f"listener's. {NOTHING} Ask the listener for the original file."
        )
    try:
        data = json.loads(raw["data"])
        answers, session = data["answers"], data["session"]
        rater = _rater(data["rater"], session)
        if not isinstance(answers, list) or len(answers) > MAX_ANSWERS:
            raise ValueError("answers")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"The results in this file are damaged. {NOTHING}") from error
    return rater, answers


def _parse(contents: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(contents.decode("utf-8"))
        if len(contents) > MAX_BYTES or raw["format"] != FORMAT:
            raise ValueError("format")
        version = raw["version"]
        if type(version) is not int or not isinstance(raw["test"], str):
            raise ValueError("version")
        if version == VERSION and not isinstance(raw["data"], str):
            raise ValueError("data")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"This is not the results file of a listening test. {NOTHING}") from error
    if version != VERSION:
        raise InputError(
            f"This file has version {version}, and this program reads version {VERSION}: update "
            f"the program. {NOTHING}"
        )
    return raw


def _rater(raw: Mapping[str, Any], session: object) -> Rater:
    sessions = range(OFFLINE_FIRST, OFFLINE_FIRST + OFFLINE_SESSIONS)
    if type(session) is not int or session not in sessions:
        raise ValueError("session")
    headphones = raw.get("headphones")
    return Rater(
        id=check_rater_id(raw["id"]),
        session=session,
        name=plain_line(raw.get("name", ""), MAX_NAME),
        recruitment=check_recruitment(raw.get("recruitment", {})),
        started=plain_line(raw.get("started", ""), 40),
        finished=plain_line(raw.get("finished", ""), 40),
        headphones=headphones if isinstance(headphones, bool) else None,
        offline=True,
    )

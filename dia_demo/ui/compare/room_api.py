"""The requests of the listening room: the next pair, a clip, a vote, the result.

Requests come from assets/page/lab as JSON and contain the person's key. While a comparison is
blind, nothing in an answer but the audio depends on which side is which.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from dia_demo import audio
from dia_demo.errors import InputError
from dia_demo.services.listening.audience.hearing import UnheardError
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.ui import html
from dia_demo.ui.compare.html import result
from dia_demo.ui.status import explain

PICTURE_SIZE = (440, 110)


class RoomApi:
    """Answers requests of all pages; the key in a request identifies the person."""

    def __init__(self, comparisons: ComparisonStore) -> None:
        self.comparisons = comparisons

    def ask(self, request: dict) -> dict:
        """Answer {do, key, id, ...}. An error is returned as {error}; with {again: true} if the
        page must fetch the clips and count its listening anew."""
        actions = {
            "look": self._look,
            "clip": self._clip,
            "vote": self._vote,
            "reveal": self._reveal,
            "pictures": self._pictures,
        }
        try:
            if not isinstance(request, dict) or request.get("do") not in actions:
                raise InputError("This page sent an unknown request. Reload it.")
            key: Any = request.get("key")
            identity: Any = request.get("id")
            return actions[request["do"]](self.comparisons.get(key, identity), request)
        except UnheardError as error:
            return {"error": str(error), "again": True}
        except Exception as error:
            return {"error": explain(error)}

    def _look(self, comparison: Comparison, request: dict) -> dict:
        """The state of the comparison: the next pair, or the result."""
        plan, votes = comparison.plan, comparison.votes
        shown = request.get("trial")
        trial = comparison.next_trial(shown if isinstance(shown, str) else None)
        state = {
            "kind": plan.kind,
            "pairs": len(plan.trials),
            "made": sum(planned.made for planned in plan.trials),
            "voted": len(votes),
            "failed": len(comparison.failed_takes()),
            "making": comparison.running,
            "open": comparison.is_unblinded,
            "trial": None,
            "result": result(comparison) if comparison.is_unblinded else "",
        }
        if trial is not None:
            state["trial"] = {
                "id": trial.id,
                "number": len(votes) + 1,
                "script": plan.scripts[trial.script],
                "letters": "ABX"[: len(trial.clips)],
                "needed": round(comparison.needed_seconds(trial), 2),
            }
        return state

    def _clip(self, comparison: Comparison, request: dict) -> dict:
        trial, letter = str(request.get("trial")), str(request.get("letter"))
        current = comparison.next_trial()
        if not comparison.is_unblinded and (current is None or current.id != trial):
            raise InputError("This is not the next pair.")
        clip = comparison.clip(trial, letter)
        comparison.hearing.note_sent(trial, letter)
        return {"clip": base64.b64encode(clip).decode("ascii")}

    def _vote(self, comparison: Comparison, request: dict) -> dict:
        trial = comparison.trial(str(request.get("trial")))
        heard, covered = (_seconds(request.get(name)) for name in ("heard", "covered"))
        if not comparison.is_unblinded and trial.id not in comparison.votes:
            for claims in (heard, covered):
                comparison.hearing.check(trial.id, "ABX"[: len(trial.clips)], claims)
        strength = request.get("strength")
        comparison.vote(
            trial.id,
            str(request.get("vote")),
            heard,
            strength if isinstance(strength, int) else None,
            str(request.get("note") or ""),
            covered,
        )
        return self._look(comparison, request)

    def _reveal(self, comparison: Comparison, request: dict) -> dict:
        comparison.reveal()
        return self._look(comparison, request)

    def _pictures(self, comparison: Comparison, request: dict) -> dict:
        """Waveform and spectrogram of both clips of a pair, after the reveal."""
        if not comparison.is_unblinded:
            raise InputError("Pictures are available after the reveal.")
        trial = comparison.trial(str(request.get("trial")))
        return {"html": "".join(_picture(*comparison.samples(trial.id, letter)) for letter in "AB")}


def _seconds(sent: object) -> dict[str, float]:
    """Seconds by clip, as a page sent them; whatever is no number is left out."""
    if not isinstance(sent, dict):
        return {}
    return {
        letter: max(0.0, min(float(sent[letter]), 3600.0))
        for letter in "ABX"
        if isinstance(sent.get(letter), int | float)
    }


def _picture(samples: np.ndarray, rate: int) -> str:
    seconds = len(samples) / rate
    figure = html.spectrogram_figure(audio.spectrogram(samples, rate, *PICTURE_SIZE), seconds)
    return f'<div class="picture">{_waveform(samples)}{figure}</div>'


def _waveform(samples: np.ndarray, columns: int = 220) -> str:
    """The outline of a clip as an SVG of its maxima and minima."""
    edges = np.linspace(0, len(samples), columns + 1).astype(int)
    pieces = [
        samples[start : max(start + 1, end)]
        for start, end in zip(edges[:-1], edges[1:], strict=True)
    ]
    points = [
        f"M{at} {32 - 30 * piece.max():.1f}V{32 - 30 * piece.min():.1f}"
        for at, piece in enumerate(pieces)
    ]
    return (
        f'<svg class="waveform" viewBox="0 0 {columns} 64" preserveAspectRatio="none" role="img" '
        f'aria-label="Waveform"><path d="{"".join(points)}"/></svg>'
    )

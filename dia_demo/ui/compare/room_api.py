"""What the page's listening room may ask the server: the next pair, a clip, a vote, the result.

Questions come from assets/lab as JSON and carry the person's key. While a comparison is blind,
no answer holds anything that depends on which side is which, but for the sound itself.
"""

from __future__ import annotations

import base64

import numpy as np

from dia_demo import audio
from dia_demo.errors import InputError
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.ui import html
from dia_demo.ui.compare.html import result
from dia_demo.ui.status import explain

PICTURE_SIZE = (440, 110)


class RoomApi:
    """Answers for every page; whose comparison is asked for, is told by the key alone."""

    def __init__(self, comparisons: ComparisonStore) -> None:
        self.comparisons = comparisons

    def ask(self, wanted: dict) -> dict:
        """One question: {do, key, id, ...}. What goes wrong comes back as {error}."""
        questions = {
            "look": self._look,
            "clip": self._clip,
            "vote": self._vote,
            "reveal": self._reveal,
            "pictures": self._pictures,
        }
        try:
            if not isinstance(wanted, dict) or wanted.get("do") not in questions:
                raise InputError("The page asked for something unknown: reload it.")
            comparison = self.comparisons.get(wanted.get("key"), wanted.get("id"))
            return questions[wanted["do"]](comparison, wanted)
        except Exception as error:
            return {"error": explain(error)}

    def _look(self, comparison: Comparison, wanted: dict) -> dict:
        """Where the comparison stands: the pair to be heard, or the result."""
        plan, votes = comparison.plan, comparison.votes
        held = wanted.get("trial")
        trial = comparison.next_trial(held if isinstance(held, str) else None)
        state = {
            "kind": plan.kind,
            "pairs": len(plan.trials),
            "made": sum(one.made for one in plan.trials),
            "voted": len(votes),
            "failed": len(comparison.failed()),
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

    def _clip(self, comparison: Comparison, wanted: dict) -> dict:
        trial, letter = str(wanted.get("trial")), str(wanted.get("letter"))
        current = comparison.next_trial()
        if not comparison.is_unblinded and (current is None or current.id != trial):
            raise InputError("This pair is not the one to be heard now.")
        wav = comparison.clip(trial, letter)
        return {"wav": base64.b64encode(wav).decode("ascii")}

    def _vote(self, comparison: Comparison, wanted: dict) -> dict:
        heard = wanted.get("heard") if isinstance(wanted.get("heard"), dict) else {}
        seconds = {
            letter: min(float(heard[letter]), 3600.0)
            for letter in "ABX"
            if isinstance(heard.get(letter), int | float)
        }
        strength = wanted.get("strength")
        comparison.vote(
            str(wanted.get("trial")),
            str(wanted.get("vote")),
            seconds,
            strength if isinstance(strength, int) else None,
            str(wanted.get("note") or ""),
        )
        return self._look(comparison, wanted)

    def _reveal(self, comparison: Comparison, wanted: dict) -> dict:
        comparison.reveal()
        return self._look(comparison, wanted)

    def _pictures(self, comparison: Comparison, wanted: dict) -> dict:
        """Waveform and spectrogram of both clips of a pair whose sides are known."""
        if not comparison.is_unblinded:
            raise InputError("There are no pictures while the test is blind.")
        trial = comparison.trial(str(wanted.get("trial")))
        return {"html": "".join(_picture(*comparison.samples(trial.id, one)) for one in "AB")}


def _picture(samples: np.ndarray, rate: int) -> str:
    seconds = len(samples) / rate
    figure = html.spectrogram_figure(audio.spectrogram(samples, rate, *PICTURE_SIZE), seconds)
    return f'<div class="picture">{_waveform(samples)}{figure}</div>'


def _waveform(samples: np.ndarray, columns: int = 220) -> str:
    """The clip's outline as an SVG of its highest and lowest points."""
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

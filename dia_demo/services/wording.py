"""Wording for people: lengths of time, counts, how a take ended."""

from __future__ import annotations

# By the finish_reason of a take's figures.
ENDINGS = {
    "end": "end of script",
    "max_tokens": "CUT OFF at max tokens",
    "cancelled": "stopped",
}


def duration(seconds: float, tenths: bool = False) -> str:
    """A length of time: "20 s", "1 min 40 s", "2 h 5 min". tenths: of seconds, below ten."""
    if tenths and seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def plural(count: int, noun: str) -> str:
    """A count with its noun: "1 turn", "4 turns"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

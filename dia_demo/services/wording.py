"""Wording for people: durations, counts, how a take ended, and remarks on its length."""

from __future__ import annotations

from datetime import datetime
from math import ceil
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dia_demo.engine.events import Figures, FinishReason
from dia_demo.engine.loading.memory import gb
from dia_demo.engine.time_left import TimeLeft

# By the finish_reason of a take's figures.
ENDINGS = {
    "end": "end of script",
    "max_tokens": "cut off at Max tokens",
    "cancelled": "stopped",
}

# Of voice prompts.
NO_TRANSCRIPT = (
    "The voice prompt has no transcript, so the script is used as it is: the take may repeat or "
    "drop words. Enter the words spoken in the prompt."
)
OTHER_CODEC = (
    "This voice was kept from a model with another codec, so its codes would be noise here: voices "
    "of Dia and of Dia2 cannot be exchanged. Choose the model it came from, or keep the voice "
    "again."
)
SPREAD = (
    "It is not known when each word of the voice prompt is said, so they were spread over it by "
    "the length of their text. A voice that is kept from a take of this model knows its words."
)
ESTIMATED = (
    "When each word of the voice prompt is said was estimated from its pauses and the lengths of "
    "its words. A voice that is kept from a take of this model knows it exactly, and with an "
    "aligner it is found in English recordings: pip install pocketsphinx."
)

# Measured on the embedded voice (22 scripts of a word to 17 s, 8 takes each): whole takes had 0.87
# to 1.72 times the expected length, or up to 0.35 s more; takes that went on or lost words were
# beyond these.
LONGEST_FACTOR, LONGEST_MORE_SECONDS = 2.0, 1.0
SHORTEST_FACTOR = 0.5

# Up to this ratio of its ends an estimate is one figure, within 1.5 times of both when rounded. A
# wider one is a range, and beyond the second ratio only its upper end is named.
ONE_FIGURE, A_RANGE = 2.0, 4.5


def length_remark(figures: Figures) -> str | None:
    """What an unexpected length of a take, or number of turns, means and what to do; None for what
    was expected."""
    if surplus := figures.surplus_turns:
        turns = "one turn" if abs(surplus) == 1 else f"{abs(surplus)} turns"
        if surplus < 0:
            return f"It ended {turns} before the end of the script: try another seed."
        return f"It has {turns} more than the script: try another seed."
    made, expected = figures.audio_seconds, figures.expected_seconds
    if expected is None or figures.finish_reason == FinishReason.CANCELLED:
        return None
    lengths = f"{duration(made, tenths=True)} for about {duration(expected, tenths=True)} of text"
    if made > LONGEST_FACTOR * expected + LONGEST_MORE_SECONDS:
        return f"It continued after the end of the script ({lengths}): try another seed."
    if made < SHORTEST_FACTOR * expected and figures.finish_reason == FinishReason.END:
        return (
            f"It is much shorter than the script ({lengths}): words are probably missing. Try "
            "another seed."
        )
    return None


def duration(seconds: float, tenths: bool = False) -> str:
    """A duration: "20 s", "1 min 40 s", "2 h 5 min". tenths: one decimal below 10 s."""
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


def about_duration(seconds: float) -> str:
    """An estimated duration, rounded: "about 35 s", "under 1 s"."""
    return "under 1 s" if seconds < 1 else f"about {duration(_round_estimate(seconds))}"


def time_left(left: TimeLeft) -> str:
    """An estimate in words: "about 35 s", "about 2 to 4 min", "less than 10 s"."""
    if left.high < 1 or left.spread <= ONE_FIGURE:
        return about_duration(left.middle if left.high >= 1 else 0.0)
    if left.spread <= A_RANGE and (ends := _range_words(left)):
        return f"about {ends}"
    return f"less than {duration(_round_estimate(left.high, up=True))}"


def _range_words(left: TimeLeft) -> str:
    """Both ends in one unit, rounded outwards: "2 to 4 min"; empty where that widens them much."""
    for unit, name in ((3600, "h"), (60, "min"), (1, "s")):
        low, high = int(left.low / unit), ceil(left.high / unit)
        if low >= 1 and high / low <= A_RANGE:
            return f"{low} to {high} {name}"
    return ""


def _round_estimate(seconds: float, up: bool = False) -> float:
    """As exact as an estimate is; up: not below it."""
    steps = ((20, 1), (100, 5), (600, 30), (3600, 60))
    step = next((step for limit, step in steps if seconds < limit), 300)
    return step * (ceil(seconds / step) if up else round(seconds / step))


def local_time(when: datetime, zone: str | None = None) -> str:
    """A time for people: "27 Nov 2026, 14:05", in the browser's time zone if that is known, and
    otherwise in this machine's. zone: its name, such as "Europe/Berlin"."""
    try:
        local = when.astimezone(ZoneInfo(zone)) if zone else when.astimezone()
    except (ValueError, OSError, ZoneInfoNotFoundError):
        local = when.astimezone()
    return f"{local:%d %b %Y, %H:%M}".lstrip("0")


def sharing_clause(others: int) -> str:
    """Why a take is slower than alone: "beside 3 other takes"; "" if it is alone."""
    return f"beside {plural(others, 'other take')}" if others else ""


def plural(count: int, noun: str) -> str:
    """A count with its noun: "1 turn", "4 turns"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def byte_size(count: float) -> str:
    """An amount of data: "6.7 GB", "24 MB", "12 kB"."""
    if count >= 1e9:
        return gb(count)
    return f"{count / 1e6:.0f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"

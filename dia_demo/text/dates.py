"""Dates, times of day, decades and phone numbers, as they are spoken."""

from __future__ import annotations

import re

from num2words import num2words

from dia_demo.text.numerals import cardinal, digits, ordinal, year
from dia_demo.text.rules import Reader, Rule, final_dot, rule

_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_MONTH = (
    r"(?P<month>Jan(?:uary|\.)?|Feb(?:ruary|\.)?|Mar(?:ch|\.)?|Apr(?:il|\.)?|May|June?\.?|July?\.?"
    r"|Aug(?:ust|\.)?|Sept?(?:ember|\.)?|Oct(?:ober|\.)?|Nov(?:ember|\.)?|Dec(?:ember|\.)?)"
)


def _phone(match: re.Match, _: Reader) -> str:
    groups = re.findall(r"\d+", match[0])
    plus = "plus " if match[0].startswith("+") else ""
    return plus + ", ".join(digits(group) for group in groups)


def _date(month: int, day: int, of_year: str | None, written: str) -> str:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return written
    if of_year and len(of_year) == 2:
        of_year = ("20" if int(of_year) < 70 else "19") + of_year
    end = f", {year(int(of_year))}" if of_year else ""
    return f"{_MONTHS[month - 1]} {ordinal(day)}{end}"


def _iso_date(match: re.Match, _: Reader) -> str:
    return _date(int(match[2]), int(match[3]), match[1], match[0])


def _slashed_date(match: re.Match, _: Reader) -> str:
    """Month first, as in the United States; day first where it can be nothing else."""
    first, second = int(match[1]), int(match[2])
    if first > 12:
        first, second = second, first
    return _date(first, second, match[3], match[0])


def _dotted_date(match: re.Match, _: Reader) -> str:
    return _date(int(match[2]), int(match[1]), match[3], match[0])


def _named_date(match: re.Match, _: Reader) -> str:
    month = next(n for n, name in enumerate(_MONTHS, 1) if name[:3] == match["month"][:3])
    return _date(month, int(match["day"]), match["year"], match[0])


def _time(match: re.Match, reader: Reader) -> str:
    hour, minute, half = int(match[1]), match[2], match[3]
    if hour == 0:
        hour, half = 12, half or "a"
    words = num2words(hour)
    if minute and int(minute):
        words += " oh " + num2words(int(minute)) if minute[0] == "0" else " " + cardinal(minute)
    elif not half:
        words += " o'clock" if hour <= 12 else " hundred"
    if not half:
        return words
    return f"{words} {reader.letters(half + 'm')}{final_dot(match)}"


def _decade(match: re.Match, _: Reader) -> str:
    century, tens = match[1], match[2]
    if tens == "0":
        words = f"{num2words(int(century))} hundreds" if century != "20" else "two thousands"
        return words if century else match[0]
    plural = num2words(int(tens) * 10)[:-1] + "ies" if tens != "1" else "tens"
    return f"{num2words(int(century))} {plural}" if century else plural


# In this order: what an earlier rule has written in words no later one sees.
RULES: tuple[Rule, ...] = (
    rule(
        r"(?<![\w.-])(?:\+?1[ .-]?)?(?:\(\d{3}\)[ ]?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\w-])"
        r"|(?<![\w.-])\d{3}-\d{4}(?![\w-])"
        r"|(?<!\w)\+\d{1,3}(?:[ .-]\d{2,4}){2,5}(?![\w-])"
        r"|(?<![\w.-])0\d{2,4}[ -]\d{3,4}(?:[ -]\d{3,4})?(?![\w-])",
        _phone,
    ),
    rule(r"(?<![\w-])(\d{4})-(\d{2})-(\d{2})(?![\w-])", _iso_date),
    rule(r"(?<![\w/])(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})(?![\w/])", _slashed_date),
    rule(r"(?<![\w.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\w|\.\d)", _dotted_date),
    rule(
        rf"\b{_MONTH}[ \t](?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?[ \t](?P<year>\d{{4}}))?"
        r"(?![\w:]|[.,]\d|[ \t]?[ap]\.?m\b)",
        _named_date,
    ),
    rule(
        rf"(?<![\w.,/:-])(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[ \t]{_MONTH}\b"
        r"(?:,?[ \t](?P<year>\d{4}))?(?!\w)",
        _named_date,
    ),
    rule(
        r"(?<![\w:.])([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?"
        r"(?:[ \t]?([ap])\.?[ \t]?m\b\.?)?(?![\w:])",
        _time,
        re.IGNORECASE,
    ),
    rule(
        r"(?<![\w:.])(1[0-2]|0?[1-9])()[ \t]?([ap])(?:m\b|\.[ \t]?m\.?)(?!\w)", _time, re.IGNORECASE
    ),
    rule(r"(?<![\w.,])'?(1[1-9]|20|)([0-9])0'?s\b", _decade),
)

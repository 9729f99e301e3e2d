"""Dates, times of day, durations and decades, as they are spoken."""

from __future__ import annotations

import re

from num2words import num2words

from dia_demo.text.reading.numbers import cardinal, digits, ordinal, pairs, year
from dia_demo.text.reading.rules import Reader, Rule, after, before, final_dot, rule

_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_MONTH = (
    r"(?P<month>Jan(?:uary|\.)?|Feb(?:ruary|\.)?|Mar(?:ch|\.)?|Apr(?:il|\.)?|May|June?\.?|July?\.?"
    r"|Aug(?:ust|\.)?|Sept?(?:ember|\.)?|Oct(?:ober|\.)?|Nov(?:ember|\.)?|Dec(?:ember|\.)?)"
)
_MONTH_2 = _MONTH.replace("<month>", "<month2>")
_TO = r"[ \t]?(?:-|to|until|through)[ \t]?"
_DAYS = {
    "Mon": "Monday", "Tue": "Tuesday", "Tues": "Tuesday", "Wed": "Wednesday", "Thu": "Thursday",
    "Thur": "Thursday", "Thurs": "Thursday", "Fri": "Friday", "Sat": "Saturday", "Sun": "Sunday",
}  # fmt: skip
# The unit of each part of a duration: 1h 30m 5s, 2hrs 15min.
_PARTS = {
    "d": "day", "day": "day", "h": "hour", "hr": "hour", "m": "minute", "min": "minute",
    "s": "second", "sec": "second",
}  # fmt: skip
# What belongs to a decade: 90s music.
_STYLES = (
    "music|rock|pop|kids?|style|fashion|movies?|films?|hits|party|dance|era|hair|songs?|shows?"
    "|nostalgia|cartoons?|sitcoms?|classics?|vibes?"
)
_DAY_FIRST = "write the month as a word if it is the second number."


def _date(month: int, day: int, of_year: str | None, written: str) -> str:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return written
    if of_year and len(of_year) == 2:
        of_year = ("20" if int(of_year) < 70 else "19") + of_year
    end = f", {year(int(of_year))}" if of_year else ""
    return f"{_MONTHS[month - 1]} {ordinal(day)}{end}"


def _iso_date(match: re.Match, _: Reader) -> str:
    return _date(int(match[3]), int(match[4]), match[1], match[0])


def _slashed_date(match: re.Match, reader: Reader) -> str:
    """Month first, as in the United States; day first where it can be nothing else."""
    first, second = int(match[1]), int(match[3])
    if first > 12:
        return _date(second, first, match[4], match[0])
    words = _date(first, second, match[4], match[0])
    if words != match[0] and second <= 12 and first != second:
        return reader.remark(match[0], words, _DAY_FIRST)
    return words


def _short_date(match: re.Match, reader: Reader) -> str:
    """on 4/7: a date by the word before it."""
    written = f"{match[2]}/{match[3]}"
    words = _date(int(match[2]), int(match[3]), None, written)
    if words == written:
        return match[0]
    return match[1] + reader.remark(written, words, _DAY_FIRST)


def _dotted_date(match: re.Match, _: Reader) -> str:
    """Day first, as where dates are written with dots."""
    first, second = int(match[1]), int(match[2])
    if second > 12:
        first, second = second, first
    return _date(second, first, match[3], match[0])


def _month_number(name: str) -> int:
    return next(n for n, month in enumerate(_MONTHS, 1) if month[:3] == name[:3])


def _named_date(match: re.Match, _: Reader) -> str:
    return _date(_month_number(match["month"]), int(match["day"]), match["year"], match[0])


def _date_range(match: re.Match, _: Reader) -> str:
    """June 3-5, 3-5 June, June 3 - July 5, with a year or without."""
    month = _month_number(match["month"])
    second_month = match.groupdict().get("month2")
    first, second = int(match["day"]), int(match["day2"])
    if not (1 <= first <= 31 and 1 <= second <= 31):
        return match[0]
    end = f", {year(int(match['year']))}" if match["year"] else ""
    until = f"{_MONTHS[_month_number(second_month) - 1]} " if second_month else ""
    return f"{_MONTHS[month - 1]} {ordinal(first)} to {until}{ordinal(second)}{end}"


def _month_of_year(match: re.Match, _: Reader) -> str:
    """2024-10, 10/2024."""
    month, of_year = (match[2], match[1]) if match[1] else (match[3], match[4])
    if not 1 <= int(month) <= 12:
        return match[0]
    return f"{_MONTHS[int(month) - 1]} {year(int(of_year))}"


def _months(match: re.Match, _: Reader) -> str:
    return (
        f"{_MONTHS[_month_number(match['month']) - 1]} to "
        f"{_MONTHS[_month_number(match['month2']) - 1]}"
    )


def _days(match: re.Match, _: Reader) -> str:
    joint = {"-": " to ", "/": " or ", "&": " and "}.get(match[2].strip(), match[2])
    return f"{_DAYS[match[1]]}{joint}{_DAYS[match[3]]}"


def _minutes(written: str) -> str:
    """oh five, thirty."""
    return f"oh {digits(written[1])}" if written[0] == "0" else cardinal(written)


def _time(match: re.Match, reader: Reader) -> str:
    hour, minute, half = int(match[1]), match[2], match[3]
    if hour == 24 or (hour == 0 and match[1] == "00" and minute == "00"):
        return "midnight" if minute == "00" else match[0]
    if match[1] == "0" and not half:  # No clock shows it: a time of a film or a race.
        words = f"zero {_minutes(minute)}"
        return reader.remark(match[0], words, "write minutes and seconds, or 12 and AM, in words.")
    if hour == 0:
        hour, half = 12, half or "a"
    words = num2words(hour)
    if minute and int(minute):
        words += f" {_minutes(minute)}"
    elif not half:
        words += " o'clock" if hour <= 12 else " hundred"
    if not half:
        return words
    return f"{words} {reader.letters(half + 'm')}{final_dot(match)}"


def _time_with_seconds(match: re.Match, reader: Reader) -> str:
    """3:05:09 with AM or PM, or after "at", is a time of day; otherwise a duration."""
    hours, minutes, seconds, half = (match[n] for n in range(1, 5))
    if not half and not re.search(r"\bat[ \t]$|T$", before(match)):
        parts = ((int(hours), "hour"), (int(minutes), "minute"), (int(seconds), "second"))
        return _duration(parts) or "zero seconds"
    words = num2words(int(hours))
    if int(minutes):
        words += f" {_minutes(minutes)}"
    if int(seconds):
        words += f" and {_counted(int(seconds), 'second')}"
    return f"{words} {reader.letters(half + 'm')}" if half else words


def _counted(number: int, unit: str) -> str:
    return f"{num2words(number)} {unit}{'' if number == 1 else 's'}"


def _duration(parts) -> str:
    """Hours, minutes and seconds that are not zero, the last one after "and" if there are three."""
    words = [_counted(number, unit) for number, unit in parts if number]
    if len(words) > 2:
        return f"{' '.join(words[:-1])} and {words[-1]}"
    return " ".join(words)


def _parts(match: re.Match, _: Reader) -> str:
    """1h 30m, 2h30, 5m30s."""
    found = re.findall(r"(\d{1,3})[ \t]?([a-z]*)", match[0])
    units = [_PARTS.get(unit.rstrip("s") or unit) for _, unit in found]
    if units[-1] is None:
        units[-1] = "minute"
    if any(unit is None for unit in units):
        return match[0]
    return _duration([(int(n), unit) for (n, _), unit in zip(found, units, strict=True) if unit])


def _clock_with_h(match: re.Match, _: Reader) -> str:
    """14h30."""
    return f"{cardinal(match[1])} {_minutes(match[2]) if int(match[2]) else 'hundred'}"


def _military(match: re.Match, _: Reader) -> str:
    """0800 hours, at 0630."""
    clock = match["clock"] or match["clock2"]
    hours, minutes = clock[:2], clock[2:]
    if int(hours) > 24 or int(minutes) > 59:
        return match[0]
    words = digits(hours) if hours[0] == "0" else cardinal(hours)
    return f"{words} {cardinal(minutes) if int(minutes) else 'hundred'}"


def _dotted_time(match: re.Match, reader: Reader) -> str:
    """at 7.30: a time by the word before it."""
    words = f"{num2words(int(match[1]))} {cardinal(match[2])}"
    return reader.remark(match[0], words, "write what it counts if it is no time of day.")


def _decade(match: re.Match, reader: Reader) -> str:
    century, tens = match[1], match[2]
    if not century and not match[0].startswith("'"):
        of_years = re.search(
            r"\b(?:the|his|her|my|our|their|your|its|early|late|mid|whose)[ \t-]"
            r"(?:(?:early|late|mid)[ \t-])?$|(?:s|,)[ \t](?:and|or|to)[ \t]$|mid-$",
            before(match),
        )
        style = re.match(rf"[ \t](?:{_STYLES})\b", after(match))
        if not (of_years or style):
            return match[0]
    if tens == "0":
        return "two thousands" if century in ("", "20") else f"{num2words(int(century))} hundreds"
    plural = num2words(int(tens) * 10)[:-1] + "ies" if tens != "1" else "tens"
    return f"{num2words(int(century))} {plural}" if century else plural


def _short_year(match: re.Match, _: Reader) -> str:
    """the summer of '69, class of '09."""
    return f"oh {digits(match[1][1])}" if match[1][0] == "0" else cardinal(match[1])


def _era(match: re.Match, reader: Reader) -> str:
    """AD 79, 44 BC, 500 B.C."""
    letters = match["before"] or match["after"]
    number = match["year"] or match["year2"]
    spoken = pairs(number) if len(number) == 4 else cardinal(number)
    if len(number) == 4 and number[1:3] == "00":
        spoken = cardinal(number)
    name = reader.letters(letters)
    return f"{name} {spoken}" if match["before"] else f"{spoken} {name}{final_dot(match)}"


# In this order: what an earlier rule has written in words no later one sees.
RULES: tuple[Rule, ...] = (
    rule(
        r"(?<![\w-])(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d)?)(?:\.\d{1,6})?(?:Z"
        r"|[+-]\d\d:?\d\d)?(?!\w)",
        lambda match, reader: f"{match[1]} at {match[2]}",
    ),
    rule(r"(?<![\w.,-])((?:1[5-9]|20)\d\d)([-/.])(\d{1,2})\2(\d{1,2})(?![\w-])", _iso_date),
    rule(r"(?<![\w/])(\d{1,2})([/-])(\d{1,2})\2(\d{4})(?![\w/-])", _slashed_date),
    rule(r"(?<![\w/])(\d{1,2})(/)(\d{1,2})/(\d{2})(?![\w/])", _slashed_date),
    rule(r"(?<![\w.])(\d{1,2})\.[ ]?(\d{1,2})\.[ ]?(\d{4})(?!\w|\.\d)", _dotted_date),
    rule(
        rf"\b((?:[Oo]n|[Dd]ue|[A-Z][a-z]{{2,6}}day|{'|'.join(_DAYS)})\.?,?[ \t])"
        r"(\d{1,2})/(\d{1,2})(?![\w/]|[.,]\d)",
        _short_date,
    ),
    rule(
        r"(?<![\w/.,-])(20\d\d)-(0[1-9]|1[0-2])(?![\w/-])|(?<![\w/.,-])(0?[1-9]"
        r"|1[0-2])/(20\d\d|19\d\d)(?![\w/])",
        _month_of_year,
    ),
    rule(
        rf"\b{_MONTH}[ \t](?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_TO}{_MONTH_2}[ \t]"
        r"(?P<day2>\d{1,2})(?:st|nd|rd|th)?(?:,?[ \t](?P<year>\d{4}))?(?![\w:])",
        _date_range,
    ),
    rule(
        rf"(?<![\w.,/:-])(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[ \t]{_MONTH}{_TO}"
        rf"(?P<day2>\d{{1,2}})(?:st|nd|rd"
        rf"|th)?[ \t]{_MONTH_2}(?:,?[ \t](?P<year>\d{{4}}))?(?![\w:])",
        _date_range,
    ),
    rule(
        rf"\b{_MONTH}[ \t](?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_TO}(?P<day2>\d{{1,2}})"
        r"(?:st|nd|rd|th)?(?:,?[ \t](?P<year>\d{4}))?(?![\w:]|[.,]\d|[ \t]?[ap]\.?m\b)",
        _date_range,
    ),
    rule(
        rf"(?<![\w.,/:-])(?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_TO}(?P<day2>\d{{1,2}})"
        rf"(?:st|nd|rd|th)?[ \t]{_MONTH}\b(?:,?[ \t](?P<year>\d{{4}}))?(?!\w)",
        _date_range,
    ),
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
    rule(rf"\b{_MONTH}-{_MONTH_2}(?!\w)", _months),
    rule(
        r"\b(?P<month>Jan|Feb|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?(?=[ \t]'?\d{2,4}\b)",
        lambda match, reader: _MONTHS[_month_number(match["month"]) - 1],
    ),
    rule(
        rf"\b({'|'.join(_DAYS)})\b\.?([ \t]?[-/&][ \t]?|[ \t](?:to|and|or|through)[ \t])"
        rf"({'|'.join(_DAYS)})\b(?!')",
        _days,
    ),
    rule(
        rf"\b({'|'.join(_DAYS)})\.?(?=,?[ \t](?:\d|{'|'.join(_MONTHS)})|[ \t]at[ \t]\d"
        r"|[ \t](?:morning|afternoon|evening|night)\b)",
        lambda match, reader: _DAYS[match[1]],
    ),
    rule(
        r"(?<![\w:.])(\d{1,2}):([0-5]\d):([0-5]\d)(?:[.,]\d{1,3})?(?:[ \t]?"
        r"([ap])\.?m\b\.?)?(?![\w:])",
        _time_with_seconds,
        re.IGNORECASE,
    ),
    rule(
        r"(?<![\w:.])([01]?\d|2[0-4]):([0-5]\d)(?:[ \t]?([ap])\.?[ \t]?m\b\.?)?(?![\w:])"
        r"(?!\.\d)",
        _time,
        re.IGNORECASE,
    ),
    rule(
        r"(?<![\w:.])(0?\d|1[0-2])[.:]([0-5]\d)[ \t]?([ap])(?:\.[ \t]?m\.?|m\b)(?!\w)",
        _time,
        re.IGNORECASE,
    ),
    rule(
        r"(?<![\w:.])(1[0-2]|0?[1-9])()[ \t]?([ap])(?:m\b|\.[ \t]?m\.?)(?!\w)", _time, re.IGNORECASE
    ),
    rule(
        r"(?<=\bat )(1[0-2]|[1-9])\.([0-5][05])(?!\w|[.,]\d|[ \t]?[%°€$£]"
        r"|[ \t](?:percent|point|million|billion|thousand|hundred|kilo|[mk]?[mgl]\b))",
        _dotted_time,
    ),
    rule(r"(?<![\w:.,])([01]\d|2[0-3])h([0-5]\d)(?!\w)", _clock_with_h),
    rule(
        r"(?<![\w:.,$£€-])(?P<clock>[012]\d[0-5]\d)(?=[ \t]hours\b)"
        r"|(?<=\bat )(?P<clock2>0[1-9][0-5]\d)(?![\w:]|[.,]\d)",
        _military,
    ),
    rule(
        r"(?<![\w:.,])\d{1,3}[ \t]?(?:d|days?|h|hrs?|m|mins?)[ \t]?"
        r"\d{1,2}[ \t]?(?:hrs?|h|mins?|m|secs?|s)(?:[ \t]?\d{1,2}[ \t]?(?:mins?|m|secs?|s))?(?!\w)"
        r"|(?<![\w:.,])\d{1,2}h[0-5]\d(?!\w)",
        _parts,
    ),
    rule(r"(?<![\w.,])'?(1[1-9]|20|)([0-9])0'?s\b", _decade),
    rule(r"(?<![\w'])'(\d\d)(?![\w']|[.,]\d)", _short_year),
    rule(
        r"\b(?P<before>AD|A\.D\.|BC|CE)[ \t](?P<year>\d{1,4})(?![\w,]|\.\d)"
        r"|(?<![\w.,])(?P<year2>\d{1,4})[ \t]?(?P<after>AD|A\.D\.|BCE?|B\.C\.(?:E\.)?|CE)(?!\w)",
        _era,
    ),
    rule(
        r"\b(UTC|GMT)[ \t]?([+-])[ \t]?(\d{1,2}(?::\d\d)?)\b",
        lambda match, reader: f"{match[1]} {'plus' if match[2] == '+' else 'minus'} {match[3]}",
    ),
)

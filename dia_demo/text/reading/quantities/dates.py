"""Dates, times of day, durations and decades, as they are spoken."""

from __future__ import annotations

import re

from num2words import num2words

from dia_demo.text.reading.numbers import cardinal, digits, ordinal, year
from dia_demo.text.reading.rules import Reader, Rule, final_dot, rule, text_after, text_before

_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_MONTH = (
    r"(?P<month>Jan(?:uary|\.)?|Feb(?:ruary|\.)?|Mar(?:ch|\.)?|Apr(?:il|\.)?|May|June?\.?|July?\.?"
    r"|Aug(?:ust|\.)?|Sept?(?:ember|\.)?|Oct(?:ober|\.)?|Nov(?:ember|\.)?|Dec(?:ember|\.)?)"
)
_MONTH_2 = _MONTH.replace("<month>", "<month2>")
_TO = r"[ \t]?(?:-|to|until|through)[ \t]?"
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT_DAY = "Mon|Tues|Tue|Wed|Thurs|Thur|Thu|Fri|Sat|Sun"
_DAY = rf"(?:{'|'.join(_DAYS)}|(?:{_SHORT_DAY})\b\.?)"
_JOINTS = {"-": " to ", "/": " or ", "&": " and "}
# What belongs to a decade: 90s music.
_STYLES = (
    "music|rock|pop|kids?|style|fashion|movies?|films?|hits|party|dance|era|hair|songs?|shows?"
    "|nostalgia|cartoons?|sitcoms?|classics?|vibes?"
)
_SCORED = re.compile(
    r"[=+*/x-][ \t]?$"
    r"|\b(?:got|gets?|scor(?:e|ed|es|ing)|was|is|are|with|of|earned|received|and)[ \t]$"
)
_DAY_FIRST = "write the month as a word if it is the second number."


def _date(month: int, day: int, of_year: str | None, written: str) -> str:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return written
    if of_year and len(of_year) == 2:
        of_year = ("20" if int(of_year) < 40 else "19") + of_year
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
    first, second = int(match[2]), int(match[3])
    month, day = (second, first) if first > 12 else (first, second)
    words = _date(month, day, None, written)
    if words == written:
        return match[0]
    is_clear = day > 12 or day == month
    return match[1] + (words if is_clear else reader.remark(written, words, _DAY_FIRST))


def _bare_date(match: re.Match, reader: Reader) -> str:
    """12/25: no fraction that anybody says, unless it is a share or a score."""
    month, day = sorted(map(int, match[0].split("/")))
    if match[0] == "24/7" or month == 1 or month > 12 or not 20 < day < 32:
        return match[0]
    if _SCORED.search(text_before(match)) or re.match(r"[ \t](?:of|in)\b", text_after(match)):
        return match[0]
    advice = "write “out of” or “over” between two numbers."
    return reader.remark(match[0], _date(month, day, None, match[0]), advice)


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
    """Jan-Mar, Dec 2023 - Feb 2024, June/July."""
    first, second = (_MONTHS[_month_number(match[name]) - 1] for name in ("month", "month2"))
    of_year = f" {year(int(match['year']))}" if match["year"] else ""
    joint = _JOINTS.get(match["joint"].strip(), match["joint"])
    return f"{first}{of_year}{joint}{second}{final_dot(match)}"


def _days(match: re.Match, _: Reader) -> str:
    """Mon-Fri, Sat & Sun; Mon-Wed-Fri is a list."""
    days = [_day(name) for name in re.findall(_DAY, match[0])]
    joint = match[1].strip()
    joined = (_JOINTS.get(joint, match[1]) if len(days) == 2 else ", ").join(days)
    return joined + final_dot(match)


def _day(name: str) -> str:
    return next(day for day in _DAYS if day[:3] == name[:3])


def _minutes(written: str) -> str:
    """oh five, thirty."""
    return f"oh {digits(written[1])}" if written[0] == "0" else cardinal(written)


def _time(match: re.Match, reader: Reader) -> str:
    hour, minute, half = int(match[1]), match[2], match[3]
    if hour in (0, 24) and minute == "00" and match[1] + (half or "") != "0":
        return "midnight"
    if hour == 24:
        return match[0]
    if match[0] == "0:00":
        return reader.remark(match[0], "midnight", "write zero minutes if it is no time of day.")
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
    if not half and not re.search(r"\bat[ \t]$|T$", text_before(match)):
        parts = ((int(hours), "hour"), (int(minutes), "minute"), (int(seconds), "second"))
        return duration(parts) or "zero seconds"
    words = num2words(int(hours))
    if int(minutes):
        words += f" {_minutes(minutes)}"
    if int(seconds):
        words += f" and {_count_units(int(seconds), 'second')}"
    return f"{words} {reader.letters(half + 'm')}" if half else words


def _count_units(number: int, unit: str) -> str:
    return f"{num2words(number)} {unit}{'' if number == 1 else 's'}"


def duration(parts) -> str:
    """Hours, minutes and seconds that are not zero, the last one after "and" if there are three."""
    words = [_count_units(number, unit) for number, unit in parts if number]
    if len(words) > 2:
        return f"{' '.join(words[:-1])} and {words[-1]}"
    return " ".join(words)


def _clock_with_h(match: re.Match, _: Reader) -> str:
    """14h30."""
    return f"{cardinal(match[1])} {_minutes(match[2]) if int(match[2]) else 'hundred'}"


def _military_time(match: re.Match, _: Reader) -> str:
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
    if not century and "'" not in match[0]:
        of_years = re.search(
            r"\b(?:the|his|her|my|our|their|your|its|early|late|mid|whose)[ \t-]"
            r"(?:(?:early|late|mid)[ \t-])?$|(?:s|,)[ \t](?:and|or|to)[ \t]$|mid-$",
            text_before(match),
        )
        style = re.match(rf"[ \t](?:{_STYLES})\b", text_after(match))
        if not (of_years or style):
            return match[0]
    if tens == "0":
        return "two thousands" if century in ("", "20") else f"{num2words(int(century))} hundreds"
    plural = num2words(int(tens) * 10)[:-1] + "ies" if tens != "1" else "tens"
    return f"{num2words(int(century))} {plural}" if century else plural


def _short_year(match: re.Match, _: Reader) -> str:
    """the summer of '69, class of '09."""
    return f"oh {digits(match[1][1])}" if match[1][0] == "0" else cardinal(match[1])


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
        rf"\b((?:[Oo]n|[Dd]ue|[A-Z][a-z]{{2,6}}day|{_SHORT_DAY})\.?,?[ \t])"
        r"(\d{1,2})/(\d{1,2})(?![\w/]|[.,]\d)",
        _short_date,
    ),
    rule(r"(?<![\w.,/$£€-])(?<!\d[ ])\d{1,2}/\d{1,2}(?![\w/%-]|[.,]\d|[ \t]?[-+*=x])", _bare_date),
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
    rule(
        rf"\b{_MONTH}(?:[ \t](?P<year>[12]\d{{3}}))?(?P<joint>[ \t]?[-/][ \t]?"
        rf"|[ \t](?:to|through|until)[ \t]){_MONTH_2}(?![\w-])",
        _months,
    ),
    rule(
        r"\b(?P<month>Jan|Feb|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?(?=[ \t]'?\d{2,4}\b)",
        lambda match, reader: _MONTHS[_month_number(match["month"]) - 1],
    ),
    rule(
        rf"\b{_DAY}([ \t]?[-/&][ \t]?|[ \t](?:to|and|or|through)[ \t]){_DAY}"
        rf"(?:\1{_DAY}){{0,5}}(?![\w'])",
        _days,
    ),
    rule(
        rf"\b({_SHORT_DAY})\.?(?=,?[ \t](?:\d|{'|'.join(_MONTHS)})|[ \t]at[ \t]\d"
        r"|[ \t](?:morning|afternoon|evening|night)\b)",
        lambda match, reader: _day(match[1]),
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
        _military_time,
    ),
    rule(r"(?<![\w.,])'?(1[1-9]|20|)([0-9])0'?s\b", _decade),
    rule(r"(?<![\w'])'(\d\d)(?![\w']|[.,]\d)", _short_year),
    rule(
        r"\b(UTC|GMT)[ \t]?([+-])[ \t]?(\d{1,2}(?::\d\d)?)\b",
        lambda match, reader: f"{match[1]} {'plus' if match[2] == '+' else 'minus'} {match[3]}",
    ),
)

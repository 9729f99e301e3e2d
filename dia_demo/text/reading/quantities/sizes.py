"""Numbers that belong together: 3 x 4 m, 1920x1080, 10x, 2/3rds, 4.5/5, ★★★★☆, a lap of 2:05.3."""

from __future__ import annotations

import re

from dia_demo.text.reading.numbers import NUMBER, cardinal, fraction, mixed_fraction, pairs
from dia_demo.text.reading.rules import NO_NOUNS, Reader, Rule, rule, text_after, text_before, word

_LENGTH = r"(?:mm|cm|dm|k?m|in|inch(?:es)?|ft|feet|foot|yd|yards?|meters?|px|pixels?)\b|[\"']"
_EQUAL = ("equals", "makes", "gives", "minus", "divided")
# Other units: so many of what is measured.
_UNIT = r"(?:[kmµ]?g|[mcd]?[lL]|oz|lbs?|GB|MB|TB|hrs?|h|mins?|s)\b"
# Before a time of minutes and seconds.
_TIMED = re.compile(
    r"\b(?:in|at|under|sub|ran|took|takes|lasts?|lasted|clocked|until|paused?|mark|timestamp"
    r"|(?:time|best|record)(?: (?:is|was|of))?)[ \t]$",
    re.IGNORECASE,
)
_AMOUNT = re.compile(rf"[ \t]?{_UNIT}")


def _cross(match: re.Match, _: Reader) -> str:
    """Between two numbers: "by" for the two sides of a thing, and otherwise "times"."""
    rest = re.sub(r"^[\d.,]*(?:[ \t]?[x×][ \t]?[\d.,]+)*", "", text_after(match))
    if re.match(rf"[ \t]?(?:{_LENGTH})", rest):
        return " by "
    if _AMOUNT.match(rest):
        return " times "
    lead = re.search(r"[\d.,]+$", text_before(match))
    decimal = re.search("[.,]", lead[0] if lead else "") or re.match(
        r"\d+[.,]\d", text_after(match)
    )
    if match[1] == "x" and not decimal:
        return match[0]
    noun = re.match(r"[ \t]([a-z]{2,20})\b", rest)
    is_thing = noun and noun[1] not in NO_NOUNS and noun[1] not in _EQUAL
    sized = re.search(r"\b(?:an?|the|measures|measuring|sized?)[ \t]\d+$", text_before(match))
    return " by " if is_thing or sized or match[1] == "x" else " times "


def _dimensions(match: re.Match, _: Reader) -> str:
    """2 x 4; the lines of a picture as they are named: nineteen twenty by ten eighty."""
    numbers = re.findall(r"\d+", match[0])
    of_pixels = not re.search(r"\s", match[0]) and all(len(n) in (3, 4) for n in numbers)
    return " by ".join(pairs(n) if of_pixels else cardinal(n) for n in numbers)


def _times(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} times"


def _rating(match: re.Match, _: Reader) -> str:
    stars = " stars" if match["stars"] else ""
    return f"{cardinal(match['given'])} out of {cardinal(match['of'])}{stars}"


def _stars(match: re.Match, _: Reader) -> str:
    """5★, ★★★★☆."""
    full, empty = len(re.findall("[★⭐]", match[0])), match[0].count("☆")
    if number := match[1] or match[2]:
        one = number == "1" or re.match(
            r"[ -](?:hotel|resort|review|restaurant)\b", text_after(match)
        )
        return f"{cardinal(number)} star{'' if one else 's'}"
    if full + empty == 1:
        return match[0]  # An ornament.
    total = f" out of {cardinal(str(full + empty))}" if empty else ""
    return f"{cardinal(str(full))}{total} star{'' if full + empty == 1 else 's'}"


def _lap(match: re.Match, _: Reader) -> str:
    """2:05.3, the time of a race."""
    minutes, seconds = match[1], f"{int(match[2])}.{match[3]}"
    return f"{cardinal(minutes)} minute{'' if minutes == '1' else 's'} {cardinal(seconds)} seconds"


def _minutes_and_seconds(match: re.Match, _: Reader) -> str:
    """5k in 24:37, at 45:30: a time, and no ratio."""
    first, second = match[1], match[2]
    if int(first) + int(second) == 100 or not _TIMED.search(text_before(match)):
        return match[0]
    spoken = f"oh {cardinal(second[1])}" if second[0] == "0" else cardinal(second)
    return f"{cardinal(first)} {'flat' if second == '00' else spoken}"


def _inches(match: re.Match, _: Reader) -> str:
    """7 1/2", 3/4"."""
    whole, top, bottom = match[1], int(match[2]), int(match[3])
    if not 0 < top < bottom:
        return match[0]
    if whole:
        return f"{mixed_fraction(whole, top, bottom)} inches"
    return f"{fraction(top, bottom)} {'' if bottom == 2 else 'of an '}inch"


# Before markup is removed, to which these stars are ornaments.
STARS = rule(
    r"(?:(?<![\w.,])(\d(?:\.\d)?)[ \t]?)?(?:[★⭐]\ufe0f?){1,10}☆{0,9}"
    r"(?:(?<=[★⭐])[ ]?(\d\.\d)\b)?",
    _stars,
)


def _share(match: re.Match, _: Reader) -> str:
    """2/3rds, 1/100th: the ending makes it a fraction, whatever its numbers."""
    whole, top, bottom = match[1], int(match[2]), int(match[3])
    if not top or bottom < 2:
        return match[0]
    words = mixed_fraction(whole, top, bottom) if whole else fraction(top, bottom)
    return words.removeprefix("one ") if text_before(match).lower().endswith(" a ") else words


# Before dates, times and amounts.
FIRST_RULES: tuple[Rule, ...] = (
    rule(r"(?<![\w.,/])(?:(\d{1,4})[ \t])?(\d{1,3})/(\d{1,4})(?:st|nd|rd|th)s?\b", _share),
    rule(
        r"(?<=[A-Za-z]-)(\d)s\b",
        lambda match, reader: f"{cardinal(match[1])}{'es' if match[1] == '6' else 's'}",
    ),
    rule(r"(?<![\w.,])(\d{1,3})[ ]?bps\b", lambda match, reader: f"{match[1]} basis points"),
    rule(r"(?<=\bin the )(\d{1,3})'(?![\w'\"])", lambda match, reader: f"{match[1]}th minute"),
    # Boards, and a sheet: 2x4s, 12" x 9".
    rule(
        r"(?<![\w.,])(\d)x(\d{1,2})s\b",
        lambda match, reader: f"{match[1]} by {cardinal(match[2])}s",
    ),
    rule(
        r"(?<![\w.,])(\d{1,3})(?P<mark>[\"'])[ \t]?[x×][ \t]?(\d{1,3})(?P=mark)(?!\w)",
        lambda match, reader: (
            f"{match[1]} by {match[3]} {'inches' if match[2] == chr(34) else 'feet'}"
        ),
    ),
    rule(
        rf"(?<=\d)([ \t]?(?:{_LENGTH})\.?)[ \t]?[x×][ \t]?(?=\d)",
        lambda match, reader: f"{match[1]} by ",
    ),
    rule(
        rf"(?<=\d)([ \t]?{_UNIT}|)[ \t]?[x×][ \t]?(?=[$£€]\d|(?:a|per|each|every)\b)"
        rf"|(?<=\d)([ \t]?{_UNIT})[ \t]?[x×][ \t]?(?=\d)",
        lambda match, reader: f"{match[1] or match[2] or ''} times ",
    ),
    rule(r"(?<=\d)[ \t]?([x×])[ \t]?(?=\d)", _cross),
    rule(
        r"(?<![\w./,])(?P<given>\d{1,2}\.\d)/(?P<of>5|10|100)(?![\w/]|\.\d)(?P<stars>)",
        _rating,
    ),
    rule(r"(?<![\w./,])(?P<given>\d{1,2})/(?P<of>5|10)(?P<stars>[ ]stars)\b", _rating),
    rule(r"(?<=:[0-5]\d)-?ish\b", word(" ish")),
    rule(r"(?<=\bQ[1-4])[ \t]?-[ \t]?(?=Q[1-4]\b)", word(" to ")),
    rule(r"(?<=\b\d\.\d)/(?=4\.0\b)|(?<=\b\d\.\d\d)/(?=4\.0\b)", word(" out of ")),
    rule(r"(?<=\b\d')-(?=\d{1,2}(?:\"|''))", word(" ")),
    # Of a game: 90+3'.
    rule(r"\b(45|90|105|120)\+(\d{1,2})'", lambda match, reader: f"{match[1]} plus {match[2]}"),
    rule(r"(?<![\w.:])(\d{1,2}):([0-5]\d)\.(\d{1,3})(?![\w:]|\.\d)", _lap),
    rule(r"(?<![\w.:])(?!24:00)(2[4-9]|[3-9]\d):([0-5]\d)(?![\w:]|\.\d)", _minutes_and_seconds),
    rule(r"(?<![\w./])(?:(\d{1,3})[ \t-])?(\d{1,2})/(\d{1,2})[ \t]?(?:\"|'')", _inches),
)
# After them, before single numbers.
RULES: tuple[Rule, ...] = (
    rule(r"(?<![\w.,])\d{1,5}(?:[ \t]?[x×][ \t]?\d{1,5}){1,2}(?!\w)", _dimensions),
    rule(rf"(?<![\w.])({NUMBER})[x×](?!\w)", _times),
    rule(r"\bx(?=\d{1,4}\b)", word("times ")),
)

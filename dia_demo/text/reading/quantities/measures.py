"""Percentages and measures, as they are spoken."""

from __future__ import annotations

import re

from dia_demo.text.reading.numbers import (
    COUNT_WORDS,
    FRACTION,
    NUMBER,
    cardinal,
    fraction,
    mixed_fraction,
)
from dia_demo.text.reading.quantities.dates import duration
from dia_demo.text.reading.rules import (
    Reader,
    Rule,
    any_of,
    is_adjective,
    rule,
    text_after,
    text_before,
)
from dia_demo.text.reading.tables.units import DENOMINATORS, STANDALONE, UNITS, WITH_HYPHEN

_UNIT = any_of(UNITS)
_PER = any_of(DENOMINATORS)
_BEFORE = r"(?:(?<![\w.,/])|(?<=[KMGT]B/))"
_DECIMAL_COMMA = r"\d{1,6},\d{1,2}(?![\d,])"
_AMOUNT = rf"{_DECIMAL_COMMA}|{NUMBER}"
_END = r"(?![\w²³⁻']|/(?!\d+[ ]?[KMGT]B\b))"
_DOT = r"(?:\.(?=[ \t][a-z\d]))?"  # Of the abbreviation, where no sentence ends.
# What "mm" is a unit after. Elsewhere it is an interjection, as in "mm-hmm".
_MILLIMETERS_AFTER = re.compile(
    rf"\b(?:{any_of(COUNT_WORDS)}|one|half|in|into|to|from|of|per"
    r"|(?:[ckm]m|centimeters|kilometers|meters|inches),?(?: and| or| to)?)[ \t]$",
    re.IGNORECASE,
)
_PLURAL_AFTER = (
    r"(?=[ \t](?:people|users|views|followers|subscribers|likes|downloads|customers|members|copies"
    r"|viewers|fans|students|jobs|homes|households|years|tokens|parameters|dollars|euros|pounds"
    r"|streams|plays|hits|visitors|tourists|cars|lines|rows|records|games|votes|words|items|tons"
    r"|transactions|requests|children|women|men|residents|inhabitants)\b)"
)
_NOUNS = frozenset(
    "sprint relay race run walk drive flight break jack lens cable pipe bag bottle can pack screen "
    "monitor display battery engine charger hose rope ladder radius diameter limit wall board film "
    "window call delay dash swim hike marathon connection plan card video clip song timer gun "
    "pistol".split()
)
_SCALES = {"k": "thousand", "K": "thousand", "m": "million", "M": "million", "B": "billion",
           "b": "billion", "bn": "billion", "mn": "million", "tn": "trillion",
           "T": "trillion"}  # fmt: skip
_K_NAMES = re.compile(
    r"[ \t](?:run|race|video|videos|resolution|TV|TVs|monitor|monitors|display|displays|screen"
    r"|screens|UHD|footage|camera|cameras|HDR|quality|gold|movie|movies|fun)\b"
)

# The unit of each part of a duration: 1h 30m 5s, 2hrs 15min.
_PARTS = {
    "d": "day", "day": "day", "h": "hour", "hr": "hour", "m": "minute", "min": "minute",
    "s": "second", "sec": "second",
}  # fmt: skip
_RACE_AHEAD = re.compile(
    r"\b(?:ran|runs?|running|jog(?:s|ged|ging)?|rac(?:e|es|ed|ing)|walk(?:s|ed|ing)?|swam|cycled"
    r"|rowed|train(?:s|ed|ing)? for|couch to)"
    r"(?:[ \t](?:an?|the|my|his|her|our|their|your|another|first|last|full|whole|charity|fun)){0,3}"
    r"[ \t]$",
    re.IGNORECASE,
)
_RACE_BEHIND = re.compile(
    r"[ \t](?:fun[ ])?(?:runs?|races?|runners?|walks?|jogs?|time|course|PB|personal best)\b"
)
# A 45 degree angle.
_TURNED = re.compile(r"[ \t](?:angle|turn|rotation|view|video|bend|slope|incline|spin|arc|cut)\b")
_ARTICLE_AHEAD = re.compile(
    r"\b(?:an?|the|my|his|her|our|first|last|another)[ \t](?:\d{1,2}k (?:and|or) )?$", re.IGNORECASE
)
_PAID = re.compile(
    r"[$£€]|\b(?:pa(?:id|y|ys)|owe[sd]?|costs?|salary|earn(?:s|ed)?|ma[dk]es?|spen[dt]|borrow(?:ed)?"
    r"|len[dt]|sav(?:e|ed|ings)|worth|price|wins?|won|loan|debt|bonus|rent|raised?|money)\b",
    re.IGNORECASE,
)
_COUNTED_NOUN = re.compile(r"[ \t](?!is\b|was\b|has\b|as\b|this\b|takes\b)[a-z]{2,20}s\b")
_LETTERED = re.compile(
    r"\b(?:room|type|model|flat|gate|apartment|apt|suite|unit|highway|route|class|section|item|form"
    r"|exhibit|seat|number|no|block|bus|building|platform|row|number)\.?[ \t]$",
    re.IGNORECASE,
)
_TEMPERATURE_AHEAD = re.compile(
    r"\b(?:at|to|below|above|around|about|minus|reached|hit|it is|it was|it's)[ \t]$", re.IGNORECASE
)
_TEMPERATURE_BEHIND = re.compile(
    r"[ \t](?:to|and|or)[ \t](?:minus )?\d{1,3}(?:\.\d)?[ \t]?°?[FC]\b"
)


def _number(written: str) -> str:
    if re.fullmatch(r"\d+,\d{1,2}", written):
        written = written.replace(",", ".")
    return cardinal(written)


def _names(unit: str, per: str | None) -> tuple[str, str]:
    """One and several of a unit, with what it is divided by."""
    singular, plural = UNITS[unit]
    if not per:
        return singular, plural
    below = DENOMINATORS[per]
    return f"{singular} per {below}", f"{plural} per {below}"


def _unit(match: re.Match, reader: Reader) -> str:
    singular, plural = _names(match["unit"], match["per"])
    low = f"{_number(match['low'])} to " if match["low"] else ""
    adjective = match["unit"] not in ("°C", "°F") and is_adjective(match, _NOUNS)
    if match["unit"] == "°":
        adjective = _TURNED.match(text_after(match)) is not None
    one = (match["high"] == "1" and not low) or adjective
    minus = "minus " if match["sign"] else ""
    return f"{minus}{low}{_number(match['high'])} {singular if one else plural}"


def _fraction_of(match: re.Match, _: Reader) -> str:
    """3/4 tsp, 1 1/2 tbsp."""
    whole, top, bottom = re.fullmatch(
        r"(?:(\d+)[ \t])?"
        r"(\d+)/(\d+)",
        match[1],
    ).groups()  # type: ignore[union-attr]
    singular, plural = _names(match[2], None)
    if int(bottom) < 2 or int(bottom) > 20:
        return match[0]
    if whole:
        return f"{mixed_fraction(whole, int(top), int(bottom))} {plural}"
    words = fraction(int(top), int(bottom))
    return f"{words} {singular}" if top == "1" else f"{words} of {_article(singular)}"


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeio' and not noun.startswith('one') else 'a'} {noun}"


def _half_of(match: re.Match, _: Reader) -> str:
    """Units behind fractions that are words by now: "two and a half tbsp"."""
    singular, plural = _names(match[2], None)
    if " and " in match[1]:
        return f"{match[1]} {plural}"
    several = match[1].endswith("s")
    return f"{match[1]} of {_article(singular)}" if several else f"{match[1]} {singular}"


def _hyphenated_measure(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])}-{UNITS[match[2]][0].replace(' ', '-')}"


def _standalone_unit(match: re.Match, _: Reader) -> str:
    """A unit without digits before it: "two tbsp", "per kWh", "in mg/dL"."""
    if match["unit"] == "mm" and not _MILLIMETERS_AFTER.search(text_before(match)):
        return match[0]
    singular, plural = _names(match["unit"], match["per"])
    previous = re.search(r"(\w+)[ \t-]$", text_before(match))
    name = previous[1].lower() if previous else ""
    is_one = name in ("a", "an", "one", "per", "each", "every", "half", "quarter", "third")
    if name and re.match(r"[ \t](?:meter|meters|cable|port)\b", text_after(match)):
        return singular
    if not is_one and name in COUNT_WORDS:
        return plural
    return singular if is_one else plural


def _parts(match: re.Match, _: Reader) -> str:
    """1h 30m, 2h30, 5m30s."""
    found = re.findall(r"(\d{1,3})[ \t]?([a-z]*)", match[0])
    units = [_PARTS.get(unit.rstrip("s") or unit) for _, unit in found]
    if units[-1] is None:
        units[-1] = "minute"
    if any(unit is None for unit in units):
        return match[0]
    return duration([(int(n), unit) for (n, _), unit in zip(found, units, strict=True) if unit])


def _percent(match: re.Match, _: Reader) -> str:
    low = f"{_number(match['low'])} to " if match["low"] else ""
    sign = {"-": "minus ", "+": "plus "}.get(match["sign"] or "", "")
    name = "per mille" if match["mark"] == "‰" else "percent"
    return f"{sign}{low}{_number(match['high'])} {name}"


def _height(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} foot {cardinal(match[2])}"


def _feet_or_inches(match: re.Match, _: Reader) -> str:
    """5' and 6", unless the mark closes a quotation."""
    mark = match[2]
    line = match.string[max(0, match.string.rfind("\n", 0, match.start())) : match.start()]
    opened = line.count('"') % 2 == 1 if mark == '"' else re.search(r"(?<!\w)'\w", line)
    if opened:
        return match[0]
    one, several = ("inch", "inches") if mark == '"' else ("foot", "feet")
    is_one = match[1] == "1" or is_adjective(match, any_noun=True)
    return f"{cardinal(match[1])} {one if is_one else several}"


def _feet_and_inches(match: re.Match, _: Reader) -> str:
    feet = "foot" if match[1] == "1" else "feet"
    inches = "inch" if match[2] == "1" else "inches"
    return f"{cardinal(match[1])} {feet} {cardinal(match[2])} {inches}"


def _inches(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} {'inch' if match[1] == '1' else 'inches'}"


def _coordinates(match: re.Match, _: Reader) -> str:
    """40°26'46"N, 12.5° W."""
    way = {"N": "north", "S": "south", "E": "east", "W": "west"}
    words = f"{cardinal(match[1])} degrees"
    if match[2]:
        words += f" {cardinal(match[2])} minutes"
    if match[3]:
        words += f" {cardinal(match[3])} seconds"
    return f"{words} {way[match[4]]}"


def _scaled_number(match: re.Match, reader: Reader) -> str:
    """100K, 5M people; "4K" and "a 5K run" are names."""
    number, scale = match[1], match[2]
    if scale in "kK" and (_is_race(match) or (scale == "k" and _K_NAMES.match(text_after(match)))):
        return f"{cardinal(number)} {reader.letters(scale)}"
    named = _K_NAMES.match(text_after(match))
    if scale == "K" and (
        named
        or (
            number in ("2", "3", "4", "5", "6", "8")
            and not re.match(_PLURAL_AFTER, text_after(match))
        )
    ):
        return match[0]
    if scale in "MBT" and "." not in number and not re.match(_PLURAL_AFTER, text_after(match)):
        if scale in "BT" or number == "3":  # Flat 12B, the company 3M.
            return match[0]
    return f"{cardinal(number)} {_SCALES[scale]}"


def _is_race(match: re.Match) -> bool:
    """Whether so many thousands are the meters of a race: "He ran 10k", "a 10k"."""
    lead, rest = text_before(match), text_after(match)
    if _RACE_BEHIND.match(rest):
        return True
    if _PAID.search(lead) or re.match(_PLURAL_AFTER, rest) or _COUNTED_NOUN.match(rest):
        return False
    if _RACE_AHEAD.search(lead):
        return True
    is_noun = _ARTICLE_AHEAD.search(lead) and not is_adjective(match, any_noun=True)
    return bool(is_noun) and match[1] in ("1", "3", "5", "8", "10", "12", "15", "20", "50", "100")


def _degrees(match: re.Match, _: Reader) -> str:
    """350 F, 98.6 F; with fewer digits only where a temperature is said: "at 20 C", "-5C"."""
    scale = "Fahrenheit" if match["scale"] == "F" else "Celsius"
    is_long = len(match["high"]) > 2 and not _LETTERED.search(text_before(match))
    is_said = _TEMPERATURE_AHEAD.search(text_before(match)) or _TEMPERATURE_BEHIND.match(
        text_after(match)
    )
    if not (is_long or is_said):
        return match[0]
    low = f"{cardinal(match['low'])} to " if match["low"] else ""
    return f"{low}{cardinal(match['high'])} degrees {scale}"


RULES: tuple[Rule, ...] = (
    rule(
        r"(?<![\w:.,])\d{1,3}[ \t]?(?:d|days?|h|hrs?|m|mins?)[ \t]?"
        r"\d{1,2}[ \t]?(?:hrs?|h|mins?|m|secs?|s)(?:[ \t]?\d{1,2}[ \t]?(?:mins?|m|secs?|s))?(?!\w)"
        r"|(?<![\w:.,])\d{1,2}h[0-5]\d(?!\w)",
        _parts,
    ),
    rule(
        r"(?<![\w.,/$£€-])(?:(?P<low>\d{2,3})[ \t]?[FC]?[ \t]?-[ \t]?)?"
        r"(?P<high>\d{2,3}(?:\.\d)?|\d\.\d|(?<=minus )\d)[ \t]?(?P<scale>[FC])"
        r"(?![\w+#'-]|[ \t]?[.]\w|[ \t][A-Z][a-z])",
        _degrees,
    ),
    rule(
        rf"(?P<sign>(?<![\w)])[-+])?{_BEFORE}(?:(?P<low>{_AMOUNT})[ \t]?-[ \t]?)?"
        rf"(?P<high>{_AMOUNT})[ \t]?(?P<mark>[%‰])",
        _percent,
    ),
    rule(
        r"(?<![\w.])(\d{1,3}(?:\.\d{1,8})?)[ \t]?°[ \t]?(?:(\d{1,2})'[ \t]?)?"
        r"(?:(\d{1,2}(?:\.\d{1,4})?)(?:\"|'')[ \t]?)?([NSEW])\b",
        _coordinates,
    ),
    rule(r"(?<![\w.])(\d{1,2})'[ -]?(\d{1,2})(?:\"|'')", _height),
    rule(r"(?<![\w.'])([4-7])'(\d|1[01])(?![\w'\"])", _height),
    rule(
        r"(?<![\w.,])(\d{1,2})[ \t]?ft\.?[ \t]?(\d{1,2})[ \t]?in\b(?:\.(?=[ \t][a-z]))?",
        _feet_and_inches,
    ),
    rule(r"(?<![\w.,])([4-7])[ \t]?ft\.?[ \t]?(\d|1[01])(?![\w'\"-]|[.,]\d)", _height),
    rule(
        r"(?<![\w.,])(\d{1,2})[ \t]?st[ \t]?(\d|1[0-3])[ \t]?lbs?\b",
        lambda match, reader: f"{cardinal(match[1])} stone {match[2]} lb",
    ),
    rule(
        rf"{_BEFORE}({NUMBER})[ \t]?in(?=[ \t](?:wide|long|tall|deep|thick|high|by|x|across)\b)",
        _inches,
    ),
    rule(r"(?<![\w.,'])(\d{1,4}(?:\.\d{1,2})?)(['\"])(?![\w'\"])", _feet_or_inches),
    rule(rf"{_BEFORE}({NUMBER})[ \t]?([kmbT]n?){_PLURAL_AFTER}", _scaled_number),
    rule(rf"{_BEFORE}({NUMBER})(k)(?![\w])", _scaled_number),
    rule(rf"{_BEFORE}({NUMBER})[ \t]?(bn|tn)(?!\w)", _scaled_number),
    rule(
        rf"{_BEFORE}({NUMBER})(K|M|B|T)(?!\w)(?=[ \t][a-z]|\+|[ \t]?[.,!?;)]|[ \t]?$)",
        _scaled_number,
        re.MULTILINE,
    ),
    rule(rf"{_BEFORE}({FRACTION})[ \t]?({_UNIT}){_END}{_DOT}", _fraction_of),
    rule(rf"{_BEFORE}({NUMBER})-({any_of(WITH_HYPHEN)})(?![\w/²³]){_DOT}", _hyphenated_measure),
    rule(
        rf"(?P<sign>(?<![\w)])-)?{_BEFORE}(?:(?P<low>{_AMOUNT})[ \t]?-[ \t]?)?"
        rf"(?P<high>{_AMOUNT})[ \t]?"
        rf"(?P<unit>{_UNIT})(?:[ \t]?/[ \t]?(?P<per>{_PER}))?{_END}{_DOT}",
        _unit,
    ),
)
# Units that stand alone, after the numbers.
RULES_AFTER_NUMBERS: tuple[Rule, ...] = (
    rule(
        rf"\b((?:\w+ and a )?(?:half|quarter|third|eighth)|\w+ (?:halves|quarters|thirds|eighths))"
        rf"[ \t]({any_of(STANDALONE)}){_END}\.?",
        _half_of,
    ),
    rule(
        rf"(?<![\w/.])(?P<unit>{any_of(STANDALONE)})(?:/(?P<per>{_PER}))?{_END}{_DOT}",
        _standalone_unit,
    ),
)

"""Numbers in words: counts, ordinals, years, fractions, ranges, and numbers within names."""

from __future__ import annotations

import re

from num2words import num2words

from dia_demo.text.rules import Reader, Rule, rule

# Longer runs of digits are read one by one: they are codes, not quantities.
_LONGEST_NUMBER = 15
NUMBER = r"(?:\d{1,3}(?:,\d{3}){1,5}(?!\d)|\d{1,40})(?:\.\d{1,20})?|\.\d{1,20}"
_VULGAR = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4",
    "⅕": "1/5", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
}  # fmt: skip
_YEAR_BEFORE = re.compile(
    r"(?:\b(?:in|since|of|by|from|until|till|before|after|during|around|circa|year|summer|winter"
    r"|spring|fall|autumn|early|late|mid|class)|,)[ \t]{1,3}$",
    re.IGNORECASE,
)
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50}


def cardinal(number: str) -> str:
    """A number in words. Leading zeros and very long numbers are read digit by digit."""
    whole, _, decimals = number.replace(",", "").partition(".")
    if len(whole) > _LONGEST_NUMBER or (len(whole) > 1 and whole.startswith("0")):
        words = digits(whole)
    else:
        words = num2words(int(whole or 0)).replace(",", "")
    return f"{words} point {digits(decimals)}" if decimals else words


def digits(number: str) -> str:
    """Digit by digit."""
    return " ".join(num2words(int(digit)) for digit in number if digit.isdecimal())


def ordinal(number: int) -> str:
    """first, second, twenty-first."""
    return num2words(number, to="ordinal").replace(",", "")


def year(number: int) -> str:
    """nineteen ninety-nine, twenty twenty-five."""
    return num2words(number, to="year")


def _year_range(match: re.Match, _: Reader) -> str:
    first, second = match[1], match[2]
    if len(second) == 2:
        return f"{year(int(first))} to {cardinal(second)}"
    return f"{year(int(first))} to {year(int(second))}"


def _year(match: re.Match, reader: Reader) -> str:
    """A year, unless it counts something: "1500 people" but "in 1500"."""
    counts = re.match(r"[ \t]{1,3}[a-z]{2,20}s\b", match.string[match.end() :][:26])
    before = match.string[max(0, match.start() - 12) : match.start()]
    if counts and not _YEAR_BEFORE.search(before):
        return cardinal(match[0])
    return year(int(match[0]))


def _ordinal(match: re.Match, _: Reader) -> str:
    return ordinal(int(match[1].replace(",", "")))


def _fraction_words(top: int, bottom: int) -> str:
    if bottom == 2:
        name = "half" if top == 1 else "halves"
    elif bottom == 4:
        name = "quarter" if top == 1 else "quarters"
    else:
        name = ordinal(bottom) + ("" if top == 1 else "s")
    return f"{num2words(top)} {name}"


def _fraction(match: re.Match, _: Reader) -> str:
    whole, top, bottom = match[1], int(match[2]), int(match[3])
    if whole:
        part = _fraction_words(top, bottom)
        return f"{cardinal(whole)} and {part.replace('one ', 'a ', 1) if top == 1 else part}"
    if (top, bottom) == (24, 7) or top == bottom or (top, bottom) == (9, 11):
        return f"{num2words(top)} {num2words(bottom)}"
    if bottom in (10, 100):
        return f"{num2words(top)} out of {num2words(bottom)}"
    if 0 < top < bottom <= 20:
        return _fraction_words(top, bottom)
    return f"{num2words(top)} over {num2words(bottom)}"


def _vulgar(match: re.Match, reader: Reader) -> str:
    top, bottom = map(int, _VULGAR[match[2]].split("/"))
    part = _fraction_words(top, bottom)
    if not match[1]:
        return part
    return f"{cardinal(match[1])} and {part.replace('one ', 'a ', 1) if top == 1 else part}"


def _range(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} to {cardinal(match[2])}"


def _version(match: re.Match, _: Reader) -> str:
    return " point ".join(cardinal(part) for part in match[0].split("."))


def _by(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} by {cardinal(match[2])}"


def _times(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} times"


def _thousands(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} thousand"


def _roman_value(numeral: str) -> int:
    values = [_ROMAN[letter] for letter in numeral]
    return sum(-v if v < after else v for v, after in zip(values, [*values[1:], 0], strict=True))


def _roman(match: re.Match, _: Reader) -> str:
    return f"{match['before']} {num2words(_roman_value(match['roman']))}"


def _roman_ordinal(match: re.Match, _: Reader) -> str:
    return f"{match['before']} the {ordinal(_roman_value(match['roman']))}"


def _mixed(match: re.Match, reader: Reader) -> str:
    """Letters and digits in one word: MP3, B2B, 4K, COVID-19, H2O."""
    parts = re.findall(r"[A-Za-z]+|\d+", match[0])
    return " ".join(
        cardinal(part)
        if part.isdecimal()
        else (reader.letters(part) if part.isupper() and len(part) <= 3 else part)
        for part in parts
    )


def _plain(match: re.Match, _: Reader) -> str:
    return cardinal(match[0])


# Before dates, times and amounts.
FIRST_RULES: tuple[Rule, ...] = (
    # From one time or share to another: 2:30-3:45, 10am-5pm, 10%-20%.
    rule(
        r"(?<=[\d%m])[ \t]?-[ \t]?(?=\d{1,3}(?::\d\d|[ \t]?[ap]\.?m\b|[ \t]?%))",
        lambda match, reader: " to ",
    ),
    rule(r"(?<![^\s(\"'])-(?=\.?\d)", lambda match, reader: "minus "),
)

# After them: what an earlier rule has written in words no later one sees.
RULES: tuple[Rule, ...] = (
    rule(
        r"(?<![\w.,-])(1[1-9]\d\d|20\d\d)[ \t]?-[ \t]?(1[1-9]\d\d|20\d\d|\d\d)(?![\w-])",
        _year_range,
    ),
    rule(r"(?<![\w.])(\d{1,3}(?:,\d{3}){0,3}|\d{1,9})(?:st|nd|rd|th)\b", _ordinal, re.IGNORECASE),
    rule(r"(?<![\w./])(?:(\d{1,3})[ \t])?(\d{1,3})/(\d{1,3})(?![\w/]|\.\d)", _fraction),
    rule(rf"(?:(\d{{1,4}})[ \t]?)?([{''.join(_VULGAR)}])", _vulgar),
    rule(r"(?<![\w.])\d{1,9}(?:\.\d{1,9}){2,6}(?!\w)", _version),
    rule(r"(?<![\w.])(\d{1,5})[ \t]?[x×][ \t]?(\d{1,5})(?!\w)", _by),
    rule(rf"(?<![\w.])({NUMBER})[x×](?!\w)", _times),
    rule(rf"(?<![\w.])({NUMBER})k(?!\w)", _thousands),
    rule(r"(?<![\w.:])(\d{1,3}):(\d{1,3})(?![\w:])", _range),
    rule(rf"(?<![\w.,-])({NUMBER})[ \t]?-[ \t]?({NUMBER})(?![\w-])", _range),
    rule(
        r"\b(?P<before>Chapter|Part|Act|Volume|Section|War|Phase|Type|Stage)[ \t]"
        r"(?P<roman>[IVXL]{1,6})\b(?!')",
        _roman,
    ),
    rule(
        r"\b(?P<before>Henry|Louis|Elizabeth|Charles|George|William|James|Edward|Richard|Philip"
        r"|Frederick|Napoleon|(?:Pope|King|Queen)[ \t][A-Z][a-z]{1,15})[ \t]"
        r"(?P<roman>[IVXL]{2,6}|[VX])\b",
        _roman_ordinal,
    ),
    rule(r"(?<![\w.,])(?:1[1-9]\d\d|20\d\d)(?![\w]|[.,]\d)", _year),
    rule(
        r"(?<![\w-])(?=[A-Za-z-]{0,11}\d)(?=[\d-]{0,11}[A-Za-z])[A-Za-z\d]{1,12}(?:-\d{1,4})?(?!\w)",
        _mixed,
    ),
    rule(NUMBER, _plain),
)

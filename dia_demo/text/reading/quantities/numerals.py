"""Numbers as they stand among words: years, fractions, ranges, sums, and letters with digits."""

from __future__ import annotations

import re

from num2words import num2words

from dia_demo.text.reading.numbers import (
    NUMBER,
    cardinal,
    digits,
    fraction,
    mixed_fraction,
    ordinal,
    pairs,
    power,
    year,
)
from dia_demo.text.reading.quantities import sizes
from dia_demo.text.reading.rules import Reader, Rule, final_dot, rule, text_after, text_before, word
from dia_demo.text.reading.tables.units import DENOMINATORS, UNITS

_VULGAR = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5",
    "⅗": "3/5", "⅘": "4/5", "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
}  # fmt: skip
_YEAR_BEFORE = re.compile(
    r"(?:\b(?:in|since|of|by|from|until|till|before|after|during|around|circa|year|summer|winter"
    r"|spring|fall|autumn|early|late|mid|class)|,)[ \t]{1,3}$",
    re.IGNORECASE,
)
# Hours and scores.
_RANGE_BEFORE = re.compile(
    r"\b(?:open|hours|from|works?|working|won|win|lost|lose|beat|leads?|score|final|pages?|by"
    r"|between|[A-Z][a-z]+)[ \t]$"
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")
_ELEMENTS = frozenset(
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se "
    "Br Kr Rb Sr Zr Mo Ag Cd In Sn Sb Te I Xe Cs Ba W Pt Au Hg Tl Pb Bi Rn Ra Th U Pu".split()
)
_FORMULAS_WITHOUT_DIGITS = frozenset("NaCl HCl KCl NaOH KOH LiCl KBr NaF HF HBr MgO CaO".split())
_AGES = (
    "(?:"
    + "|".join(
        rf"(?<=\b{word}[ -])"
        for word in "low mid high early late upper lower her his my our".split()
    )
    + ")"
)
_OPERATORS = {"-": "minus", "*": "times", "x": "times", "/": "divided by", "+": "plus"}
# A part of one of these: three quarters of a cup.
_MEASURED = (
    "cup|mile|hour|inch|pound|teaspoon|tablespoon|gallon|acre|dollar|second|pint|ounce|liter"
)
# Words of letters and digits whose small letters are spelled.
_SPELLED_SMALL = ("mp", "ps", "h", "b", "c", "p", "x", "k", "mh", "e")


def _year_range(match: re.Match, _: Reader) -> str:
    first, second = match[1], match[2]
    if len(second) == 2:
        return f"{year(int(first))} to {cardinal(second)}"
    return f"{year(int(first))} to {year(int(second))}"


def _season(match: re.Match, reader: Reader) -> str:
    """2023/24: two years beside each other."""
    if int(match[2][-2:]) != (int(match[1][-2:]) + 1) % 100:
        return match[0]
    second = year(int(match[2])) if len(match[2]) == 4 else cardinal(match[2])
    return (
        f"{year(int(match[1]))}, {second}"
        if len(match[2]) == 4
        else (
            f"{year(int(match[1]))} {second if match[2][0] != '0' else 'oh ' + digits(match[2][1])}"
        )
    )


def _year(match: re.Match, reader: Reader) -> str:
    """A year, unless it counts something: "1500 people" but "in 1500"."""
    counts = re.match(r"[ \t]{1,3}[a-z]{2,20}s\b", text_after(match)[:26])
    if counts and not _YEAR_BEFORE.search(text_before(match)):
        return cardinal(match[0])
    return year(int(match[0]))


def _rarer_year(match: re.Match, _: Reader) -> str:
    """in 1066, by 2100; but not "in 1066 cases"."""
    if re.match(r"[ \t]{1,3}[a-z]{2,20}s\b", text_after(match)) or not _YEAR_BEFORE.search(
        text_before(match)
    ):
        return match[0]
    return pairs(match[0])


def _era(match: re.Match, reader: Reader) -> str:
    """AD 79, 44 BC, 500 B.C."""
    letters = match["before"] or match["after"]
    number = match["year"] or match["year2"]
    spoken = pairs(number) if len(number) == 4 else cardinal(number)
    if len(number) == 4 and number[1:3] == "00":
        spoken = cardinal(number)
    name = reader.letters(letters)
    return f"{name} {spoken}" if match["before"] else f"{spoken} {name}{final_dot(match)}"


def _ordinal(match: re.Match, _: Reader) -> str:
    return ordinal(int(match[1].replace(",", "")))


def _several(match: re.Match, _: Reader) -> str:
    """The under-21s, B-52s: twenty-ones, fifty-twos, sixties, sixes."""
    number = cardinal(match[1])
    if number.endswith("y"):
        return f"{number[:-1]}ies"
    return number + ("es" if number.endswith("x") else "s")


def _fraction(match: re.Match, _: Reader) -> str:
    words = _fraction_words(match)
    several = not match[1] and not words.startswith("one") and words.endswith("s")
    of = re.match(rf"[ \t]({_MEASURED})\b", text_after(match))
    return (
        f"{words} of a{'n' if of[1][0] in 'aeio' or of[1] == 'hour' else ''}"
        if several and of
        else words
    )


def _fraction_words(match: re.Match) -> str:
    whole, top, bottom = match[1], int(match[2]), int(match[3])
    if whole and top and bottom > 1:
        return mixed_fraction(whole, top, bottom)
    lead = f"{cardinal(whole)} " if whole else ""
    if top == bottom and top in (5, 10, 100):
        return f"{lead}{num2words(top)} out of {num2words(bottom)}"
    if (top, bottom) == (24, 7) or top == bottom or (top, bottom) == (9, 11):
        return f"{lead}{num2words(top)} {num2words(bottom)}"
    if bottom in (10, 100):
        return f"{lead}{num2words(top)} out of {num2words(bottom)}"
    if 0 < top < bottom <= 20 and bottom > 1:
        return lead + fraction(top, bottom)
    return f"{lead}{num2words(top)} over {num2words(bottom)}"


def _vulgar_fraction(match: re.Match, reader: Reader) -> str:
    top, bottom = map(int, _VULGAR[match[2]].split("/"))
    return mixed_fraction(match[1], top, bottom) if match[1] else fraction(top, bottom)


def _range(match: re.Match, _: Reader) -> str:
    if match[1] == match[2] and match[1] in ("50", "20"):
        return f"{cardinal(match[1])} {cardinal(match[2])}"
    if re.match(r"0\d\d", match[2]):  # A code, and no range: 493-021.
        return f"{digits(match[1])}, {digits(match[2])}"
    return f"{cardinal(match[1])} to {cardinal(match[2])}"


def _sum(match: re.Match, reader: Reader) -> str:
    """Both sides of an equals sign, and what is asked for: what is 7 - 3."""
    return re.sub(
        r"(?<=[\w)])[ \t]?([-+*x/])[ \t]?(?=[\w(.])",
        lambda sign: f" {_OPERATORS[sign[1]]} ",
        match[0],
    )


def _coefficient(match: re.Match, reader: Reader) -> str:
    return f"{cardinal(match[1])} {reader.letters(match[2])}"


def _negative_number(match: re.Match, _: Reader) -> str:
    """A dash between two terms of an equation."""
    in_equation = re.search(r"=|\bequals\b", text_before(match)) or re.match(
        r"[^.!?\n]{0,20}=", text_after(match)
    )
    return " minus " if in_equation else match[0]


def _difference(match: re.Match, reader: Reader) -> str:
    """7 - 3 with nothing to tell whether it is a range."""
    first, second = match[1], match[2]
    if float(first) <= float(second) or _RANGE_BEFORE.search(text_before(match)):
        return match[0]
    words = f"{cardinal(first)} minus {cardinal(second)}"
    return reader.remark(match[0], words, "write “to” between the numbers of a range or a score.")


def _screen(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} by {cardinal(match[2])}"


def _scientific_number(match: re.Match, _: Reader) -> str:
    """6.02e23, 6.02 x 10^23: a power of ten."""
    minus = "minus " if match[1] else ""
    exponent = (match[3] or match[4]).translate(_SUPERSCRIPTS).lstrip("+")
    return f"{minus}{cardinal(match[2])} times ten {power(exponent)}"


def _power(match: re.Match, reader: Reader) -> str:
    """10^6, x²; but not a note's mark (word¹), and not a unit (m²)."""
    base, raised = match[1], match[2] or match[3]
    if base + raised in UNITS or base + raised in DENOMINATORS:
        return match[0]
    if base.isalpha() and len(base) > 2:
        return base if match[3] else match[0]
    if base.isalpha():
        is_word = len(base) > 1 and re.search("[aeiouy]", base.lower())
        base = base if is_word else reader.letters(base)
    else:
        base = cardinal(base)
    return f"{base} {power(raised.translate(_SUPERSCRIPTS).lstrip('+'))}"


def _subscripts(match: re.Match, _: Reader) -> str:
    return match[0].translate(str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789"))


def _formula(match: re.Match, reader: Reader) -> str:
    """H2SO4: chemical symbols and their numbers, all spelled."""
    parts = re.findall(r"[A-Z][a-z]?|\d+", match[0])
    symbols = [part for part in parts if part.isalpha()]
    known = match[0] in _FORMULAS_WITHOUT_DIGITS or any(part.isdecimal() for part in parts)
    if not known or len(symbols) < 1 or not all(symbol in _ELEMENTS for symbol in symbols):
        return match[0]
    if len(symbols) == 1 and match[0] not in ("O2", "N2", "O3", "Cl2"):
        return match[0]
    return " ".join(cardinal(p) if p.isdecimal() else reader.letters(p) for p in parts)


def _letters_and_digits(match: re.Match, reader: Reader) -> str:
    """Letters and digits in one word: MP3, B2B, 4K, COVID-19, A380."""
    parts = re.findall(r"[A-Za-z]+|\d+", match[0])
    if len(parts) == 3 and parts[2] == "s" and parts[0].isupper():  # MP3s
        words = [_mixed_part(part, parts[:2], reader) for part in parts[:2]]
        return f"{words[0]} {re.sub('y$', 'ie', re.sub('x$', 'xe', words[1]))}s"
    return " ".join(_mixed_part(part, parts, reader) for part in parts)


def _mixed_part(part: str, parts: list[str], reader: Reader) -> str:
    if part.isdecimal():
        return pairs(part) if len(parts) == 2 and parts[0].isupper() else cardinal(part)
    if part in _SPELLED_SMALL and len(parts) == 2 and part == parts[0]:
        return reader.letters(part)
    return reader.letters(part) if part.isupper() and len(part) <= 3 else part


def _tens(match: re.Match, _: Reader) -> str:
    """In her 20s, the low 70s, "20s and 30s"; 20s alone are seconds."""
    return f"{cardinal(match[1] or match[2])[:-1]}ies"


def _counts(match: re.Match, _: Reader) -> str:
    """100s, 1000s: hundreds, thousands."""
    return {"100": "hundreds", "1000": "thousands", "1,000": "thousands"}[match[1]]


def _parts_of_a_date(match: re.Match, _: Reader) -> str:
    """Digits that slashes or colons hold together, one after the other."""
    return " ".join(cardinal(part) for part in re.findall(r"\d+", match[0]))


def _plain_number(match: re.Match, _: Reader) -> str:
    return cardinal(match[0])


_TERM = r"(?:\d{1,12}(?:\.\d{1,9})?|[a-zA-Z])"
_SIGN = r"(?:[ \t]?[+*][ \t]?|[ \t]?[-][ \t]?|[ \t]x[ \t]|(?<=\d)x(?=\d)|[ \t]?/[ \t]?)"
# Before dates, times and amounts.
FIRST_RULES: tuple[Rule, ...] = (
    rule(
        r"\b(?P<before>AD|A\.D\.|BC|CE)[ \t](?P<year>\d{1,4})(?![\w,]|\.\d)"
        r"|(?<![\w.,])(?P<year2>\d{1,4})[ \t]?(?P<after>AD|A\.D\.|BCE?|B\.C\.(?:E\.)?|CE)(?!\w)",
        _era,
    ),
    rule(r"(?<![\w.,])(1,?000|100)s(?=[ \t]of\b)", _counts),
    rule(r"(?:(?<=\b[Uu]nder-)|(?<=\b[Oo]ver-)|(?<=\bU)|(?<=\b[A-Z]-))(\d{1,2})s\b", _several),
    rule(r"(?<=[A-Za-z])[₀₁₂₃₄₅₆₇₈₉]{1,3}", _subscripts),
    rule(
        rf"(?<![\w.,])(-?)({NUMBER})[ \t]?[x×*·][ \t]?10(?:(?:\^"
        rf"|\*\*)\(?([-+]?\d{{1,3}})\)?|([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,3}}))(?!\w)",
        _scientific_number,
    ),
    rule(r"(?<![\w.,])(-?)(\d{1,9}(?:\.\d{1,9})?)[eE]([-+]?\d{1,3})()(?!\w)", _scientific_number),
    rule(
        rf"(?<![\w.])({NUMBER}|[A-Za-z]{{1,12}})(?:\^[({{]?([-+]?\w{{1,3}})[)}}]?"
        rf"|([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ]{{1,3}}))(?!\w)",
        _power,
    ),
    rule(rf"(?<![\w.,$£€/-]){_TERM}(?:{_SIGN}{_TERM}){{1,6}}(?=[ \t]?=[ \t]?[-\w$£€?])", _sum),
    rule(
        rf"(?:(?<=[iI]s[ ])|(?<=\d[ ]=[ ])|(?<=\d=))(?<![\w.,]){_TERM}"
        rf"(?:[ \t][-+*x/][ \t]{_TERM}){{1,6}}(?![\w]|[ \t]?(?:[cmk]?m|in|ft|feet|[mk]?g|m?l)\b)",
        _sum,
    ),
    rule(rf"(?<![\w.,'])([2-9]0)s(?=[ ](?:and|or|to)[ ]\d0s\b)|{_AGES}([2-9]0)s\b", _tens),
    *sizes.FIRST_RULES,
    rule(r"(?<=[\w)])[ \t]-[ \t](?=\(?\d|[a-z]\b)", _negative_number),
    # A coefficient: 3x in a sum.
    rule(r"(?<=[-+=*/] )(\d{1,4})([xyz])(?=[ \t]*(?:[-+=*/.,;?]|$|minus|plus))", _coefficient),
    rule(r"(?<=[\d)]=)[ \t]?-(?=\d)", lambda match, reader: " minus "),
    rule(
        r"(?<![\w.,$£€:/-])(\d{1,9})[ \t]-[ \t](\d{1,9})(?![\w:/%$£€-]|[.,]\d|[ \t][a-z]|[ \t]-)",
        _difference,
    ),
    rule(r"(?<![\w)$£€])\+(?=\.?\d{1,9}(?!\d))", word("plus ")),
    # From one time or share to another: 2:30-3:45, 10am-5pm, 10%-20%.
    rule(
        r"(?:(?<=[\d%m])|(?<=[ap]\.m\.))[ \t]?-[ \t]?(?=\d{1,3}(?::\d\d|[ \t]?[ap]\.?m\b|[ \t]?%))",
        lambda match, reader: " to ",
    ),
    rule(r"(?<![^\s(\"'=])(?<![$£€¥][ ])-(?=\.?\d)", lambda match, reader: "minus "),
)

# After them: what an earlier rule has written in words no later one sees.
RULES: tuple[Rule, ...] = (
    rule(
        r"(?<![\w.,-])(1[1-9]\d\d|20\d\d)[ \t]?-[ \t]?(1[1-9]\d\d|20\d\d|\d\d)(?![\w-])",
        _year_range,
    ),
    rule(r"(?<![\w./,-])(1[89]\d\d|20\d\d)/(1[89]\d\d|20\d\d|\d\d)(?![\w/]|[.,]\d)", _season),
    rule(r"(?<![\w.])(\d{1,3}(?:,\d{3}){0,3}|\d{1,9})(?:st|nd|rd|th)\b", _ordinal, re.IGNORECASE),
    rule(r"(?<![\w./])(?:(\d{1,3})[ \t])?(\d{1,3})/(\d{1,3})(?![\w/]|\.\d)", _fraction),
    rule(rf"(?:(\d{{1,4}})[ \t]?)?([{''.join(_VULGAR)}])", _vulgar_fraction),
    *sizes.RULES,
    rule(r"(?<![\w.:])(16|21):(9|10)(?![\w:])", _screen),
    rule(r"(?<![\w.:])(\d{1,3}):(\d{1,3})(?![\w:])", _range),
    rule(rf"(?<![\w.,-])({NUMBER})[ \t]?-[ \t]?({NUMBER})(?![\w-])", _range),
    rule(r"(?<![\w.,])(?:1[1-9]\d\d|20\d\d)(?![\w]|[.,]\d)", _year),
    rule(r"(?<![\w.,])(?:10|2[1-4])\d\d(?![\w]|[.,]\d)", _rarer_year),
    rule(r"(?<![\w-])(?:[A-Z][a-z]?\d{0,3}){1,6}(?![\w-])", _formula),
    rule(
        r"(?<![\w-])(?<!\d\.)(?=[A-Za-z-]{0,11}\d)(?=[\d-]{0,11}[A-Za-z])[A-Za-z\d]{1,12}"
        r"(?:-\d{1,4})?(?!\w)",
        _letters_and_digits,
    ),
    rule(r"(?<![\w.,])\d{1,9}(?:[/:]\d{1,9}){1,6}(?!\w)", _parts_of_a_date),
    # A list without spaces: 1,2,3.
    rule(r"(?<=\d),(?=\d{1,2}(?!\d))", word(", ")),
    rule(NUMBER, _plain_number),
)

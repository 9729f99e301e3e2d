"""Numbers in words: cardinals, ordinals, years, fractions, and numbers read in pairs of digits."""

from __future__ import annotations

import re

from num2words import num2words

# Longer runs of digits are read one by one: they are codes, not quantities.
_LONGEST_NUMBER = 15
NUMBER = r"(?:\d{1,3}(?:,\d{3}){1,5}(?!\d)|\d{1,40})(?:\.\d{1,20})?|\.\d{1,20}"
# The same, or a vulgar fraction such as 1/2 and 1 1/2.
FRACTION = r"(?:\d{1,3}[ \t])?\d{1,2}/\d{1,2}(?![\d/])"
# Words that count what follows: "two tbsp", "five $20 bills".
COUNT_WORDS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred "
    "thousand million billion several some many few these those both"
).split()


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


def pairs(number: str) -> str:
    """As models, flights and roads are read: seven forty-seven, forty ninety, one oh one."""
    if len(number) not in (3, 4) or number.startswith("0") or number[1:3] == "00":
        return cardinal(number) if len(number) <= 4 else digits(number)
    first, last = number[:-2], number[-2:]
    if last == "00":
        return f"{cardinal(first)} hundred"
    tail = f"oh {digits(last[1])}" if last[0] == "0" else cardinal(last)
    return f"{cardinal(first)} {tail}"


def fraction(top: int, bottom: int) -> str:
    """one half, three quarters, two thirds."""
    if bottom == 2:
        name = "half" if top == 1 else "halves"
    elif bottom == 4:
        name = "quarter" if top == 1 else "quarters"
    else:
        name = ordinal(bottom) + ("" if top == 1 else "s")
    return f"{num2words(top)} {name}"


def mixed_fraction(whole: str, top: int, bottom: int) -> str:
    """two and a half, one and three quarters."""
    part = fraction(top, bottom)
    return f"{cardinal(whole)} and {part.replace('one ', 'a ', 1) if top == 1 else part}"


def power(exponent: str) -> str:
    """Behind the base: squared, cubed, to the power of six."""
    if exponent in ("2", "3"):
        return "squared" if exponent == "2" else "cubed"
    if not exponent.lstrip("+-").isdecimal():
        return f"to the power of {exponent.upper()}"
    minus = "minus " if exponent.startswith("-") else ""
    return f"to the power of {minus}{cardinal(exponent.lstrip('+-'))}"


_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_VALID_ROMAN = re.compile(
    r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})", re.IGNORECASE
)


def roman(numeral: str) -> int | None:
    """The value of a Roman numeral, None where it is none."""
    if not numeral or not _VALID_ROMAN.fullmatch(numeral):
        return None
    values = [_ROMAN[letter] for letter in numeral.upper()]
    return sum(-v if v < after else v for v, after in zip(values, [*values[1:], 0], strict=True))

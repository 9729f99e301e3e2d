"""Amounts of money, percentages and measures, as they are spoken."""

from __future__ import annotations

import re

from dia_demo.text.numerals import NUMBER, cardinal
from dia_demo.text.rules import Reader, Rule, rule

_CURRENCIES = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "€": ("euro", "euros", "cent", "cents"),
    "¥": ("yen", "yen", "sen", "sen"),
    "₹": ("rupee", "rupees", "paisa", "paise"),
}
_CODES = {"USD": "$", "GBP": "£", "EUR": "€", "JPY": "¥", "INR": "₹"}
_SCALES = {
    "k": "thousand", "K": "thousand", "m": "million", "M": "million", "mn": "million",
    "bn": "billion", "b": "billion", "B": "billion", "tn": "trillion", "T": "trillion",
}  # fmt: skip
# One and several. A space may stand before each.
_UNITS = {
    "km/h": ("kilometer per hour", "kilometers per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"),
    "mph": ("mile per hour", "miles per hour"),
    "m/s": ("meter per second", "meters per second"),
    "km²": ("square kilometer", "square kilometers"),
    "m²": ("square meter", "square meters"),
    "sq ft": ("square foot", "square feet"),
    "km": ("kilometer", "kilometers"),
    "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"),
    "mi": ("mile", "miles"),
    "yd": ("yard", "yards"),
    "ft": ("foot", "feet"),
    "kg": ("kilogram", "kilograms"),
    "mg": ("milligram", "milligrams"),
    "lbs": ("pound", "pounds"),
    "lb": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "ml": ("milliliter", "milliliters"),
    "mL": ("milliliter", "milliliters"),
    "GB": ("gigabyte", "gigabytes"),
    "MB": ("megabyte", "megabytes"),
    "KB": ("kilobyte", "kilobytes"),
    "kB": ("kilobyte", "kilobytes"),
    "TB": ("terabyte", "terabytes"),
    "GHz": ("gigahertz", "gigahertz"),
    "MHz": ("megahertz", "megahertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "Hz": ("hertz", "hertz"),
    "kWh": ("kilowatt hour", "kilowatt hours"),
    "kW": ("kilowatt", "kilowatts"),
    "mAh": ("milliamp hour", "milliamp hours"),
    "dB": ("decibel", "decibels"),
    "px": ("pixel", "pixels"),
    "ms": ("millisecond", "milliseconds"),
    "hrs": ("hour", "hours"),
    "hr": ("hour", "hours"),
    "mins": ("minute", "minutes"),
    "min": ("minute", "minutes"),
    "secs": ("second", "seconds"),
    "sec": ("second", "seconds"),
    "in.": ("inch", "inches"),
    "°C": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "°": ("degree", "degrees"),
    "m": ("meter", "meters"),
    "g": ("gram", "grams"),
    "l": ("liter", "liters"),
    "L": ("liter", "liters"),
    "h": ("hour", "hours"),
    "s": ("second", "seconds"),
    "W": ("watt", "watts"),
    "V": ("volt", "volts"),
}
_UNIT = "|".join(re.escape(unit) for unit in sorted(_UNITS, key=len, reverse=True))
_SCALE = r"hundred|thousand|million|billion|trillion|mn|bn|tn|[kKmMbBT]"
_BEFORE = r"(?<![\w.,])"


def _money(match: re.Match, _: Reader) -> str:
    symbol = match["symbol"] or match["after"] or _CODES[match["code"]]
    amount = match["amount"] or match["amount2"]
    adjective = re.search(
        r"\b(?:a|an)[ \t]$", match.string[max(0, match.start() - 4) : match.start()]
    )
    return _amount(symbol, amount, match["scale"], adjective is not None)


def _amount(symbol: str, amount: str, scale: str | None, adjective: bool = False) -> str:
    singular, plural, cent, cents = _CURRENCIES[symbol]
    if adjective:
        plural = singular
    if scale:
        return f"{cardinal(amount)} {_SCALES.get(scale, scale.lower())} {plural}"
    whole, _, part = amount.replace(",", "").partition(".")
    if not part or len(part) > 2:
        return f"{cardinal(amount)} {singular if amount == '1' else plural}"
    hundredths = int(part.ljust(2, "0"))
    units = int(whole or 0)
    words = []
    if units or not hundredths:
        words.append(f"{cardinal(str(units))} {singular if units == 1 else plural}")
    if hundredths:
        words.append(f"{cardinal(str(hundredths))} {cent if hundredths == 1 else cents}")
    return " and ".join(words)


def _money_range(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[2])} to {_amount(match[1], match[3], match[4])}"


def _cents(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} {'cent' if match[1] == '1' else 'cents'}"


def _percent(match: re.Match, _: Reader) -> str:
    low = f"{cardinal(match[1])} to " if match[1] else ""
    return f"{low}{cardinal(match[2])} percent"


def _unit(match: re.Match, _: Reader) -> str:
    singular, plural = _UNITS[match[3]]
    low = f"{cardinal(match[1])} to " if match[1] else ""
    return f"{low}{cardinal(match[2])} {singular if match[2] == '1' and not low else plural}"


def _height(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} foot {cardinal(match[2])}"


RULES: tuple[Rule, ...] = (
    rule(
        rf"([$£€])({NUMBER})[ \t]?-[ \t]?[$£€]?({NUMBER})(?:[ \t]?({_SCALE})\b)?",
        _money_range,
    ),
    rule(
        rf"(?:(?:\b(?:US|CA|AU|NZ|A|C))?(?P<symbol>[$£€¥₹])[ \t]?(?P<amount>{NUMBER})"
        rf"|(?<![\w.])(?P<amount2>{NUMBER})[ \t]?"
        rf"(?:(?P<after>[$£€¥₹])|(?P<code>{'|'.join(_CODES)})\b))"
        rf"(?:[ \t]?(?P<scale>{_SCALE})\b)?",
        _money,
    ),
    rule(rf"{_BEFORE}({NUMBER})[ \t]?¢", _cents),
    rule(rf"{_BEFORE}(?:({NUMBER})[ \t]?-[ \t]?)?({NUMBER})[ \t]?%", _percent),
    rule(r"(?<![\w.])(\d{1,2})'(\d{1,2})(?:\"|'')", _height),
    rule(
        rf"{_BEFORE}(?:({NUMBER})[ \t]?-[ \t]?)?({NUMBER})[ \t]?({_UNIT})(?![\w/²³'])"
        r"(?:\.(?=[ \t][a-z\d]))?",
        _unit,
    ),
)

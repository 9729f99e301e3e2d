"""Amounts of money, as they are spoken."""

from __future__ import annotations

import re

from dia_demo.text.reading.numbers import NUMBER, cardinal
from dia_demo.text.reading.rules import (
    Reader,
    Rule,
    any_of,
    is_adjective,
    rule,
    text_after,
    text_before,
)

# One and several units, one and several hundredths.
_CURRENCIES = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "€": ("euro", "euros", "cent", "cents"),
    "¥": ("yen", "yen", "sen", "sen"),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₽": ("ruble", "rubles", "kopeck", "kopecks"),
    "₩": ("won", "won", "jeon", "jeon"),
    "₺": ("lira", "lira", "kurus", "kurus"),
    "₪": ("shekel", "shekels", "agora", "agorot"),
    "₫": ("dong", "dong", "xu", "xu"),
    "₱": ("peso", "pesos", "centavo", "centavos"),
    "₦": ("naira", "naira", "kobo", "kobo"),
    "₴": ("hryvnia", "hryvnias", "kopeck", "kopecks"),
    "฿": ("baht", "baht", "satang", "satang"),
    "₿": ("bitcoin", "bitcoins", "satoshi", "satoshis"),
    "A$": ("Australian dollar", "Australian dollars", "cent", "cents"),
    "C$": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "NZ$": ("New Zealand dollar", "New Zealand dollars", "cent", "cents"),
    "HK$": ("Hong Kong dollar", "Hong Kong dollars", "cent", "cents"),
    "S$": ("Singapore dollar", "Singapore dollars", "cent", "cents"),
    "R$": ("real", "reais", "centavo", "centavos"),
    "CHF": ("Swiss franc", "Swiss francs", "centime", "centimes"),
    "SEK": ("Swedish krona", "Swedish kronor", "öre", "öre"),
    "NOK": ("Norwegian krone", "Norwegian kroner", "øre", "øre"),
    "DKK": ("Danish krone", "Danish kroner", "øre", "øre"),
    "kr": ("krone", "kroner", "øre", "øre"),
    "PLN": ("zloty", "zloty", "grosz", "groszy"),
    "CZK": ("Czech koruna", "Czech korunas", "haler", "halers"),
    "HUF": ("forint", "forints", "filler", "fillers"),
    "CNY": ("yuan", "yuan", "fen", "fen"),
    "MXN": ("Mexican peso", "Mexican pesos", "centavo", "centavos"),
    "ZAR": ("rand", "rand", "cent", "cents"),
}
_NAMES = {
    "USD": "$", "US$": "$", "GBP": "£", "EUR": "€", "JPY": "¥", "INR": "₹", "RUB": "₽",
    "KRW": "₩", "TRY": "₺", "ILS": "₪", "VND": "₫", "PHP": "₱", "NGN": "₦", "UAH": "₴",
    "THB": "฿", "BTC": "₿", "AUD": "A$", "AU$": "A$", "CAD": "C$", "CA$": "C$", "NZD": "NZ$",
    "HKD": "HK$", "SGD": "S$", "BRL": "R$", "RMB": "CNY", "Rs.": "₹", "Rs": "₹", "zł": "PLN",
    "Kr": "kr", "Fr.": "CHF",
}  # fmt: skip
_CODES = [code for code in (*_CURRENCIES, *_NAMES) if code[-1].isalpha() or code == "Rs."]
_SYMBOLS = [symbol for symbol in (*_CURRENCIES, *_NAMES) if not symbol[-1].isalpha()]
_SIGN_AFTER = [symbol for symbol in _SYMBOLS if len(symbol) == 1]
# Signs whose amounts are often written with a dot before thousands.
_CONTINENTAL = ("€", "R$", "DKK", "NOK", "SEK", "kr", "PLN", "₺", "CHF")
_SCALES = {
    "k": "thousand", "K": "thousand", "m": "million", "M": "million", "mn": "million",
    "mil": "million", "mm": "million", "MM": "million", "bn": "billion", "b": "billion",
    "B": "billion", "tn": "trillion", "T": "trillion", "t": "trillion", "lakh": "lakh",
    "crore": "crore",
}  # fmt: skip
_SCALE = r"hundred|thousand|million|billion|trillion|lakh|crore|mil|mn|bn|tn|mm|MM|[kKmMbBtT]"
_AMOUNT = (
    r"\d{1,3}(?:\.\d{3}){1,4},\d{2}(?!\d)|\d{1,3}(?:\.\d{3}){2,4}(?!\d)|\d{1,9},\d{1,2}(?![\d,])"
    rf"|\d{{1,3}}(?:[' ]\d{{3}}){{1,4}}(?:\.\d\d)?(?!\d)|{NUMBER}"
)
_NOUNS = frozenset(
    "bill bills note notes coin coins banknote banknotes deal deals fine fines ticket tickets fee "
    "fees bonus prize prizes reward budget loan loans gift gifts discount project projects "
    "contract contracts investment mansion settlement lawsuit question lottery jackpot company "
    "valuation fund funds grant grants donation donations voucher vouchers coupon coupons check "
    "checks cheque cheques deposit surcharge upgrade industry market house home stamp stamps tax "
    "cut raise salary bet tip rebate credit copay membership subscription".split()
)
_PER = {
    "hr": "hour", "h": "hour", "hour": "hour", "min": "minute", "minute": "minute",
    "sec": "second", "s": "second", "day": "day", "d": "day", "wk": "week", "week": "week",
    "mo": "month", "mth": "month", "month": "month", "yr": "year", "y": "year", "year": "year",
    "night": "night", "person": "person", "head": "head", "pp": "person", "user": "user",
    "seat": "seat", "item": "item", "piece": "piece", "pc": "piece", "unit": "unit",
    "box": "box", "bottle": "bottle", "visit": "visit", "session": "session", "call": "call",
    "lb": "pound", "kg": "kilogram", "g": "gram", "oz": "ounce", "gal": "gallon", "l": "liter",
    "L": "liter", "litre": "liter", "liter": "liter", "mi": "mile", "mile": "mile",
    "km": "kilometer", "m": "meter", "m²": "square meter", "ft": "foot", "sq ft": "square foot",
    "sqft": "square foot", "ft²": "square foot", "GB": "gigabyte", "MB": "megabyte",
    "TB": "terabyte", "kWh": "kilowatt hour", "MWh": "megawatt hour", "ton": "ton",
    "bbl": "barrel", "barrel": "barrel", "share": "share", "word": "word", "page": "page",
    "dozen": "dozen", "million tokens": "million tokens",
}  # fmt: skip
_EACH = ("ea", "each")
_MINUS = r"(?P<sign>(?<![\w)])[-+])?"


def _plain_number(written: str, continental: bool, reader: Reader) -> str:
    """An amount with a decimal point, whatever separates its thousands."""
    written = re.sub(r"(?<=\d)[' ](?=\d{3})", "", written)
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d\d)?", written):
        if "," in written or continental or written.count(".") > 1:
            return written.replace(".", "").replace(",", ".")
    if re.fullmatch(r"\d+,\d{1,2}", written):
        return written.replace(",", ".")
    return written


def _money(match: re.Match, reader: Reader) -> str:
    named = match["symbol"] or match["code"] or match["after"]
    symbol = _NAMES.get(named, named)
    amount = _plain_number(match["amount"] or match["amount2"], symbol in _CONTINENTAL, reader)
    sign = match["sign"] or match["inner"] or match["sign2"]
    low = f"{'minus' if sign == '-' else 'plus'} " if sign else ""
    if (
        re.search(r"\ba[ \t]$", text_before(match))
        and re.match(r"[.,;!?]|$", text_after(match))
        and not (match["scale"] or "." in amount or match["per"])
    ):
        return cardinal(amount)  # She gave me a $20.
    words = low + _amount(symbol, amount, match["scale"], is_adjective(match, _NOUNS))
    return words + _price_unit(match)


def _price_unit(match: re.Match) -> str:
    if not match["per"]:
        return ""
    return " each" if match["per"] in _EACH else f" per {_PER[match['per']]}"


def _amount(symbol: str, amount: str, scale: str | None, adjective: bool = False) -> str:
    singular, plural, cent, cents = _CURRENCIES[symbol]
    if adjective:
        plural, cents = singular, cent
    if scale:
        return f"{cardinal(amount)} {_SCALES.get(scale, scale.lower())} {plural}"
    whole, _, part = amount.replace(",", "").partition(".")
    if not part or len(part) > 2 or symbol == "₿":  # Nobody says cents of a bitcoin.
        return f"{cardinal(amount)} {singular if amount == '1' else plural}"
    hundredths = int(part.ljust(2, "0"))
    units = int(whole or 0)
    words = []
    if units or not hundredths:
        words.append(f"{cardinal(str(units))} {singular if units == 1 else plural}")
    if hundredths:
        words.append(f"{cardinal(str(hundredths))} {cent if hundredths == 1 else cents}")
    return " and ".join(words)


def _money_range(match: re.Match, reader: Reader) -> str:
    symbol = _NAMES.get(match["symbol"], match["symbol"])
    low, high = (
        _plain_number(match[name], symbol in _CONTINENTAL, reader) for name in ("low", "high")
    )
    words = _amount(symbol, high, match["scale"], is_adjective(match, _NOUNS))
    if match["scale1"]:
        start = f"{cardinal(low)} {_SCALES.get(match['scale1'], match['scale1'])}"
    elif "." in low:
        start = _amount(symbol, low, None)
    else:
        start = cardinal(low)
    return f"{start} to {words}{_price_unit(match)}"


def _cents(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} {'cent' if match[1] == '1' or is_adjective(match) else 'cents'}"


def _pence(match: re.Match, _: Reader) -> str:
    return f"{cardinal(match[1])} {'penny' if match[1] == '1' else 'pence'}"


_PER_PATTERN = (
    rf"(?:[ \t]?/[ \t]?(?P<per>{any_of([*_PER, *_EACH])})(?![\w²])(?:\.(?=[,;]|[ \t][a-z]))?)?"
)
_SCALE_PATTERN = rf"(?:[ \t]?(?P<scale>{_SCALE})\b)?"

RULES: tuple[Rule, ...] = (
    # The currency twice: $5 dollars.
    *(
        rule(
            rf"({re.escape(sign)}\d[\d,.]{{0,15}}(?:[ \t](?:thousand|million|billion|trillion))?)"
            rf"[ \t]{name}\b",
            lambda match, reader: match[1],
        )
        for sign, name in (("$", "dollars"), ("€", "euros"), ("£", "pounds"))
    ),
    rule(r"\b[Kk]r\.[ \t]?(?=\d)", lambda match, reader: "kr "),
    rule(
        rf"(?<![\w.,/$£€-])(\d{{1,6}})[ \t]?-[ \t]?(?=\d{{1,6}}[ \t]?"
        rf"(?:{any_of(_SIGN_AFTER)}|(?:{any_of(_CODES)})(?!\w)))",
        lambda match, reader: f"{cardinal(match[1])} to ",
    ),
    rule(
        rf"(?P<symbol>{any_of(_SYMBOLS)})[ \t]?(?P<low>{_AMOUNT})(?:[ \t]?(?P<scale1>{_SCALE})\b)?"
        rf"[ \t]?-[ \t]?(?:{any_of(_SYMBOLS)})?(?P<high>{_AMOUNT}){_SCALE_PATTERN}{_PER_PATTERN}",
        _money_range,
    ),
    rule(
        rf"(?:{_MINUS}(?<![A-Za-z])(?:(?P<symbol>{any_of(_SYMBOLS)})"
        rf"|(?P<code>{any_of(_CODES)})(?=[ \t]?[-+]?[\d.]))"
        rf"[ \t]?(?P<inner>[-+])?(?P<amount>{_AMOUNT})"
        rf"|(?P<sign2>(?<![\w)])[-+])?(?<![\w.,])(?P<amount2>{_AMOUNT})[ \t]?"
        rf"(?P<after>{any_of(_SIGN_AFTER)}|(?:{any_of(_CODES)})(?!\w)))"
        rf"{_SCALE_PATTERN}{_PER_PATTERN}",
        _money,
    ),
    rule(rf"(?<![\w.,])({NUMBER})[ \t]?¢", _cents),
    rule(r"(?<![\w.,$£€])(\d{1,3})p(?![\w'])(?=[ \t.,!?;)]|$)", _pence),
)

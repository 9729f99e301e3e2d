"""Digits that are names and not amounts: phone and card numbers, addresses, versions, models."""

from __future__ import annotations

import re

from dia_demo.text.reading.numbers import cardinal, digits, pairs
from dia_demo.text.reading.rules import Reader, Rule, rule, text_after, text_before

_EMERGENCY = "911|999|112|110|111|119|000|101|988|211|311|411|511|611|711|811"
_CALL = re.compile(
    r"\b(?:call(?:s|ed|ing)?|dial(?:s|ed|ing|led|ling)?|ring|rang|phon(?:e|ed|ing)|text(?:ed|ing)?"
    r"|number(?:[ ]is)?:?|(?:911|999|112)[ ]or|one[ ]or)[ \t]{1,3}$",
    re.IGNORECASE,
)
# Digits after these words are read one by one.
_CODE_BEFORE = re.compile(
    r"\b(?:zip(?:[ ]code)?|post(?:al[ ]|[ ]?)code|codes?|pin|otp|passcode|password|extension|ext\.?"
    r"|account|acct\.?|serial|tracking|confirmation|reference|booking|badge|licen[cs]e"
    r"|call|dial|text|phone|fax|tel(?:ephone)?\.?|mobile|cell|number|id)"
    r"(?:[ \t](?:number|no\.?|code))?(?:[ \t](?:is|was|me[ ]at|us[ ]at|at|on|to))?[ \t:#]{1,3}$",
    re.IGNORECASE,
)
_STATES = (
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM "
    "NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY DC"
).split()
_STATE_BEFORE = re.compile(rf"(?:\b(?:{'|'.join(_STATES)})|[a-z,])[ \t]$")
_COUNTED_AFTER = re.compile(r"[ \t]{1,3}[a-z]{2,20}")
_MORE_WORDS = re.compile(
    r"[ \t]{1,3}(?:now|if|for|in|and|or|to|immediately|right|as|at|on|when|before|after|is|was|from"
    r"|with|but|operator|dispatcher|call|calls|emergency|today|please|then|straight|because|while"
    r"|instead|again|first|next|so|until|unless|centre|center|line|responders?)\b"
)
# What is named with a number that is read in pairs.
_MODELS = (
    r"Boeing|Airbus|[Ff]light|[Rr]oute|[Hh]ighway|[Rr]oom|Interstate|Porsche|BMW"
    r"|Peugeot|Renault|Fiat|Volvo|Mazda"
    r"|Levi's|Levis|Xbox|GTX|RTX|Radeon|GeForce|Ryzen|Nokia|ThinkPad|Fahrenheit|Intel|Pentium"
    r"|Galaxy|Cessna|Embraer|Chanel|Saab|Rover|Ferrari|Apartment|[Ss]uite|[Gg]ate|[Bb]us"
    # Airlines, before the number of a flight.
    r"|BA|UA|LH|EK|QF|CX|SQ"
)


def _phone(match: re.Match, _: Reader) -> str:
    written = match[0]
    plus = "plus " if written.startswith("+") else ""
    groups = re.findall(r"\d+", written.replace("(0)", ""))
    return plus + ", ".join(digits(group) for group in _split(groups))


def _split(groups: list[str]) -> list[str]:
    """A run of ten digits in groups, as people say it."""
    if len(groups) > 1 or len(groups[0]) not in (10, 11):
        return groups
    run = groups[0]
    lead = [run[:1]] if len(run) == 11 and run[0] == "1" else []
    run = run[len(lead) :]
    if len(run) != 10 or run[0] == "0":
        return groups
    return [*lead, run[:3], run[3:6], run[6:]]


def _toll_free_number(match: re.Match, reader: Reader) -> str:
    area = f"{cardinal(match[1][0])} hundred" if match[1][1:] == "00" else digits(match[1])
    groups = [group for group in match[2].split("-") if group]
    spoken = [digits(part) if part.isdecimal() else part.lower() for part in groups]
    return f"one {area}, {', '.join(spoken)}"


def _groups(match: re.Match, reader: Reader) -> str:
    """Three groups of digits or more are a code, unless they are thousands: 1 000 000."""
    groups = re.findall(r"\d+", match[0])
    if _are_thousands(groups) and " " in match[0] and not _CODE_BEFORE.search(text_before(match)):
        return match[0]
    if not 7 <= sum(map(len, groups)) <= 19:
        return match[0]
    return _phone(match, reader)


def _are_thousands(groups: list[str]) -> bool:
    first, *others = groups
    return len(first) <= 3 and first[0] != "0" and all(len(group) == 3 for group in others)


def _thousands(match: re.Match, reader: Reader) -> str:
    """Groups of three digits apart: 1 000 000, 25 000, 1'000'000, 1_000_000."""
    if _CODE_BEFORE.search(text_before(match)):
        return match[0]
    groups = re.findall(r"\d+", match[0])
    if len(groups) == 2 and match[0][len(groups[0])] == " " and not groups[1].endswith("00"):
        words = cardinal("".join(groups))
        return reader.remark(match[0], words, "write a comma between two numbers.")
    return cardinal("".join(groups))


def _indian_number(match: re.Match, _: Reader) -> str:
    """1,00,000: without the commas, it is read as any number."""
    return match[0].replace(",", "")


def _emergency(match: re.Match, reader: Reader) -> str:
    """911 and its like, where they are called and count nothing."""
    rest = text_after(match)
    counts = _COUNTED_AFTER.match(rest) and not _MORE_WORDS.match(rest)
    called = _CALL.search(text_before(match))
    if re.search(r"\bPorsche[ \t]$", text_before(match)):
        return pairs(match[0])
    if counts or (match[0] not in ("911", "999", "000") and not called):
        return match[0]
    if match[0] == "999" and not called and not _MORE_WORDS.match(rest) and rest.strip(".!?"):
        return match[0]
    return digits(match[0])


def _code(match: re.Match, _: Reader) -> str:
    """Digits after a word such as "code" or "extension", and ZIP codes."""
    number, previous = match[0], text_before(match)
    counts = _COUNTED_AFTER.match(text_after(match)) and not _MORE_WORDS.match(text_after(match))
    if counts:
        return number
    if _CODE_BEFORE.search(previous):
        return digits(number)
    if len(number) == 5 and not number.endswith("00") and _is_zip(match, previous):
        return digits(number)
    return number


def _is_zip(match: re.Match, previous: str) -> bool:
    state = re.search(rf"\b(?:{'|'.join(_STATES)}),?[ \t]$", previous)
    place = re.search(r"[a-z][ \t][A-Z][a-z]{2,20},?[ \t]$|\b(?:in|near|live[sd]?)[ \t]$", previous)
    alone = re.search(r"(?:^|[\n\]])[ \t]{0,9}$", previous) and not text_after(match).strip(
        " .!?\n"
    )
    capital = re.search(r"[A-Z][a-z]+,?[ \t][A-Z][a-z]+,?[ \t]$", previous)
    return bool(state or place or alone or capital)


def _zip_plus_four(match: re.Match, _: Reader) -> str:
    return f"{digits(match[1])}, {digits(match[2])}"


def _address(match: re.Match, _: Reader) -> str:
    """An IPv4 address, digit by digit as it is dictated."""
    parts = match[1].split(".")
    if any(int(part) > 255 for part in parts):
        return match[0]
    port = f" port {cardinal(match[3])}" if match[3] else ""
    bits = f" slash {cardinal(match[2])}" if match[2] else ""
    return " dot ".join(digits(part) for part in parts) + bits + port


def _version(match: re.Match, _: Reader) -> str:
    return " point ".join(cardinal(part) for part in re.split(r"\.", match[0]))


def _named_version(match: re.Match, _: Reader) -> str:
    parts = match[2].split(".")
    words = [f"oh {digits(p[1])}" if re.fullmatch(r"0[1-9]", p) else cardinal(p) for p in parts]
    return f"{match[1]} {' point '.join(words)}"


def _model(match: re.Match, _: Reader) -> str:
    variant = f" {pairs(match[3])}" if match[3] else ""
    return f"{match[1]} {pairs(match[2])}{variant}"


def _variant(match: re.Match, reader: Reader) -> str:
    """747-400, A320-200; Llama-3.1."""
    if match[3]:
        return f" {' point '.join(map(cardinal, match[3].split('.')))}"
    letter = f"{reader.letters('A')} " if match[1].startswith("A") else ""
    return f"{letter}{pairs(match[1].lstrip('A'))} {pairs(match[2])}"


def _codec(match: re.Match, reader: Reader) -> str:
    """H.264; A.1 of a document's sections."""
    if len(match[2]) > 2 and "." not in match[2]:
        return f"{reader.letters(match[1])} {pairs(match[2])}"
    return " point ".join([reader.letters(match[1]), *map(cardinal, match[2].split("."))])


def _processor(match: re.Match, reader: Reader) -> str:
    """i7-9700K, i9-13900."""
    number = match[2]
    words = pairs(number) if len(number) == 4 else f"{cardinal(number[:2])} {pairs(number[2:])}"
    return f"{reader.letters('I')} {cardinal(match[1])} {words} {reader.letters(match[3])}".strip()


def _article(match: re.Match, reader: Reader) -> str:
    """SKU-12345: letters, then digits one by one."""
    return f"{reader.letters(match[1])} {digits(match[2])}"


def _house(match: re.Match, reader: Reader) -> str:
    """221B Baker Street."""
    return f"{pairs(match[1])} {reader.letters(match[2])}"


def _airliner(match: re.Match, _: Reader) -> str:
    plural = match[2]
    words = pairs(match[1])
    return f"{words[:-3]}ties" if plural and words.endswith("ty") else words + plural


def _lines(match: re.Match, reader: Reader) -> str:
    """1080p, 720i: lines of a picture."""
    return f"{pairs(match[1])} {reader.letters(match[2])}"


def _series(match: re.Match, _: Reader) -> str:
    """1-2-3, 4-4-2: one number after the other."""
    return " ".join(cardinal(part) for part in match[0].split("-"))


def _wifi(match: re.Match, reader: Reader) -> str:
    letters = f" {reader.letters(match[1])}" if match[1] else ""
    return f"eight oh two dot eleven{letters}"


def _pension(match: re.Match, reader: Reader) -> str:
    """401(k), 403(b)."""
    return f"four oh {digits(match[1][2])} {reader.letters(match[2])}"


# Before dates, times and amounts.
FIRST_RULES: tuple[Rule, ...] = (
    rule(r"\b(40[13])\(?([kb])\)?(?!\w)", _pension),
    rule(r"\bk8s\b", lambda match, reader: "Kubernetes"),
    rule(r"(?<=\d{3}[-. ]\d{4})[ ]?x(?=\d{1,5}(?!\w))", lambda match, reader: " extension "),
    rule(
        r"\b[Ss](\d{1,2})[ ]?[Ee](\d{1,3})\b",
        lambda match, reader: f"season {int(match[1])} episode {int(match[2])}",
    ),
    rule(
        r"(?<![\w.-])(?:\+?1[ -])\(?(8\d\d)\)?[ -]((?=[\dA-Z-]*[A-Z])[A-Z\d]{2,9}"
        r"(?:-[A-Z\d]{2,9}){0,2})\b",
        _toll_free_number,
    ),
    rule(
        r"(?<![\w.])((?:\d{1,3}\.){3}\d{1,3})(?:/(\d{1,2}))?(?::(\d{2,5}))?(?![\w.]*\d)", _address
    ),
    rule(
        r"(?<![\w.-])(?<!\d[ ])0\d{1,4}[ -]\d{3,4}(?:[ -]\d{3,4})?(?![\w-])"
        r"|(?<![\w.,/$£€-])(?:\+?1[ .-]?)?(?:\(\d{3}\)[ ]?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\w-])"
        r"|(?<![\w.,/$£€-])\d{3}[- ]\d{4}(?![\w-]|[.,]\d|[ ](?:[a-z]+s\b|[ap]m\b))"
        r"|(?<!\w)\+\d{1,3}(?:[ .-]?\(0\)[ ]?\d{1,4})?(?:[ .-]\d{2,8}){1,5}(?![\w-])"
        r"|(?<!\w)\+\d{9,15}(?!\w)"
        r"|(?<![\w.-])\(0\d{1,4}\)[ ]?\d{3,4}(?:[ -]?\d{3,4})?(?![\w-])"
        r"|(?<![\w.-])0\d{3,4}[ ]\d{6}(?![\w-])",
        _phone,
    ),
    rule(r"(?:(?<=\bISBN )|(?<=\bISBN: )|(?<=\bISBN is ))\d[\d-]{8,16}[\dX](?!\w)", _phone),
    rule(
        r"(?<![\w.,-])(?!\d{1,4}-\d\d?-\d\d?\b)(?!\d\d?-\d\d?-\d{4}\b)\d{1,6}(?:"
        r"([ -])\d{1,6})(?:\1\d{1,6}){1,5}(?![\w,-]|\.\d)",
        _groups,
    ),
    rule(
        r"(?<![\w.,$£€-])[2-9]\d{9}(?![\w,]|\.\d)|(?<![\w.,$£€-])1[2-9]\d{9}(?![\w,]|\.\d)", _phone
    ),
    rule(
        r"(?<![\w.,/:-])[1-9]\d{0,2}(?:([ '_])\d{3})(?:\1\d{3}){0,4}(?!\w|[,:'/-]\d|[ ]\d{3}\b)",
        _thousands,
    ),
    rule(r"(?<![\w.,])\d{1,2}(?:,\d{2}){1,4},\d{3}(?![\w,])", _indian_number),
    rule(rf"(?<![\w.,$£€/:-])(?:{_EMERGENCY})(?![\w%/:]|[.,-]\d)", _emergency),
    rule(r"(?<![\w.,$£€-])(\d{5})-(\d{4})(?![\w-])", _zip_plus_four),
    rule(r"(?<![\w.,$£€/:+-])\d{3,9}(?![\w%/:]|[.,-]\d)", _code),
    rule(r"\b802\.11([abgn]|ac|ax|be)?\b", _wifi),
    rule(r"(?<![\w.])([A-Z])\.(\d{1,4}(?:\.\d{1,3}){0,3})(?![\w.]*\w)", _codec),
    rule(
        r"(?<![\w.-])(A3\d0|7[0-8]7)-([1-9]00)(?![\w-])"
        r"|(?<=[A-Za-z])-(\d{1,3}(?:\.\d{1,3}){1,3})(?![\w.]*\d)",
        _variant,
    ),
    rule(r"\b[iI]([3579])-(\d{4,5})([A-Z]{0,2})\b", _processor),
    rule(r"(?<![\w-])([A-Z]{2,5})-(\d{5,12})(?![\w-])", _article),
    rule(
        r"(?<![\w.])(\d{3})([A-F])(?=[ ](?:[A-Z][a-z]{1,20}[ ]){1,2}"
        r"(?:St|Street|Ave|Avenue|Rd|Road|Lane|Drive|Way)\b)",
        _house,
    ),
    rule(
        r"\b([Vv]ersion|[Rr]elease|Python|Ubuntu|Debian|Node|Java|Ruby|PHP|Go|iOS|Android|macOS"
        r"|Windows|Linux|Kernel|Firmware|CUDA|PyTorch|Django"
        r"|Rails)[ \t](\d{1,4}(?:\.\d{1,4}){1,4})(?![\w.]*\d)",
        _named_version,
    ),
    rule(
        rf"\b((?:{_MODELS})(?:[ \t][A-Z]{{2}})?)[ \t](\d{{3,4}})(?:-(\d{{1,3}}))?(?![\w%-]|[.,]\d)",
        _model,
    ),
    rule(r"(?<![\w.,$£€/:-])(?:(?<=[Aa][ ])|(?=\d{3}s))(7[0-8]7)(s?)(?!\w|[.,]\d)", _airliner),
    rule(r"(?<![\w.,])(\d{3,4})([pi])\b", _lines),
    rule(r"(?<![\w.,-])\d(?:-\d){2,4}(?![\w-]|[.,]\d)", _series),
)
# After dates and amounts.
RULES: tuple[Rule, ...] = (rule(r"(?<![\w.])\d{1,9}(?:\.\d{1,9}){2,6}(?!\w)", _version),)

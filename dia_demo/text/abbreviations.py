"""Abbreviations, initialisms, web addresses and signs, as they are spoken."""

from __future__ import annotations

import re

from dia_demo.text.rules import Reader, Replace, Rule, final_dot, rule

_TITLES = {
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Dr": "Doctor", "Prof": "Professor",
    "Rev": "Reverend", "Gen": "General", "Col": "Colonel", "Lt": "Lieutenant", "Sgt": "Sergeant",
    "Capt": "Captain", "Gov": "Governor", "Sen": "Senator", "Rep": "Representative",
    "Pres": "President", "Hon": "Honorable", "Fr": "Father", "Mt": "Mount", "Ft": "Fort",
    "St": "Saint",
}  # fmt: skip
_PLACES = {
    "St": "Street", "Dr": "Drive", "Ave": "Avenue", "Blvd": "Boulevard", "Rd": "Road",
    "Ln": "Lane", "Hwy": "Highway", "Sq": "Square", "Pl": "Place", "Ct": "Court",
}  # fmt: skip
# Written with their dots, which may be a sentence's end as well.
_DOTTED = {
    "e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus",
    "approx.": "approximately", "a.k.a.": "also known as", "Jr.": "Junior", "Sr.": "Senior",
    "Inc.": "Incorporated", "Corp.": "Corporation", "Ltd.": "Limited", "Co.": "Company",
    "Bros.": "Brothers", "dept.": "department", "Dept.": "Department", "est.": "established",
    "misc.": "miscellaneous", "govt.": "government", "Univ.": "University",
    "Assn.": "Association", "Apt.": "Apartment", "apt.": "apartment", "tel.": "telephone",
    "Jan.": "January", "Feb.": "February", "Aug.": "August", "Sept.": "September",
    "Oct.": "October", "Nov.": "November", "Dec.": "December", "Mon.": "Monday",
    "Tues.": "Tuesday", "Tue.": "Tuesday", "Wed.": "Wednesday", "Thurs.": "Thursday",
    "Thu.": "Thursday", "Fri.": "Friday", "Sat.": "Saturday",
}  # fmt: skip
# Before a number.
_COUNTED = {
    "No": "number", "Nos": "numbers", "Vol": "volume", "vol": "volume",
    "Fig": "figure", "fig": "figure", "Ch": "chapter", "ch": "chapter", "p": "page",
    "pp": "pages", "Sec": "section", "sec": "section", "Art": "article", "Ref": "reference",
}  # fmt: skip
_UNDOTTED = {"w/": "with", "w/o": "without", "b/c": "because", "vs": "versus"}
# Acronyms that are spoken as words, and initialisms that are spelled.
_SAID_AS_WORDS = frozenset(
    "NATO UNICEF UNESCO OPEC LASER RADAR SIM PIN RAM ROM JPEG GIF COVID AIDS SCUBA ASCII "
    "PIXAR IKEA LEGO SWAT NAFTA BRICS FIFA".split()
)
_INITIALISMS = frozenset(
    "NASA USA UK EU UN US UAE AI API ATM CEO CFO CIA CIO CTO DIY DNA EMT ETA FAQ IBM ID IMF IOU "
    "IPO IQ IRA IRS IT IVF MIA MIT NBA NFL NHL NYU PA PE POV RNA SUV UFO UI UPS URL USB UV UX "
    "VIP VPN WHO AC ABC AKA AOL ASAP BA BBC BMI CIA EA EV GDP GPA GPU HIV HR HQ IPA ISP LA MA OS "
    "PHD PIA SOS SUV TNT UCLA USC VHS ER ICU ACT SAT AM PM AD BC CE BCE".split()
)
# Short words that are written in capitals for emphasis and are not initialisms.
_WORDS = frozenset(
    "A I AM AN AS AT BE BY DO GO HE IF IN IS IT ME MY NO OF OH ON OR SO TO UP US WE YO AH EH UH "
    "HA HI HO LO MA PA OW ALL AND ANY ARE ASK BAD BIG BUT CAN DAD DAY DID DIE EAT END FAR FOR "
    "FUN GET GOD GOT GUY HAD HAS HER HEY HIM HIS HOT HOW ITS LET LIE LOT MAN MEN MOM MUM NEW NOT "
    "NOW OFF OLD ONE OUR OUT OWN PUT RED RUN SAD SAY SEE SET SHE SIR SIT SON SUN TEN THE TOO TOP "
    "TRY TWO USE WAR WAS WAY WHO WHY WIN WON YES YET YOU ADD AGE AGO AIR ARM ART BED BOY BUY CAR "
    "CUT DOG EAR EGG EYE FEW FLY HAT HIT ICE JOB JOY KEY KID LAW LEG LOW MAD MAP MIX NOR OIL PAY "
    "PEN PET RAW RUB SEA SKY TAX TEA TIE TOE TOY VAN WET YEP NAH WOW AAH OOH HMM SHH".split()
)
_VOWEL = re.compile(r"[AEIOUY]")
_CAPITALS = re.compile(r"[A-Z]{2,}\b")
_DOMAIN = (
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?\.){1,4}"
    r"(?:com|org|net|edu|gov|info|io|ai|dev|app|co|uk|de|fr|eu|us|ca|au|me|tv|blog|page)"
)


def _any(words: dict[str, str]) -> str:
    return "|".join(words)


def _spoken_address(address: str, reader: Reader) -> str:
    text = re.sub(r"[.]", " dot ", address)
    text = text.replace("@", " at ").replace("-", " dash ").replace("_", " underscore ")
    text = text.replace("/", " slash ").replace("+", " plus ")
    return re.sub(
        r"\b(io|ai|uk|tv|us|eu)\b", lambda m: reader.letters(m[0]), " ".join(text.split())
    )


def _email(match: re.Match, reader: Reader) -> str:
    return _spoken_address(match[0], reader)


def _url(match: re.Match, reader: Reader) -> str:
    """The host, and a path of words; what follows "?" or "#" nobody would say."""
    path = match["path"] or ""
    if not re.fullmatch(r"(?:/[A-Za-z_-]{1,30}){1,3}/?", path):
        path = ""
    return _spoken_address(match["host"] + path.rstrip("/"), reader)


def _title(match: re.Match, _: Reader) -> str:
    return _TITLES[match[1] or match[2]]


def _place(match: re.Match, _: Reader) -> str:
    return f"{match[1]} {_PLACES[match[2]]}{final_dot(match)}"


def _dotted(match: re.Match, _: Reader) -> str:
    return _DOTTED[match[0]] + final_dot(match, names_follow=match[0] != "etc.")


def _counted(match: re.Match, _: Reader) -> str:
    return _COUNTED[match[1] or match[2]]


def _undotted(match: re.Match, _: Reader) -> str:
    return _UNDOTTED[match[0]]


def _dotted_letters(match: re.Match, reader: Reader) -> str:
    return reader.letters(match[0]) + final_dot(match, names_follow=True)


def _initialism(match: re.Match, reader: Reader) -> str:
    """Letter by letter: a known one, one without vowels, or a short one nobody shouts."""
    word, plural = match[1], match[2]
    if word in _SAID_AS_WORDS or not _is_initialism(match, word, bool(plural)):
        return match[0]
    return reader.letters(word) + ("'s" if plural else "")


def _is_initialism(match: re.Match, word: str, plural: bool) -> bool:
    if word in _WORDS and not plural:
        return False
    around = match.string[max(0, match.start() - 24) : match.start()].split()[-1:]
    around += match.string[match.end() : match.end() + 24].split()[:1]
    shouted = any(_CAPITALS.match(other) and len(other) > 2 for other in around)
    if word in _INITIALISMS and not (shouted and word in ("US", "IT", "WHO", "ACT", "SAT")):
        return True
    if not _VOWEL.search(word):
        return True
    return len(word) <= 3 and not shouted


def _okay(match: re.Match, _: Reader) -> str:
    return "okay" + final_dot(match)


def _single_letter(match: re.Match, reader: Reader) -> str:
    return reader.letters(match[0])


def _apart(letters: str, match: re.Match, reader: Reader) -> str:
    """Letters, and a space before the name that follows."""
    space = "" if match.string[match.end() : match.end() + 1] == " " else " "
    return reader.letters(letters) + space


def _word(words: str) -> Replace:
    return lambda match, reader: words


def _or(match: re.Match, _: Reader) -> str:
    return " or" if match[0] == "/or" else " or "


# What stands for a sign; spaces around it are made one.
_SIGNS = {
    "&": " and ", "@": " at ", "=": " equals ", "×": " times ", "÷": " divided by ",
    "±": " plus or minus ", "≈": " about ", "%": " percent ", "|": ", ", "•": ", ", "·": ", ",
    "→": ", ", "->": ", ", "=>": ", ",
}  # fmt: skip


def _sign(match: re.Match, _: Reader) -> str:
    return _SIGNS[match[0]]


def _comparison(match: re.Match, _: Reader) -> str:
    words = "less than" if (match[1] or match[2]) == "<" else "more than"
    return f" is {words} " if match[1] else f"{words} "


RULES_BEFORE_NUMBERS: tuple[Rule, ...] = (
    rule(
        r"(?<![\w.])[A-Za-z0-9][\w.+-]{0,40}@(?:[A-Za-z0-9-]{1,40}\.){1,4}[A-Za-z]{2,10}\b", _email
    ),
    rule(
        r"\b(?:https?://(?:www\.)?(?P<host>[A-Za-z0-9][\w.-]{1,80}[A-Za-z0-9])"
        r"(?::\d{1,5})?(?P<path>/[^\s<>\"')\]]{0,200}(?<![.,!?;:]))?(?:[?#][^\s]{0,200})?)",
        _url,
        re.IGNORECASE,
    ),
    rule(
        rf"(?<![\w@.-])(?:www\.)?(?P<host>{_DOMAIN})\b(?![\w@-])(?P<path>/[^\s<>\"')\]]{{0,200}}"
        r"(?<![.,!?;:]))?",
        _url,
    ),
    rule(r"\bPh\.?D\b\.?", lambda match, reader: reader.letters("PHD") + final_dot(match)),
    rule(rf"\b({_any(_COUNTED)})\.(?=[ \t]?\d)|(?<=[a-z] )(No)(?=[ \t]\d)", _counted),
    rule(
        rf"\b([A-Z][a-z]{{1,20}}|\d{{1,3}}(?:st|nd|rd|th))[ \t]({_any(_PLACES)})\b"
        r"(?:\.|(?=,|[ \t]?$))(?![ \t][A-Z][a-z]{1,20}[ \t]?(?:,|$))",
        _place,
        re.MULTILINE,
    ),
    rule(
        rf"\b({_any(_TITLES)})\.(?=[ \t]+(?:[A-Z]|and[ \t]+[MD]))"
        r"|\b(Mr|Mrs|Ms|Dr)(?=[ \t]+[A-Z][a-z])",
        _title,
    ),
    rule("|".join(rf"(?<![\w.]){re.escape(word)}" for word in _DOTTED), _dotted),
    rule(r"(?<![\w/])(?:w/o|w/|b/c)(?=[ \t])|\bvs\b", _undotted),
    # J.K. Rowling, John F. Kennedy; but U.S. Army
    rule(
        r"(?<![\w.])[A-Z]\.(?:[ ]?[A-Z]\.){1,2}(?=[A-Z][a-z])",
        lambda match, reader: _apart(match[0], match, reader),
    ),
    rule(
        r"\b([A-Z][a-z]{1,20})[ ]([A-Z])\.(?=[ ][A-Z][a-z])",
        lambda match, reader: f"{match[1]} {reader.letters(match[2])}",
    ),
    # Not the "p.m." of a time.
    rule(r"(?<![\w.])(?<!\d[ \t])(?:[A-Za-z]\.){2,6}(?!\w)", _dotted_letters),
    rule(r"\b[vV]\.?[ \t]?(?=\d{1,9}\.\d)", _word("version ")),
    rule(r"#[ \t]?(?=\d)", _word("number ")),
    rule(r"(?<!\w)#(?=[A-Za-z])", _word("hashtag ")),
)

RULES_AFTER_NUMBERS: tuple[Rule, ...] = (
    rule(r"\bOK\b|\bO\.K\.", _okay),
    rule(r"\b([A-Z]{2,6})(s?)\b(?!')", _initialism),
    rule(r"(?<![\w'])[B-HJ-Z](?![\w'])", _single_letter),
    rule(r"\b([A-Z]{2,6})()(?='s\b)", _initialism),
    rule(r"(?<=\w)/(?=(?:month|year|week|day|hour|minute|second|night|person)\b)", _word(" per ")),
    rule(r"(?<=\w)/or\b|(?<=[A-Za-z])/(?=[A-Za-z])", _or),
    rule(r"(?<=\w)[ \t]?\+[ \t]?(?=\w)", _word(" plus ")),
    rule(r"(?:->|=>|[→|•·&@=×÷±≈%])", _sign),
    rule(r"(?<=\w)[ \t]([<>])[ \t](?=\w)|([<>])[ \t]?(?=\w)", _comparison),
    rule(r"~(?=\w)", _word("about ")),
    rule(r"[\\^_*`{}©®™<>$€£~]|(?<=[ \t])#(?=[ \t])", _word("")),
)

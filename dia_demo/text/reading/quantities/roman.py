"""Roman numerals, which are read by the word before them: Rocky IV, Henry VIII, Chapter xii."""

from __future__ import annotations

import re

from num2words import num2words

from dia_demo.text.reading.numbers import ordinal, roman, year
from dia_demo.text.reading.rules import OPENERS, Reader, Rule, rule, text_after, text_before

# Rulers, popes, and people named after their fathers: "Henry the eighth".
_REGNAL = frozenset(
    "Henry Louis Elizabeth Charles George William James Edward Richard Philip Philippe Frederick "
    "Napoleon Mary Paul John Pius Benedict Leo Gregory Innocent Clement Urban Alexander Nicholas "
    "Peter Catherine Ivan Ramses Ramesses Thutmose Amenhotep Ptolemy Darius Xerxes Cyrus "
    "Artaxerxes Harald Harold Christian Gustav Gustavus Carl Karl Haakon Olav Olaf Eric Erik "
    "Margrethe Carlos Juan Felipe Alfonso Ferdinand Isabella Maximilian Francis Franz Joseph "
    "Leopold Albert Wilhelm Friedrich Otto Emmanuel Umberto Mehmed Suleiman Selim Murad Mustafa "
    "Hamid Constantine Justinian Theodosius Basil Stephen Casimir Sigismund Edmund Malcolm Robert "
    "David Rama Mohammed Hassan Abdullah Hussein Faisal Sixtus Julius Celestine Boniface Adrian "
    "Eugene Martin Callixtus Pedro Manuel Rudolf Ludwig Kamehameha Wenceslaus Tiberius Baldwin "
    "Fuad Farouk Thomas Michael Arthur Howard Samuel Daniel Walter Frank Harry Jack Andrew "
    "Anthony Lothair Clovis Dagobert Seleucus Antiochus Sancho Afonso Simeon Boris".split()
)
_RULERS = (
    r"(?:Pope|King|Queen|Emperor|Empress|Tsar|Czar|Kaiser|Sultan|Prince|Princess|Pharaoh|Shah)"
)
# Words that are numbered, in small letters or capitals.
_NUMBERED = (
    r"(?:[Cc]hapter|[Pp]art|[Aa]ct|[Ss]cene|[Vv]olume|[Bb]ook|[Ss]ection|[Pp]hase|[Tt]ype|[Ss]tage"
    r"|[Cc]lass|[Gg]rade|[Ll]evel|[Aa]rticle|[Aa]ppendix|[Tt]able|[Ff]igure|[Pp]age|[Ee]pisode"
    r"|[Tt]itle|[Tt]ier|[Ss]eason|[Cc]anto|[Pp]salm|[Uu]nit|[Ll]esson|[Ee]xhibit|[Ss]chedule"
    r"|[Vv]ersion|[Nn]umber|War|Bowl|Olympiad|Symphony|Opus|Vatican|Factor|Corps|Mark|Amendment)"
)
_BEHIND_ONE = re.compile(
    r"(?=[ \t]*(?:[.,;:!?)\"]|$|\n|\[)|'s\b|[ \t](?:of|was|is|and|or|ended|began|broke|died|ruled"
    r"|reigned|became|to|in|at|on|for|has|had|starts|diabetes|hypersensitivity)\b)"
)
_NOT_TEN = frozenset("Malcolm Generation Gen Planet Project Brand Mister Mr Ms Professor".split())
_TEN = ("iPhone", "OS", "Fast", "Saw", "Fantasy", "Jason")
_NOT_FIVE = frozenset(
    "Vitamin Mister Mr Ms Mrs Plan Factor Team Group Class Type Hepatitis".split()
)


def _numbered_name(match: re.Match, reader: Reader) -> str:
    name, numeral = match[1], match[2]
    value = roman(numeral)
    if value is None or (numeral.islower() and len(numeral) < 2):
        return match[0]
    if numeral == "I" and not _BEHIND_ONE.match(text_after(match)):
        return match[0]
    if numeral in ("C", "D", "M", "L") or (numeral == "X" and name == "Factor"):
        return match[0]
    return f"{name} {num2words(value)}"


def _ruler(match: re.Match, reader: Reader) -> str:
    value = roman(match[2])
    if value is None or (value == 1 and not _BEHIND_ONE.match(text_after(match))):
        return match[0]
    return f"{match[1]} the {ordinal(value)}"


def _name_numeral(match: re.Match, reader: Reader) -> str:
    """A name and its numeral: an ordinal for rulers, a number for films, wars and missions."""
    name, numeral = match[1], match[2]
    value = roman(numeral)
    if value is None or name in OPENERS:
        return match[0]
    if numeral == "X" and name not in _TEN and (name not in _REGNAL or name in _NOT_TEN):
        return match[0]
    if numeral == "V" and (name in _NOT_FIVE or re.match(r"\.[ \t]?[A-Z]", text_after(match))):
        return match[0]
    if numeral == "I":
        if name not in _REGNAL or not _BEHIND_ONE.match(text_after(match)):
            return match[0]
        if re.match(r"[ \t](?:and|or|was|is|had|has|to|in|at|on|for)\b", text_after(match)):
            words = f"{name} the first"
            return reader.remark(match[0], words, "put a comma before a speaker's “I”.")
    return f"{name} the {ordinal(value)}" if name in _REGNAL else f"{name} {num2words(value)}"


def _century(match: re.Match, _: Reader) -> str:
    value = roman(match[1])
    return ordinal(value) if value else match[0]


def _world_war(match: re.Match, _: Reader) -> str:
    number = match[1] if match[1].isdecimal() else roman(match[1])
    return f"World War {num2words(int(number or 0))}"


def _roman_year(match: re.Match, _: Reader) -> str:
    value = roman(match[0])
    return year(value) if value and 1500 <= value <= 2100 else match[0]


def _lone_numeral(match: re.Match, _: Reader) -> str:
    """II and III in a list of their own; but an IV is not a number."""
    is_drip = match[0] == "IV" and (
        re.search(r"\b(?:an|by|with|on|his|her|my)[ \t]$", text_before(match).lower())
        or re.match(r"[ \t](?:drip|fluids?|bag|line|antibiotics|pole|therapy)\b", text_after(match))
    )
    return match[0] if is_drip else num2words(roman(match[0]) or 0)


RULES: tuple[Rule, ...] = (
    rule(r"\bWW[ -]?(I{1,3}|[123])\b", _world_war),
    rule(r"\b([XVI]{2,6}|[XV])(?:th|st|nd|rd)?(?=[ -][Cc]entur)", _century),
    rule(
        rf"\b({_RULERS}[ \t][A-Z][a-z]{{1,15}}(?:[ \t][A-Z][a-z]{{1,15}})?)[ \t]([IVXL]{{1,6}})\b",
        _ruler,
    ),
    rule(rf"\b({_NUMBERED})[ \t]([IVXLCDM]{{1,8}}|[ivxl]{{1,6}})\b(?!')", _numbered_name),
    # A person named after father and grandfather.
    rule(
        rf"\b((?:{'|'.join(sorted(_REGNAL))})[ \t][A-Z][a-z]{{2,15}})[ \t](I{{2,3}}|IV)\b", _ruler
    ),
    rule(
        r"\b([A-Z][a-z]{1,15}|GTA|OS|iPhone)[ \t]([IVX]{2,6}|[VXI])\b(?!'(?!s\b))",
        _name_numeral,
    ),
    rule(r"\bM[CDXLVIM]{4,11}\b", _roman_year),
    rule(r"\bX{0,3}(?:IX|IV|VI{1,3}|I{2,3})\b(?!')", _lone_numeral),
)

"""Words in capitals: spelled where they are initialisms, otherwise read as in small letters."""

from __future__ import annotations

import re

from dia_demo.text.reading.rules import LETTERED, Reader, Rule, rule, text_after, text_before
from dia_demo.text.reading.tables.word_lists import INITIALISMS, NAMES, RESPELLED, SPOKEN, WORDS

_VOWELS = re.compile(r"[AEIOUY]+")
# Consonants that an English word may begin with, and end with.
_ONSETS = frozenset(
    "BH BJ KH B BL BR C CH CHR CL CR D DR DW F FL FR G GH GL GN GR H J K KL KN KR L M N P PH "
    "PHR PL PR PS Q QU R RH S SC SCH SCR SH SHR SK SKR SL SM SN SP SPH SPL SPR SQ ST STR SW T "
    "TH THR TR TW V W WH WR X Z".split()
)
_CODAS = frozenset(
    "CS DDS NST DST NGST LPH RPH HN HM HR THM STH RCS PPS TTS NCT NCTS DG DT NDT SCH NC NZ LTZ "
    "NTZ RZ GGS KT KH B BB BS C CH CHT CK CKS CT CTS D DD DS DTH F FF FFS FS FT FTS G GG GH GHS "
    "GHT GHTS GN GNS GS H J K KS L LB LBS LCH LD LDS LF LFS LFTH LK LKS LL LLS LM LMS LN LP LPS "
    "LS LSE LT LTH LTS LVE M MB MBS MN MP MPS MPT MPTS MS N NCE NCH ND NDS NG NGS NGTH NGTHS NK "
    "NKS NN NS NT NTH NTHS NTS P PH PS PT PTH PTS Q R RB RBS RC RCH RD RDS RF RFS RG RGH RK RKS "
    "RL RLD RLDS RLS RM RMS RMTH RN RNS RP RPS RR RS RSE RST RT RTH RTS RTZ S SH SK SKS SM SMS "
    "SP SPS SS ST STS T TCH TH THS TS TT TZ V VS W WD WDS WK WKS WL WLS WN WNS WS WT X XT XTS Z "
    "ZZ ND RTH DGE RV LV NX MPH".split()
)
_START = re.compile(r"(?:^|[.!?\n\]:])[\s\"'(]*$|\.\.\.[\s\"']*$")
_WORD = re.compile(r"[A-Z][A-Z']+")
# Both an initialism and a word: what stands before or behind tells which. The others: a word.
_SPELLED_BEFORE = {
    "US": r"\b(?:the|this|across|throughout|entire|whole|in|non-|pro-|anti-|southern|northern"
    r"|eastern|western|mainland|contiguous|outside)[ \t]?$",
    "IT": r"\b(?:in|our|your|their|of|an|by|for|head of|the|local|corporate|and)[ \t]$",
    "WHO": r"\b(?:the|by|at)[ \t]$",
    "AM": r"\d[ \t]?$",
    "ICE": r"\b(?:by|from|abolish)[ \t]$",
    "ACT": r"\b(?:the|my|her|his|your|and|or|on)[ \t]$",
    "SAT": r"\b(?:the|my|her|his|your|and|or|on)[ \t]$",
    "ADD": r"\b(?:has|have|with|had|and)[ \t]$",
    "MIA": r"\b(?:is|are|went|go|gone|reported|still|listed)[ \t]$",
    "SEC": r"\b(?:the|by|with|an|from)[ \t]$",
    "LED": r"\b(?:an|the|with|of|each|and|bright|white|blue|red|green)[ \t]$",
    "OR": r"\b(?:the|an)[ \t]$",
    "LA": r"", "MA": r"\b(?:an|his|her|my)[ \t]$", "PA": r"\b(?:a|the|my|his|her|his)[ \t]$",
    "ED": r"\b(?:the|an|has|with)[ \t]$", "AD": r"(?!)",
    "IRA": r"\b(?:an|the|my|your|his|her|a Roth|Roth)[ \t]$",
}  # fmt: skip
_SPELLED_BEHIND = {
    "US": r"[ \t-](?:[A-Z][a-z]+|president|government|army|navy|military|troops|soldiers|dollars?"
    r"|econom\w+|citizens?|officials?|states?|markets?|based|election|congress|senate|senator|law"
    r"|constitution|border|embassy|companies|company|stocks?|treasury|tax|health|education|forces"
    r"|intelligence|policy|team|capital|population|imports?|exports?|tariffs?|and UK|and China)\b",
    "IT": r"[ \t-](?:department|support|team|guy|staff|job|jobs|specialist|manager|industry|sector"
    r"|consultant|professional|professionals|services?|infrastructure|security|systems?|project"
    r"|equipment|director|budget|skills|helpdesk|help desk|company|companies|expert)\b",
    "WHO": r"[ \t](?:officials?|report|guidelines|director|data|said that)\b",
    "ICE": r"[ \t](?:agents?|raids?|officers?|detention)\b",
    "ACT": r"[ \t](?:scores?|test)\b",
    "SAT": r"[ \t](?:scores?|test|prep)\b",
    "LED": r"[ \t](?:lights?|lamps?|bulbs?|strips?|screens?|displays?|tv|TV|lighting|panels?)\b",
    "OR": r"[ \t](?:nurse|room)\b",
    "AM": r"[ \t](?:radio|stations?|band|dial|broadcasts?|frequenc(?:y|ies))\b",
    "AD": r"[ \t]\d", "MA": r"[ \t](?:in|degree)\b", "PA": r"[ \t](?:system)\b",
}  # fmt: skip
# Where either is possible, the person is told.
_UNCLEAR = ("US",)
_PEOPLE = re.compile(
    r"\b(?:to|for|of|with|give|tell|help|let|join|about|on|at|both|see|from)[ \t]$"
)


def _is_pronounceable(word: str) -> bool:
    """Whether a word in capitals can be said: every run of its consonants fits English."""
    runs = _VOWELS.split(word)
    if len(runs) == 1:
        return False
    first, *inner, last = runs
    if first and first not in _ONSETS:
        return False
    if last and last not in _CODAS and last not in ("B", "D"):
        return False
    return all(
        not run
        or run in _ONSETS
        or any(run[:at] in _CODAS and run[at:] in _ONSETS for at in range(1, len(run)))
        or run in _CODAS
        for run in inner
    )


def _is_shouted(match: re.Match) -> bool:
    """Whether a word beside this one is in capitals for emphasis too."""
    around = text_before(match).split()[-1:] + text_after(match).split()[:1]
    words = [found[0] for other in around if (found := _WORD.search(other))]
    return any(
        len(word) > 1 and (word in WORDS or word not in INITIALISMS and _is_pronounceable(word))
        for word in words
        if word not in SPOKEN
    )


def _is_initialism(match: re.Match, word: str, plural: bool, reader: Reader) -> bool:
    if word in WORDS and not plural:
        return _is_spelled_word(match, word, reader)
    if word in INITIALISMS:
        return True
    if word in NAMES:
        return False
    if not _is_pronounceable(word):
        return True
    return len(word) <= 3 and (plural or not _is_shouted(match))


def _is_spelled_word(match: re.Match, word: str, reader: Reader) -> bool:
    """US, IT, WHO and other words that are initialisms as well."""
    if word not in INITIALISMS or word not in (_SPELLED_BEFORE | _SPELLED_BEHIND):
        return word in INITIALISMS and word in ("AC", "ID")
    if word not in ("US", "WHO") and _is_shouted(match):
        return False
    lead, rest = text_before(match), text_after(match)
    behind = _SPELLED_BEHIND.get(word)
    if behind and re.match(behind, rest) and not _is_shouted(match):
        return True
    ahead = _SPELLED_BEFORE.get(word)
    if ahead is not None and re.search(ahead, lead, re.IGNORECASE):
        return True
    if word not in _UNCLEAR or _PEOPLE.search(lead.lower()) or _is_shouted(match):
        return False
    reader.remark(word, reader.letters(word), "write it in small letters for the pronoun.")
    return True


def _capitals(match: re.Match, reader: Reader) -> str:
    """A word in capitals, with or without a plural s."""
    word, plural = match[1], match[2]
    if plural and word in WORDS | NAMES | SPOKEN and word not in INITIALISMS:
        return (_acronym(word, reader) if word in SPOKEN else word.capitalize()) + plural
    if word in SPOKEN:
        return _acronym(word, reader) + plural
    if _is_initialism(match, word, bool(plural), reader):
        letters = (
            "I triple E" if word == "IEEE" and not reader.letter_names else reader.letters(word)
        )
        if word == "IEEE" and reader.letter_names:
            letters = "eye triple ee"
        return letters + ("'s" if plural else "")
    return _lower_case(match, word) + plural


def _acronym(word: str, reader: Reader) -> str:
    """An acronym as a word. For a voice that knows no capitals: as it is written in small ones."""
    if word in ("JPEG", "MPEG"):
        return f"{reader.letters(word[0])} peg"
    if not reader.letter_names:
        return word
    return RESPELLED.get(word, word.capitalize())


def _lower_case(match: re.Match, word: str) -> str:
    """A word in small letters, with a capital where a sentence begins or where it is a name."""
    if word in NAMES or _START.search(text_before(match)):
        return word.capitalize()
    return word.lower()


def _shouted_title(match: re.Match, _: Reader) -> str:
    """MR SMITH."""
    return f"{_TITLES[match[1]]} {match[2].capitalize()}"


def _contraction(match: re.Match, _: Reader) -> str:
    """DON'T, I'M, JOHN'S."""
    head, tail = match[0].split("'", 1)
    if head == "I":
        return f"I'{tail.lower()}"
    if head in INITIALISMS and head not in WORDS and tail == "S":
        return f"{head}'s"
    word = (
        _lower_case(match, head)
        if tail == "S" or _START.search(text_before(match))
        else head.lower()
    )
    return f"{word}'{tail.lower()}"


def _single_letter(match: re.Match, reader: Reader) -> str:
    return reader.letters(match[0])


def _article(match: re.Match, _: Reader) -> str:
    """The word A in a sentence in capitals."""
    behind = _WORD.match(text_after(match).lstrip(" \t"))
    shouted = behind and behind[0] not in INITIALISMS and not _START.search(text_before(match))
    lead = re.search(r"\b[A-Z][A-Z']{1,12}[ \t]$", text_before(match))
    return "a" if shouted and lead else match[0]


def _spelled_pair(match: re.Match, reader: Reader) -> str:
    """AC/DC, I/O, TCP/IP: letters without "or"."""
    first, second = match[1], match[2]
    if match[0] == "Y/N":
        return "yes or no"
    if len(first) + len(second) > 2 and {first, second} & WORDS - INITIALISMS:
        return match[0]
    if any(len(part) > 2 and _is_unknown_word(part) for part in (first, second)):
        return match[0]
    return f"{_letters_or_word(first, reader)} {_letters_or_word(second, reader)}"


def _letters_with_and(match: re.Match, reader: Reader) -> str:
    """AT&T, R&D, Q&A, M&M's."""
    parts = match[1], match[3]
    apart = " " in match[2] or "\t" in match[2]
    if apart and set(parts) & WORDS or any(len(p) > 2 and _is_unknown_word(p) for p in parts):
        return match[0]
    first, second = (_letters_or_word(part, reader) for part in parts)
    return f"{first} and {second}{match[4] or ''}"


def _is_unknown_word(word: str) -> bool:
    return (
        word not in INITIALISMS
        and word not in SPOKEN
        and (word in WORDS or len(word) > 3 and _is_pronounceable(word))
    )


def _letters_or_word(word: str, reader: Reader) -> str:
    return _acronym(word, reader) if word in SPOKEN else reader.letters(word)


_TITLES = {
    "MR": "Mister", "MRS": "Missus", "MS": "Miz", "DR": "Doctor", "PROF": "Professor",
}  # fmt: skip
_MIXED_CASE = {
    "mRNA": "MRNA", "tRNA": "TRNA", "iOS": "IOS", "PhD": "PHD", "PhDs": "PHD", "MSc": "MSC",
    "BSc": "BSC", "MPhil": "", "pH": "PH", "WiFi": "", "eSIM": "", "IoT": "IOT", "GmbH": "GMBH",
    "LLMs": "LLM", "VoIP": "", "SaaS": "", "QoS": "QOS",
}  # fmt: skip
_MIXED_WORDS = {
    "MPhil": "em fill", "WiFi": "Wi-Fi", "eSIM": "e sim", "VoIP": "voyp", "SaaS": "sass",
    "macOS": "mac OS", "iPadOS": "iPad OS", "watchOS": "watch OS", "MySQL": "my SQL",
    "NoSQL": "no SQL", "PostgreSQL": "postgres SQL", "JavaScript": "Java Script",
    "YoY": "year over year", "QoQ": "quarter over quarter", "MoM": "month over month",
    "YouTube": "You Tube", "GitHub": "Git Hub", "LaTeX": "lay tech", "eBay": "e bay",
}  # fmt: skip


def _mixed_case(match: re.Match, reader: Reader) -> str:
    letters = _MIXED_CASE.get(match[0])
    if letters:
        return reader.letters(letters) + ("'s" if match[0].endswith("s") else "")
    return _MIXED_WORDS.get(match[0], match[0])


_SMALL_INITIALISMS = (
    "html|css|sql|usb|url|pdf|api|gps|dvd|tv|fbi|cia|nba|nfl|bbc|cnn|dna|atm|ceo|faq|diy|vip|suv"
    "|ufo|gpu|cpu|ssd|http|https|xml|csv|png|php|aws|vpn|dj|fyi|btw|omg|lgbt|ngo|hiv"
    "|brb|idk|idc|tbh|imo|imho|asap|rsvp|smh|ngl|lmao"
)
# What is told apart by letters.
_LETTERED = "|".join(rf"(?<=\b[{noun[0].upper()}{noun[0]}]{noun[1:]} )" for noun in LETTERED)

RULES: tuple[Rule, ...] = (
    rule(rf"\b({'|'.join(_TITLES)})\.?[ \t]([A-Z]{{2,20}})\b", _shouted_title),
    rule(r"(?<![\w'])A(?=[ \t][A-Z]{2})", _article),
    rule(rf"\b(?:{'|'.join([*_MIXED_CASE, *_MIXED_WORDS])})\b", _mixed_case),
    rule(r"\b([A-Z]{1,4})([ \t]?&[ \t]?)([A-Z]{1,4})('s|s)?\b", _letters_with_and),
    rule(r"\b([A-Z]{1,4})/([A-Z]{1,4})\b", _spelled_pair),
    rule(r"\b([A-Z]{2,4})-(?=[A-Z]\b(?!'))", lambda match, reader: f"{match[1]} "),
    rule(r"\b[A-Z]{1,20}'[A-Z]{1,3}\b", _contraction),
    rule(r"\b([A-Z]{2,24})(s?)\b(?!')", _capitals),
    rule(r"\b([A-Z]{2,24})()(?=')", _capitals),
    # The letter, where it is no article: Plan A, from A to Z, an A plus.
    rule(
        rf"(?=A)(?:(?<=[a-z] )A(?=[.,!?;:)]|$|[ ](?:plus|minus|to [A-Z]\b))"
        rf"|\bA(?=[ ]plus\b|[ ]minus\b)|(?:{_LETTERED})A\b)",
        _single_letter,
        re.MULTILINE,
    ),
    rule(r"(?<![\w'])[B-HJ-Z](?![\w'])", _single_letter),
    rule(rf"\b(?:{_SMALL_INITIALISMS})\b", _single_letter),
)

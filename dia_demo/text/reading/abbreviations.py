"""Abbreviations and titles, as they are spoken."""

from __future__ import annotations

import re

from dia_demo.text.reading.numbers import cardinal, pairs
from dia_demo.text.reading.rules import (
    LETTERED,
    OPENERS,
    Reader,
    Rule,
    any_of,
    final_dot,
    rule,
    text_after,
    text_before,
)

_TITLES = {
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Dr": "Doctor", "Prof": "Professor",
    "Rev": "Reverend", "Gen": "General", "Col": "Colonel", "Lt": "Lieutenant", "Sgt": "Sergeant",
    "Capt": "Captain", "Gov": "Governor", "Sen": "Senator", "Rep": "Representative",
    "Pres": "President", "Hon": "Honorable", "Fr": "Father", "Mt": "Mount", "Ft": "Fort",
    "St": "Saint", "Sr": "Sister", "Br": "Brother", "Maj": "Major", "Cpl": "Corporal",
    "Pvt": "Private", "Adm": "Admiral", "Cmdr": "Commander", "Brig": "Brigadier",
    "Amb": "Ambassador", "Supt": "Superintendent", "Det": "Detective", "Insp": "Inspector",
    "Messrs": "Messieurs", "Mme": "Madame", "Mlle": "Mademoiselle", "Atty": "Attorney",
}  # fmt: skip
# These also without a dot.
_UNDOTTED_TITLES = "Mr|Mrs|Ms|Dr|Prof|Sgt|Capt|Mme|Mlle|Messrs"
_PLACES = {
    "St": "Street", "Dr": "Drive", "Ave": "Avenue", "Blvd": "Boulevard", "Rd": "Road",
    "Ln": "Lane", "Hwy": "Highway", "Sq": "Square", "Pl": "Place", "Ct": "Court",
    "Pkwy": "Parkway", "Ter": "Terrace", "Cir": "Circle", "Bldg": "Building",
}  # fmt: skip
# Written with their dots, which may be a sentence's end as well.
_DOTTED = {
    "e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus",
    "approx.": "approximately", "a.k.a.": "also known as", "Jr.": "Junior", "Sr.": "Senior",
    "Inc.": "Incorporated", "Corp.": "Corporation", "Ltd.": "Limited", "Co.": "Company",
    "Bros.": "Brothers", "dept.": "department", "Dept.": "Department", "est.": "established",
    "Est.": "Established", "misc.": "miscellaneous", "govt.": "government", "Govt.": "Government",
    "Univ.": "University", "Assn.": "Association", "Assoc.": "Association", "Apt.": "Apartment",
    "apt.": "apartment", "tel.": "telephone", "Tel.": "Telephone", "Ste.": "Suite",
    "Jan.": "January", "Feb.": "February", "Aug.": "August", "Sept.": "September",
    "Oct.": "October", "Nov.": "November", "Dec.": "December", "Mon.": "Monday",
    "Tues.": "Tuesday", "Tue.": "Tuesday", "Wed.": "Wednesday", "Weds.": "Wednesday",
    "Thurs.": "Thursday", "Thu.": "Thursday", "Fri.": "Friday", "Sat.": "Saturday",
    "cf.": "compare", "Cf.": "Compare",
    "et al.": "and others", "viz.": "namely", "ibid.": "ibidem", "N.B.": "nota bene",
    "n.b.": "nota bene", "ca.": "circa", "max.": "maximum", "avg.": "average",
    "Avg.": "Average", "incl.": "including", "excl.": "excluding", "esp.": "especially",
    "intl.": "international", "Intl.": "International", "natl.": "national",
    "asst.": "assistant", "Asst.": "Assistant", "mgr.": "manager", "Mgr.": "Manager",
    "ext.": "extension", "Ext.": "Extension", "Esq.": "Esquire", "orig.": "originally",
    "resp.": "respectively", "abbr.": "abbreviation", "Mfg.": "Manufacturing",
    "appt.": "appointment", "bldg.": "building", "Bldg.": "Building",
    "qty.": "quantity", "Qty.": "Quantity", "pkg.": "package", "&c.": "et cetera",
    "Attn:": "Attention:", "attn:": "attention:", "addr.": "address", "msg.": "message",
    "mtg.": "meeting", "wt.": "weight", "ht.": "height", "min.": "minimum", "hrs.": "hours",
    "yrs.": "years", "mins.": "minutes", "secs.": "seconds", "lbs.": "pounds",
    "tbsp.": "tablespoons", "tsp.": "teaspoons", "oz.": "ounces", "Rd.": "Road", "Ave.": "Avenue",
    "Blvd.": "Boulevard", "q.v.": "which see", "op. cit.": "in the work cited",
}  # fmt: skip
# Before a number.
_COUNTED = {
    "No": "number", "Nos": "numbers", "nos": "numbers", "Vol": "volume", "vol": "volume",
    "Fig": "figure", "fig": "figure", "Figs": "figures", "figs": "figures", "Ch": "chapter",
    "Chap": "chapter", "chap": "chapter", "Rte": "Route",
    "ch": "chapter", "p": "page", "pp": "pages", "Sec": "section", "sec": "section",
    "Art": "article", "Ref": "reference", "Eq": "equation", "eq": "equation", "Ep": "episode",
    "ep": "episode", "par": "paragraph", "pt": "part", "Pt": "part", "Op": "opus",
    "ext": "extension", "Rm": "room", "Max": "maximum", "Min": "minimum", "temp": "temperature",
    "Temp": "temperature", "Nr": "number", "nr": "number",
}  # fmt: skip
# The same without a dot.
_BEFORE_NUMBERS = {
    "Apt": "Apartment", "Ste": "Suite", "Vol": "volume", "Fig": "figure", "Ext": "extension",
    "Bldg": "Building", "Rm": "room", "Eq": "equation", "Ep": "episode",
    "Hwy": "Highway",
}  # fmt: skip
# Before "no. 5": a noun, or the comma behind another number.
_NAMED_BY_NUMBER = re.compile(
    r"(?:\b(?!(?:sa(?:id|ys?|ying)|answer(?:s|ed)?|repl(?:y|ies|ied)|was|is|but|and|or|so|well|just"
    r"|still|means?|meant|a|oh|told|me|him|her|them|us|definitely|absolutely)\b)[a-z]{2,20}[ ]"
    r"|\d,[ ])$"
)
# Before a year.
_LIFE = {"c": "circa", "b": "born", "d": "died", "r": "ruled", "fl": "flourished"}
_UNDOTTED = {
    "w/": "with", "w/o": "without", "w/out": "without", "w/in": "within", "b/c": "because",
    "b/w": "between", "c/o": "care of", "n/a": "NA", "a/c": "AC", "vs": "versus",
    "thru": "through", "approx": "approximately",
    "et al": "and others", "dept": "department", "govt": "government", "incl": "including",
    "Ltd": "Limited", "Inc": "Incorporated", "thx": "thanks", "Thx": "Thanks", "pls": "please",
    "Pls": "Please", "plz": "please", "Plz": "Please", "ppl": "people", "gr8": "great",
    "Gr8": "Great", "l8r": "later", "nvm": "never mind", "Ctrl": "Control", "Cmd": "Command",
}  # fmt: skip
_STATES = {
    "AL": "Alabama", "AK": "Alaska", "AZ": "Arizona", "AR": "Arkansas", "CA": "California",
    "CO": "Colorado", "CT": "Connecticut", "DE": "Delaware", "FL": "Florida", "GA": "Georgia",
    "HI": "Hawaii", "ID": "Idaho", "IL": "Illinois", "IN": "Indiana", "IA": "Iowa", "KS": "Kansas",
    "KY": "Kentucky", "LA": "Louisiana", "ME": "Maine", "MD": "Maryland", "MA": "Massachusetts",
    "MI": "Michigan", "MN": "Minnesota", "MS": "Mississippi", "MO": "Missouri", "MT": "Montana",
    "NE": "Nebraska", "NV": "Nevada", "NH": "New Hampshire", "NJ": "New Jersey",
    "NM": "New Mexico", "NY": "New York", "NC": "North Carolina", "ND": "North Dakota",
    "OH": "Ohio", "OK": "Oklahoma", "OR": "Oregon", "PA": "Pennsylvania", "RI": "Rhode Island",
    "SC": "South Carolina", "SD": "South Dakota", "TN": "Tennessee", "TX": "Texas", "UT": "Utah",
    "VT": "Vermont", "VA": "Virginia", "WA": "Washington", "WV": "West Virginia",
    "WI": "Wisconsin", "WY": "Wyoming",
}  # fmt: skip
_PLACE_BEFORE = ("in ", "from ", "to ", "of ", "near ", "at ", "New ", "San ", "Los ")
_BOOKS = (
    r"Genesis|Exodus|Leviticus|Numbers|Deuteronomy|Joshua|Judges|Ruth|Samuel|Kings|Chronicles|Ezra"
    r"|Nehemiah|Esther|Job|Psalms?|Proverbs|Ecclesiastes|Song[ ]of[ ](?:Songs|Solomon)|Isaiah"
    r"|Jeremiah|Lamentations|Ezekiel|Daniel|Hosea|Joel|Amos|Obadiah|Jonah|Micah|Nahum|Habakkuk"
    r"|Zephaniah|Haggai|Zechariah|Malachi|Matthew|Mark|Luke|John|Acts|Romans|Corinthians|Galatians"
    r"|Ephesians|Philippians|Colossians|Thessalonians|Timothy|Titus|Philemon|Hebrews|James|Peter"
    r"|Jude|Revelation|Quran|Qur'an|Surah|Sura|Sirach|Tobit|Judith|Maccabees|Wisdom"
)
# Their abbreviations, of which those that are also names stand only behind the number of a book.
_SHORT_BOOKS = {
    "Gen": "Genesis", "Exod": "Exodus", "Ex": "Exodus", "Lev": "Leviticus", "Num": "Numbers",
    "Deut": "Deuteronomy", "Josh": "Joshua", "Judg": "Judges", "Neh": "Nehemiah",
    "Pss": "Psalms", "Psa": "Psalm", "Ps": "Psalm", "Prov": "Proverbs", "Eccl": "Ecclesiastes",
    "Isa": "Isaiah", "Jer": "Jeremiah", "Lam": "Lamentations", "Ezek": "Ezekiel", "Hos": "Hosea",
    "Mic": "Micah", "Hab": "Habakkuk", "Zeph": "Zephaniah", "Hag": "Haggai",
    "Zech": "Zechariah", "Mal": "Malachi", "Matt": "Matthew", "Mt": "Matthew", "Mk": "Mark",
    "Lk": "Luke", "Jn": "John", "Rom": "Romans", "Gal": "Galatians", "Eph": "Ephesians",
    "Phil": "Philippians", "Col": "Colossians", "Heb": "Hebrews", "Jas": "James",
    "Rev": "Revelation",
}  # fmt: skip
_SHORT_COUNTED_BOOKS = {
    "Sam": "Samuel", "Kgs": "Kings", "Chron": "Chronicles", "Chr": "Chronicles",
    "Cor": "Corinthians", "Thess": "Thessalonians", "Tim": "Timothy", "Pet": "Peter",
    "Pt": "Peter", "Jn": "John", "Macc": "Maccabees",
}  # fmt: skip
_COUNTED_BOOKS = (
    r"Samuel|Kings|Chronicles|Corinthians|Thessalonians|Timothy|Peter|John|Maccabees"
    rf"|(?:{any_of(_SHORT_COUNTED_BOOKS)})\b\.?"
)
_SMALL_ORDINALS = {"1": "First", "2": "Second", "3": "Third"}
_VERSES = r"(?P<verse>\d{1,3})(?:-(?:(?P<until>\d{1,3}):)?(?P<last>\d{1,3}))?"
_END_OF_VERSES = r"(?![\w:]|[.,]\d|-\d|[ \t]?[ap]\.?m\b)"


def _title(match: re.Match, _: Reader) -> str:
    return _TITLES[match[1] or match[2]]


def _place(match: re.Match, _: Reader) -> str:
    return f"{match[1]} {_PLACES[match[2]]}{final_dot(match)}"


def _dotted_abbreviation(match: re.Match, _: Reader) -> str:
    return _DOTTED[match[0]] + final_dot(match, names_follow=match[0] != "etc.")


def _number_sign(match: re.Match, _: Reader) -> str:
    """No. 5, "ticket no. 5"; but "I said no. 5 people came"."""
    if match[1] or match[2]:
        return _COUNTED[match[1] or match[2]]
    is_answer = match[0].startswith("no. ") and not _NAMED_BY_NUMBER.search(text_before(match))
    return match[0] if is_answer else "number "


def _undotted_abbreviation(match: re.Match, reader: Reader) -> str:
    words = _UNDOTTED[match[0].removesuffix(".")]
    return reader.letters(words) if words.isupper() else words


def _dotted_letters(match: re.Match, reader: Reader) -> str:
    return reader.letters(match[0]) + final_dot(match, names_follow=True)


def _okay(match: re.Match, _: Reader) -> str:
    return "okay" + final_dot(match)


def _letters_before_name(match: re.Match, reader: Reader) -> str:
    """Letters, and a space before the name that follows."""
    space = "" if text_after(match)[:1] == " " else " "
    return reader.letters(match[0]) + space


def _middle_initial(match: re.Match, reader: Reader) -> str:
    """John F. Kennedy; but "Answer A. Then go on"."""
    following = re.match(r"[ ]([A-Z][a-z]+)", text_after(match))
    is_opener = following is not None and following[1] in OPENERS
    ends = is_opener or match[1].lower() in LETTERED
    return match[0] if ends else f"{match[1]} {reader.letters(match[2])}"


def _state(match: re.Match, _: Reader) -> str:
    """Austin, TX; but "Fine, OK" is no place."""
    is_word = match[2] in ("OK", "OR", "IN", "ME", "HI", "OH", "MA", "PA", "LA", "ID", "DE", "AL")
    sure = match[0].startswith(_PLACE_BEFORE) or re.match(r"[ \t]\d{5}\b", text_after(match))
    return match[0] if is_word and not sure else f"{match[1]}{_STATES[match[2]]}"


def _verse(match: re.Match, _: Reader) -> str:
    """Psalm 23:4, 1 Cor. 13:4-7: the numbers one after the other, apart where they are long."""
    lead = f"{_SMALL_ORDINALS[match['part']]} " if match["part"] else ""
    book = match["book"].rstrip(".")
    book = (_SHORT_COUNTED_BOOKS if lead else _SHORT_BOOKS).get(book, book)
    chapter, verse = match["chapter"], match["verse"]
    words = f"{lead}{book} {cardinal(chapter)}"
    if not verse:
        return words
    words += f"{',' if len(chapter + verse) > 4 or len(chapter) > 2 else ''} {pairs(verse)}"
    if match["last"]:
        until = f"{cardinal(match['until'])} " if match["until"] else ""
        words += f" to {until}{pairs(match['last'])}"
    return words


def _compass(match: re.Match, _: Reader) -> str:
    return {"N": "North", "S": "South", "E": "East", "W": "West"}[match[1]]


def _minutes(match: re.Match, _: Reader) -> str:
    return "minutes" + final_dot(match)


RULES: tuple[Rule, ...] = (
    rule(
        rf"\b({any_of(_LIFE)})\.[ \t]?(?=1\d{{3}}\b|20\d\d\b)",
        lambda match, reader: f"{_LIFE[match[1]]} ",
    ),
    rule(
        rf"\b({any_of(_BEFORE_NUMBERS)})\.?(?=[ \t]\d)",
        lambda match, reader: _BEFORE_NUMBERS[match[1]],
    ),
    rule(r"\bPh\.?D\b\.?", lambda match, reader: reader.letters("PHD") + final_dot(match)),
    rule(
        rf"(?<!\ba )\b({any_of(_COUNTED)})\.(?=[ \t]?\d)|(?<=[a-z] )(No)(?=[ \t]\d)"
        r"|\bno\.[ \t]?(?=\d)|№[ \t]?(?=\d)",
        _number_sign,
    ),
    rule(
        rf"\b(?P<part>[123])[ \t](?P<book>{_COUNTED_BOOKS})[ \t](?P<chapter>\d{{1,3}})"
        rf"(?::{_VERSES})?{_END_OF_VERSES}",
        _verse,
    ),
    rule(
        rf"\b(?P<part>)(?P<book>{_BOOKS}|(?:{any_of(_SHORT_BOOKS)})\b\.?)[ \t]"
        rf"(?P<chapter>\d{{1,3}}):{_VERSES}{_END_OF_VERSES}",
        _verse,
    ),
    rule(r"\bPss?\.?(?=[ \t]\d{1,3}(?![\w:]|[.,]\d))", lambda match, reader: "Psalm"),
    rule(
        rf"\b([A-Z][a-z]{{1,20}}(?:'s)?|\d{{1,3}}(?:st|nd|rd|th))[ \t]({any_of(_PLACES)})\b"
        r"(?:\.|(?=,|[ \t]?$|[.!?;)]|[ \t](?:and|in|on|near|at|is|was|to|by|from|with|or|for)\b))"
        r"(?![ \t][A-Z][a-z]{1,20}[ \t]?(?:,|$))",
        _place,
        re.MULTILINE,
    ),
    rule(
        rf"\b({any_of(_TITLES)})\.(?=[ \t]+(?:[A-Z]|and[ \t]+[MD]|&[ \t]))"
        rf"|\b({_UNDOTTED_TITLES}|St)(?=[ \t]+(?:[A-Z][\w'-]*[a-z]|[A-Z]\.[ \t]?[A-Z]|&[ \t]"
        rf"|and[ \t]+(?:Mr|Mrs|Ms|Dr)\b))",
        _title,
    ),
    rule(
        r"(?:(?<=\d)|(?<=\d )|(?<=\b(?:two|six|ten) )|(?<=\b(?:four|five|nine) ))min\.(?!\w)",
        _minutes,
    ),
    rule(
        r"(?:(?<=\b1[ ])|(?<=\d-))(tbsp|tsp|oz|lb|gal)\.(?=[ \t][a-z])",
        lambda match, reader: match[1],
    ),
    rule(r"(?<=\d(?:st|nd|rd|th)[ ])fl\b\.?", lambda match, reader: f"floor{final_dot(match)}"),
    rule(r"(?<=\b(?:next|last|this)[ ])wk\b\.?", lambda match, reader: f"week{final_dot(match)}"),
    rule(r"(?<=[a-z][ ])v\.(?=[ ][A-Z])", lambda match, reader: "versus"),
    rule(
        rf"(?<![\w.])(?:{any_of(_DOTTED)})",
        _dotted_abbreviation,
    ),
    rule(
        r"(?<![\w/])(?:(?:w/out|w/in|w/|b/c|b/w|c/o)(?=[ \t])|(?:w/o|n/a|a/c)(?![\w/]))"
        r"|\b(?:vs|thru|approx|et al|dept|govt|incl|Ltd|Inc|[Tt]hx|[Pp]l[sz]|ppl|[Gg]r8|l8r|nvm"
        r"|Ctrl|Cmd)\b(?:\.(?=[ \t][a-z]))?",
        _undotted_abbreviation,
    ),
    rule(
        rf"((?:\b(?:{'|'.join(_PLACE_BEFORE)}))?\b[A-Z][a-z]{{2,20}}, )({'|'.join(_STATES)})\b"
        r"(?![\w'&/])",
        _state,
    ),
    rule(
        r"\b([NSEW])\.?(?=[ \t][A-Z][a-z]{2,20}[ \t](?:St|Ave|Rd|Blvd|Dr|Ln|Street|Avenue|Road)\b)",
        _compass,
    ),
    # J.K. Rowling, John F. Kennedy; but U.S. Army
    rule(r"(?<![\w.])[A-Z]\.(?:[ ]?[A-Z]\.){1,2}(?=[A-Z][a-z])", _letters_before_name),
    rule(
        r"\b([A-Z][a-z]{1,20})[ ]([A-Z])\.(?=[ ][A-Z][a-z])",
        _middle_initial,
    ),
    # J. R. R. Tolkien, and E. coli.
    rule(
        r"(?<![\w.])(?:[A-Z]\.[ ]){2,3}(?=[A-Z][a-z])"
        r"|(?<![\w.'])[A-HJ-Z]\.[ ](?=[a-z]{3,20}\b)|(?<=\bby )[A-Z]\.[ ](?=[A-Z][a-z])",
        lambda match, reader: f"{reader.letters(match[0])} ",
    ),
    # Not the "p.m." of a time.
    rule(r"(?<![\w.])(?<!\d[ \t])(?:[A-Za-z]\.){2,6}(?!\w)", _dotted_letters),
    rule(r"\bOK\b(?!,?[ ]\d{5})|\bO\.K\.", _okay),
)

"""Signs between words, as they are spoken, and marks that nobody says."""

from __future__ import annotations

import re

from dia_demo.text.reading.rules import Reader, Rule, rule, text_after, text_before, word

# What stands for a sign; spaces around it are made one.
_SIGNS = {
    "&": " and ", "@": " at ", "==": " equals ", "=": " equals ", "×": " times ",
    "÷": " divided by ", "±": " plus or minus ", "≈": " about ", "%": " percent ", "|": ", ",
    "•": ", ", "·": ", ", "→": ", ", "->": ", ", "=>": ", ", "∞": " infinity ", "π": " pi ",
    "§§": " sections ", "§": " section ", "¶": " paragraph ", "µ": " micro ", "μ": " micro ",
    "Δ": " delta ", "Ω": " ohms ", "√": " square root of ",
    "∛": " cube root of ", "‰": " per mille ",
    "∑": " the sum of ", "∈": " in ", "∴": " therefore ", "≡": " is identical to ",
    "∝": " is proportional to ", "≅": " is about ", "∼": " about ", "↔": ", ", "⇒": ", ",
    "α": " alpha ", "β": " beta ", "γ": " gamma ", "δ": " delta ", "θ": " theta ", "λ": " lambda ",
    "σ": " sigma ", "φ": " phi ", "ω": " omega ", "ε": " epsilon ",
}  # fmt: skip
_COMPARISONS = {
    "<": "less than", ">": "more than", "≤": "less than or equal to", "<=": "less than or equal to",
    "≥": "greater than or equal to", ">=": "greater than or equal to", "≠": "not equal to",
    "!=": "not equal to", "≪": "much less than", "≫": "much more than",
}  # fmt: skip
_COMPARISON = r"<=|>=|!=|[<>≤≥≠≪≫]"
_PER = (
    "month year week day hour minute second night person user head unit item seat share page liter "
    "gallon kilometer mile meter kilogram pound kilowatt ounce box session visit each"
).replace(" ", "|")
_EMOTICON = (
    r"(?<![\w(])(?:[:;][-'o^]?[)(DPp/\\|*]|=[)(D]|xD|\^[_.]?\^|-[_.]-|<[/\\]3"
    r"|¯\\?_?\(ツ\)_?/¯|\(╯°□°\S{0,3}╯\S{0,3}[ ]?┻━┻)(?![\w)])"
)
# Words with stars for letters, read before the stars are taken for markup: f**k, sh*t, f---.
_CENSORED = (
    r"(?<![\w*])(?:(?!(?!f\*\*k|[sct]\*\*t|d\*\*[nk]|h\*\*l|p\*\*s)[a-z]\*\*[a-z]\b)"
    r"[A-Za-z]{1,3}(?:\*{2}(?=[a-z])|\*{3,6})(?![A-Za-z]{1,30}\*\*)[a-z]{0,4}"
    r"|(?:sh\*(?:t|\*)|f\*c?k|b\*tch|d\*mn|cr\*p|p\*ss|d\*ck|c\*nt|a\*s|a\*shole|h\*ll|wh\*re|b\*stard)"
    r"|[fsbcd][#@$%!&*]{2,5}[a-z]{0,2}|[fsbcd]-{3,4})(?P<end>ing|ers?|ed|s)?(?![\w*-])"
    # Signs for a whole word: #$%&!
    r"|(?<!\S)(?!(\S)\2+(?:\s|$))(?=[!*]*[#$%&@][!*]*[#$%&@])[#$%&@!*]{3,9}(?=[\s.,?]|$)"
)
_LOVERS = re.compile(r"\b(?:[Ii]|[Ww]e|[Yy]ou|[Tt]hey|and|to)[ \t]$")


def _sign(match: re.Match, _: Reader) -> str:
    words = _SIGNS[match[0]]
    opens = words == ", " and re.search(r"(?:^|[\n\]])[ \t]*$", text_before(match))
    return "" if opens else words


def _comparison(match: re.Match, _: Reader) -> str:
    """Between two words, "is more than"; before one alone, "more than"."""
    if match[1]:
        return f" is {_COMPARISONS[match[1]]} "
    return f"{_COMPARISONS[match[2]]} "


def _heart(match: re.Match, reader: Reader) -> str:
    """<3: love between words, nothing at the end of a sentence, else a comparison."""
    rest = text_after(match)
    if _LOVERS.search(text_before(match)):
        return "love"
    if re.match(r"[ \t]*(?:[.,!?)]|$|\n|\[S|<3)", rest) and re.search(
        r"[A-Za-z!?.,][ \t]?$", text_before(match)
    ):
        if not re.search(
            r"\b(?:is|are|was|be|if|where|when|[a-zA-Z]|of|than|score)[ \t]$", text_before(match)
        ):
            return ""
    return match[0]


def _age(match: re.Match, _: Reader) -> str:
    """A 5yo boy, but: he is 5yo."""
    alone = re.match(r"[ \t]*(?:[^\w \t]|$|(?:and|or|but|now|when|today|in)\b)", text_after(match))
    said_of = re.search(
        r"\b(?:is|are|was|were|am|be|[a-z]+'(?:s|re|m)|turn(?:s|ed|ing)?)[ \t]"
        r"(?:only |just |about |now )?(\d+)$",
        text_before(match),
        re.IGNORECASE,
    )
    years = alone and said_of and said_of[1] != "1"
    return " years old" if years else " year old"


def _censored_word(match: re.Match, reader: Reader) -> str:
    """f**k, sh*t: the sound that stands for such a word, with its ending."""
    ending = match["end"] or next((e for e in ("ing", "er", "ed") if match[0].endswith(e)), "")
    words = f"bleep{ending}"
    return reader.remark(match[0], words, "write out the word that you want to hear.")


def _alternative(match: re.Match, _: Reader) -> str:
    return " or" if match[0] == "/or" else " or "


# Before markup is removed, whose marks are stars as well.
LOVE = rule(r"(?:(?<=\b[Ii] )|(?<=\b[Ww]e ))(?:♥|❤)\ufe0f?(?=[ ]\w)", word("love"))
CENSORED = rule(_CENSORED, _censored_word, re.IGNORECASE)
# Before the numbers.
FIRST_RULES: tuple[Rule, ...] = (
    # Citations: [1], [2, 3], [4-6].
    rule(r"[ \t]?\[\d{1,3}(?:[ \t]?[,;-][ \t]?\d{1,3}){0,9}\]", word("")),
    rule(_EMOTICON, word("")),
    rule(r"<3(?!\w|[.,]\d|[ \t]?%|[ \t](?:[a-z]+s|per|cm|km|kg)\b)", _heart),
    # Two ages, an age, two ordinals: 16/17-year-olds, 5yo, the 1st/2nd.
    rule(r"(?<=\d\d)/(?=\d\d[ -]years?[ -]old)", word(" or ")),
    rule(r"(?<=\d)[ -]?(?:yo(?![\w-])|y/o\b|y\.o\.)", _age),
    rule(r"(?<=\d(?:st|nd|rd|th))/(?=\d{1,3}(?:st|nd|rd|th)\b)", word(" or ")),
    rule(r"(?<=\d)\*(?=[ \t-]?(?:hotel|resort|review|rating|restaurant)s?\b)", word(" star")),
    rule(r"(?<=\d)\*\*(?=\d)", word(" to the power of ")),
    rule(r"(?<=\d)\*(?=\d)", word(" times ")),
    rule(r"√[ \t]?\(?(?=[\w])", word("square root of ")),
    rule(
        r"(?:(?<=\b[Aa] )([B-D])|(?<=\b[Aa]n )(A))-(?=\s|[.,!?;)]|$)",
        lambda match, reader: f"{match[1] or match[2]} minus",
    ),
    rule(r"\b([A-F])\+(?!\w|\+)", lambda match, reader: f"{match[1]} plus"),
)
RULES: tuple[Rule, ...] = (
    rule(rf"(?<=\w)/(?=(?:{_PER})\b)", word(" per ")),
    rule(r"\band/or\b", word("and or")),
    rule(r"(?<=\w)/or\b|(?<=[A-Za-z])/(?=[A-Za-z])", _alternative),
    rule(r"(?<=\w)[ \t]?\+[ \t]?(?=\w)", word(" plus ")),
    rule(r"(?<=\w)[ \t]?\+{1,2}(?!\w)", word(" plus")),
    rule(rf"(?<=\w)[ \t]?({_COMPARISON})[ \t]?(?=[\w-])|({_COMPARISON})[ \t]?(?=\w)", _comparison),
    rule(r"(?:->|=>|§§|==|[→|•·&@=×÷±≈%∞π§¶µμΔΩ√∛‰∑∈∴≡∝≅∼↔⇒αβγδθλσφωε])", _sign),
    rule(r"~(?=\w)", word("about ")),
    rule(r"(?<=[A-Za-z]\.)/(?=[A-Z])", word(" or ")),
    rule(r"(?<=[^\s\]])[ \t]+/[ \t]+(?=[^\s\[])", word(", ")),
    # Of an abbreviation: Ms. D., but
    rule(r"(?<=[A-Za-z])\.(?=[,;])", word("")),
    rule(r"[\\^_*`{}©®™<>$€£¥₹~¬¦†‡№º♥❤☆★]|(?<=[ \t])#(?=[ \t])", word("")),
)

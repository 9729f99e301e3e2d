"""Lines of speakers with other marks than a colon: "Ann - Hello.", "Ann> Hello", "— Hello."."""

from __future__ import annotations

import re

from dia_demo.text.formats import labels
from dia_demo.text.formats.labels import BEFORE, MARK, SENTENCE, SPACE
from dia_demo.text.formats.parts.lines import Format, Found, Line
from dia_demo.text.formats.parts.names import NAME, Likeness, likenesses
from dia_demo.text.script import TAG

_DASHED = re.compile(
    rf"^{BEFORE}{MARK}(?P<name>{NAME}){MARK}"
    r"(?:—|[ \t]{1,3}(?:-{1,2}|[–—|»→]|->|>(?![ \t]*\d))[ \t]{1,3})"
    r"(?P<text>\S[^\n]*)$"
)
# Marks that only chats have: "Ann> Hello", "@ann: Hello".
_OF_A_CHAT = re.compile(
    rf"^{SPACE}(?:(?P<angle>{NAME})[>»]|@(?P<at>\w[\w.-]{{0,30}})(?::|[ ]-))[ \t]{{1,3}}"
    r"(?P<text>(?!\d)\S[^\n]*)$"
)
_COUNTED = re.compile(
    rf"^{SPACE}(?P<number>[12])(?P<mark>[:).]|[ \t][-–—])[ \t]{{1,3}}(?P<text>\S[^\n]*)$"
)
# Scripts of models that number speakers from 0.
_FROM_ZERO = re.compile(rf"^{SPACE}\[(?P<number>[01])\][ \t]{{0,3}}(?P<text>[^\W\d][^\n]*)$")
# "@Ann Hello": a speaker, or the person who is spoken to.
_MENTION = re.compile(rf"^{SPACE}@(?P<name>[^\W\d_][\w.-]{{0,30}})[ \t]{{1,3}}(?P<text>\S[^\n]*)$")
_HYPHEN = re.compile(r"^[ \t]{0,9}-[ \t]{1,3}(?P<text>[\"'“‘¿¡…(]{0,3}[^\W\d_a-z][^\n]*)$")
_IN_CONVERSATION = re.compile(
    r"[?!]|\b(?:I|I'm|you|we|me|yes|no|hi|hello|oh|okay|ok|thanks|sorry|sure)\b", re.IGNORECASE
)
_DIALOGUE_DASH = re.compile(
    r"^[ \t]{0,9}(?:[—–―]|--)[ \t]{0,3}(?P<text>[\"'“‘¿¡…(]{0,3}[^\W\d_a-z][^\n]*)$"
)
# Where a numbered speaker follows within a line: "S1 - Hello. S2 - Hi."
_INLINE = re.compile(
    r"(?<=[.!?…\"'”])[ \t]{1,3}(?=(?:S|Speaker[ _]?)\d{1,2}[ \t]{1,3}[-–—][ \t])", re.IGNORECASE
)
_ALONE = re.compile(r"(?:S|Speaker)[ _]?\d{1,2}", re.IGNORECASE)
_MOST_NAMES = 9


def find(script: str) -> Found | None:
    """Lines that all begin with a speaker; None if they do not."""
    if TAG.search(script):
        return None
    return (
        _find_named_dashes(script)
        or _find_chat_lines(script)
        or _find_counted_lines(script)
        or _find_numbers_from_zero(script)
        or _find_mentions(script)
    )


def find_names(script: str) -> Found | None:
    """The same, or names with colons: what the text of other formats may consist of."""
    return labels.find(script) or find(script)


def find_dashes(script: str) -> Found | None:
    """The speeches of a novel, whose lines begin with a long dash. It is never certain: who speaks
    is not written, and what the narrator adds is spoken as well."""
    lines = [line.strip() for line in script.split("\n") if line.strip()]
    spoken: list[Line] = []
    speaker = 0
    for line in lines:
        match = _DIALOGUE_DASH.match(line)
        speaker += match is not None
        name = f"Speaker {2 - max(1, speaker) % 2}"
        spoken.append(Line(name, match["text"] if match else line))
    if TAG.search(script) or speaker < 2 or speaker < len(lines) / 3:
        return None
    return Found(tuple(spoken), False)


def find_hyphens(script: str) -> Found | None:
    """Lines that all begin with a hyphen, by two speakers in turn: a question and its answer are a
    dialogue, other sentences may be a list."""
    found = _match_all_lines(_HYPHEN, script)
    texts = [match["text"].strip() for match in found]
    if len(found) < 2 or not all(SENTENCE.match(text) for text in texts):
        return None
    if not any(_IN_CONVERSATION.search(text) for text in texts):
        return None
    asks = [text.endswith("?") for text in texts]
    is_sure = any(first and not second for first, second in zip(asks, asks[1:], strict=False))
    return Found(tuple(Line(f"Speaker {1 + n % 2}", text) for n, text in enumerate(texts)), is_sure)


def _find_numbers_from_zero(script: str) -> Found | None:
    """Lines that begin with [0] and [1]."""
    found = _match_all_lines(_FROM_ZERO, script)
    if len({match["number"] for match in found}) < 2 or found[0]["number"] != "0":
        return None
    return Found(
        tuple(Line(f"Speaker {match['number']}", match["text"].strip()) for match in found)
    )


def _find_mentions(script: str) -> Found | None:
    """Lines that all begin with "@Ann": certain where people answer each other."""
    found = _match_all_lines(_MENTION, script)
    if not found or (len(found) == 1 and not SENTENCE.match(found[0]["text"])):
        return None
    lines = tuple(Line(match["name"], match["text"].strip()) for match in found)
    names = [match["name"].lower() for match in found]
    is_sure = 1 < len(set(names)) < len(names)
    return Found(lines, is_sure, (), "" if is_sure else found[0]["name"])


def _match_all_lines(pattern: re.Pattern, script: str) -> list[re.Match]:
    """The matches of a pattern that every line has; none if a line has not."""
    matches = [pattern.match(line) for line in script.split("\n") if line.strip()]
    found = [match for match in matches if match is not None]
    return found if len(found) == len(matches) else []


def _find_named_dashes(script: str) -> Found | None:
    """Lines that all begin with a name and a dash: "Ann - Hello.". Unknown names are asked."""
    script = _INLINE.sub("\n", script)
    found = _match_all_lines(_DASHED, script)
    if not found:
        return _find_longer_speeches(script)
    lines = tuple(Line(match["name"], match["text"].strip()) for match in found)
    known = likenesses([match["name"] for match in found])
    if len(found) == 1 and not _ALONE.fullmatch(found[0]["name"]):
        return None
    if min(known.values()) == Likeness.SPEAKER:
        return Found(lines)
    may_be = min(known.values()) > Likeness.NOTE and 1 < len(known) <= _MOST_NAMES
    if not may_be or not all(line.speaker[0].isupper() for line in lines if line.speaker):
        return None
    if not all(SENTENCE.match(line.text) for line in lines):
        return None
    return Found(lines, False, (), found[0]["name"])


def _find_longer_speeches(script: str) -> Found | None:
    """The same with known names and speeches of several lines."""
    lines: list[Line] = []
    names: list[str] = []
    texts = [line.strip() for line in script.split("\n") if line.strip()]
    for text in texts:
        match = _DASHED.match(text)
        if match is not None:
            names.append(match["name"])
            if match["text"][:1].islower():
                return None
        elif not names:
            return None
        lines.append(Line(names[-1], match["text"].strip() if match else text))
    known = likenesses(names)
    if len(known) < 2 or min(known.values()) < Likeness.SPEAKER or 2 * len(names) < len(texts):
        return None
    return Found(tuple(lines))


def _find_chat_lines(script: str) -> Found | None:
    """Lines that all begin as those of a chat: "Ann> Hello", "@ann: Hello"."""
    found = _match_all_lines(_OF_A_CHAT, script)
    names = [match["angle"] or match["at"] for match in found]
    known = likenesses(names)
    if not found or (min(known.values()) <= Likeness.NOTE and any(m["angle"] for m in found)):
        return None
    if any(len(name) == 1 for name in names) and min(known.values()) < Likeness.SPEAKER:
        return None  # Letters of a formula.
    is_sure = len(known) > 1 or min(known.values()) == Likeness.SPEAKER and len(found) > 1
    lines = tuple(
        Line(name, match["text"].strip()) for name, match in zip(names, found, strict=True)
    )
    return Found(lines, is_sure, (), "" if is_sure else names[0])


def _find_counted_lines(script: str) -> Found | None:
    """Lines that begin with 1 and 2 in turn: "1: Hello.". Two lines may be a list."""
    found = _match_all_lines(_COUNTED, script)
    numbers = [match["number"] for match in found]
    if len(found) < 2 or any(n != "12"[at % 2] for at, n in enumerate(numbers)):
        return None
    lines = tuple(Line(f"Speaker {match['number']}", match["text"].strip()) for match in found)
    is_sure = len(found) > 2
    if not is_sure and found[0]["mark"] in ").":
        return None
    return Found(lines, is_sure, (), "" if is_sure else numbers[0])


_TWO = "[S1] Hi there.\n[S2] Ho."
FORMAT = Format(
    labels.FORMAT.name,
    find,
    examples=(
        *(
            (script, _TWO)
            for script in (
                "Ann - Hi there.\nBen - Ho.",
                "S1 - Hi there.\nS2 – Ho.",
                "Ann — Hi there.\nBen — Ho.",
                "Ann—Hi there.\nBen -- Ho.",
                "Ann> Hi there.\nBen> Ho.",
                "S1> Hi there.\nS2> Ho.",
                "zork> Hi there.\nkweem> Ho.",
                "@ann: Hi there.\n@ben_92: Ho.",
                "@zork.1: Hi there.\n@kweem: Ho.",
            )
        ),
        ("1: Hi.\n2: Ho.\n1: Hu.", "[S1] Hi.\n[S2] Ho.\n[S1] Hu."),
        ("S2 - Ho.", "[S2] Ho."),
        ("[0] Hi.\n[1] Ho.\n[0] Hu.", "[S1] Hi.\n[S2] Ho.\n[S1] Hu."),
        ("@Ann Hi.\n@ben Ho.\n@Ann Hu.", "[S1] Hi.\n[S2] Ho.\n[S1] Hu."),
        ("S1 - Hi there. S2 - Ho.", "[S1] Hi there. [S2] Ho."),
        ("Ann - Hi.\nI am late.\nBen - Ho.", "[S1] Hi.\nI am late.\n[S2] Ho."),
        ("1) Hi.\n2) Ho.\n1) Hu.", "[S1] Hi.\n[S2] Ho.\n[S1] Hu."),
        ("Zork> Hi.\nZork> Ho.\nAnn> Hu.", "[S1] Hi.\nHo.\n[S2] Hu."),
    ),
    left_alone=(
        "Eggs - two of them.\nMilk - a pint.",
        "Zorblax - Hi there.\nKweem - Ho.",
        "1: Open it.\n2: Close it.",
        "1: Open it.\n2: Close it.\n3: Go.",
        "x > 5\ny > 3",
        "mysql> select it;",
        "P1 - Summary.",
        "a> b\nc> d",
        "1) Hi.\n2) Ho.",
        "@Ann Hi there.",
        "@Ann Hi.\n@Ben Ho.",
        "Ann - who was late - came.\nBen - Ho.\nShe left.",
        "https://example.com: a site",
    ),
)
DASHES_FORMAT = Format(
    "a dialogue with dashes",
    find_dashes,
    examples=(),
    left_alone=("— Hi there.\n— Ho.", "It was late — too late.\n— A proverb", "— eggs\n— milk"),
)
HYPHENS_FORMAT = Format(
    DASHES_FORMAT.name,
    find_hyphens,
    examples=(
        ("- Hello?\n- Hi!", "[S1] Hello?\n[S2] Hi!"),
        ("- Who is it?\n- Me.\n- Come in.", "[S1] Who is it?\n[S2] Me.\n[S1] Come in."),
    ),
    left_alone=(
        "- Buy milk\n- Call Ann",
        "- It is cheap.\n- It is quick.",
        "- Hi there!\n- Ho!",
        "- What is it?\n- How does it work?",
    ),
)

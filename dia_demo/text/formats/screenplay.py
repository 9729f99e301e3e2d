"""Screenplays: a name on a line of its own, the words below it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from dia_demo.text.formats.frame import (
    is_direction,
    is_lead_in,
    is_silent,
    remove_frame,
    spoken_lines,
)
from dia_demo.text.formats.labels import sound_of
from dia_demo.text.formats.parts.lines import Format, Found, Line
from dia_demo.text.formats.parts.names import Likeness, key_of, likeness, without_qualifier

_CUE = re.compile(
    r"^[ \t]{0,80}[*_@]{0,3}(?P<name>[^\W\d_][\w.'’#-]{0,24}(?:[ ][\w.'’&#-]{1,24}){0,3})"
    r"(?P<more>[ ]{0,3}[(\[][^()\[\]\n]{1,40}[)\]]){0,2}[*_]{0,3}[ \t]{0,9}\^?[ \t]{0,9}$"
)
_HEADING = re.compile(r"^#{1,6}[ ]{1,3}(?P<name>[^\n:]{1,40})$", re.MULTILINE)
_SCENE = re.compile(
    r"^[ \t]{0,40}[*_.]{0,3}(?:\d{1,3}[A-Z]?\.?[ ]{1,9})?(?:INT|EXT|EST|INT\.?/EXT|I/E)[. ]",
    re.IGNORECASE,
)
_TRANSITION = re.compile(
    r"^[ \t]{0,80}>?[ ]?(?:FADE (?:IN|OUT|TO)[A-Z ]{0,20}|[A-Z ]{0,20}CUT TO(?: BLACK)?"
    r"|DISSOLVE TO|THE END|END|BLACKOUT|CURTAIN|TITLE CARD|CONTINUED|LIGHTS (?:UP|DOWN))"
    r"[:.]{0,2}\s*$"
)
_PARENTHESES = re.compile(r"^[ \t]{0,80}[*_]{0,2}\((?P<manner>[^()\n]{1,120})\)[*_]{0,2}\s*$")
_SCENERY = re.compile(r"^(?:scene|act|setting|at rise|characters?|cast|title)\b", re.IGNORECASE)


@dataclass
class _Speech:
    name: str
    lines: list[Line]
    is_capital: bool


def find(script: str) -> Found | None:
    """The speeches of a screenplay; None if fewer than two names stand above words."""
    # A heading of Markdown may be a name.
    body, left_out = remove_frame(_HEADING.sub(_speaker_name, script))
    lines = body.split("\n")
    cues = [index for index in range(len(lines)) if _is_cue(lines, index)]
    names = [_name(lines[index]) for index in cues]
    has_scene = any(_SCENE.match(line) for line in lines)
    if not cues or (len(cues) < 2 and not has_scene):
        return None
    in_capitals = all(name.isupper() for name in names)
    if not in_capitals and not all(likeness(name) == Likeness.SPEAKER for name in names):
        return None
    speeches, others = _speeches(lines, cues, names)
    if not any(speeches):
        return None
    above = [line for line in lines[: cues[0]] if line.strip()]
    plain = [line for line in others if not _is_marked(line)]
    spoken = [line for speech in speeches for line in speech]
    is_sure = _is_sure(names, in_capitals, has_scene, plain, above)
    unsure = "" if is_sure else names[0]
    return Found(tuple(spoken), is_sure, left_out + spoken_lines(others), unsure)


def _speaker_name(match: re.Match) -> str:
    return match["name"] if likeness(match["name"].strip("*_ ")) == Likeness.SPEAKER else match[0]


def _is_sure(
    names: list[str], in_capitals: bool, has_scene: bool, plain: list[str], above: list[str]
) -> bool:
    """Whether nothing that may be spoken would be lost, and the names are names."""
    counts = Counter(map(key_of, names))
    known = sum(likeness(name.title()) == Likeness.SPEAKER for name in names)
    if has_scene:
        return True
    titles = [line for line in above if len(line.split()) <= 9]
    if len(plain) > len(titles):
        return False
    return known * 2 >= len(names) or (in_capitals and max(counts.values()) > 1 < len(counts))


def _is_cue(lines: list[str], index: int) -> bool:
    """Whether a line is a name above words."""
    line = lines[index]
    match = _CUE.match(line)
    if match is None or _is_marked(line) or is_direction(line):
        return False
    name = _name(line)
    if likeness(name.title() if name.isupper() else name) < Likeness.MAYBE:
        return False
    if not name.isupper() and (likeness(name) != Likeness.SPEAKER or len(name.split()) > 3):
        return False
    if (
        index
        and lines[index - 1].strip()
        and not _is_marked(lines[index - 1])
        and not name.isupper()
    ):
        return False
    after = [text for text in lines[index + 1 : index + 3] if text.strip()]
    if not after or _is_marked(after[0]):
        return False
    return bool(_PARENTHESES.match(after[0])) or not (_CUE.match(after[0]) and after[0].isupper())


def _is_marked(line: str) -> bool:
    """Whether a line is a scene's heading, a transition or another mark."""
    return bool(
        _SCENE.match(line)
        or _TRANSITION.match(line)
        or _SCENERY.match(line.strip("*_# "))
        or (is_silent(line) and not _PARENTHESES.match(line))
        or is_lead_in(line)
    )


def _name(line: str) -> str:
    return without_qualifier(without_qualifier(line.strip().strip("*_@^ "))).strip("*_@^ ")


def _speeches(
    lines: list[str], cues: list[int], names: list[str]
) -> tuple[list[list[Line]], list[str]]:
    """The words below each name, up to the next blank line, and all that is not spoken."""
    speeches, others = [], [line for line in lines[: cues[0]] if line.strip()]
    ends = [*cues[1:], len(lines)]
    for cue, end, name in zip(cues, ends, names, strict=True):
        texts = lines[cue + 1 : end]
        while texts and not texts[0].strip():
            texts.pop(0)
        speech: list[Line] = []
        sound = ""
        for number, text in enumerate(texts):
            if not text.strip() and speech:
                others += [line for line in texts[number:] if line.strip()]
                break
            manner = _PARENTHESES.match(text)
            if manner:
                sound = sound_of(manner["manner"])
            elif _is_marked(text):
                others += [text] if text.strip() else []
            elif text.strip():
                speech.append(Line(name, text.strip(), sound))
                sound = ""
        speeches.append(speech)
    return speeches, others


FORMAT = Format(
    "a screenplay",
    find,
    examples=(
        ("ANN\nAre you there?\n\nBEN\nYes, I am.", "[S1] Are you there?\n[S2] Yes, I am."),
        (
            "THE CALL\n\nFADE IN:\n\nINT. KITCHEN - DAY\n\nAnn picks up the phone.\n\n"
            "          ANN (O.S.)\n     (laughing)\n   Are you there?\n   I am waiting.\n\n"
            "          BEN (CONT'D)\n   Yes.\n\nHe hangs up.\n\nCUT TO:",
            "[S1] (laughs) Are you there?\nI am waiting.\n[S2] Yes.",
        ),
        (
            "**ANN**\nAre you there?\n\n**BEN**\nYes.\n\n**ANN**\nGood.",
            "[S1] Are you there?\n[S2] Yes.\n[S1] Good.",
        ),
        ("Ann\nAre you there?\n\nBen\nYes, I am.", "[S1] Are you there?\n[S2] Yes, I am."),
        ("ANN\n\nAre you there?\n\nBEN\n\nYes, I am.", "[S1] Are you there?\n[S2] Yes, I am."),
        ("@ANN\nAre you there?\n\n@BEN\nYes.", "[S1] Are you there?\n[S2] Yes."),
        ("## Ann\nAre you there?\n\n## Ben\nYes.", "[S1] Are you there?\n[S2] Yes."),
        (
            "MAN 1\nAre you there?\n\nMAN 2\nYes.\n\nTHE END",
            "[S1] Are you there?\n[S2] Yes.",
        ),
    ),
    left_alone=(
        "STOP\nI said no.",
        "NO WAY\nThis is great news.\n\nWOW\nIt really is.",
        "Chapter One\nIt was late.\n\nChapter Two\nNobody came.",
        "Dear Ann\nHow are you?\n\nYours\nBen",
        "THE END",
    ),
)

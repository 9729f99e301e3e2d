"""Speakers: names before turns become [S1] and [S2]."""

from __future__ import annotations

import re

from dia_demo.text.edits import EditedText
from dia_demo.text.repairs import nearest_sound, other_tag
from dia_demo.text.script import TAG

# A turn begins at the start of a line, or behind the end of a sentence.
_START = r"(?:^[ \t]{0,9}|(?<=[.!?…\"')\]])[ \t]{1,9})"
# "John", "Mary Ann", "Dr. Smith", "Speaker A", "HOST", "Q"; what follows "S1" and "Speaker 1" is
# known without it.
_NAME = r"[A-Z][\w'’-]{0,20}\.?(?:[ \t][A-Z0-9][\w'’-]{0,20}){0,2}"
_LABEL = re.compile(
    rf"{_START}(?:(?P<plain>{_NAME})[ \t]{{0,3}}:(?=\s)"
    rf"|[\[(](?P<framed>{_NAME})[ \t]{{0,3}}:?[\])]:?)[ \t]{{0,9}}",
    re.MULTILINE,
)
_NUMBERED = re.compile(
    r"[\[({<][ \t]{0,3}(?:s|speaker)[ \t_#-]{0,3}([12])[ \t]{0,3}:?[ \t]{0,3}[\])}>]:?[ \t]{0,9}"
    rf"|{_START}(?:s|speaker)[ \t]{{0,3}}([12])[ \t]{{0,3}}:[ \t]{{0,9}}",
    re.IGNORECASE | re.MULTILINE,
)
# Words before a colon that are not names.
_NOT_NAMES = frozenset(
    "note notes warning caution remember important tip hint example summary title subject date "
    "time place scene chapter part step to from cc re ps update edit source answer question "
    "conclusion result results reason however first second third finally also but and so yes no "
    "the this that these those here there today tomorrow monday tuesday wednesday thursday "
    "friday saturday sunday".split()
)
_LIKE_A_SOUND = 0.7
_MOST_NAMES = 9


def tag_speakers(text: EditedText) -> None:
    """Speaker tags for "Speaker 1:", for the names of at most two people, and for a start without.

    Names count where the script itself has no tags and begins with one: anything else before a
    colon is part of what is said.
    """
    text.sub(_NUMBERED, lambda match: _lead(match) + f"[S{match[1] or match[2]}] ")
    if not TAG.search(text.text):
        _tag_names(text)
    start = re.compile(r"\A\s{0,99}")
    first = TAG.search(text.text)
    if text.text.strip() and (first is None or text.text[: first.start()].strip()):
        # The words before a tag are the other speaker's: turns alternate.
        tag = other_tag(first[1]) if first else "[S1]"
        text.sub(start, lambda match: f"{match[0]}{tag} ")


def with_tags(script: str) -> str:
    """The script with [S1] and [S2] in the place of names and numbered speakers."""
    text = EditedText(script)
    tag_speakers(text)
    return text.text


def names_of(script: str) -> list[str]:
    """The names that speak, in order of their first turn; none where they are no labels."""
    names: list[str] = []
    for number, match in enumerate(_LABEL.finditer(script)):
        name = _name(match)
        if number == 0 and (script[: match.start()].strip() or name is None):
            return []
        if name is not None and name.lower() not in (other.lower() for other in names):
            names.append(name)
        if len(names) > _MOST_NAMES:
            break
    return names


def _tag_names(text: EditedText) -> None:
    names = names_of(text.text)
    if not 1 <= len(names) <= 2:
        return

    def tagged(match: re.Match) -> str:
        name = _name(match)
        if name is None:
            return match[0]
        return f"{_lead(match)}[S{1 if name.lower() == names[0].lower() else 2}] "

    text.sub(_LABEL, tagged)


def _name(match: re.Match) -> str | None:
    """The name of a label; None if it is no name."""
    name = match["plain"] or match["framed"]
    if name.lower() in _NOT_NAMES or name.lower().split()[0] in _NOT_NAMES:
        return None
    if match["framed"] and nearest_sound(name.lower(), _LIKE_A_SOUND):
        return None
    return name


def _lead(match: re.Match) -> str:
    """The space before a label, which stays."""
    return match[0][: len(match[0]) - len(match[0].lstrip())]

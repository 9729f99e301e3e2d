"""Speakers: tags that are nearly right become [S1] and [S2], and every script begins with one."""

from __future__ import annotations

import re

from dia_demo.text.edits import EditedText
from dia_demo.text.repairs import other_tag
from dia_demo.text.script import TAG

# A turn begins at the start of a line, or behind the end of a sentence.
_START = r"(?:^[ \t]{0,9}|(?<=[.!?…\"')\]])[ \t]{1,9})"
_NUMBERED = re.compile(
    r"[\[({<【［（][ \t]{0,3}(?:s|speaker)[ \t_#-]{0,3}([12])[ \t]{0,3}:?[ \t]{0,3}"
    r"[\])}>】］）][:：]?[ \t]{0,9}"
    rf"|{_START}(?:s|speaker)[ \t]{{0,3}}([12])[ \t]{{0,3}}:[ \t]{{0,9}}",
    re.IGNORECASE | re.MULTILINE,
)


def tag_speakers(text: EditedText) -> None:
    """Speaker tags for "(s1)" and "Speaker 1:" beside other tags, and for a start without one.

    Names are the matter of `formats`, which comes first.
    """
    text.sub(_NUMBERED, lambda match: _lead(match) + f"[S{match[1] or match[2]}] ")
    start = re.compile(r"\A\s{0,99}")
    first = TAG.search(text.text)
    if text.text.strip() and (first is None or text.text[: first.start()].strip()):
        # The words before a tag are the other speaker's: turns alternate.
        tag = other_tag(first[1]) if first else "[S1]"
        text.sub(start, lambda match: f"{match[0]}{tag} ")


def fix_near_tags(script: str) -> str:
    """The script with these tags."""
    text = EditedText(script)
    tag_speakers(text)
    return text.text


def _lead(match: re.Match) -> str:
    """The space before a label, which stays."""
    return match[0][: len(match[0]) - len(match[0].lstrip())]

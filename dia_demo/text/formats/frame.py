"""What stands around a dialogue and is not spoken: a chat bot's remarks, titles, section marks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dia_demo.text.formats.parts.lines import Format, Found, Line
from dia_demo.text.repairs import nearest_sound

_OPENINGS = (
    r"sure|certainly|of course|absolutely|definitely|okay|ok|alright|great|got it|no problem"
    r"|as requested|with pleasure|happily|happy to|yes,? here|i(?:'d|’d| would) be (?:happy|glad)"
    r"|here(?:'s|’s| is| are| you go)|below (?:is|are)|this is an?|the following"
    r"|i(?:'ve|’ve| have) (?:written|made|created|put)"
)
_WORKS = (
    r"dialog(?:ue)?|script|conversation|podcast|scene|transcript|exchange|screenplay|skit|sketch"
    r"|interview|discussion|story|episode|version|example|draft|chat|text|json|speech|poem|csv"
)
_LEAD_IN = re.compile(
    rf"^\s{{0,9}}[*_#>]{{0,4}}(?:{_OPENINGS})\b(?:[^\n]{{0,300}}:[*_]{{0,3}}|[^\n]{{0,200}}"
    rf"\b(?:{_WORKS})\b[^\n]{{0,120}}|[!.,]?)\s*$",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"^\s{0,9}[*_(\[#>]{0,4}(?:(?:just )?let me know|(?:i )?hope (?:this|that|you|it)|feel free"
    r"|would you like|do you want me|want me to|is there anything|shall i|enjoy\b"
    r"|if you(?:'d|’d| would)? (?:like|want|need|prefer)|should i (?:add|change|make)"
    r"|happy (?:podcasting|recording)|i can (?:also|adjust|make|change)|this should|\(?approx"
    r"|this (?:dialog|script|conversation|version|podcast|exchange)"
    r"|note: (?:this|the) (?:dialog|script|conversation|text)"
    r"|(?:the )?end\b[^a-z]{0,6}$|end of\b|fin\b[^a-z]{0,3}$|word count"
    r"|(?:transcribed|subtitles|captions|transcript|generated|created) (?:by|with)\b)",
    re.IGNORECASE,
)
_SURE_LEAD_IN = re.compile(
    r"^\s{0,9}(?:sure|certainly|of course|absolutely|great)\b[^\n]{0,60}[!,.][^\n]{0,40}"
    r"\bhere(?:'s|’s| is| are)\b[^\n]{0,200}:[*_]{0,3}[ \t]*\n\s*\n",
    re.IGNORECASE,
)
_RULE = re.compile(r"^\s{0,3}(?:[-*_=~•·][ \t]{0,2}){3,80}$")
_FENCE = re.compile(r"^\s{0,3}(?:`{3,4}|~{3,4})[^\n`]{0,40}$")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+\S[^\n]{0,200}$")
_BOLD = re.compile(r"^\s{0,3}(\*\*|__)[^*_\n]{1,120}\1\s*$")
_FACT = re.compile(
    r"^\s{0,3}[-*_#>• ]{0,6}(?:title|topic|scene|setting|characters?|cast|date|duration|length|"
    r"podcast|episode|format|tone|language|location|place|time|genre|style|context|speakers?|"
    r"participants|attendees|theme|series|chapter|act|part)\b[^\n:]{0,30}[*_]{0,3}[:：][^\n]{0,300}$",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(
    r"^\s{0,9}[*_]{0,3}(?:\[(?P<square>[^\[\]{}\"\n]{1,120})\]|\((?P<round>[^()\n]{1,200})\)"
    r"|<(?P<angle>[^<>\n]{1,60})>|\{(?P<curly>[^{}\"\n]{1,60})\})[*_]{0,3}:?\s*$"
)
_STARRED = re.compile(r"^\s{0,9}(\*{1,3}|_{1,3})(?P<words>[^*_\n]{1,120})\1\s*$")
_SECTION = re.compile(
    r"^(?:intro(?:duction)?|outro|opening|closing|music|theme|jingle|transition|break|ad break"
    r"|commercial|segment|part|act|scene|end|start|begin|fade|sfx|sound|cut to|verse|chorus"
    r"|bridge)\b",
    re.IGNORECASE,
)
_INLINE = re.compile(r"[ \t]{0,9}\[([^\[\]\n]{1,60})\]")
_SPEAKER_TAG = re.compile(r"^\s{0,9}\\?\[S\d{1,2}\\?\]", re.IGNORECASE)
_MOST_TITLE_WORDS = 9


def is_silent(line: str) -> bool:
    """Whether a line is a mark of Markdown, a heading, a section or a direction."""
    if not line.strip() or _RULE.match(line) or _FENCE.match(line) or _HEADING.match(line):
        return True
    return is_direction(line)


def is_direction(line: str) -> bool:
    """Whether a whole line is a section or stage direction: "[INTRO]", "(They sit down.)".

    A sound, such as "(laughs)", is not.
    """
    if _SPEAKER_TAG.match(line):
        return False
    match = _IN_BRACKETS.match(line)
    if match is not None:
        words = match["square"] or match["round"] or match["angle"] or match["curly"]
        return _direction(words) and (match["angle"] is None or bool(_SECTION.match(words)))
    starred = _STARRED.match(line)
    return starred is not None and bool(_SECTION.match(starred["words"]))


def _direction(words: str) -> bool:
    return nearest_sound(words.strip().lower(), 0.8) is None and words[0] not in "('"


def remove_sections(line: str) -> str:
    """A line without "[music]" and other section marks among its words."""
    return _INLINE.sub(lambda match: "" if _SECTION.match(match[1]) else match[0], line)


def is_lead_in(line: str) -> bool:
    """Whether a chat bot introduces what follows: "Sure! Here is a short dialogue:"."""
    return bool(_LEAD_IN.match(line))


def is_closing(line: str) -> bool:
    """Whether a chat bot ends with this line: "Let me know if you want changes!"."""
    return bool(_CLOSING.match(line))


def is_title(line: str) -> bool:
    """Whether a line above a dialogue is its title or says what it is about."""
    if _BOLD.match(line) or _FACT.match(line):
        return True
    words = line.strip().strip("*_#\"'“”").split()
    if not 0 < len(words) <= _MOST_TITLE_WORDS or any(word.endswith(":") for word in words[:-1]):
        return False
    return not words[-1].endswith((".", "!", "?", ",", ";", "…"))


def is_before(line: str) -> bool:
    """Whether a line above a dialogue is not spoken."""
    return is_silent(line) or is_lead_in(line) or is_title(line)


def find(script: str) -> Found | None:
    """A text of one speaker, or of turns, around which a chat bot says something.

    It is certain only for an introduction that nobody would write into a script.
    """
    body, left_out = remove_frame(script)
    is_tagged = _SPEAKER_TAG.match(script) is not None
    remarks = [line for line in left_out if is_lead_in(line) or is_closing(line)]
    if not body.strip() or not remarks or (is_tagged and not is_closing(left_out[-1])):
        return None
    is_sure = not is_tagged and bool(_SURE_LEAD_IN.match(script))
    return Found((Line(None, body.strip()),), is_sure, left_out)


def remove_frame(script: str) -> tuple[str, tuple[str, ...]]:
    """The script without what a chat bot says around it, and the lines that were left out."""
    lines = script.split("\n")
    first, last = 0, len(lines)
    while first < last and (is_silent(lines[first]) or is_lead_in(lines[first])):
        first += 1
    last = _end(lines, first)
    left_out = [line.strip() for line in lines[:first] + lines[last:]]
    return "\n".join(lines[first:last]), spoken_lines(left_out)


def _end(lines: list[str], first: int) -> int:
    """Where the last words end: before silent lines and the paragraph of a closing remark."""
    last = len(lines)
    while last > first:
        if is_silent(lines[last - 1]):
            last -= 1
            continue
        start = last
        while start > first and lines[start - 1].strip() and not _FENCE.match(lines[start - 1]):
            start -= 1
        if start <= first or not is_closing(lines[start]):
            break
        last = start
    return last


def spoken_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines that somebody could miss: without blank ones and marks."""
    return tuple(
        line.strip()
        for line in lines
        if line.strip() and not _RULE.match(line) and not _FENCE.match(line)
    )


FORMAT = Format(
    "a text with a chat bot's remarks",
    find,
    examples=(
        (
            "Sure! Here's a short voiceover script:\n\nWelcome to the farm. It is quiet here.\n\n"
            "Let me know if you want it longer!",
            "[S1] Welcome to the farm. It is quiet here.",
        ),
    ),
    left_alone=(
        "Here is a poem:\n\nRoses are red.\nViolets are blue.",
        "[S1] It is late.\n[S2] Good night.\n\nLet me know what you think!",
        "Sure! I can do that.",
        "Let me know.",
        "Here's the plan. We leave at ten.",
    ),
)

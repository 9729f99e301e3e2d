"""The table of script formats, and a script as the turns of the format that it is recognised as.

A recogniser sees the script before any markup is removed. The first that finds its format decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from dia_demo.text.formats import (
    data,
    elements,
    frame,
    labels,
    line_marks,
    screenplay,
    subtitles,
    transcripts,
)
from dia_demo.text.formats.parts.lines import Format, Found, Line
from dia_demo.text.formats.parts.names import key_of, tags_of
from dia_demo.text.script import TAG

FORMATS: tuple[Format, ...] = (
    data.JSON_FORMAT,
    subtitles.FORMAT,
    elements.FORMAT,
    data.TABLE_FORMAT,
    data.YAML_FORMAT,
    transcripts.CHAT_FORMAT,
    transcripts.HEADER_FORMAT,
    transcripts.STAMPED_FORMAT,
    labels.FORMAT,
    line_marks.FORMAT,
    screenplay.FORMAT,
    line_marks.DASHES_FORMAT,
    line_marks.HYPHENS_FORMAT,
    frame.FORMAT,
)

_INVISIBLE = re.compile("[\u200b\u200e\u200f\u2060\ufeff\u202a-\u202e\u2066-\u2069]|\r(?=\n)")
_SPACES = re.compile("[\u00a0\u2007\u2009\u202f\u3000]")
_ESCAPED_LINE = re.compile(r"(?:\\n)+[\[<*]{0,3}[^\W\d_][^:\n]{0,30}[:\]>]")
_ROW = re.compile(
    r"[ \t]*\|[ \t]*([^\W\d_][^|\n:]{0,30}?)[ \t]*\|[ \t]*([^|\n]*[^|\s])[ \t]*\|[ \t]*$"
)
_BRACKETED_LABEL = re.compile(r"\[[^\W\d_][\w .'-]{0,20}\]:(?=[ \t])")
_LINE_ENDS = re.compile("\r|\u2028|\u2029|\u0085")


@dataclass(frozen=True)
class Recognition:
    """A script in a format other than turns with [S1] and [S2].

    script: its turns. edits: for each part of the script that differs, where it begins and ends and
    what it becomes. speakers: each name with its tag, in order. left_out, unsure_of: see `Found`.
    """

    format: str
    is_sure: bool
    script: str
    edits: tuple[tuple[int, int, str], ...]
    speakers: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]
    unsure_of: str


@lru_cache(maxsize=64)
def recognise(script: str) -> Recognition | None:
    """What a script is, if it is in one of FORMATS; None for a script that is read as it is."""
    text = _LINE_ENDS.sub("\n", _SPACES.sub(" ", _INVISIBLE.sub("", script)))
    text = elements.plain_html(elements.plain_latex(_unescape(text)))
    text = _break_before_labels(_rows_as_labels(text))
    if not text.strip():
        return None
    # What begins with a tag is in turns already; at most a remark stands below it.
    rows = (frame.FORMAT,) if TAG.match(text.lstrip()) else FORMATS
    unsure = None
    for row in rows:
        found = row.find(text)
        if found is not None and found.lines:
            if found.is_sure:
                return _recognition(row.name, script, found)
            unsure = unsure or _recognition(row.name, script, found)
    return unsure


def _unescape(text: str) -> str:
    """A text in lines, where it is one line with escaped line ends, as strings within data are."""
    if "\n" in text.strip() or text.count("\\n") < 1 or not _ESCAPED_LINE.search(text):
        return text
    inner = text.strip()
    if len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "\"'":
        inner = inner[1:-1].replace(f"\\{inner[0]}", inner[0])
    return inner.replace("\\r", "").replace("\\n", "\n")


def _rows_as_labels(text: str) -> str:
    """The rows of a table of two columns without a header as lines that begin with a name."""
    rows = [_ROW.match(line) for line in text.strip().split("\n")]
    if len(rows) < 2 or not all(rows):
        return text
    return "\n".join(f"{row[1]}: {row[2]}" for row in rows if row)


def _break_before_labels(text: str) -> str:
    """A line of turns that begin with [Name]: as one line for each."""
    if "\n" in text.strip() or not _BRACKETED_LABEL.match(text.strip()):
        return text
    return _BRACKETED_LABEL.sub(lambda match: f"\n{match[0]}", text.strip()).lstrip("\n")


def write_turns(script: str) -> str:
    """The script with the turns of its format, where that is certain; else the script itself."""
    found = recognise(script)
    return found.script if found is not None and found.is_sure else script


def _recognition(name: str, script: str, found: Found) -> Recognition:
    spoken = [line for line in found.lines if line.text.strip() or line.sound]
    named = [line.speaker for line in spoken if line.speaker is not None]
    tags = tags_of(named)
    edits = _edits(script, _parts(spoken, tags, found.between))
    shown: dict[str, str] = {}
    for speaker in named:
        shown.setdefault(key_of(speaker), speaker)
    return Recognition(
        name,
        found.is_sure,
        _apply_edits(script, edits),
        edits,
        tuple((label, f"[S{tags[key]}]") for key, label in shown.items() if label),
        found.left_out,
        found.unsure_of,
    )


def _parts(lines: list[Line], tags: dict[str, int], between: str) -> list[tuple[str, str, str]]:
    """For each line: what separates it from the one before, what comes before its words, and these
    words."""
    parts: list[tuple[str, str, str]] = []
    speaker = None
    for line in lines:
        key = speaker if line.speaker is None else key_of(line.speaker)
        begins = key != speaker or not parts
        before = f"{line.sound} " if line.sound and line.sound not in line.text else ""
        if begins and not (key is None and TAG.search(line.text)):
            before = f"[S{tags[key] if key is not None else 1}] {before}"
        parts.append(("\n" if begins else between, before, line.text.strip()))
        speaker = key
    return parts


def _edits(script: str, parts: list[tuple[str, str, str]]) -> tuple[tuple[int, int, str], ...]:
    """The edits that turn the script into these parts, with each line's words where they are first
    found after those of the line before."""
    edits: list[tuple[int, int, str]] = []
    done, waiting = 0, ""
    for number, (separator, before, words) in enumerate(parts):
        at = script.find(words, done)
        space = separator if at < 0 or "\n" in script[done:at] else " "
        waiting += before if number == 0 else space + before
        if at < 0:
            waiting += words
            continue
        edits.append((done, at, waiting))
        done, waiting = at + len(words), ""
    edits.append((done, len(script), waiting))
    return tuple(edit for edit in edits if script[edit[0] : edit[1]] != edit[2])


def _apply_edits(script: str, edits: tuple[tuple[int, int, str], ...]) -> str:
    parts, done = [], 0
    for start, end, words in edits:
        parts += [script[done:start], words]
        done = end
    return "".join([*parts, script[done:]])

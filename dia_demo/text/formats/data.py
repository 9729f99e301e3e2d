"""Data: JSON of many shapes, lines of JSON, CSV and TSV, tables of Markdown, YAML."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterator

from dia_demo.text.formats import line_marks
from dia_demo.text.formats.frame import is_lead_in, remove_frame
from dia_demo.text.formats.parts.lines import Format, Found, Line
from dia_demo.text.formats.parts.names import Likeness, likeness

_SPEAKERS = (
    "speaker speaker_name speakername speaker_id speakerid name character who from role voice user "
    "username author person actor host label sender from_name participant"
).split()
_TEXTS = (
    "text line lines content message utterance dialogue dialog speech sentence transcript words "
    "said body says quote value script what"
).split()
_MOST_DEPTH = 12
_SAID = re.compile(r"[.?!,…]|\w\s+\w+\s+\w")
_COMMA_AT_END = re.compile(r",(\s{0,50}[\]}])")
# Of a program: a name for the data, keys without quotes.
_ASSIGNED = re.compile(r"^(?:(?:const|let|var)[ ])?[A-Za-z_]\w{0,40}[ ]?=[ ]?(?=[\[{(])")
_BARE_KEY = re.compile(r"([{,]\s{0,50})([A-Za-z_]\w{0,30})\s?:(?=\s{0,9}[\"'\d\[{])")
_RULE_OF_TABLE = re.compile(r"\|?\s*:?-{2,}:?(?:\s*\|\s*:?-{2,}:?)*\s*\|?")
_YAML = re.compile(
    r"^\s{0,8}(?:-\s{1,4})?[\"']?(?P<key>[A-Za-z_]{2,20})[\"']?:\s{1,4}(?P<value>\S[^\n]{0,2000})$"
)


def find_json(script: str) -> Found | None:
    """The lines in lists and objects of JSON, or of Python."""
    if not re.search(r"[\[{]\s{0,50}[\[{(\"']", script):
        return None
    body, left_out = _data_of(script)
    values = _parse_values(body)
    if not values:
        return None
    if texts := _collect_strings(values):
        return _find_in_strings(texts, left_out)
    lines = [line for value in values for line in _lines_of(value, 0)]
    if not lines:
        return None
    return Found(tuple(lines), True, left_out)


def _collect_strings(values: list[object]) -> list[str]:
    """The strings of a list that has nothing else."""
    value = values[0]
    if len(values) == 1 and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [one for one in value if isinstance(one, str)]
    return []


def _find_in_strings(texts: list[str], left_out: tuple[str, ...]) -> Found | None:
    """Strings that begin with names."""
    found = line_marks.find_names("\n".join(texts))
    if found is None or not found.is_sure:
        return None
    return Found(found.lines, True, left_out + found.left_out)


def _data_of(script: str) -> tuple[str, tuple[str, ...]]:
    """What stands between the remarks of a chat bot, also where these are no lines of their own."""
    body, left_out = remove_frame(script)
    start = re.search(r"^[ \t]{0,9}[\[{]", body, re.MULTILINE)
    if start is None or not body[: start.start()].strip():
        return body, left_out
    before = body[: start.start()].strip()
    return body[start.start() :], (*left_out, before) if is_lead_in(before) else left_out


def _parse_values(text: str) -> list[object]:
    """The values of a text that is JSON or lines of JSON; none if it is neither."""
    text = _ASSIGNED.sub("", text.strip()).rstrip(";")
    plain = _COMMA_AT_END.sub(r"\1", text)
    for candidate in (text, plain, _BARE_KEY.sub(r'\1"\2":', plain)):
        if (value := _value(candidate)) is not None:
            return [value]
    values: list[object] = []
    for line in text.split("\n"):
        if line.strip().rstrip(","):
            value = _value(line.strip().rstrip(","))
            if value is None:
                return []
            values.append(value)
    return values


def _value(text: str) -> object | None:
    """The value of a text in JSON or Python; None if it is neither."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    return None


def _lines_of(value: object, depth: int) -> Iterator[Line]:
    """The lines in a value of JSON, in order."""
    if depth > _MOST_DEPTH:
        return
    if isinstance(value, dict):
        yield from _lines_of_object(value, depth)
    elif isinstance(value, list | tuple):
        if len(value) == 2 and all(isinstance(part, str) for part in value):
            name, text = value
            if likeness(name) >= Likeness.MAYBE and _SAID.search(text):
                yield Line(name, text)
                return
        for part in value:
            yield from _lines_of(part, depth + 1)


def _lines_of_object(value: dict, depth: int) -> Iterator[Line]:
    fields = {str(key).lower().replace("-", "_"): part for key, part in value.items()}
    speaker = next((fields[key] for key in _SPEAKERS if _is_name(fields.get(key))), None)
    text = next((text for key in _TEXTS if (text := _join_text(fields.get(key)))), None)
    if text is not None:
        name = None if speaker is None else str(_inner_name(speaker))
        if name is not None and name.isdigit():
            name = f"Speaker {name}"
        if name is None or name.lower() != "system":
            yield Line(name, " ".join(text.split()))
        return
    for key, part in value.items():
        if isinstance(part, list) and likeness(str(key)) == Likeness.SPEAKER:
            part = _join_text(part) or part
        if isinstance(part, str):
            if likeness(str(key)) == Likeness.SPEAKER or (
                len(value) == 1 and likeness(str(key)) == Likeness.MAYBE
            ):
                yield Line(str(key), " ".join(part.split()))
        else:
            yield from _lines_of(part, depth + 1)


def _join_text(value: object) -> str | None:
    """A text, or several in a list, as one."""
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return " ".join(value)
    return value if isinstance(value, str) and value else None


def _is_name(value: object) -> bool:
    return isinstance(_inner_name(value), str | int) and not isinstance(value, bool)


def _inner_name(value: object) -> object:
    """The name of a speaker that is an object of its own."""
    return value.get("name", value.get("id")) if isinstance(value, dict) else value


def find_table(script: str) -> Found | None:
    """The lines in a table: CSV, TSV, Markdown, with or without a header."""
    body, left_out = remove_frame(script)
    lines = [line for line in body.split("\n") if line.strip()]
    # No sentences have tabs, or their last words always in quotes.
    is_quoted = all(line.rstrip().endswith('"') for line in lines)
    for rows, is_data in (
        (_markdown_rows(lines), False),
        *((_separated_rows(lines, mark), is_quoted or mark == "\t") for mark in "\t,;|"),
    ):
        if rows and (found := _lines_of_rows(rows, is_data)):
            return Found(found, True, left_out)
    return None


def _markdown_rows(lines: list[str]) -> list[list[str]]:
    if (
        len(lines) < 3
        or not all("|" in line for line in lines)
        or not _RULE_OF_TABLE.fullmatch(lines[1].strip())
    ):
        return []
    rows = [
        re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|")) for line in lines
    ]
    return [[cell.strip().strip("*") for cell in row] for row in rows[:1] + rows[2:]]


def _separated_rows(lines: list[str], mark: str) -> list[list[str]]:
    """The cells of each row; nothing where a row has other cells than the first."""
    if len(lines) < 2 or mark not in lines[0]:
        return []
    # Then cells in quotes have to explain the lines without a mark.
    is_strict = not all(mark in line for line in lines)
    reader = csv.reader(
        [f"{line}\n" for line in lines], delimiter=mark, skipinitialspace=True, strict=is_strict
    )
    try:
        rows = [[cell.strip() for cell in row] for row in reader]
    except csv.Error:
        return []
    width = len(rows[0])
    if len(rows) < 2 or any(len(row) < 2 for row in rows):
        return []
    # A comma within words that are not quoted: they are the last cell.
    rows = [row[: width - 1] + [f"{mark} ".join(row[width - 1 :])] for row in rows]
    return rows if all(len(row) == width for row in rows) else []


def _lines_of_rows(rows: list[list[str]], is_data: bool) -> tuple[Line, ...]:
    """The lines in the rows of a table. is_data: whether they cannot be sentences."""
    head = [cell.lower().replace(" ", "_") for cell in rows[0]]
    who = next((head.index(key) for key in _SPEAKERS if key in head), None)
    words = next((head.index(key) for key in _TEXTS if key in head), None)
    if who is not None and words is not None:
        rows = rows[1:]
    elif len(rows[0]) == 2:
        who, words = 0, 1
        names = [row[0] for row in rows]
        known = all(likeness(name) >= Likeness.MAYBE for name in names)
        strong = [name for name in names if likeness(name) == Likeness.SPEAKER]
        if not is_data and any(row[1][:1].isalpha() and not row[1][:1].isupper() for row in rows):
            return ()
        if not known or len(strong) < 2 or len(set(names)) > len(names) / 2 + 1:
            return ()
    else:
        return ()
    return tuple(
        Line(f"Speaker {row[who]}" if row[who].isdigit() else row[who], row[words])
        for row in rows
        if row[words]
    )


def find_yaml(script: str) -> Found | None:
    """The lines of entries with a speaker and a text, each on a line of its own."""
    body, left_out = remove_frame(script)
    lines, speaker = [], None
    for line in body.split("\n"):
        match = _YAML.match(line)
        if match is None:
            if line.strip() and not line.rstrip().endswith(":"):
                return None
            continue
        key, value = match["key"].lower(), match["value"].strip()
        if key in _SPEAKERS:
            speaker = value.strip("\"'")
        elif key in _TEXTS and speaker is not None:
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            lines.append(Line(speaker, value[1:-1] if quoted else value))
            speaker = None
        elif likeness(match["key"]) >= Likeness.MAYBE:
            return None
    return Found(tuple(lines), True, left_out) if len(lines) > 1 else None


JSON_FORMAT = Format(
    "JSON",
    find_json,
    examples=(
        (
            '[{"speaker": "Ann", "text": "Are you there?"}, {"speaker": "Ben", "text": "Yes."}]',
            "[S1] Are you there? [S2] Yes.",
        ),
        (
            '{"dialogue": [{"line": "Are you \\"there\\"?", "name": "Ann"},\n'
            '{"line": "Yes.", "name": "Ben"}]}',
            '[S1] Are you "there"?\n[S2] Yes.',
        ),
        (
            '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}, '
            '{"role": "assistant", "content": "Ho."}]',
            "[S1] Hi. [S2] Ho.",
        ),
        ('[{"Ann": "Are you there?"}, {"Ben": "Yes."}]', "[S1] Are you there? [S2] Yes."),
        ('[["Ann", "Are you there?"], ["Ben", "Yes."]]', "[S1] Are you there? [S2] Yes."),
        ('["Ann: Are you there?", "Ben: Yes."]', "[S1] Are you there? [S2] Yes."),
        ('{"Ann": ["Are you there?"], "Ben": ["Yes."]}', "[S1] Are you there? [S2] Yes."),
        ('[{"text": "It was late."}, {"text": "Nobody came."}]', "[S1] It was late. Nobody came."),
        (
            '{"characters": ["Ann", "Ben"], "dialogue": [{"character": "Ann", "line": "Hi."}, '
            '{"character": "Ben", "line": "Ho."}]}',
            "[S1] Hi. [S2] Ho.",
        ),
        ("[('Ann', 'Are you there?'), ('Ben', 'Yes.')]", "[S1] Are you there? [S2] Yes."),
        (
            '{"segments": [{"start": 0.5, "end": 1.2, "text": " Hi.", "speaker": "SPEAKER_00"}, '
            '{"start": 1.5, "end": 2.0, "text": " Ho.", "speaker": "SPEAKER_01"}]}',
            "[S1] Hi. [S2] Ho.",
        ),
        (
            'Here is the JSON:\n```json\n[{"speaker": 1, "text": "Hi."}, '
            '{"speaker": 2, "text": "Ho."},]\n```\nLet me know!',
            "[S1] Hi. [S2] Ho.",
        ),
        ('{"speaker": "A", "text": "Hi."}\n{"speaker": "B", "text": "Ho."}', "[S1] Hi.\n[S2] Ho."),
    ),
    left_alone=(
        "[1, 2, 3]",
        'Write {"a": 1} and press Enter.',
        '{"title": "A call", "year": 1999}',
        "[broken, {",
    ),
)
TABLE_FORMAT = Format(
    "a table",
    find_table,
    examples=(
        (
            'speaker,text\nAnn,Are you there?\nBen,"Yes, I am."',
            "[S1] Are you there?\n[S2] Yes, I am.",
        ),
        ("start;speaker;text\n0.5;Ann;Hi there.\n1.5;Ben;Ho.", "[S1] Hi there.\n[S2] Ho."),
        ("Ann\tare you there?\nBen\tyes, I am.", "[S1] are you there?\n[S2] yes, I am."),
        (
            'speaker\ttext\nAnn\tAre you there?\nBen\t"Yes, I ""am""."',
            '[S1] Are you there?\n[S2] Yes, I "am".',
        ),
        ('"Ann","are you there?"\n"Ben","yes"', "[S1] are you there?\n[S2] yes"),
        ("Ann;Are you there?\nBen;Yes, I am.", "[S1] Are you there?\n[S2] Yes, I am."),
        (
            'speaker,text\nAnn,"Are you there?\nHello?"\nBen,Yes.',
            "[S1] Are you there?\nHello?\n[S2] Yes.",
        ),
        ("Ann,Are you there?\nBen,Yes, I am.", "[S1] Are you there?\n[S2] Yes, I am."),
        (
            "| Speaker | Line |\n|---|---|\n| **Ann** | Are you there? |\n| **Ben** | Yes. |",
            "[S1] Are you there?\n[S2] Yes.",
        ),
    ),
    left_alone=(
        "Eggs, milk\nBread, butter",
        "One, two\nThree, four",
        "Ann, are you there?\nYes, I am.",
        "Ann,are you there?\nBen,are you there?",
        'Ann, "are you there?\nI am.',
        "| Year | Sales |\n|---|---|\n| 2020 | 5 |",
    ),
)
YAML_FORMAT = Format(
    "YAML",
    find_yaml,
    examples=(
        (
            'dialogue:\n  - speaker: Ann\n    text: "Are you there?"\n  - speaker: Ben\n'
            "    text: Yes.",
            "[S1] Are you there?\n[S2] Yes.",
        ),
    ),
    left_alone=("Name: Ann\nAge: 20",),
)

"""Transcripts and chats: a name and a time above the words, or a time before every line."""

from __future__ import annotations

import re

from dia_demo.text.formats import line_marks
from dia_demo.text.formats.frame import is_lead_in, is_title, remove_frame, spoken_lines
from dia_demo.text.formats.parts.lines import Format, Found, Line
from dia_demo.text.formats.parts.names import Likeness, key_of, likeness
from dia_demo.text.formats.parts.stamps import (
    DATED,
    LEADING_STAMP,
    ONLY_STAMP,
    STAMP,
    starts_at_zero,
)

_WHO = r"(?P<name>[^\W_][^\n:|\[\]()<>,—–]{0,40}?)(?:#\d{4})?"
_THEN = _WHO.replace("name", "then")
_HEADER = re.compile(
    rf"^[ \t]{{0,9}}[*_]{{0,2}}(?:{_WHO}[*_]{{0,2}}[ \t]{{0,9}}(?:[,|@•·—–-]|at\b|APP\b)?"
    rf"[ \t]{{0,9}}(?P<after>{STAMP})"
    rf"|(?P<before>{STAMP})[ \t]{{1,9}}[-–—|]?[ \t]{{0,3}}{_THEN})"
    rf"[*_]{{0,2}}[ \t]{{0,3}}:?[ \t]{{0,9}}$"
)
# A name and, on the next line, a time alone.
_NAME_ABOVE_TIME = re.compile(
    rf"^[ \t]{{0,9}}([^\W\d_][\w .'’-]{{0,40}})\n(?:[ \t]{{0,9}}[—–-][ \t]{{0,9}}\n)?"
    rf"[ \t]{{0,9}}({STAMP})(?=[ \t]{{0,9}}$)",
    re.MULTILINE,
)
_DATED = rf"^[ \t]{{0,9}}(?:\[{DATED}\]|{DATED})"
_CHAT = re.compile(
    rf"{_DATED}[ \t]{{0,3}}[-–—|]?[ \t]{{0,3}}(?P<name>[^\n:]{{1,40}}?):[ ]"
    r"(?P<text>[^\n]{0,4000})$"
)
_DATED_LINE = re.compile(rf"{_DATED}(?:[ \t]|$)")
_NOT_SAID = re.compile(
    r"^(?:<[^<>\n]{1,40}>|\[[^\[\]\n]{1,40}\]|(?:image|video|audio|sticker|gif|document|media"
    r"|photo|contact card) omitted|(?:this|you deleted this) message(?: was deleted)?"
    r"|missed (?:voice|video) call|\(file attached\)|null)\.?$",
    re.IGNORECASE,
)
_EDITED = re.compile(r"\s{0,3}(?:\(edited\)|<This message was edited>)\s*$")


def find_headers(script: str) -> Found | None:
    """The lines under headers with a name and a time, as Otter and Discord write them."""
    body, left_out = remove_frame(script)
    lines = _NAME_ABOVE_TIME.sub(r"\1 \2", body).split("\n")
    headers = [(index, match) for index, line in enumerate(lines) if (match := _HEADER.match(line))]
    names = [(match["name"] or match["then"]).strip() for _, match in headers]
    if len(headers) < 2 or any(_is_no_name(name) for name in names):
        return None
    above = [line for line in lines[: headers[0][0]] if line.strip()]
    if not all(is_title(line) or is_lead_in(line) for line in above):
        return None
    spoken = []
    ends = [index for index, _ in headers[1:]] + [len(lines)]
    for (index, _), end, name in zip(headers, ends, names, strict=True):
        texts = [_EDITED.sub("", line).strip() for line in lines[index + 1 : end]]
        spoken += [Line(name, text) for text in texts if text and not _NOT_SAID.match(text)]
    return _rate_transcript(spoken, names, headers[0][1], left_out + spoken_lines(above))


_NO_NAME = (Likeness.NEVER, Likeness.NOTE)


def _is_no_name(name: str) -> bool:
    is_time = name.isdigit() or name.lower() in ("am", "pm", "a.m.", "p.m.")
    return is_time or likeness(_plain_name(name)) in _NO_NAME


def _plain_name(name: str) -> str:
    """A user's name as a name: "ann_smith.92" as "Ann"."""
    return re.split(r"[_.\d]", name.strip())[0].capitalize() if name.islower() else name


def _rate_transcript(
    lines: list[Line], names: list[str], first: re.Match, left_out: tuple[str, ...]
) -> Found | None:
    """The lines, if names or times show that they are a transcript and no timetable."""
    stamp = first["after"] or first["before"]
    known = [name for name in names if likeness(_plain_name(name)) == Likeness.SPEAKER]
    repeated = len(set(map(key_of, names))) < len(names)
    is_sure = bool(known) or repeated or starts_at_zero(stamp) or bool(re.search(DATED, stamp))
    return Found(tuple(lines), is_sure, left_out, "" if is_sure else names[0]) if lines else None


def find_chat(script: str) -> Found | None:
    """The messages of a chat that was exported with dates: WhatsApp, Telegram, Slack."""
    lines = [line for line in script.split("\n") if line.strip()]
    messages = [match for line in lines if (match := _CHAT.match(line))]
    if not messages or not _DATED_LINE.match(lines[0]):
        return None
    if len(messages) == 1 and likeness(messages[0]["name"]) in _NO_NAME:
        return None
    spoken, speaker = [], None
    for line in lines:
        match = _CHAT.match(line)
        if match is None and _DATED_LINE.match(line):
            speaker = None  # Such as "Ann added Ben".
            continue
        text = match["text"] if match else line
        speaker = match["name"].strip() if match else speaker
        text = _EDITED.sub("", text).strip()
        if speaker is not None and text and not _NOT_SAID.match(text):
            spoken.append(Line(speaker.lstrip("~ "), text))
    return Found(tuple(spoken)) if spoken else None


def find_stamped(script: str) -> Found | None:
    """The words of a transcript whose lines have times and perhaps speakers."""
    body, left_out = remove_frame(script)
    lines = [line for line in body.split("\n") if line.strip()]
    stamped = [match for line in lines if (match := LEADING_STAMP.match(line))]
    if len(stamped) < 2 or not LEADING_STAMP.match(lines[0]):
        return None
    framed = all(match["framed"] for match in stamped)
    if not framed and not starts_at_zero(stamped[0][0]):
        return None  # A timetable.
    if len(stamped) < len(lines) / 2 - 1 or (not framed and len(stamped) < 2):
        return None
    texts = []
    for line in lines:
        match = LEADING_STAMP.match(line)
        text = line[match.end() :] if match else line
        if text.strip() and not ONLY_STAMP.match(text):
            texts.append(text.strip())
    named = line_marks.find_names("\n".join(texts))
    if named is not None and named.is_sure:
        return Found(named.lines, True, left_out + named.left_out, between=" ")
    spoken = tuple(Line(None, text) for text in texts if not _NOT_SAID.match(text))
    return Found(spoken, framed or len(stamped) > 2, left_out, between=" ") if spoken else None


HEADER_FORMAT = Format(
    "a transcript with names and times",
    find_headers,
    examples=(
        (
            "Ann  0:01\nAre you there?\n\nBen  0:04\nYes, I am.",
            "[S1] Are you there?\n[S2] Yes, I am.",
        ),
        (
            "Ann Smith  00:01\nAre you there? I am\nwaiting.\n\nUnknown Speaker  00:04\nYes.",
            "[S1] Are you there? I am\nwaiting.\n[S2] Yes.",
        ),
        (
            "ann — Today at 10:31 AM\nAre you there?\nben — Today at 10:32 AM\nYes. (edited)",
            "[S1] Are you there?\n[S2] Yes.",
        ),
        (
            "[24-Dec-23 10:31 AM] ann#1234\nAre you there?\n\n[24-Dec-23 10:32 AM] ben#0001\nYes.",
            "[S1] Are you there?\n[S2] Yes.",
        ),
        (
            "Ann  10:31 AM\nAre you there?\nBen  10:32 AM\nYes.\n",
            "[S1] Are you there?\n[S2] Yes.",
        ),
        (
            "Ann, [24 Dec 2023 at 10:31:05]:\nAre you there?\n\n"
            "Ben, [24 Dec 2023 at 10:32:11]:\nYes.",
            "[S1] Are you there?\n[S2] Yes.",
        ),
        (
            "Ann\n10:31 AM\nAre you there?\n\nBen\n10:32 AM\nYes.",
            "[S1] Are you there?\n[S2] Yes.",
        ),
        (
            "Ann\n — \nToday at 2:05 PM\nAre you there?\nBen\n — \nToday at 2:06 PM\nYes.",
            "[S1] Are you there?\n[S2] Yes.",
        ),
        (
            "SPEAKER_00 [00:00:01]\nAre you there?\nSPEAKER_01 [00:00:04]\nYes.",
            "[S1] Are you there?\n[S2] Yes.",
        ),
        (
            "00:00:01 Speaker 1\nAre you there?\n00:00:04 Speaker 2\nYes.",
            "[S1] Are you there?\n[S2] Yes.",
        ),
    ),
    left_alone=(
        "Breakfast 8:00\nEggs.\nLunch 12:30\nSoup.",
        "The train leaves at 10:30.\nThe bus leaves at 10:45.",
    ),
)
CHAT_FORMAT = Format(
    "an exported chat",
    find_chat,
    examples=(
        (
            "12/24/23, 10:31 AM - Messages and calls are end-to-end encrypted.\n"
            "12/24/23, 10:31 AM - Ann: Are you there?\n12/24/23, 10:32 AM - Ben: Yes,\nI am.\n"
            "12/24/23, 10:33 AM - Ann: <Media omitted>",
            "[S1] Are you there?\n[S2] Yes,\nI am.",
        ),
        (
            "\u200e[24/12/2023, 10:31:05] Ann Smith: Are you there?\n"
            "[24/12/2023, 10:32:11] ~\u202fBen: Yes.",
            "[S1] Are you there?\n[S2] Yes.",
        ),
        (
            "[24.12.2023 10:31] mumma: Are you there?\n[24.12.2023 10:32] +44 7700 900123: Yes.",
            "[S1] Are you there?\n[S2] Yes.",
        ),
    ),
    left_alone=("24/12/2023, 10:31 is the time. Ann: be there.", "2024-01-02 10:30 Backup done."),
)
STAMPED_FORMAT = Format(
    "a transcript with times",
    find_stamped,
    examples=(
        (
            "[00:00:01] Ann: Are you there?\n[00:00:04] Ben: Yes, I am.",
            "[S1] Are you there?\n[S2] Yes, I am.",
        ),
        (
            "[00:00.000 --> 00:02.500]  It was late.\n[00:02.500 --> 00:04.000]  Nobody came.",
            "[S1] It was late. Nobody came.",
        ),
        (
            "[0.52s -> 2.10s] [SPEAKER_00] Are you there?\n[2.30s -> 3.40s] [SPEAKER_01] Yes.",
            "[S1] Are you there?\n[S2] Yes.",
        ),
        ("0:00\nAnn: Hi there.\n0:04\nBen: Ho.", "[S1] Hi there.\n[S2] Ho."),
        (
            "0:00\nwelcome back\n0:03\nto the show\n0:06\nagain",
            "[S1] welcome back to the show again",
        ),
        ("00:00:00\nAnn: Hi there.\n00:05:00\nBen: Ho.", "[S1] Hi there.\n[S2] Ho."),
        ("00:00:01 Ann: Hi there.\n00:00:04 Ben: Ho.", "[S1] Hi there.\n[S2] Ho."),
        ("[00:12.00]It was late\n[00:15.30]Nobody came", "[S1] It was late Nobody came"),
    ),
    left_alone=(
        "10:30 is too early.\n11:30 is fine.",
        "9:00 Breakfast\n10:30 Meeting\n12:00 Lunch",
        "[10:30] is written on the door.",
        "At 0:45 it began.\nAt 0:50 it ended.",
    ),
)

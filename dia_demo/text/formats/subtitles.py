"""Subtitles: SubRip (SRT), WebVTT, SubViewer (SBV) and SubStation Alpha (ASS)."""

from __future__ import annotations

import re
from dataclasses import replace

from dia_demo.text.formats import labels, line_marks
from dia_demo.text.formats.elements import plain_tags
from dia_demo.text.formats.frame import remove_frame
from dia_demo.text.formats.parts.lines import Format, Found, Line
from dia_demo.text.formats.parts.names import Likeness, likenesses
from dia_demo.text.formats.parts.stamps import CUE_TIME
from dia_demo.text.script import TAG

_BLOCKS_OF_VTT = re.compile(r"^(?:NOTE|STYLE|REGION)\b")
_BLOCK_OF_VTT = re.compile(
    r"^(?:NOTE|STYLE|REGION)\b[^\n]{0,200}\n(?:[^\n]{1,400}\n){0,40}", re.MULTILINE
)
_VOICE = re.compile(r"^<v(?:\.[\w.]{1,40})?[ ](?P<name>[^<>\n]{1,40})>")
_TAGS = re.compile(r"</?[A-Za-z0-9][^<>\n]{0,80}>|\{\\[^{}\n]{0,80}\}")
_DASH = re.compile(r"^[ \t]{0,3}(?:[-–—]|>>)[ \t]{0,3}(?=\S)")
_MUSIC = re.compile(r"^[ \t♪♫#]{0,6}[♪♫][^\n]{0,200}$")
_SOUNDS = re.compile(r"^[-–—\s]{0,4}(?:\[[^\[\]\n]{1,60}\]|\([^()\n]{1,60}\))\s*$")
_ASS = re.compile(
    r"^Dialogue:[^,\n]{0,20},[^,\n]{1,20},[^,\n]{1,20},[^,\n]{0,60},(?P<name>[^,\n]{0,60})"
    r",[^,\n]{0,9},[^,\n]{0,9},[^,\n]{0,9},[^,\n]{0,60},(?P<text>[^\n]{0,2000})$",
    re.MULTILINE,
)


def find(script: str) -> Found | None:
    """The words of subtitles, by their speakers where they are named."""
    body, left_out = remove_frame(script)
    if _ASS.search(body):
        lines = [
            Line(match["name"].strip() or None, _TAGS.sub("", match["text"].replace("\\N", " ")))
            for match in _ASS.finditer(body)
        ]
        return _assign_speakers(lines, left_out)
    if not any(CUE_TIME.match(line) for line in body.split("\n")):
        return None
    if "WEBVTT" in body:
        body = _BLOCK_OF_VTT.sub("", body)
    cues = _assign_names_above(_cues(body.split("\n")))
    return _assign_speakers([line for cue in cues for line in cue], left_out) if cues else None


def _assign_names_above(cues: list[list[Line]]) -> list[list[Line]]:
    """The cues by their speakers, where the first line of each is a name, as Teams writes them."""
    if len(cues) < 2 or any(len(cue) < 2 or cue[0].speaker for cue in cues):
        return cues
    names = [cue[0].text for cue in cues]
    if min(likenesses(names).values()) < Likeness.MAYBE or any(name[-1] in ".!?" for name in names):
        return cues
    if len(set(names)) == len(names) and max(likenesses(names).values()) < Likeness.SPEAKER:
        return cues
    return [
        [replace(line, speaker=name) for line in cue[1:]]
        for name, cue in zip(names, cues, strict=True)
    ]


def _cues(lines: list[str]) -> list[list[Line]]:
    """The lines of each cue; none if the text is not made of cues."""
    cues: list[list[Line]] = []
    texts: list[str] | None = None
    for index, line in enumerate(lines):
        if CUE_TIME.match(line):
            if texts is None and any(map(_is_spoken_before, lines[: max(0, index - 1)])):
                return []
            # The number or name of this cue is the line above.
            if (
                texts
                and index
                and (lines[index - 1].strip().isdigit() or not lines[index - 2].strip())
            ):
                texts.pop()
            cues += [_lines(texts)] if texts else []
            texts = []
        elif texts is not None and line.strip() and not _BLOCKS_OF_VTT.match(line):
            texts.append(line)
    return [*cues, _lines(texts)] if texts else cues


def _is_spoken_before(line: str) -> bool:
    """Whether a line above the first cue is more than a header, a number or a note."""
    header = re.match(r"^(?:WEBVTT|Kind:|Language:|NOTE|STYLE|REGION|X-TIMESTAMP)", line)
    return bool(line.strip()) and not header and not line.strip().isdigit()


def _lines(texts: list[str]) -> list[Line]:
    lines = []
    for text in texts:
        if _MUSIC.match(text):
            continue
        voice = _VOICE.match(text.strip())
        words = _TAGS.sub("", text)
        if words.strip():
            lines.append(Line(voice["name"].strip() if voice else None, words.strip()))
    return lines


def _assign_speakers(lines: list[Line], left_out: tuple[str, ...]) -> Found | None:
    """The lines by their speakers, who are named by elements, labels, or told apart by dashes."""
    lines = [line for line in lines if not _SOUNDS.match(line.text) or labels.sound_of(line.text)]
    if any(line.speaker for line in lines):
        return Found(tuple(lines), True, left_out, between=" ")
    text = "\n".join(line.text for line in lines)
    if TAG.match(text):
        return Found(tuple(lines), True, left_out)
    named = line_marks.find_names(plain_tags(text))
    if named is not None and named.is_sure:
        return Found(named.lines, True, left_out + named.left_out, between=" ")
    if sum(bool(_DASH.match(line.text)) for line in lines) > 1:
        lines = _split_by_dashes(lines)
    return Found(tuple(lines), True, left_out, between=" ")


def _split_by_dashes(lines: list[Line]) -> list[Line]:
    """Lines whose dash or ">>" says that another speaker begins."""
    speaker = 1
    apart: list[Line] = []
    for line in lines:
        if _DASH.match(line.text):
            speaker = 3 - speaker if apart else speaker
        apart.append(Line(f"Speaker {speaker}", _DASH.sub("", line.text)))
    return apart


FORMAT = Format(
    "subtitles",
    find,
    examples=(
        (
            "1\n00:00:01,000 --> 00:00:03,000\nAnn: Are you there?\n\n"
            "2\n00:00:03,500 --> 00:00:05,000\nBen: Yes, I am.\n",
            "[S1] Are you there?\n[S2] Yes, I am.",
        ),
        (
            "1\n00:00:01,000 --> 00:00:03,000\nIt was late,\nand it rained.\n\n"
            "2\n00:00:03,500 --> 00:00:05,000\n<i>Nobody came.</i>\n",
            "[S1] It was late, and it rained. Nobody came.",
        ),
        (
            "1\n00:00:01,000 --> 00:00:03,000\n- Are you there?\n- Yes, I am.\n\n"
            "2\n00:00:03,500 --> 00:00:05,000\n- Good.\n",
            "[S1] Are you there?\n[S2] Yes, I am.\n[S1] Good.",
        ),
        (
            "1\n00:00:01,000 --> 00:00:03,000\n10\n\n2\n00:00:03,500 --> 00:00:05,000\n9\n",
            "[S1] 10 9",
        ),
        (
            "WEBVTT\n\n00:01.000 --> 00:03.000 align:start\n<v Ann>Are you there?</v>\n\n"
            "00:03.500 --> 00:05.000\n<v Ben>Yes, I am.",
            "[S1] Are you there?\n[S2] Yes, I am.",
        ),
        (
            "WEBVTT - A call\nKind: captions\n\nNOTE made by hand\n\nintro\n"
            "00:00:01.000 --> 00:00:03.000\nAnn: Are you <c.loud>there</c>?\n\n"
            "00:00:03.500 --> 00:00:05.000\nBen: Yes.\n",
            "[S1] Are you there?\n[S2] Yes.",
        ),
        (
            "WEBVTT\n\nSTYLE\n::cue { color: red }\n\n00:01.000 --> 00:03.000\nAre you there?",
            "[S1] Are you there?",
        ),
        (
            "00:00:01.000 --> 00:00:03.000\nAnn Smith\nAre you there?\n\n"
            "00:00:03.500 --> 00:00:05.000\nBen Miller\nYes, I am.",
            "[S1] Are you there?\n[S2] Yes, I am.",
        ),
        (
            "0:00:01.000,0:00:03.000\nAre you there?\n\n0:00:03.500,0:00:05.000\nYes.",
            "[S1] Are you there? Yes.",
        ),
        (
            "[Events]\nDialogue: 0,0:00:01.00,0:00:03.00,Default,Ann,0,0,0,,Are you\\Nthere?\n"
            "Dialogue: 0,0:00:03.50,0:00:05.00,Default,Ben,0,0,0,,{\\i1}Yes.",
            "[S1] Are you there?\n[S2] Yes.",
        ),
        (
            "Here are the subtitles:\n```srt\n1\n00:00:01,000 --> 00:00:03,000\n[S1] Hi there.\n\n"
            "2\n00:00:03,500 --> 00:00:05,000\n[S2] Ho.\n```",
            "[S1] Hi there.\n[S2] Ho.",
        ),
        (
            "1\n00:00:01,000 --> 00:00:03,000\n>> Are you there?\n\n"
            "2\n00:00:03,500 --> 00:00:05,000\n[door opens]\n>> Yes.\n",
            "[S1] Are you there?\n[S2] Yes.",
        ),
    ),
    left_alone=("The arrow --> points right.", "It ran from 10:30 to 11:45.", "1\n2\n3"),
)

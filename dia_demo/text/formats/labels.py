"""Names before what is said: "Ann: Hello.", in the many ways in which people and programs write it.

`find` is also what reads the text of subtitles and of transcripts with times, once their times are
gone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dia_demo.text.formats.frame import (
    is_before,
    is_closing,
    is_silent,
    remove_sections,
    spoken_lines,
)
from dia_demo.text.formats.parts.lines import Format, Found, Line
from dia_demo.text.formats.parts.names import NAME, Likeness, key_of, likenesses
from dia_demo.text.formats.parts.stamps import FRAMED, ONLY_STAMP, STAMP
from dia_demo.text.repairs import nearest_sound
from dia_demo.text.script import TAG

MARK = r"[*_~`\"“”]{0,3}"
SPACE = r"[ \t]{0,9}"
_EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d]{1,6}"
# What may precede a name on its line: quote marks, bullets, numbers, times, section marks.
BEFORE = (
    rf"(?:{SPACE}(?:>|[-+•‣▪–—*](?=[ \t])|#{{1,6}}(?=[ \t])|\(?\d{{1,4}}[.)](?=[ \t])|{_EMOJI}"
    rf"|{STAMP}{SPACE}[-–—|]?|\[(?:intro|outro|music)\])){{0,5}}{SPACE}"
)
_MANNER = rf"(?:{SPACE}[,]?{SPACE}[*_]{{0,2}}[\[(](?P<%s>[^()\[\]\n]{{1,60}})[\])][*_]{{0,2}})?"
_AFTER_COMMA = r"(?:,[ ](?P<comma>[a-z]{3,20}(?:[ ][a-z]{2,20}){0,2}))?"
_PLAIN = (
    rf"{MARK}(?P<plain>{NAME}){MARK}{_MANNER % 'manner'}{_AFTER_COMMA}{SPACE}"
    rf"(?:{FRAMED})?{MARK}{SPACE}[:：]"
    rf"(?![/\\\d]){MARK}(?=\s|\Z|[\"'“‘(*\w¿¡…])"
)
_INNER = rf"[ \t]{{0,3}}(?P<%s>{NAME})[ \t]{{0,3}}[:：]?[ \t]{{0,3}}"
_FRAMED = (
    rf"{MARK}(?:\[{_INNER % 'square'}\]|\({_INNER % 'round'}\)|\{{{_INNER % 'curly'}\}}"
    rf"|<{_INNER % 'angle'}>){_MANNER % 'framed_manner'}{SPACE}{MARK}[:：]?{MARK}"
)
_LABEL = re.compile(
    rf"(?:^{BEFORE}|(?<=[.!?…\"'”’)\]])[ \t]{{1,9}})(?:{_PLAIN}|{_FRAMED})"
    rf"{SPACE}(?:{FRAMED}[:]?)?",
    re.MULTILINE,
)
_FRAMES = ("square", "round", "curly", "angle")
_HTML = frozenset(
    "b i u p a em strong br hr div span h1 h2 h3 h4 h5 h6 li ul ol td tr th table code pre sub sup "
    "del ins mark q s small speak break prosody emphasis html body head title".split()
)
SENTENCE = re.compile(r"^[\"'“‘(*_\[¿¡…—-]{0,4}[^\W\d_a-z].*[.!?…)\"'”’*_\]—-]\s*\Z", re.DOTALL)
_BULLET = re.compile(r"^(?:>|[-*+•])[ \t]+")
_MOST_NAMES = 9
# Of YAML, before text on lines of its own.
_BLOCK_MARKS = ("|", ">", "|-", ">-")
# What a chat's page writes above each message when it is copied.
_CHAT_PAGE = re.compile(
    r"^(?:(?P<user>You)|ChatGPT|Claude|Gemini|Copilot|Grok|DeepSeek) said:[ \t]*$", re.MULTILINE
)
# The head of an e-mail names nobody who speaks.
_MAIL = ("from", "to", "cc", "bcc", "subject", "date", "sent", "re", "fwd")
_LIKE_A_SOUND = 0.7


@dataclass(frozen=True)
class _Label:
    """A label. at: where it begins; words: where its words begin."""

    name: str
    at: int
    words: int
    begins_line: bool
    is_framed: bool
    manner: str


def find(script: str) -> Found | None:
    """The lines of speakers whose names precede them; None if there are no such names."""
    if TAG.search(script):
        return None
    script = _CHAT_PAGE.sub(lambda match: "User:" if match["user"] else "Assistant:", script)
    labels = _labels(script)
    if not labels:
        return None
    known = likenesses([label.name for label in labels])
    # With one label it may be a remark's: that is asked.
    kept = [label for label in labels if known[key_of(label.name)] > Likeness.NOTE]
    if not kept:
        return _question(script, labels[0], known)
    kept = _select_dialogue_labels(kept)
    before = script[: kept[0].at].split("\n")
    lines, left_out = _lines(script, kept)
    if not any(line.text for line in lines):
        return None
    above = [line for line in before if not is_silent(line)]
    is_sure = _is_sure(lines, known, kept) and all(map(is_before, before))
    if not is_sure and len(kept) == 1 and above:
        return None  # A colon within prose.
    if not is_sure and above and not all(map(is_before, before)):
        lines = [Line("", "\n".join(before).strip()), *lines]
    elif before:
        left_out = [*before, *left_out]
    return Found(tuple(lines), is_sure, spoken_lines(left_out), "" if is_sure else kept[0].name)


def _question(script: str, label: _Label, known: dict[str, Likeness]) -> Found | None:
    """A script that begins with a label which is hardly a name: it may still be one."""
    if script[: label.at].strip() or known[key_of(label.name)] == Likeness.NEVER:
        return None
    if key_of(label.name) in _MAIL:
        return None
    return Found((Line(label.name, script[label.words :].strip()),), False, (), label.name)


def _labels(script: str) -> list[_Label]:
    found = []
    for match in _LABEL.finditer(script):
        framed = next((match[frame] for frame in _FRAMES if match[frame]), "")
        name = match["plain"] or framed
        begins_line = not script[: match.start()].rstrip(" \t") or script[match.start() - 1] == "\n"
        if framed and nearest_sound(name.lower(), _LIKE_A_SOUND):
            continue
        if match["angle"] and name.lower() in _HTML:
            continue
        manner = match["manner"] or match["framed_manner"] or match["comma"] or ""
        begins_line = begins_line or match.start() == 0
        found.append(_Label(name, match.start(), match.end(), begins_line, bool(framed), manner))
    return found


def _select_dialogue_labels(labels: list[_Label]) -> list[_Label]:
    """Without labels inside what is said: those within a line whose name begins none."""
    begin = [key_of(label.name) for label in labels if label.begins_line]
    if len(begin) < 2:
        return labels
    return [label for label in labels if label.begins_line or key_of(label.name) in begin]


def _lines(script: str, labels: Sequence[_Label]) -> tuple[list[Line], list[str]]:
    """The lines of the speakers, and what stands between them and is not spoken."""
    lines, left_out = [], []
    ends = [label.at for label in labels[1:]] + [len(script)]
    for number, (label, end) in enumerate(zip(labels, ends, strict=True)):
        spoken, others = _split_spoken(script[label.words : end], is_last=number == len(labels) - 1)
        left_out += others
        sound = sound_of(label.manner)
        for index, text in enumerate(spoken):
            lines.append(Line(label.name, text, sound if index == 0 else ""))
    return lines, left_out


def _split_spoken(text: str, is_last: bool) -> tuple[list[str], list[str]]:
    """The lines of a turn, without directions and, in the last turn, a closing remark."""
    lines = text.split("\n")
    if is_last:
        blank = False
        for index, line in enumerate(lines):
            if blank and is_closing(line):
                return _split_spoken("\n".join(lines[:index]), False)[0], lines[index:]
            blank = not line.strip() or is_silent(line)
    spoken = [_remove_marks(line) for line in lines[:1] if line.strip()]
    spoken += [_BULLET.sub("", line.strip()) for line in lines[1:] if not is_silent(line)]
    spoken = [line for line in spoken if not ONLY_STAMP.match(line) and line not in _BLOCK_MARKS]
    spoken = [remove_sections(line) for line in spoken]
    return spoken, [line for line in lines[1:] if is_silent(line)]


def _remove_marks(line: str) -> str:
    """The first line of a turn without the mark that closed around its label."""
    line = line.strip()
    if line.endswith("**") and line.count("**") % 2:
        line = line[:-2].rstrip()
    return line


def sound_of(manner: str) -> str:
    """The sound of Dia's that a manner names, such as "(laughs)"; nothing for any other manner."""
    words = re.split(r"[,;/]|\band\b", manner.lower())
    candidates = [part.strip() for part in words] + manner.lower().split()
    return next((sound for part in candidates if part and (sound := nearest_sound(part, 0.9))), "")


def _is_sure(lines: list[Line], known: dict[str, Likeness], labels: list[_Label]) -> bool:
    names = Counter(key_of(label.name) for label in labels)
    strong = sum(known[name] == Likeness.SPEAKER for name in names)
    written_small = any(label.name[:1].islower() for label in labels if not label.is_framed)
    if len(names) == 1:
        begins = lines[0].text[:1]
        return strong == 1 and not written_small and not (begins.islower() and len(labels) == 1)
    if len(names) > _MOST_NAMES:
        return False
    if strong == len(names) or (strong and not written_small):
        return True
    if written_small and not strong and max(names.values()) < 2:
        return False
    if max(names.values()) > 1 and sum(names.values()) - len(names) >= len(names) / 2:
        return True
    one_word = all(len(name.split()) == 1 for name in names)
    return len(names) == 2 and one_word and all(SENTENCE.match(line.text) for line in lines)


_TWO = "[S1] Hi there.\n[S2] Ho."
FORMAT = Format(
    "a dialogue with names",
    find,
    examples=(
        *(
            (script, _TWO)
            for script in (
                "Ann: Hi there.\nBen: Ho.",
                "**Ann:** Hi there.\n\n**Ben**: Ho.",
                "*Ann:* Hi there.\n__Ben__: Ho.",
                "ann: Hi there.\nben: Ho.",
                "1. Ann: Hi there.\n2. Ben: Ho.",
                "- **Ann**: Hi there.\n- **Ben**: Ho.",
                "> Ann: Hi there.\n> Ben: Ho.",
                "Ann:Hi there.\nBen:Ho.",
                "Ann:\nHi there.\n\nBen:\nHo.",
                "Ann:\n> Hi there.\n\nBen:\n- Ho.",
                "<p><strong>Ann</strong>: Hi there.</p>\n<p><strong>Ben</strong>: Ho.</p>",
                "Ann&nbsp;: Hi there.\nBen&#58; Ho.",
                "Player 1: Hi there.\nPlayer 2: Ho.",
                "Ann (whispering): Hi there.\nBEN (V.O.): Ho.",
                "Ann (0:01): Hi there.\nBen (0:04): Ho.",
                "Speaker 0: Hi there.\nSpeaker 1: Ho.",
                "Speaker A: Hi there.\nSpeaker B: Ho.",
                "S1: Hi there.\nS2: Ho.",
                "[SPEAKER_00] (00:01 - 00:03) Hi there.\n[SPEAKER_01] (00:04 - 00:05) Ho.",
                "[Ann] Hi there.\n(Ben) Ho.",
                "| Ann | Hi there. |\n| Ben | Ho. |",
                "user: Hi there.\nassistant: Ho.",
                "Q: Hi there.\nA: Ho.",
                "Dr. Smith: Hi there.\nMrs. O'Brien: Ho.",
                "Zorblax: Hi there.\nKweem: Ho.",
                "\U0001f399\ufe0f Ann: Hi there.\n\U0001f3a7 Ben: Ho.",
                "# Tea\n\n**Host:** Hi there.\n\n---\n\n**Guest:** Ho.\n\nI hope this helps!",
                "Title: Tea\nCharacters: Ann, Ben\n\nAnn: Hi there.\nBen: Ho.",
                "Sure! Here is a short dialogue:\n\nAnn: Hi there.\nBen: Ho.\n\nLet me know!",
                "Here is a dialogue between two friends.\n\nAnn: Hi there.\nBen: Ho.",
                "[INTRO MUSIC]\nAnn: Hi there. [music]\nBen: Ho.\n(They leave.)\n[OUTRO]",
                "```\nAnn: Hi there.\nBen: Ho.\n```",
                "You said:\nHi there.\nChatGPT said:\nHo.",
                "Ann: |\n  Hi there.\nBen: |\n  Ho.",
                "Transcript\n00:00:00\nAnn: Hi there.\n00:05:00\nBen: Ho.",
                "<dl>\n<dt>Ann</dt><dd>Hi there.</dd>\n<dt>Ben</dt><dd>Ho.</dd>\n</dl>",
                "\\textbf{Ann:} Hi there.\\\\\n\\textbf{Ben:} Ho.",
                "\\begin{dialogue}\n\\speak{Ann} Hi there.\n\\speak{Ben} Ho.\n\\end{dialogue}",
            )
        ),
        (
            "Ann (laughing): Hi there.\nBen, sighing: Ho.",
            "[S1] (laughs) Hi there.\n[S2] (sighs) Ho.",
        ),
        ("<b>Ann:</b> Hi there.<br><b>Ben:</b> Ho.", "[S1] Hi there. [S2] Ho."),
        ("Ann: Hi there. Ben: Ho.", "[S1] Hi there. [S2] Ho."),
        ("[Man]: Hi there. [Woman]: Ho.", "[S1] Hi there. [S2] Ho."),
        (
            "Ann: I have one: this.\nBen: At 10:30? Remember: tea.",
            "[S1] I have one: this.\n[S2] At 10:30? Remember: tea.",
        ),
        ("Speaker 2: Ho.\nSpeaker 1: Hi.", "[S2] Ho.\n[S1] Hi."),
        ("Narrator: It was late.\nNobody came.", "[S1] It was late.\nNobody came."),
        ("Ann: Hi.\nBen: Ho.\nCleo: Hu.", "[S1] Hi.\n[S2] Ho.\n[S1] Hu."),
    ),
    left_alone=(
        "Note: bring water.",
        "From: Ann <ann@example.com>\nTo: Ben\nSubject: Tea\n\nHi there.",
        "Warning: hot",
        "The answer is simple: no.",
        "It was late. John looked up: nobody was there.",
        "Dear Ann:\n\nThank you for your letter.\n\nYours, Ben",
        "We meet at 10:30: bring water.",
        "See https://example.com: it is good.",
        "Pros: It is cheap.\nCons: It is slow.",
        "Tea: 3 euros. Coffee: 4 euros.",
        "| Tea | 3 euros |\n| Coffee | 4 euros |",
        "[Note]: it rains. It is cold, too.",
        "Breakfast: Eggs.\nLunch: Soup.",
        "Step 1: Open it.\nStep 2: Close it.",
        "Star Wars: A New Hope is a film.\nStar Trek: Picard is a series.",
        'He said: "Come in."\nShe said: "No."',
        "Ann and Ben meet at the station.\n\nAnn: Hi there.\nBen: Ho.",
        "Ann, come here.\nBen, go there.",
        "(Laughs) Hello there. (sighs) Well.",
        "- eggs\n- milk",
        "[S1] Ann: is that you? [S2] Yes: it is.",
    ),
)

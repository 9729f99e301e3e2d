"""Subtitles of a dialogue as SRT or WebVTT: cues of a line or two, with who speaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dia_demo.errors import InputError
from dia_demo.files import write_atomic
from dia_demo.services.take import TimedWord

FORMATS = (".srt", ".vtt")
# A cue is at most so long, which is two lines, and shown for so many seconds.
MOST_CHARACTERS, MOST_SECONDS = 80, 6.0
_ENDS = (".", "!", "?", "…", ",", ";", ":")


def check_name(path: Path) -> None:
    """Raise InputError for a suffix other than those of FORMATS."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"Subtitles are written as .srt or .vtt, not {path.name!r}.")


def write_subtitles(path: Path, words: Sequence[TimedWord]) -> Path:
    """Write the format of the suffix. Raises OSError."""
    text = srt(words) if path.suffix.lower() == ".srt" else vtt(words)
    with write_atomic(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def srt(words: Sequence[TimedWord]) -> str:
    """SubRip: numbered cues, with the speaker before a turn's first words."""
    blocks = []
    for number, (cue, is_new) in enumerate(cues_of(words), start=1):
        times = f"{_time(cue[0].start, ',')} --> {_time(cue[-1].end, ',')}"
        blocks.append(f"{number}\n{times}\n{_text(cue, is_new)}\n")
    return "\n".join(blocks)


def vtt(words: Sequence[TimedWord]) -> str:
    """WebVTT: the speaker is the voice of a cue."""
    blocks = ["WEBVTT\n"]
    for cue, _ in cues_of(words):
        text = " ".join(word.word for word in cue).replace("&", "&amp;").replace("<", "&lt;")
        times = f"{_time(cue[0].start, '.')} --> {_time(cue[-1].end, '.')}"
        blocks.append(f"{times}\n<v {cue[0].speaker}>{text}\n")
    return "\n".join(blocks)


def cues_of(words: Sequence[TimedWord]) -> Iterator[tuple[list[TimedWord], bool]]:
    """The words of each cue, and whether a turn begins with it."""
    cue: list[TimedWord] = []
    turn = None
    for word in words:
        if cue and _is_full(cue, word):
            yield cue, cue[0].turn != turn
            turn, cue = cue[0].turn, []
        cue.append(word)
    if cue:
        yield cue, cue[0].turn != turn


def cue_rows(words: Sequence[TimedWord]) -> list[dict]:
    """The cues as the page's player shows them, with the start of each word."""
    return [
        {
            "speaker": cue[0].speaker,
            "turn": cue[0].turn,
            "end": cue[-1].end,
            "words": [[word.word, word.start] for word in cue],
        }
        for cue, _ in cues_of(words)
    ]


def _is_full(cue: list[TimedWord], word: TimedWord) -> bool:
    """Whether a cue ends before this word."""
    if word.turn != cue[0].turn:
        return True
    length = sum(len(each.word) + 1 for each in cue)
    seconds = word.end - cue[0].start
    if length + len(word.word) > MOST_CHARACTERS or seconds > MOST_SECONDS:
        return True
    return cue[-1].word.endswith(_ENDS) and length > MOST_CHARACTERS / 2


def _text(cue: list[TimedWord], is_new: bool) -> str:
    words = " ".join(word.word for word in cue)
    return f"{cue[0].speaker}: {words}" if is_new else words


def _time(seconds: float, point: str) -> str:
    millis = round(1000 * seconds)
    minutes, millis = divmod(millis, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{millis // 1000:02d}{point}{millis % 1000:03d}"

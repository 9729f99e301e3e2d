"""Checks on a script: findings in plain words, each with a one-click repair where one is safe.

Checks advise only: a repair happens when a person asks for it, and without one the script reaches
Dia byte for byte. How a script becomes turns and bytes is in `dia_demo.script`, passed on from
here.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dia_demo.normaliser import plain_characters
from dia_demo.script import (
    NONVERBALS,
    SECONDS_PER_CHARACTER,
    SOUND,
    TAG,
    UNREADABLE,
    Turn,
    encode_script,
    expected_seconds,
    joined,
    line_at,
    parse_turns,
    to_bytes,
)

__all__ = [
    "NONVERBALS",
    "SECONDS_PER_CHARACTER",
    "Finding",
    "ScriptReport",
    "Turn",
    "check_script",
    "encode_script",
    "expected_seconds",
    "parse_turns",
]

# The authors' guidance: shorter texts sound unnatural, longer ones are rushed.
SHORT_SECONDS, LONG_SECONDS = 5.0, 20.0

_NEAR_TAG = re.compile(
    r"[\[({<][ \t]*(?:s|speaker)[ \t_#-]*(?P<number>\d{1,3})[ \t]*:?[ \t]*[\])}>]"  # (S1), [s1]
    r"|^[ \t]*(?:s|speaker)[ \t]*(?P<label>\d{1,3})[ \t]*:"  # Speaker 1: at the start of a line
    r"|\[(?P<words>[^\[\]\n]{1,40})\]",  # [laughs], [John]
    re.IGNORECASE | re.MULTILINE,
)
_STOP = re.compile(r"(?<=[.!?…])[\"'”’)]*(?=\s)|(?=\[S[12]\])|(?=\n)")
_EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27ff\u2b00-\u2bff\ufe0f\u200d]+")
_SHOWN_TOKENS = 5


@dataclass(frozen=True)
class Finding:
    """One remark on a script.

    level is "error" (it would be refused, or words would be lost), "warning" or "tip". repaired,
    where a safe repair exists, is the whole script after it; repair_label names it on a button.
    """

    code: str
    level: str
    message: str
    line: int | None = None
    repaired: str | None = None
    repair_label: str | None = None


@dataclass(frozen=True)
class ScriptReport:
    """What a script holds. num_bytes counts what the model reads, transcript included.

    read_as: the script as the model reads it, where it was normalised and that changed it.
    """

    turns: tuple[Turn, ...]
    num_speakers: int
    num_bytes: int
    expected_seconds: float
    findings: tuple[Finding, ...]
    read_as: str | None = None


def check_script(
    script: str,
    *,
    byte_limit: int = 1024,
    seconds_per_character: float = SECONDS_PER_CHARACTER,
    max_seconds: float | None = None,
    transcript: str = "",
) -> ScriptReport:
    """Count turns, bytes and seconds, and list what is worth knowing before a run.

    byte_limit is the encoder's longest text; max_seconds the audio that max_tokens leaves room
    for. A repair is offered only where it removes its finding and brings no new error. Never
    raises: what `encode_script` would refuse is a finding of level "error".
    """
    draft = _Draft(script, transcript, byte_limit, seconds_per_character, max_seconds)
    turns = parse_turns(script)
    return ScriptReport(
        turns=turns,
        num_speakers=len({turn.speaker for turn in turns} - {0}),
        num_bytes=len(to_bytes(joined(script, transcript))),
        expected_seconds=expected_seconds(script, seconds_per_character),
        findings=tuple(_with_safe_repairs(draft, _findings(draft))),
    )


@dataclass(frozen=True)
class _Draft:
    """A script and what it is checked against."""

    script: str
    transcript: str
    byte_limit: int
    seconds_per_character: float
    max_seconds: float | None


def _findings(draft: _Draft) -> list[Finding]:
    if not _words(draft.script):
        message = "The script says nothing yet: write a line beginning with [S1]."
        return [Finding("empty", "error", message)]
    checks = [_check_characters, _check_bytes, _check_first_tag, _check_near_tags]
    if not any(
        match["number"] or match["label"] for _, match in _tokens(_NEAR_TAG, draft.script, skip=TAG)
    ):
        # Who speaks when is only known once every tag is one.
        checks += [_check_order, _check_last_tag]
    checks += [_check_sounds, _check_seconds]
    found = [finding for check in checks for finding in check(draft)]
    return sorted(found, key=lambda one: ("error", "warning", "tip").index(one.level))


def _with_safe_repairs(draft: _Draft, findings: list[Finding]) -> Iterator[Finding]:
    """The findings, without the repairs that leave their finding or bring a new error."""
    errors = {one.code for one in findings if one.level == "error"}
    for finding in findings:
        if finding.repaired is not None:
            after = _findings(replace(draft, script=finding.repaired))
            stays = (finding.code, finding.message) in {(one.code, one.message) for one in after}
            if stays or not errors.issuperset(one.code for one in after if one.level == "error"):
                finding = replace(finding, repaired=None, repair_label=None)
        yield finding


def _check_characters(draft: _Draft) -> Iterator[Finding]:
    script = draft.script
    if UNREADABLE.search(draft.transcript):
        message = "The voice prompt's transcript holds characters that are not text: retype it."
        yield Finding("unreadable_transcript", "error", message)
    if bad := UNREADABLE.search(script):
        message = "The script holds characters that are not text (NUL or half of a pair)."
        repaired, line = UNREADABLE.sub("", script), line_at(script, bad.start())
        yield Finding("unreadable", "error", message, line, repaired, "Remove them")
    if (plain := plain_characters(script)) != script:
        message = (
            "Typographic quotes, dashes, dots or spaces may be read wrongly: plain ones are safer."
        )
        label = "Use plain quotes and dashes"
        yield Finding("typographic", "tip", message, _first_change(script), plain, label)
    if emoji := _EMOJI.search(script):
        message = "Emoji are not spoken and may come out as noise."
        repaired, line = _EMOJI.sub("", script), line_at(script, emoji.start())
        yield Finding("emoji", "tip", message, line, repaired, "Remove the emoji")
    foreign = next((i for i, char in enumerate(script) if _is_foreign(char)), None)
    if foreign is not None:
        message = "Dia speaks English only: other alphabets come out as noise."
        yield Finding("not_english", "warning", message, line_at(script, foreign))
    untagged = _NEAR_TAG.sub(lambda match: " " * len(match[0]), script)
    if digit := re.search(r"\d", untagged):
        message = "Numbers are read best when written as words (“twenty” rather than “20”)."
        yield Finding("digits", "tip", message, line_at(script, digit.start()))


def _first_change(script: str) -> int:
    """The line of the first character that is not plain."""
    lines = script.split("\n")
    return next((n for n, line in enumerate(lines, 1) if plain_characters(line) != line), 1)


def _check_bytes(draft: _Draft) -> Iterator[Finding]:
    size = len(to_bytes(joined(draft.script, draft.transcript)))
    if size <= draft.byte_limit:
        return
    room = draft.byte_limit - (size - len(to_bytes(draft.script)))
    cut = _characters_within(draft.script, room)
    before = " ".join(draft.script[max(0, cut - 40) : cut].split())
    after = " ".join(draft.script[cut : cut + 40].split())
    message = f"{size:,} bytes, and the model reads {draft.byte_limit:,}: " + (
        f"it would stop at “…{before} | {after}…”, and the rest is never said."
        if before
        else "the voice prompt's transcript leaves no room for the script."
    )
    repaired = _shortened(draft.script, cut)
    line = line_at(draft.script, cut)
    yield Finding("too_many_bytes", "error", message, line, repaired, "Cut after the last sentence")


def _check_first_tag(draft: _Draft) -> Iterator[Finding]:
    start = draft.script.lstrip()
    first = TAG.search(start)
    if not (first and first.start() == 0) and not _NEAR_TAG.match(start):
        message = "The script does not begin with a speaker: put [S1] before the first word."
        # The words before a tag are taken for the other speaker's: turns alternate.
        tag = _other_tag(first[1]) if first else "[S1]"
        repaired = f"{tag} {draft.script}"
        yield Finding("no_first_tag", "warning", message, 1, repaired, f"Put {tag} first")


def _check_near_tags(draft: _Draft) -> Iterator[Finding]:
    for token, match in _tokens(_NEAR_TAG, draft.script, skip=TAG):
        number = match["number"] or match["label"]
        meant = f"[S{number}]" if number in ("1", "2") else None
        message = f"“{token}” is not a speaker: the tags are [S1] and [S2], exactly so."
        if match["words"] and not number:
            near = difflib.get_close_matches(match["words"].lower(), NONVERBALS, 1, 0.7)
            meant = f"({near[0]})" if near else None
            message = f"“{token}” is no tag Dia knows: sounds stand in (round) brackets."
        elif meant is None:
            message = f"“{token}” is a speaker Dia does not have: there are [S1] and [S2]."
        yield _replacement("unknown_tag", "warning", message, draft.script, match, meant, _NEAR_TAG)


def _check_sounds(draft: _Draft) -> Iterator[Finding]:
    for token, match in _tokens(SOUND, draft.script, skip=_NEAR_TAG):
        if match[1] in NONVERBALS:
            continue
        near = difflib.get_close_matches(match[1].strip().lower(), NONVERBALS, 1, 0.6)
        meant = f"({near[0]})" if near else None
        message = f"“{token}” is not a sound Dia knows: it may be read aloud or skipped."
        yield _replacement("unknown_sound", "tip", message, draft.script, match, meant, SOUND)


def _check_order(draft: _Draft) -> Iterator[Finding]:
    script, tags = draft.script, list(TAG.finditer(draft.script))
    if tags and script.lstrip().startswith("[S2]") and not draft.transcript:
        message = "Dia was trained on scripts that begin with [S1]; this one begins with [S2]."
        swapped, line = (
            TAG.sub(lambda tag: _other_tag(tag[1]), script),
            line_at(script, tags[0].start()),
        )
        yield Finding("starts_with_s2", "tip", message, line, swapped, "Swap the two speakers")
    again = [tag for last, tag in zip(tags, tags[1:], strict=False) if last[1] == tag[1]]
    if not again:
        return
    merged = script
    for tag in reversed(again):
        head, tail = merged[: tag.start()], merged[tag.end() :].lstrip(" \t")
        merged = head + ("" if head[-1].isspace() else " ") + tail
    message = f"{again[0][0]} speaks twice in a row: turns should alternate."
    line = line_at(script, again[0].start())
    yield Finding("same_speaker", "warning", message, line, merged, "Join them into one turn")


def _check_seconds(draft: _Draft) -> Iterator[Finding]:
    seconds = expected_seconds(draft.script, draft.seconds_per_character)
    if draft.max_seconds is not None and seconds > draft.max_seconds:
        message = (
            f"About {seconds:.0f} s of speech, and max tokens leaves room for "
            f"{draft.max_seconds:.0f} s: the end will be cut. Raise max tokens or shorten it."
        )
        yield Finding("over_max_tokens", "warning", message)
    elif seconds > LONG_SECONDS:
        message = f"About {seconds:.0f} s of speech: above {LONG_SECONDS:.0f} s Dia tends to rush."
        yield Finding("too_long", "tip", message)
    elif seconds < SHORT_SECONDS:
        message = (
            f"About {seconds:.0f} s of speech: below {SHORT_SECONDS:.0f} s it sounds unnatural."
        )
        yield Finding("too_short", "tip", message)


def _check_last_tag(draft: _Draft) -> Iterator[Finding]:
    tags = list(TAG.finditer(draft.script))
    if tags and draft.script[tags[-1].end() :].strip():
        tag = _other_tag(tags[-1][1])
        message = f"Ending with {tag}, the other speaker's tag, keeps the last word whole."
        repaired, line = f"{draft.script.rstrip()} {tag}", draft.script.rstrip().count("\n") + 1
        yield Finding("no_last_tag", "tip", message, line, repaired, f"Add {tag} at the end")


def _tokens(pattern: re.Pattern, script: str, skip: re.Pattern) -> Iterator[tuple[str, re.Match]]:
    """The first few distinct matches of `pattern` that are not, as a whole, a match of `skip`."""
    first = {}
    for match in pattern.finditer(script):
        if not skip.fullmatch(match[0]):
            first.setdefault(match[0], match)
    yield from list(first.items())[:_SHOWN_TOKENS]


def _replacement(code, level, message, script, match, meant, pattern) -> Finding:
    """A finding on a token; where `meant` is known, its repair replaces every such token."""
    token, line = match[0], line_at(script, match.start())
    if meant is None:
        return Finding(code, level, message, line)
    repaired = pattern.sub(lambda one: meant if one[0] == token else one[0], script)
    return Finding(code, level, message, line, repaired, f"Write {meant}")


def _shortened(script: str, cut: int) -> str:
    """`script` up to the last end of a turn or sentence at or before `cut`, else of a word."""
    stops = [match.end() for match in _STOP.finditer(script) if match.end() <= cut]
    stops = [stop for stop in stops if _words(script[:stop])]
    words = [match.start() for match in re.finditer(r"\s", script[: cut + 1])]
    end = (stops or words or [cut])[-1]
    return script[:end].rstrip()


def _characters_within(script: str, room: int) -> int:
    """How many characters fit into `room` encoded bytes, without splitting a character or tag."""
    used = 0
    for match in re.finditer(r"\[S[12]\]|.", script, re.DOTALL):
        used += len(to_bytes(match[0]))
        if used > room:
            return match.start()
    return len(script)


def _is_foreign(char: str) -> bool:
    return ord(char) > 0x24F and char.isalpha() and "LATIN" not in unicodedata.name(char, "")


def _words(script: str) -> str:
    return TAG.sub("", script).strip()


def _other_tag(speaker: str) -> str:
    return "[S1]" if speaker == "2" else "[S2]"

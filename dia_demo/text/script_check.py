"""Checks on a script: findings in plain words, each with a one-click repair where one is safe.

Checks advise only: a repair happens when a person asks for it, and without one the script reaches
Dia byte for byte. How a script becomes turns and bytes is in `dia_demo.text.script`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from dia_demo.text.normaliser import Reading, plain_characters
from dia_demo.text.repairs import nearest_sound, other_tag, shortened, swapped, without_tags
from dia_demo.text.script import (
    MAX_SCRIPT_CHARACTERS,
    NONVERBALS,
    SECONDS_PER_CHARACTER,
    SOUND,
    TAG,
    UNREADABLE,
    Turn,
    expected_seconds,
    joined,
    line_at,
    parse_turns,
    to_bytes,
)

# The authors' guidance: shorter texts sound unnatural, longer ones are rushed.
SHORT_SECONDS, LONG_SECONDS = 5.0, 20.0

# Every repeat is bounded: two unbounded ones side by side backtrack quadratically, inside one call
# that holds the interpreter's lock and so stops the whole program.
_NEAR_TAG = re.compile(
    r"[\[({<][ \t]{0,3}(?:s|speaker)[ \t_#-]{0,3}(?P<number>\d{1,3})[ \t]{0,3}:?[ \t]{0,3}[\])}>]"
    r"|^[ \t]{0,9}(?:s|speaker)[ \t]{0,3}(?P<label>\d{1,3})[ \t]{0,3}:"  # a line "Speaker 1: …"
    r"|\[(?P<words>[^\[\]\n]{1,40})\]",  # [laughs], [John]
    re.IGNORECASE | re.MULTILINE,
)
_EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27ff\u2b00-\u2bff\ufe0f\u200d]+")
_SHOWN_TOKENS = 5


class Level(StrEnum):
    """How serious a finding is, the most serious first. ERROR: the script would be refused, or
    words would be lost."""

    ERROR = "error"
    WARNING = "warning"
    TIP = "tip"


@dataclass(frozen=True)
class Finding:
    """One remark on a script.

    repaired, where a safe repair exists, is the whole script after it; repair_label names it on a
    button.
    """

    code: str
    level: Level
    message: str
    line: int | None = None
    repaired: str | None = None
    repair_label: str | None = None


@dataclass(frozen=True)
class ScriptReport:
    """What a script holds. num_bytes counts what the model reads, transcript included.

    reading: the script as the model reads it, where it was normalised and that changed it.
    """

    turns: tuple[Turn, ...]
    num_speakers: int
    num_bytes: int
    expected_seconds: float
    findings: tuple[Finding, ...]
    reading: Reading | None = None


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
    raises: what `encode_script` would refuse is a finding of level "error". A text longer than
    MAX_SCRIPT_CHARACTERS is not looked at any further.
    """
    if (characters := len(joined(script, transcript))) > MAX_SCRIPT_CHARACTERS:
        return _too_long(characters, len(to_bytes(joined(script, transcript))))
    draft = _Draft(script, transcript, byte_limit, seconds_per_character, max_seconds)
    turns = parse_turns(script)
    return ScriptReport(
        turns=turns,
        num_speakers=len({turn.speaker for turn in turns} - {0}),
        num_bytes=len(to_bytes(joined(script, transcript))),
        expected_seconds=expected_seconds(script, seconds_per_character),
        findings=tuple(_with_safe_repairs(draft, _remarks(draft))),
    )


def _too_long(characters: int, num_bytes: int) -> ScriptReport:
    message = (
        f"The script has {characters:,} characters, and 1 to {MAX_SCRIPT_CHARACTERS:,} are allowed "
        "(a voice prompt's transcript included): shorten it, or split it into several takes."
    )
    finding = Finding("too_many_characters", Level.ERROR, message)
    return ScriptReport((), 0, num_bytes, 0.0, (finding,))


@dataclass(frozen=True)
class _Draft:
    """A script and what it is checked against."""

    script: str
    transcript: str
    byte_limit: int
    seconds_per_character: float
    max_seconds: float | None


@dataclass(frozen=True)
class _Remark:
    """A finding whose repair is not written out yet: most of the work of a check would be that."""

    code: str
    level: Level
    message: str
    line: int | None = None
    repair: Callable[[], str] | None = None
    label: str | None = None


def _remarks(draft: _Draft) -> list[_Remark]:
    if not _words(draft.script):
        message = "The script says nothing yet: write a line beginning with [S1]."
        return [_Remark("empty", Level.ERROR, message)]
    checks = [_check_characters, _check_bytes, _check_first_tag, _check_near_tags]
    if not any(
        match["number"] or match["label"] for _, match in _tokens(_NEAR_TAG, draft.script, skip=TAG)
    ):
        # Who speaks when is only known once every tag is one.
        checks += [_check_order, _check_last_tag]
    checks += [_check_sounds, _check_seconds]
    found = [finding for check in checks for finding in check(draft)]
    return sorted(found, key=lambda remark: list(Level).index(remark.level))


def _with_safe_repairs(draft: _Draft, remarks: list[_Remark]) -> Iterator[Finding]:
    """The findings, without the repairs that leave their finding or bring a new error."""
    errors = _error_codes(remarks)
    for remark in remarks:
        repaired = remark.repair() if remark.repair else None
        if repaired is not None:
            after = _remarks(replace(draft, script=repaired))
            stays = (remark.code, remark.message) in {(one.code, one.message) for one in after}
            if stays or not _error_codes(after) <= errors:
                repaired = None
        label = None if repaired is None else remark.label
        yield Finding(remark.code, remark.level, remark.message, remark.line, repaired, label)


def _error_codes(remarks: list[_Remark]) -> set[str]:
    return {remark.code for remark in remarks if remark.level == Level.ERROR}


def _check_characters(draft: _Draft) -> Iterator[_Remark]:
    script = draft.script
    if UNREADABLE.search(draft.transcript):
        message = "The voice prompt's transcript holds characters that are not text: retype it."
        yield _Remark("unreadable_transcript", Level.ERROR, message)
    if bad := UNREADABLE.search(script):
        message = "The script holds characters that are not text (NUL or half of a pair)."
        line, repair = line_at(script, bad.start()), partial(UNREADABLE.sub, "", script)
        yield _Remark("unreadable", Level.ERROR, message, line, repair, "Remove them")
    if plain_characters(script) != script:
        message = (
            "Typographic quotes, dashes, dots or spaces may be read wrongly: plain ones are safer."
        )
        label, repair = "Use plain quotes and dashes", partial(plain_characters, script)
        yield _Remark("typographic", Level.TIP, message, _first_change(script), repair, label)
    if emoji := _EMOJI.search(script):
        message = "Emoji are not spoken and may come out as noise."
        line, repair = line_at(script, emoji.start()), partial(_EMOJI.sub, "", script)
        yield _Remark("emoji", Level.TIP, message, line, repair, "Remove the emoji")
    if foreign := {char for char in set(script) if _is_foreign(char)}:
        message = "Dia speaks English only: other alphabets come out as noise."
        first = next(index for index, char in enumerate(script) if char in foreign)
        yield _Remark("not_english", Level.WARNING, message, line_at(script, first))
    untagged = _NEAR_TAG.sub(lambda match: " " * len(match[0]), script)
    if digit := re.search(r"\d", untagged):
        message = "Numbers are read best when written as words (“twenty” rather than “20”)."
        yield _Remark("digits", Level.TIP, message, line_at(script, digit.start()))


def _first_change(script: str) -> int:
    """The line of the first character that is not plain."""
    lines = script.split("\n")
    return next((n for n, line in enumerate(lines, 1) if plain_characters(line) != line), 1)


def _check_bytes(draft: _Draft) -> Iterator[_Remark]:
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
    repair = partial(shortened, draft.script, cut)
    line = line_at(draft.script, cut)
    yield _Remark(
        "too_many_bytes", Level.ERROR, message, line, repair, "Cut after the last sentence"
    )


def _check_first_tag(draft: _Draft) -> Iterator[_Remark]:
    start = draft.script.lstrip()
    first = TAG.search(start)
    if not (first and first.start() == 0) and not _NEAR_TAG.match(start):
        message = "The script does not begin with a speaker: put [S1] before the first word."
        # The words before a tag are taken for the other speaker's: turns alternate.
        tag = other_tag(first[1]) if first else "[S1]"
        repair = partial("{} {}".format, tag, draft.script)
        yield _Remark("no_first_tag", Level.WARNING, message, 1, repair, f"Put {tag} first")


def _check_near_tags(draft: _Draft) -> Iterator[_Remark]:
    for token, match in _tokens(_NEAR_TAG, draft.script, skip=TAG):
        number = match["number"] or match["label"]
        meant = f"[S{number}]" if number in ("1", "2") else None
        message = f"“{token}” is not a speaker: the tags are [S1] and [S2], exactly so."
        if match["words"] and not number:
            meant = nearest_sound(match["words"].lower(), 0.7)
            message = f"“{token}” is no tag Dia knows: sounds stand in (round) brackets."
        elif meant is None:
            message = f"“{token}” is a speaker Dia does not have: there are [S1] and [S2]."
        yield _replacement(
            "unknown_tag", Level.WARNING, message, draft.script, match, meant, _NEAR_TAG
        )


def _check_sounds(draft: _Draft) -> Iterator[_Remark]:
    for token, match in _tokens(SOUND, draft.script, skip=_NEAR_TAG):
        if match[1] in NONVERBALS:
            continue
        meant = nearest_sound(match[1].strip().lower(), 0.6)
        message = f"“{token}” is not a sound Dia knows: it may be read aloud or skipped."
        yield _replacement("unknown_sound", Level.TIP, message, draft.script, match, meant, SOUND)


def _check_order(draft: _Draft) -> Iterator[_Remark]:
    script, tags = draft.script, list(TAG.finditer(draft.script))
    if tags and script.lstrip().startswith("[S2]") and not draft.transcript:
        message = "Dia was trained on scripts that begin with [S1]; this one begins with [S2]."
        line, repair = line_at(script, tags[0].start()), partial(swapped, script)
        yield _Remark("starts_with_s2", Level.TIP, message, line, repair, "Swap the two speakers")
    again = [tag for last, tag in zip(tags, tags[1:], strict=False) if last[1] == tag[1]]
    if again:
        message = f"{again[0][0]} speaks twice in a row: turns should alternate."
        line, repair = line_at(script, again[0].start()), partial(without_tags, script, again)
        yield _Remark(
            "same_speaker", Level.WARNING, message, line, repair, "Join them into one turn"
        )


def _check_seconds(draft: _Draft) -> Iterator[_Remark]:
    seconds = expected_seconds(draft.script, draft.seconds_per_character)
    if draft.max_seconds is not None and seconds > draft.max_seconds:
        message = (
            f"About {seconds:.0f} s of speech, and max tokens leaves room for "
            f"{draft.max_seconds:.0f} s: the end will be cut. Raise max tokens or shorten it."
        )
        yield _Remark("over_max_tokens", Level.WARNING, message)
    elif seconds > LONG_SECONDS:
        message = f"About {seconds:.0f} s of speech: above {LONG_SECONDS:.0f} s Dia tends to rush."
        yield _Remark("too_long", Level.TIP, message)
    elif seconds < SHORT_SECONDS:
        message = (
            f"About {seconds:.0f} s of speech: below {SHORT_SECONDS:.0f} s it sounds unnatural."
        )
        yield _Remark("too_short", Level.TIP, message)


def _check_last_tag(draft: _Draft) -> Iterator[_Remark]:
    tags = list(TAG.finditer(draft.script))
    if tags and draft.script[tags[-1].end() :].strip():
        tag = other_tag(tags[-1][1])
        message = f"Ending with {tag}, the other speaker's tag, keeps the last word whole."
        script = draft.script.rstrip()
        line, repair = script.count("\n") + 1, partial("{} {}".format, script, tag)
        yield _Remark("no_last_tag", Level.TIP, message, line, repair, f"Add {tag} at the end")


def _tokens(pattern: re.Pattern, script: str, skip: re.Pattern) -> Iterator[tuple[str, re.Match]]:
    """The first few distinct matches of `pattern` that are not, as a whole, a match of `skip`."""
    seen: set[str] = set()
    for match in pattern.finditer(script):
        if len(seen) == _SHOWN_TOKENS:
            return
        if match[0] not in seen and not skip.fullmatch(match[0]):
            seen.add(match[0])
            yield match[0], match


def _replacement(code, level, message, script, match, meant, pattern) -> _Remark:
    """A finding on a token; where `meant` is known, its repair replaces every such token."""
    token, line = match[0], line_at(script, match.start())
    if meant is None:
        return _Remark(code, level, message, line)
    repair = partial(pattern.sub, lambda one: meant if one[0] == token else one[0], script)
    return _Remark(code, level, message, line, repair, f"Write {meant}")


def _characters_within(script: str, room: int) -> int:
    """How many characters fit into `room` encoded bytes, without splitting a character or tag."""
    used = 0
    for match in re.finditer(r"\[S[12]\]|.", script, re.DOTALL):
        used += len(to_bytes(match[0]))
        if used > room:
            return match.start()
    return len(script)


def _words(script: str) -> str:
    return TAG.sub("", script).strip()


def _is_foreign(char: str) -> bool:
    return ord(char) > 0x24F and char.isalpha() and "LATIN" not in unicodedata.name(char, "")

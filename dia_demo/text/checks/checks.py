"""The individual checks of a script: their findings and repairs."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from dia_demo.errors import InputError
from dia_demo.text.checks.english import foreign_line
from dia_demo.text.dialogue.pauses import PAUSE, find_pauses
from dia_demo.text.formats.check import check_format
from dia_demo.text.formats.table import Recognition, recognise
from dia_demo.text.normaliser import plain_characters
from dia_demo.text.remark import Draft, Level, Remark
from dia_demo.text.repairs import (
    nearest_sound,
    other_tag,
    remove_tags,
    shorten_script,
    swap_speakers,
)
from dia_demo.text.script import (
    NONVERBALS,
    SOUND,
    TAG,
    UNREADABLE,
    has_words,
    join_transcript,
    line_at,
    to_bytes,
)
from dia_demo.text.sounds import is_pause

# The authors' guidance: shorter texts sound unnatural, longer ones are rushed.
NATURAL_SECONDS = 5.0, 20.0

BAD_PAUSE = "pause"
_CUT = "Cut after the last sentence"
_CUT_TURNS = "Make turns and cut after the last sentence"

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


def remarks_on(draft: Draft) -> list[Remark]:
    """All findings on a script, errors first."""
    if not has_words(draft.script):
        message = "The script has no words: write a line beginning with [S1]."
        if not draft.script.strip():
            message = "The script is empty: write a line beginning with [S1]."
        return [Remark("empty", Level.ERROR, message)]
    found = recognise(draft.script)
    if found is not None and found.is_sure:
        return _run_checks(draft, [_check_characters, check_format, partial(_check_length, found)])
    checks = [_check_characters, _check_bytes, check_format, _check_first_tag, _check_near_tags]
    if not any(
        match["number"] or match["label"] for _, match in _tokens(_NEAR_TAG, draft.script, skip=TAG)
    ):
        # The order of the speakers is only known if every tag is valid.
        checks += [_check_order, _check_last_tag]
    checks += [_check_sounds, _check_pauses, _check_seconds]
    return _run_checks(draft, checks)


def _run_checks(
    draft: Draft, checks: Sequence[Callable[[Draft], Iterator[Remark]]]
) -> list[Remark]:
    remarks = [remark for check in checks for remark in check(draft)]
    return sorted(remarks, key=lambda remark: list(Level).index(remark.level))


def _check_length(found: Recognition, draft: Draft) -> Iterator[Remark]:
    """The length of a script in another format. Its turns are what can be cut, and what lasts."""
    turns = replace(draft, script=found.script)
    cuts = [remark for check in (_check_bytes, _check_seconds) for remark in check(turns)]
    repair = next((remark.repair for remark in cuts if remark.label == _CUT), None)
    label = None if repair is None else _CUT_TURNS
    for remark in _check_bytes(draft):
        yield replace(remark, repair=repair, label=label)
    for remark in _check_seconds(turns):
        yield replace(remark, repair=repair, label=label)


def _check_characters(draft: Draft) -> Iterator[Remark]:
    script = draft.script
    if UNREADABLE.search(draft.transcript):
        message = "The voice prompt's transcript contains characters that are not text: retype it."
        yield Remark("unreadable_transcript", Level.ERROR, message)
    if bad := UNREADABLE.search(script):
        message = "The script contains characters that are not text (NUL or a lone surrogate)."
        line, repair = line_at(script, bad.start()), partial(UNREADABLE.sub, "", script)
        yield Remark("unreadable", Level.ERROR, message, line, repair, "Remove them")
    if plain_characters(script) != script:
        message = (
            "Typographic quotes, dashes, dots or spaces may be misread: use plain ASCII "
            "punctuation."
        )
        label, repair = "Use plain quotes and dashes", partial(plain_characters, script)
        yield Remark("typographic", Level.TIP, message, _first_change(script), repair, label)
    if emoji := _EMOJI.search(script):
        message = "Emoji are not spoken and may come out as noise."
        line, repair = line_at(script, emoji.start()), partial(_EMOJI.sub, "", script)
        yield Remark("emoji", Level.TIP, message, line, repair, "Remove the emoji")
    if foreign := {char for char in set(script) if _is_foreign(char)}:
        message = "Dia speaks English only: other alphabets come out as noise."
        first = next(index for index, char in enumerate(script) if char in foreign)
        yield Remark("not_english", Level.WARNING, message, line_at(script, first))
    elif (foreign_at := foreign_line(script)) is not None:
        message = "Dia speaks English only: words of other languages are mispronounced."
        yield Remark("not_english", Level.WARNING, message, foreign_at)


def _first_change(script: str) -> int:
    """The line of the first character that is not plain."""
    lines = script.split("\n")
    return next((n for n, line in enumerate(lines, 1) if plain_characters(line) != line), 1)


def _check_bytes(draft: Draft) -> Iterator[Remark]:
    size = len(to_bytes(join_transcript(draft.script, draft.transcript)))
    if size <= draft.byte_limit:
        return
    room = draft.byte_limit - (size - len(to_bytes(draft.script)))
    cut = _characters_within(draft.script, room)
    before = " ".join(draft.script[max(0, cut - 40) : cut].split())
    after = " ".join(draft.script[cut : cut + 40].split())
    message = f"{size:,} bytes, and the model reads {draft.byte_limit:,}: " + (
        f"it would stop at “…{before} | {after}…”, and the rest would not be spoken."
        if before
        else "the voice prompt's transcript leaves no room for the script."
    )
    line, repair = line_at(draft.script, cut), partial(_cut, draft, cut)
    yield Remark("too_many_bytes", Level.ERROR, message, line, repair, _CUT)


def _cut(draft: Draft, characters: int) -> str:
    """The script up to the end of a sentence within so many characters and max_seconds."""
    script = draft.script[:characters]
    if draft.max_seconds is not None:
        lengths = range(len(script) + 1)
        fits = bisect_right(
            lengths,
            draft.max_seconds,
            key=lambda length: draft.seconds_of(script[:length]),
        )
        characters = min(characters, fits - 1)
    return shorten_script(draft.script, characters)


def _check_first_tag(draft: Draft) -> Iterator[Remark]:
    start = draft.script.lstrip()
    first = TAG.search(start)
    if not (first and first.start() == 0) and not _NEAR_TAG.match(start):
        message = "The script does not begin with a speaker: put [S1] before the first word."
        # The words before a tag are the other speaker's, because turns alternate.
        tag = other_tag(first[1]) if first else "[S1]"
        repair = partial("{} {}".format, tag, draft.script)
        yield Remark("no_first_tag", Level.WARNING, message, 1, repair, f"Put {tag} first")


def _check_near_tags(draft: Draft) -> Iterator[Remark]:
    for token, match in _tokens(_NEAR_TAG, draft.script, skip=TAG):
        if draft.keeps_pauses and PAUSE.fullmatch(token):
            continue
        number = match["number"] or match["label"]
        meant = f"[S{number}]" if number in ("1", "2") else None
        message = f"“{token}” is not a speaker tag: write exactly [S1] or [S2]."
        if match["words"] and not number:
            meant = nearest_sound(match["words"].lower(), 0.7)
            message = (
                f"“{token}” is not a tag Dia knows: write sounds in round brackets, for example "
                "(laughs)."
            )
        elif meant is None:
            message = f"“{token}” is not a speaker Dia has: there are [S1] and [S2]."
        yield _replacement(
            "unknown_tag", Level.WARNING, message, draft.script, match, meant, _NEAR_TAG
        )


def _check_sounds(draft: Draft) -> Iterator[Remark]:
    """Sounds Dia does not know, each with a repair where its meaning is clear, others together."""
    unknown = []
    for token, match in _tokens(SOUND, draft.script, skip=_NEAR_TAG):
        words = match[1].strip().lower()
        if match[1] in NONVERBALS or (draft.keeps_pauses and PAUSE.fullmatch(token)):
            continue
        meant = "..." if is_pause(words) else nearest_sound(words, 0.8)
        if meant is None:
            unknown.append((token, line_at(draft.script, match.start())))
            continue
        message = f"“{token}” is not a sound Dia knows: it may be read aloud or skipped."
        if is_pause(words):
            message = f"Dia has no “{token}”: write “...”, or begin a new turn."
        yield _replacement("unknown_sound", Level.TIP, message, draft.script, match, meant, SOUND)
    if unknown:
        names = ", ".join(f"“{token}”" for token, _ in unknown)
        message = f"Dia does not know {names}: it may be read aloud or skipped."
        yield Remark("unknown_sound", Level.TIP, message, unknown[0][1])


def _check_pauses(draft: Draft) -> Iterator[Remark]:
    if draft.keeps_pauses:
        try:
            find_pauses(draft.script)
        except InputError as error:
            yield Remark(BAD_PAUSE, Level.ERROR, str(error))


def _check_order(draft: Draft) -> Iterator[Remark]:
    script, tags = draft.script, list(TAG.finditer(draft.script))
    if tags and script.lstrip().startswith("[S2]") and not draft.transcript:
        message = "Dia was trained on scripts that begin with [S1]; this one begins with [S2]."
        line, repair = line_at(script, tags[0].start()), partial(swap_speakers, script)
        yield Remark("starts_with_s2", Level.TIP, message, line, repair, "Swap the two speakers")
    again = [tag for last, tag in zip(tags, tags[1:], strict=False) if last[1] == tag[1]]
    if again:
        message = f"{again[0][0]} speaks twice in a row: turns should alternate."
        line, repair = line_at(script, again[0].start()), partial(remove_tags, script, again)
        yield Remark(
            "same_speaker", Level.WARNING, message, line, repair, "Join them into one turn"
        )


def _check_seconds(draft: Draft) -> Iterator[Remark]:
    seconds = draft.seconds_of(draft.script)
    if len(to_bytes(join_transcript(draft.script, draft.transcript))) > draft.byte_limit:
        return  # Its repair fits both limits.
    if draft.max_seconds is not None and seconds > draft.max_seconds:
        advice = "Raise max tokens or shorten it."
        if draft.most_seconds is not None and seconds > draft.most_seconds:
            advice = f"A take holds at most {draft.most_seconds:.0f} s: make several takes of it."
        message = (
            f"About {seconds:.0f} s of speech, and max tokens leaves room for "
            f"{draft.max_seconds:.0f} s: the end will be cut. {advice}"
        )
        repair = partial(_cut, draft, len(draft.script))
        yield Remark("over_max_tokens", Level.WARNING, message, None, repair, _CUT)
    elif draft.natural_seconds is None:
        return
    elif seconds > draft.natural_seconds[1]:
        limit = f"above {draft.natural_seconds[1]:.0f} s Dia tends to rush"
        message = f"About {seconds:.0f} s of speech: {limit}."
        yield Remark("too_long", Level.TIP, message)
    elif seconds < draft.natural_seconds[0]:
        about = f"About {seconds:.0f} s" if seconds >= 1 else "Less than a second"
        message = f"{about} of speech: below {draft.natural_seconds[0]:.0f} s Dia sounds unnatural."
        yield Remark("too_short", Level.TIP, message)


def _check_last_tag(draft: Draft) -> Iterator[Remark]:
    tags = list(TAG.finditer(draft.script)) if draft.needs_last_tag else []
    if tags and draft.script[tags[-1].end() :].strip():
        tag = other_tag(tags[-1][1])
        message = (
            f"Ending with {tag}, the other speaker's tag, helps keep the last word from being cut "
            "off."
        )
        script = draft.script.rstrip()
        line, repair = script.count("\n") + 1, partial("{} {}".format, script, tag)
        yield Remark("no_last_tag", Level.TIP, message, line, repair, f"Add {tag} at the end")


def _tokens(pattern: re.Pattern, script: str, skip: re.Pattern) -> Iterator[tuple[str, re.Match]]:
    """The first few distinct matches of `pattern` that are not, as a whole, a match of `skip`."""
    seen: set[str] = set()
    for match in pattern.finditer(script):
        if len(seen) == _SHOWN_TOKENS:
            return
        if match[0] not in seen and not skip.fullmatch(match[0]):
            seen.add(match[0])
            yield match[0], match


def _replacement(
    code: str,
    level: Level,
    message: str,
    script: str,
    match: re.Match,
    meant: str | None,
    pattern: re.Pattern,
) -> Remark:
    """A finding on a token; where `meant` is known, its repair replaces every such token."""
    token, line = match[0], line_at(script, match.start())
    if meant is None:
        return Remark(code, level, message, line)
    repair = partial(pattern.sub, lambda m: meant if m[0] == token else m[0], script)
    return Remark(code, level, message, line, repair, f"Write {meant}")


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

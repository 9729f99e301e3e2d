"""Remarks on a script in another format than turns with [S1] and [S2]: what it is, and the choice.

A model that gets plain words reads a format that is certain; "Read as written" undoes that, and
another button writes the turns into the script, to edit them. Dia reads every script as it is
written, and the turns are offered. Where a format is not certain, nothing happens without being
asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from dia_demo.errors import printable
from dia_demo.text.formats import labels
from dia_demo.text.formats.table import Recognition, recognise
from dia_demo.text.remark import Draft, Level, Remark

# Codes of findings whose repair is a choice between two readings, not a correction.
CHOICES = ("format_read", "format_turns", "format_unsure")
_LONGEST_QUOTE = 40


def check_format(draft: Draft) -> Iterator[Remark]:
    """The format of a script that is read as it is written, with the turns as its repair."""
    found = recognise(draft.script)
    if found is None:
        return
    if not found.is_sure:
        yield _question(found)
        return
    code = "names" if found.format == labels.FORMAT.name else "format"
    message = f"{_describe_names(found)} would be read aloud: speakers are marked [S1] and [S2]."
    message += _describe_voices(found) + _describe_left_out(found)
    yield _offer_turns(code, Level.WARNING, message, found)


def remarks_on_reading(script: str) -> Iterator[Remark]:
    """What a script in another format is read as, with the way back, and the turns to edit."""
    found = recognise(script)
    if found is None:
        return
    if not found.is_sure:
        yield _question(found)
        return
    repair = partial("{} {}".format, "[S1]", script)
    yield Remark(
        "format_read", Level.TIP, describe_recognition(found), None, repair, "Read as written"
    )
    what = "turns" if found.speakers else "words"
    message = f"To edit what is read, write the {what} into the script."
    yield _offer_turns("format_turns", Level.TIP, message, found)


def _offer_turns(code: str, level: Level, message: str, found: Recognition) -> Remark:
    label = f"Make {_speakers(found)}" if found.speakers else "Keep only the words"
    return Remark(code, level, message, None, partial(str, found.script), label)


def recognition_note(script: str, is_read: bool) -> str | None:
    """The same in a sentence for the command line and programs; None for turns and plain text.

    is_read: whether the model gets the script in plain words.
    """
    found = recognise(script)
    if found is None:
        return None
    if not found.is_sure:
        note = _question(found).message
    elif is_read:
        note = f"{describe_recognition(found)} Put [S1] before it to have it read as written."
    else:
        note = f"{_describe_names(found)} are read aloud as written; normalising makes turns of it."
    return printable(note)


def describe_recognition(found: Recognition) -> str:
    """What a script that is certain was read as."""
    who = ", ".join(f"{_shorten(name)} is {tag}" for name, tag in found.speakers)
    who = f": {who}" if who else ", by one speaker"
    if len(found.speakers) > 2:
        who = ""
    return f"Read as {found.format}{who}.{_describe_voices(found)}{_describe_left_out(found)}"


def _question(found: Recognition) -> Remark:
    if found.unsure_of:
        name = _shorten(found.unsure_of)
        message = f"“{name}” is read aloud. If it names a speaker, make a turn of it."
    elif not found.speakers and found.left_out:
        quoted = _list([f"“{_shorten(line)}”" for line in found.left_out[:2]])
        message = f"{quoted} is read aloud, and may be no part of the script."
        return Remark(
            "format_unsure", Level.TIP, message, None, partial(str, found.script), "Leave it out"
        )
    else:
        message = f"This may be {found.format}: it is read as written."
    return _offer_turns("format_unsure", Level.TIP, message, found)


def _describe_names(found: Recognition) -> str:
    """What would be read aloud, and should not."""
    names = [name for name, _ in found.speakers[:2]]
    if found.format == labels.FORMAT.name and names:
        return " and ".join(f"“{_shorten(name)}:”" for name in names)
    return f"This looks like {found.format}. Its names and marks"


def _speakers(found: Recognition) -> str:
    if len(found.speakers) > 2:
        return f"{len(found.speakers)} speakers [S1] and [S2]"
    return " and ".join(f"{_shorten(name)} {tag}" for name, tag in found.speakers)


def _describe_voices(found: Recognition) -> str:
    """Who shares a voice, where more than two people speak."""
    if len(found.speakers) <= 2:
        return ""
    voices = (_people(found, tag) for tag in ("[S1]", "[S2]"))
    return f" {len(found.speakers)} people speak with two voices: {'; '.join(voices)}."


def _people(found: Recognition, tag: str) -> str:
    return f"{tag} {_list([_shorten(name) for name, own in found.speakers if own == tag])}"


def _describe_left_out(found: Recognition) -> str:
    if not found.left_out:
        return ""
    more = f" and {len(found.left_out) - 2} more lines" if len(found.left_out) > 2 else ""
    quoted = _list([f"“{_shorten(line)}”" for line in found.left_out[:2]], bool(more))
    return f" Left out: {quoted}{more}."


def _list(words: Sequence[str], goes_on: bool = False) -> str:
    if len(words) < 2 or goes_on:
        return ", ".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE].rstrip()}…"

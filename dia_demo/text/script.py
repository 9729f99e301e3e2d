"""A script as the model meets it: turns, bytes, and an estimate of its seconds.

A script is what a person writes: words, [S1] and [S2] before each turn, sounds such as (laughs).
Dia reads it byte for byte; what the embedded voice reads is in `normaliser`. What is worth
knowing about a script is in `script_check`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dia_demo.errors import InputError

# Far more than the longest dialogue a checkpoint reads today, and little enough that checking it
# takes no noticeable time.
MAX_SCRIPT_CHARACTERS = 20_000

# Conversational English runs at about 170 words a minute, 5.3 characters a word with its space.
SECONDS_PER_CHARACTER = 1 / 15
TURN_PAUSE_SECONDS = 0.3
SOUND_SECONDS = 0.8

NONVERBALS = (
    "laughs,clears throat,sighs,gasps,coughs,singing,sings,mumbles,beep,groans,sniffs,claps,"
    "screams,inhales,exhales,applause,burps,humming,sneezes,chuckle,whistles"
).split(",")

TAG = re.compile(r"\[S([12])\]")
SOUND = re.compile(r"\(([^()\n]{1,40})\)")
UNREADABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Turn:
    """What one speaker says. speaker is 1 or 2 (0: words before any tag); line counts from 1."""

    speaker: int
    text: str
    line: int


def parse_turns(script: str) -> tuple[Turn, ...]:
    """The turns of a script, in order; a tag without words (the trailing one) is no turn."""
    tags = [(match.start(), match.end(), int(match[1])) for match in TAG.finditer(script)]
    starts = [(0, 0, 0), *tags]
    ends = [start for start, _, _ in tags] + [len(script)]
    turns = []
    line, counted = 1, 0
    for (start, words, speaker), end in zip(starts, ends, strict=True):
        text = script[words:end]
        if text.strip():
            at = start if speaker else len(text) - len(text.lstrip())
            # From one turn to the next: counting from the top each time would be quadratic.
            line, counted = line + script.count("\n", counted, at), at
            turns.append(Turn(speaker, text.strip(), line))
    return tuple(turns)


def encode_script(script: str, transcript: str = "") -> bytes:
    """The bytes the encoder reads: UTF-8, with [S1] and [S2] as bytes 1 and 2.

    A voice prompt's transcript precedes the script on a line of its own. Nothing is stripped or
    normalised. Raises InputError for a script without a character to say, for characters that
    UTF-8 cannot hold, and for NUL, which is the model's padding.
    """
    if not script.strip():
        raise InputError("The script is empty: write what should be said, beginning with [S1].")
    text = joined(script, transcript)
    bad = UNREADABLE.search(text)
    if bad:
        raise InputError(
            f"The script contains U+{ord(bad[0]):04X} at character {bad.start() + 1}, which is not "
            "text the model can read: remove it."
        )
    return to_bytes(text)


def expected_seconds(script: str, seconds_per_character: float = SECONDS_PER_CHARACTER) -> float:
    """An estimate of how long a script takes to say.

    Characters are counted without tags and repeated spaces; a known nonverbal counts as a sound
    of its own, and a change of speaker as a pause.
    """
    turns = parse_turns(script)
    seconds = TURN_PAUSE_SECONDS * max(0, len(turns) - 1)
    for turn in turns:
        sounds = [match[1] for match in SOUND.finditer(turn.text) if match[1] in NONVERBALS]
        characters = len(" ".join(turn.text.split())) - sum(len(sound) + 2 for sound in sounds)
        seconds += max(0, characters) * seconds_per_character + len(sounds) * SOUND_SECONDS
    return seconds


def joined(script: str, transcript: str) -> str:
    """The whole text the model reads: a voice prompt's transcript stands on its own line."""
    return f"{transcript}\n{script}" if transcript else script


def to_bytes(text: str) -> bytes:
    """Like `encode_script`, but never raises: what is not text still has a size."""
    raw = text.encode("utf-8", errors="surrogatepass")
    return raw.replace(b"[S1]", b"\x01").replace(b"[S2]", b"\x02")


def line_at(script: str, position: int) -> int:
    """The line, counted from 1, on which the character at `position` stands."""
    return script.count("\n", 0, position) + 1

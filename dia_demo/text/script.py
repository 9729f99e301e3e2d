"""A script as the model reads it: turns, bytes, and an estimate of its duration.

A script is what a person writes: words, [S1] and [S2] before each turn, sounds such as (laughs).
Dia reads it byte for byte; `normaliser` prepares it for the embedded voice. `script_check` reports
problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dia_demo.errors import InputError

# Far more than any checkpoint reads, but short enough to be checked without a noticeable delay.
MAX_SCRIPT_CHARACTERS = 20_000
# Of a script that is made chunk by chunk: more than an hour of speech.
MAX_DIALOGUE_CHARACTERS = 80_000

# Conversational English has about 170 words a minute and 5.3 characters a word with its space.
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
    """One turn of a speaker. speaker: 1 or 2; 0 for words before any tag. line: from 1."""

    speaker: int
    text: str
    line: int


def parse_turns(script: str) -> tuple[Turn, ...]:
    """The turns of a script, in order. A tag without words, such as the last one, is not a turn."""
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


def words_of(script: str) -> list[tuple[int, str]]:
    """The speakers and their words, in order, as a model with word times separates them."""
    return [
        (turn.speaker or 1, word)
        for turn in parse_turns(script)
        for word in turn.text.replace(":", " ").split()
    ]


def write_script(words: Iterable[tuple[int, str]]) -> str:
    """The script of speakers and what they say: a tag where the speaker changes."""
    parts, last = [], 0
    for speaker, word in words:
        parts += [word] if speaker == last else [f"[S{speaker}]", word]
        last = speaker
    return " ".join(parts)


def encode_script(script: str, transcript: str = "") -> bytes:
    """The bytes the encoder reads: UTF-8, with [S1] and [S2] as bytes 1 and 2.

    A voice prompt's transcript precedes the script on its own line. Nothing is stripped or
    normalised. Raises InputError for a script without words, for characters that UTF-8 cannot
    encode, and for NUL, which is the model's padding.
    """
    if not script.strip():
        raise InputError("The script is empty: write what should be said, beginning with [S1].")
    if not has_words(script):
        raise InputError("The script has no words: write what should be said after [S1].")
    text = join_transcript(script, transcript)
    check_readable(text)
    return to_bytes(text)


def check_readable(text: str) -> None:
    """Raise InputError for characters that no model can read."""
    if bad := UNREADABLE.search(text):
        raise InputError(
            f"The script contains U+{ord(bad[0]):04X} at character {bad.start() + 1}, which is not "
            "text the model can read: remove it."
        )


def has_words(script: str) -> bool:
    """Whether there is anything to say: a letter, a digit or a sound, beside the tags."""
    return any(map(str.isalnum, TAG.sub("", script)))


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


def join_transcript(script: str, transcript: str) -> str:
    """The whole text the model reads: the voice prompt's transcript on its own line, the script.

    A take's words may end with a tag, which ends their last turn. Before a script that begins with
    a tag it would be a turn without words, and the model makes one up.
    """
    if TAG.match(script.lstrip()):
        while (words := transcript.rstrip()).endswith(("[S1]", "[S2]")):
            transcript = words[:-4].rstrip()
    return f"{transcript}\n{script}" if transcript.strip() else script


def to_bytes(text: str) -> bytes:
    """Like `encode_script`, but never raises, so that every text has a size."""
    raw = text.encode("utf-8", errors="surrogatepass")
    return raw.replace(b"[S1]", b"\x01").replace(b"[S2]", b"\x02")


def from_bytes(raw: bytes) -> str:
    """The text that some of these bytes are the whole or a part of."""
    text = raw.decode("utf-8", errors="ignore")
    return text.replace("\x01", "[S1]").replace("\x02", "[S2]")


def line_at(script: str, position: int) -> int:
    """The line, counted from 1, of the character at `position`."""
    return script.count("\n", 0, position) + 1

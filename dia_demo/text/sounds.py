"""Sounds and stage directions in brackets: kept where the voice can make them, else left out."""

from __future__ import annotations

import re

from dia_demo.text.edits import EditedText
from dia_demo.text.reading.rules import Reader
from dia_demo.text.repairs import nearest_sound

_BRACKETED = re.compile(r"\[S\d{1,3}\]|\(([^()\n]{1,60})\)|\[([^\[\]\n]{1,60})\]")
_TURN = re.compile(r"\[S(?P<speaker>[12])\][ \t]*(?P<words>(?:(?!\[S[12]\]).)*)", re.DOTALL)
_PAUSE = re.compile(
    r"(?:(?:long|short|brief|dramatic|awkward|little|slight|small)\s+)?"
    r"(?:pauses?|pausing|beat|silence|break|wait)"
    r"(?:\s*[:=]?\s*(?:for\s+)?\.?\d{1,4}(?:[.,]\d{1,3})?\s*(?:s|ms|secs?|seconds?|beats?)?)?",
)
_LIKENESS = 0.8
# What is done and not said.
_ACTIONS = frozenset(
    "smiles smile smiling grins grinning nods nodding whispers whispering whispered shouts "
    "shouting yells yelling cries crying sobs sobbing weeps weeping giggles giggling snickers "
    "chuckles chuckling laughs laughing laughter sighs sighing gasps gasping coughs coughing "
    "clears clearing groans groaning moans moaning mumbles mumbling mutters muttering hums "
    "humming sings singing whistles whistling yawns yawning sneezes sneezing sniffs sniffing "
    "sniffles sniffling snorts snorting snores snoring hiccups breathes breathing inhales "
    "inhaling exhales exhaling pants panting gulps gulping swallows swallowing screams screaming "
    "shrieks groan applause applauds applauding claps clapping cheers cheering burps burping "
    "belches winks winking shrugs shrugging frowns frowning stammers stammering stutters "
    "stuttering hesitates hesitating scoffs scoffing tuts tsk growls growling howls howling barks "
    "barking meows hisses beep beeps music crosstalk inaudible unintelligible blank_audio noise "
    "static footsteps knocking thunder silence rolls rolling raises leans looks turns enters "
    "exits stands sits walks leaves interrupts interrupting sarcastically sarcastic softly "
    "quietly loudly angrily angry sadly happily cheerfully excitedly excited nervously nervous "
    "gently slowly quickly calmly seriously jokingly playfully warmly coldly dryly surprised "
    "shocked confused whisper shout laugh cough sigh gasp yawn sob hum deadpan offscreen off- "
    "screen voiceover o.s. v.o. continued cont'd sfx".split()
)


def _is_direction(words: str) -> bool:
    first, *others = words.split()
    return (
        first.strip(":,.") in _ACTIONS
        and len(others) <= 5
        or (0 < len(others) <= 3 and words.split()[-1] in _ACTIONS)
    )


def is_pause(words: str) -> bool:
    """Whether words in brackets ask for a pause: pause, beat, pause 1.5 s."""
    return _PAUSE.fullmatch(words) is not None


def is_action(words: str) -> bool:
    """Whether words between asterisks are what somebody does: smiles, clears his throat."""
    first, *others = words.lower().split() or [""]
    return first in _ACTIONS and first.endswith("s") and len(others) <= 3


def read_sounds(text: EditedText, reader: Reader) -> None:
    """Write pauses as dots, and leave out what the voice has no sound for.

    Where the reader knows every sound (`reader.sounds` is None), only pauses change.
    """
    if reader.sounds is not None:
        _leave_out_silent_turns(text, reader)
    text.sub(_BRACKETED, lambda match: _read(match, reader))


def _leave_out_silent_turns(text: EditedText, reader: Reader) -> None:
    """Leave out the turns of which no sound is left, and join those of one speaker around them.

    Without words in any turn, all stay.
    """
    edits: list[tuple[int, int, str]] = []
    speaker, said = "", False
    for turn in _TURN.finditer(text.text):
        spoken = _BRACKETED.sub(lambda match: _read(match, reader), turn["words"])
        if spoken != turn["words"] and not re.search(r"\w", spoken):
            edits.append((*turn.span(), ""))
            continue
        if turn["speaker"] == speaker and edits and edits[-1][1] == turn.start():
            edits.append((turn.start(), turn.start("words"), ""))
        speaker, said = turn["speaker"], said or bool(re.search(r"\w", spoken))
    if said:
        text.rewrite(edits)


def _read(match: re.Match, reader: Reader) -> str:
    written = match[1] or match[2]
    words = " ".join((written or "").lower().split())
    if not words or not re.search(r"[a-z]", words):
        return match[0]
    if is_pause(words):
        before = match.string[max(0, match.start() - 4) : match.start()].rstrip()
        return "" if before.endswith("...") else "..."
    if reader.sounds is None:
        return match[0]
    sound = nearest_sound(words, _LIKENESS) if len(words) <= 20 else None
    if sound is not None and sound.strip("()") in reader.sounds:
        return sound
    if sound or match[2] or _is_direction(words):
        if match[0] not in reader.left_out:
            reader.left_out.append(match[0])
        return ""
    return match[0]

"""Repairs of a script; each returns a whole script. `script_check` decides which are offered."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache

from dia_demo.text.script import NONVERBALS, TAG

_STOP = re.compile(r"(?<=[.!?…])[\"'”’)]{0,5}(?=\s)|(?=\[S[12]\])|(?=\n)")
_FIRST_WORD = re.compile(r"(?:\s|\[S[12]\])*+.", re.DOTALL)
# Words that people write for a sound that has another name in Dia.
_SYNONYMS = {
    **dict.fromkeys(("laugh", "laughing", "laughter", "giggles", "giggle", "giggling"), "laughs"),
    **dict.fromkeys(("chuckles", "chuckling"), "chuckle"),
    **dict.fromkeys(("cough", "coughing"), "coughs"),
    **dict.fromkeys(("sigh", "sighing"), "sighs"),
    **dict.fromkeys(("gasp", "gasping"), "gasps"),
    **dict.fromkeys(("groan", "groaning", "moans"), "groans"),
    **dict.fromkeys(("sniff", "sniffing", "sniffles"), "sniffs"),
    **dict.fromkeys(("sneeze", "sneezing", "achoo"), "sneezes"),
    **dict.fromkeys(("clap", "clapping"), "claps"),
    **dict.fromkeys(("scream", "screaming"), "screams"),
    **dict.fromkeys(("whistle", "whistling"), "whistles"),
    **dict.fromkeys(("hum", "hums"), "humming"),
    **dict.fromkeys(("mumble", "mumbling", "mutters"), "mumbles"),
    **dict.fromkeys(("burp", "burping"), "burps"),
    **dict.fromkeys(("sing", "song"), "sings"),
    **dict.fromkeys(("clearing throat", "clears his throat", "clears her throat"), "clears throat"),
    **dict.fromkeys(("breathes in", "inhale", "inhaling"), "inhales"),
    **dict.fromkeys(("breathes out", "exhale", "exhaling"), "exhales"),
    "cheering": "applause",
}


@lru_cache(maxsize=256)
def nearest_sound(words: str, likeness: float) -> str | None:
    """The sound, in parentheses, that the words probably mean; None if there is none."""
    if words in _SYNONYMS:
        return f"({_SYNONYMS[words]})"
    near = difflib.get_close_matches(words, NONVERBALS, 1, likeness)
    return f"({near[0]})" if near else None


def swap_speakers(script: str) -> str:
    """`script` with the two speakers exchanged."""
    return TAG.sub(lambda tag: other_tag(tag[1]), script)


def remove_tags(script: str, tags: list[re.Match]) -> str:
    """`script` without these tags, one space in the place of each where there is none."""
    parts, ends = [script[: tags[0].start()]], [tag.start() for tag in tags[1:]]
    for tag, end in zip(tags, [*ends, len(script)], strict=True):
        if parts[-1] and not script[tag.start() - 1].isspace():
            parts.append(" ")
        parts.append(script[tag.end() : end].lstrip(" \t"))
    return "".join(parts)


def shorten_script(script: str, cut: int) -> str:
    """`script` up to the last end of a turn or sentence at or before `cut`, else of a word."""
    first_word = _FIRST_WORD.match(script)
    begun = first_word.end() if first_word else len(script) + 1
    stops = [match.end() for match in _STOP.finditer(script) if begun <= match.end() <= cut]
    words = [match.start() for match in re.finditer(r"\s", script[: cut + 1])]
    end = (stops or words or [cut])[-1]
    return script[:end].rstrip()


def other_tag(speaker: str) -> str:
    """The tag of the speaker who is not this one."""
    return "[S1]" if speaker == "2" else "[S2]"

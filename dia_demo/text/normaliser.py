"""Writing a script as a model was taught to read it: plain characters for typographic ones.

The embedded voice learnt from plain text alone, and its script always passes through here. For
Dia it is a repair that a person may ask for: see `dia_demo.text.script_check`.
"""

from __future__ import annotations

import re

_PLAIN = {
    **dict.fromkeys("‘’‚‛ʼ´′‹›＇", "'"),
    **dict.fromkeys("“”„‟«»″＂", '"'),
    **dict.fromkeys("‐‑‒−", "-"),
    **dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006", " "),
    **dict.fromkeys("\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    **dict.fromkeys("\u2028\u2029\u0085", "\n"),
    # Zero-width: spaces, joiners, soft hyphens, marks of direction and byte order.
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff", ""),
    **dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", ""),
    "…": "...",
}
_TABLE = str.maketrans(_PLAIN)
# An en dash within a word or number (London–Paris, 3–5) joins; every other one is a pause.
_JOINING_DASH = re.compile(r"(?<=\w)–(?=\w)")
_PAUSE = re.compile(r"[–—―](?:[ \t]*[–—―])*")
# What may stand between the last word of a turn or line and its end.
_END = re.compile(r"[\"')\]]*(?=\n|\[S[12]\]|\Z)")
_MARKS = (".", ",", ";", ":", "!", "?")


def plain_characters(script: str) -> str:
    """The script with plain quotes, dashes, dots and spaces; what is plain already stays as it is.

    A long dash becomes a comma, or "..." where a turn or line breaks off with it.
    """
    first, *others = _PAUSE.split(_JOINING_DASH.sub("-", script.translate(_TABLE)))
    parts = [first]
    for after in others:
        # The spaces around the dash go with it.
        before, after = parts[-1].rstrip(" \t"), after.lstrip(" \t")
        parts[-1:] = [before, _pause(before, after), after]
    return "".join(parts)


def _pause(before: str, after: str) -> str:
    """What stands for a run of long dashes between the texts around it."""
    end = _END.match(after)
    space = "" if after[:1] in ("", "\n") or (end and end[0]) else " "
    opening = before.rstrip("\"'(")
    if not opening or opening[-1] == "]" or opening[-1].isspace():
        # Before the first word of a line or turn.
        return space if before.endswith("]") else ""
    if before.endswith(_MARKS):
        return space
    if end:
        return f"...{space}"
    return "" if after.startswith(_MARKS) else ", "

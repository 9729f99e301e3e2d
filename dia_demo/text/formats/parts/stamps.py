"""Patterns of times and dates before and after what is said, as transcripts have them.

Every repeat is bounded, so that matching is linear in the length of a script.
"""

from __future__ import annotations

import re

CLOCK = r"\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,6})?(?:[ \t]?[AaPp]\.?[Mm]\b\.?)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_DATE = (
    rf"(?:\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}}|\d{{1,2}}[ .-]{_MONTH}[ .-]\d{{2,4}}"
    rf"|{_MONTH}[ ]\d{{1,2}}(?:,?[ ]\d{{4}})?|Today|Yesterday)"
)
DATED = rf"{_DATE}(?:,?[ \t]{{1,3}}(?:at[ ])?|T){CLOCK}Z?"
_SECONDS = r"\d{1,6}(?:\.\d{1,6})?[ ]?s?"
_ARROW = r"[ \t]{0,3}(?:-{1,2}>|→|[-–—]|to)[ \t]{0,3}"
_RANGE = rf"(?:{CLOCK}|{_SECONDS})(?:{_ARROW}(?:{CLOCK}|{_SECONDS}))"
# [00:00:01], (0:01), [00:00.000 --> 00:02.500], [0.5s - 3.2s], [24/12/2023, 10:31:05].
_TIME = rf"(?:{DATED}|{_RANGE}|{CLOCK}|\d{{1,6}}\.\d{{1,6}}[ ]?s?)"
FRAMED = rf"[\[(<][ \t]{{0,2}}{_TIME}[ \t]{{0,2}}[\])>]"
BARE = rf"(?:{DATED}|{CLOCK}(?:{_ARROW}{CLOCK})?)(?=[\s,;|:–—-]|\Z)"
STAMP = rf"(?:{FRAMED}|{BARE})"
# The time line of SubRip, WebVTT and SubViewer.
CUE_TIME = re.compile(
    rf"^[ \t]{{0,9}}{CLOCK}[ \t]{{0,9}}(?:--?>|→|,(?=\d{{1,2}}:))"
    rf"[ \t]{{0,9}}{CLOCK}[^\n]{{0,120}}$"
)
LEADING_STAMP = re.compile(
    rf"^[ \t]{{0,9}}(?:(?P<framed>{FRAMED})|(?P<bare>{BARE}))[ \t:–—-]{{0,6}}"
)
ONLY_STAMP = re.compile(rf"^[ \t]{{0,9}}{STAMP}[ \t]{{0,9}}$")


def starts_at_zero(stamp: str) -> bool:
    """Whether a time is within the first minute, as the first one of a transcript is."""
    return re.match(r"[\[(<\s]*(?:0{1,2}:)?0{1,2}:\d{2}\b|[\[(<\s]*\d{1,2}\.\d", stamp) is not None

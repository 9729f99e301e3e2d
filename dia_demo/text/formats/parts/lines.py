"""What a recogniser of a script format returns, and the record that describes a format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """Words of one speaker. speaker: a name; None where the script does not say who speaks.

    sound: a nonverbal that comes before the words, such as "(laughs)".
    """

    speaker: str | None
    text: str
    sound: str = ""


@dataclass(frozen=True)
class Found:
    """A script in a recognised format.

    is_sure: whether it can be read this way without asking. left_out: lines that are not spoken,
    such as a chat bot's introduction. unsure_of: the label that may be a name, where it is not
    sure. between: what stands between two lines of one speaker.
    """

    lines: tuple[Line, ...]
    is_sure: bool = True
    left_out: tuple[str, ...] = ()
    unsure_of: str = ""
    between: str = "\n"


@dataclass(frozen=True)
class Format:
    """One row of the table of formats.

    name: as in "The script is read as SRT subtitles". find: the lines of a script in this format;
    None for any other script. examples: scripts of this kind, each with the turns that it becomes.
    left_alone: scripts that look alike and are not of this kind.
    """

    name: str
    find: Callable[[str], Found | None]
    examples: tuple[tuple[str, str], ...]
    left_alone: tuple[str, ...] = ()

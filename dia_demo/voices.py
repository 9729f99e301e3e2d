"""The voices that a checkpoint was taught by name, and which two of them a seed chooses.

In such a checkpoint, a turn begins with frames that occur nowhere else, and after them comes a
mark: a code of the last channel that is not heard and selects the voice. `config.json` lists them
under "voices"; engine/turns/voices.py sets the marks.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from math import dist, isfinite
from random import Random
from typing import Any

from dia_demo.errors import InputError

MOST_VOICES = 500
MOST_LISTS = 20  # of codes
LONGEST_NAME = 50
SPECTRUM_BANDS = 20
RATIO_UNIT = 1 / 16  # of `Voice.ratios`
NUMBERS = ("semitones_apart", "envelopes_apart")
# The voices that a person chose for S1 and S2, None for one that the seed chooses.
VoiceNames = tuple[str | None, str | None]
NO_NAMES: VoiceNames = (None, None)
# What the choices of a person are called in forms, settings and files.
VOICE_FIELDS = ("voice_s1", "voice_s2")


@dataclass(frozen=True)
class Voice:
    """mark: its code. semitones: its median pitch above 100 Hz. envelope: its place among the
    spectral envelopes of all voices, so that distances compare them. is_drawn: whether seeds choose
    it ("drawn" in the config). opens: seeds choose it for S1 alone if there is another for S2,
    because the model does not always keep it as that of S2. spectrum: see
    `prompt.voice_traits.spectrum`; empty where the config has none. ratios: of each code, in the
    order [C, V], the logarithm of how much more frequent it is in this voice than in all, as a
    multiple of RATIO_UNIT, int8 (base64 in the config); empty where the config has none."""

    name: str
    mark: int
    semitones: float
    envelope: tuple[float, ...]
    is_drawn: bool = True
    opens: bool = False
    spectrum: tuple[float, ...] = ()
    ratios: bytes = b""


@dataclass(frozen=True)
class VoiceTable:
    """turn_start: the codes [frames, C] before every mark. silence: the codes of a silent frame;
    quiet: of the first channels, all codes that silent frames have. semitones_apart,
    envelopes_apart: how far the two voices of a dialogue are from each other at least. text_head:
    the head of the last layer's cross-attention that was taught to follow the text."""

    voices: tuple[Voice, ...]
    turn_start: tuple[tuple[int, ...], ...]
    silence: tuple[int, ...]
    quiet: tuple[tuple[int, ...], ...]
    semitones_apart: float
    envelopes_apart: float
    text_head: int

    def are_apart(self, one: Voice, other: Voice) -> bool:
        """Whether a dialogue may have these two voices."""
        return (
            abs(one.semitones - other.semitones) >= self.semitones_apart
            and dist(one.envelope, other.envelope) >= self.envelopes_apart
        )

    @property
    def pairs(self) -> tuple[tuple[Voice, Voice], ...]:
        """All pairs of voices that a seed may choose, each once for both orders of its speakers; a
        pair with one voice that opens has it first both times."""
        return _pairs(self)

    def find(self, name: str) -> Voice:
        """The voice of this name, in any case. Raises InputError if there is none."""
        for voice in self.voices:
            if voice.name.casefold() == name.casefold():
                return voice
        names = ", ".join(voice.name for voice in self.voices)
        raise InputError(f"This model has no voice {name!r}. Choose one of: {names}.")

    def draw(
        self, seed: int, one: Voice | None = None, two: Voice | None = None
    ) -> tuple[Voice, Voice]:
        """The voices of S1 and S2. They depend on the seed alone, and all `pairs` are equally
        likely. one, two: the voices that a person chose; a speaker without a choice gets one that
        is apart from the other's."""
        pairs = self.pairs
        if one is not None and two is not None:
            return one, two
        if (chosen := one or two) is not None:
            drawn = [voice for voice in self.voices if voice.is_drawn and voice is not chosen]
            others = [voice for voice in drawn if self.are_apart(chosen, voice)] or drawn
            if one:
                others = _that_are_kept(others)
            pairs = tuple((chosen, other) if one else (other, chosen) for other in others)
        return pairs[int(Random(seed).random() * len(pairs))]

    def draw_apart_from(self, seed: int, semitones: float, speaker: int) -> Voice:
        """The voice of S1 or S2 beside one of another pitch (above 100 Hz), who has a voice prompt:
        any that is far enough from that pitch, or the farthest."""
        drawn = [voice for voice in self.voices if voice.is_drawn]
        distances = [abs(voice.semitones - semitones) for voice in drawn]
        least = min(self.semitones_apart, max(distances))
        apart = [voice for voice, far in zip(drawn, distances, strict=True) if far >= least]
        if speaker == 2:
            apart = _that_are_kept(apart)
        return apart[int(Random(seed).random() * len(apart))]


def _that_are_kept(voices: list[Voice]) -> list[Voice]:
    """Those that may be S2's, or all where there are none."""
    return [voice for voice in voices if not voice.opens] or voices


@cache
def _pairs(table: VoiceTable) -> tuple[tuple[Voice, Voice], ...]:
    drawn = [voice for voice in table.voices if voice.is_drawn]
    pairs = (pair for pair in permutations(drawn, 2) if table.are_apart(*pair))
    return tuple((two, one) if two.opens and not one.opens else (one, two) for one, two in pairs)


def parse_voices(
    section: object, channels: int, num_codes: int, heads: int, source: str
) -> VoiceTable:
    """The table of "voices" in a config. Raises InputError that says what is wrong with it."""
    try:
        table = _parse(section, channels, num_codes, heads)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f'{source}: "voices" must have turn_start (codes [frames, {channels}]), silence, '
            f"quiet, {', '.join(NUMBERS)}, and a table of voices with name, mark, semitones and "
            f"envelope; wrong is {error}."
        ) from None
    if not table.pairs:
        raise InputError(f"{source}: no two of its voices are far enough apart for a dialogue.")
    return table


def _parse(section: Any, channels: int, num_codes: int, heads: int) -> VoiceTable:
    section = _instance(section, Mapping, "voices")
    entries = _list(section["table"], MOST_VOICES, "table")
    voices = tuple(
        _voice(_instance(entry, Mapping, "a voice"), channels, num_codes) for entry in entries
    )
    for what in ("name", "mark"):
        if len({getattr(voice, what) for voice in voices}) < len(voices):
            raise ValueError(f"a {what} that two voices have")
    if len({len(voice.envelope) for voice in voices}) > 1:
        raise ValueError("an envelope of another length")
    start = _frames(section["turn_start"], num_codes)
    silence = _frames([section["silence"]], num_codes)[0]
    if not start or {len(frame) for frame in (*start, silence)} != {channels}:
        raise ValueError("turn_start or silence")
    quiet = _frames(section["quiet"], num_codes)
    if not 1 <= len(quiet) <= channels:
        raise ValueError("quiet")
    semitones, envelopes = (_number(section[key]) for key in NUMBERS)
    text_head = _code(section.get("text_head", 0), heads)
    return VoiceTable(voices, start, silence, quiet, semitones, envelopes, text_head)


def _voice(entry: Mapping, channels: int, num_codes: int) -> Voice:
    name = _instance(entry["name"], str, "name")
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise ValueError(f"the name {name[:LONGEST_NAME]!r}")
    envelope = _list(entry["envelope"], MOST_VOICES, "envelope")
    spectrum = _list(entry.get("spectrum", []), SPECTRUM_BANDS, "spectrum")
    if len(spectrum) not in (0, SPECTRUM_BANDS):
        raise ValueError(f"a spectrum of {len(spectrum)} bands and not {SPECTRUM_BANDS}")
    ratios = b64decode(_instance(entry.get("ratios", ""), str, "ratios"), validate=True)
    if len(ratios) not in (0, channels * num_codes):
        raise ValueError(f"the ratios of {len(ratios)} codes and not {channels * num_codes}")
    return Voice(
        name,
        _code(entry["mark"], num_codes),
        _number(entry["semitones"]),
        tuple(_number(number) for number in envelope),
        _instance(entry.get("drawn", True), bool, "drawn"),
        _instance(entry.get("opens", False), bool, "opens"),
        tuple(_number(number) for number in spectrum),
        ratios,
    )


def _frames(value, num_codes: int) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(_code(code, num_codes) for code in _list(codes, num_codes, "codes"))
        for codes in _list(value, MOST_LISTS, "codes")
    )


def _instance(value, kind: type, what: str):
    if not isinstance(value, kind):
        raise TypeError(what)
    return value


def _list(value, longest: int, what: str) -> list:
    if len(_instance(value, list, what)) > longest:
        raise ValueError(f"{what}, which is too long")
    return value


def _number(value) -> float:
    if type(value) not in (int, float) or not isfinite(value):
        raise ValueError(f"the number {str(value)[:20]!r}")
    return float(value)


def _code(value, num_codes: int) -> int:
    if type(value) is not int or not 0 <= value < num_codes:
        raise ValueError(f"the code {str(value)[:20]!r}")
    return value

"""A kind of models (`Family`), and one model as a value (`ModelInfo`).

Requests, the engine and the loaders take a ModelInfo, and ask its family for whatever differs
between kinds of models. The families are in dia_demo/families, which finds the model of a name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dia_demo.checkpoint_files import weight_files
from dia_demo.codec.codec import Codec
from dia_demo.codec.config import CodecFormat
from dia_demo.config import PARAMS, ModelConfig
from dia_demo.engine.row import Row
from dia_demo.errors import InputError
from dia_demo.hub.transfer import RemoteFile
from dia_demo.model.loading import LoadedModel, Stages
from dia_demo.model.packed_cache import ROUNDING, prepared_file, stored_weights_name
from dia_demo.text.checks.checks import NATURAL_SECONDS
from dia_demo.text.checks.script_check import ScriptReport, check_script, with_reading
from dia_demo.text.formats.table import in_turns
from dia_demo.text.normaliser import Reading, normalise, unchanged
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.text.script import SECONDS_PER_CHARACTER

# Markup and spaces may be removed: a script of this many characters may still fit.
_MOST_CHARACTERS_PER_BYTE = 4


@dataclass(frozen=True)
class Profile:
    """What is known of a checkpoint besides its files, in words for people and as estimates.

    short_name and summary: in a sentence. seconds_per_character: its pace; length_deviation: how
    far takes are from it, as the standard deviation of the logarithm of their length. normalises:
    the model gets every script in plain words, because it was trained only on them; otherwise byte
    for byte. natural_seconds: the shortest and longest audio it was made for, if known. hints: the
    useful values of sampling parameters, in words. license: the hub's identifier, and language, if
    known. realtime: seconds of audio per second by precision, as docs/performance.md has them.
    included: its folder, if it is part of the program. is_recommended: the page offers it beside
    the included voice, and says how fast this machine is with it.
    """

    title: str
    note: str
    short_name: str = ""
    summary: str = ""
    seconds_per_character: float = SECONDS_PER_CHARACTER
    length_deviation: float = 0.2
    normalises: bool = False
    natural_seconds: tuple[float, float] | None = NATURAL_SECONDS
    hints: Mapping[str, str] = field(default_factory=dict)
    license: str | None = None
    language: str | None = None
    realtime: Mapping[str, float] = field(default_factory=dict)
    included: Path | None = None
    is_recommended: bool = False


@dataclass(frozen=True)
class Weights:
    """Sizes of a family's models, by their config: numbers of weights, and bytes of memory.

    step: the weights in the linears that every decoder step reads. text: those that only the text
    is multiplied with. tables: those that are looked up. cache_bytes(config, precision, positions):
    of the key/value cache that a step with guidance reads at a position. working_bytes: caches and
    activations of one long take. calibration_bytes: of what calibrating int4 needs besides the
    weights. codec_bytes: of a running codec.
    """

    step: Callable[[ModelConfig], int]
    text: Callable[[ModelConfig], int]
    tables: Callable[[ModelConfig], int]
    cache_bytes: Callable[[ModelConfig, str, int], int]
    working_bytes: Callable[[ModelConfig], int]
    calibration_bytes: Callable[[ModelConfig], int]
    codec_bytes: Callable[[CodecFormat], int]


@dataclass(frozen=True)
class Codecs:
    """How a family's codes become audio. Every function gets a checkpoint's folder.

    format: that of a hub model whose files are not on this machine yet. find: fetches the codec's
    files if necessary; open: loads it as well. is_here: whether nothing has to be fetched, and
    remote_files: what else, with sizes.
    """

    format: CodecFormat
    read_format: Callable[[Path], CodecFormat]
    open: Callable[[Path], Generator[float, None, Codec]]
    find: Callable[[Path], Generator[float, None, Any]]
    is_here: Callable[[Path], bool]
    remote_files: Callable[[Path], Generator[float, None, list[RemoteFile]]]


@dataclass(frozen=True)
class RandomSize:
    """A shape that `bench` measures with random weights. title: for people. load(precision,
    threads): makes the model, and codec(precision=...) its codec. stands_for: the model that has
    the same speed."""

    config: ModelConfig
    title: str
    load: Callable[[str, int], Stages[LoadedModel]]
    codec: Callable[..., Codec]
    stands_for: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Family:
    """What differs between kinds of models.

    is_config: whether a config.json is that of this family. read_config: its sizes, the grid of
    codes (delays, channels, frames a step), limits and defaults; it gets the parsed config.json and
    the folder.

    encode(script, transcript): the text as the model reads it. row: a take while it is generated,
    with the rules by which it is sampled and ends. load(model, precision, threads): the model on
    this CPU. check_files: raises InputError where a downloaded checkpoint is not complete.

    config: that of a hub model whose files are not on this machine yet. profiles: what is known of
    checkpoints, by name, and `other` of all others.
    """

    name: str
    is_config: Callable[[Mapping[str, Any]], bool]
    read_config: Callable[[dict[str, Any], Path], ModelConfig]
    codecs: Codecs
    encode: Callable[[str, str], bytes]
    row: Callable[..., Row]
    load: Callable[[ModelInfo, str, int], Stages[LoadedModel]]
    check_files: Callable[[ModelInfo], None]
    weights: Weights
    config: ModelConfig
    profiles: Mapping[str, Profile]
    other: Profile
    random_sizes: Mapping[str, RandomSize] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelInfo:
    """A model, described before any weight is read.

    name: "nano", a folder, or a hub name. folder: its files; None of a hub model of which nothing
    is on this machine, whose config is then assumed. is_local: it is no hub model, so nothing is
    ever downloaded. codec: the rates of its audio. profile: that of the model it was prepared from.
    """

    name: str
    family: Family
    config: ModelConfig
    codec: CodecFormat
    profile: Profile
    folder: Path | None = None
    is_local: bool = False

    @property
    def title(self) -> str:
        """Its name for people."""
        prepared = self.config.prepared
        title = self.profile.title or self.name
        return title if prepared is None else f"{title}, prepared in {prepared.precision}"

    @property
    def note(self) -> str:
        """A sentence about it."""
        prepared = self.config.prepared
        if prepared is None:
            return self.profile.note
        return f"Weights of {prepared.base}, prepared in {prepared.precision}."

    @property
    def is_embedded(self) -> bool:
        """Whether it is part of the program."""
        return self.folder is not None and self.folder == self.profile.included

    @property
    def is_recommended(self) -> bool:
        """Whether it is the model that the page recommends, itself and not an export of it."""
        return self.profile.is_recommended and self.config.prepared is None

    @property
    def sample_rate(self) -> int:
        return self.codec.sample_rate

    @property
    def frames_per_second(self) -> float:
        return self.codec.frames_per_second

    @property
    def has_weights(self) -> bool:
        """Whether its weights are on this machine, so that nothing is downloaded."""
        try:
            return self.folder is not None and bool(weight_files(self.folder))
        except InputError:
            return False

    def prepared_file(self, precision: str) -> Path:
        """Where its prepared weights in a precision are stored, whether they are or not."""
        assert self.folder is not None, "its files are on this machine"
        return prepared_file(self.folder, precision)

    def stored_weights(self, precision: str) -> str | None:
        """Which rounding its prepared weights have, as in a take's numerics; None where there is
        only one, or none are stored yet."""
        if self.folder is None or precision not in ROUNDING:
            return None
        return stored_weights_name(self.prepared_file(precision))

    def reading(
        self, script: str, in_words: bool = False, pronunciations: Pronunciations = NONE
    ) -> Reading:
        """The script as the model reads it, and what differs from how it was written.

        in_words: normalise it for a model that reads what is written, because a person asked.
        pronunciations: the person's words, said as they wish whatever the model.
        """
        normalises = self.profile.normalises
        longest = _MOST_CHARACTERS_PER_BYTE * self.config.encoder.max_positions
        # A longer script is rejected in any case.
        if not (normalises or in_words) or len(in_turns(script)) > longest:
            return unchanged(script, pronunciations)
        return normalise(script, normalises, pronunciations)

    def check(
        self,
        script: str,
        max_tokens: int,
        transcript: str = "",
        normalise: bool = False,
        pronunciations: Pronunciations = NONE,
    ) -> ScriptReport:
        """The script checker's report for this number of tokens.

        If the script is normalised, the normalised text is checked, and repairs apply to the
        original.
        """
        is_normalised = self.profile.normalises or normalise
        check = partial(
            check_script,
            byte_limit=self.config.encoder.max_positions,
            seconds_per_character=self.profile.seconds_per_character,
            max_seconds=self.seconds_of(max_tokens),
            most_seconds=self.seconds_of(int(PARAMS["max_tokens"].range(self.config).high)),
            transcript=self.reading(transcript, normalise, pronunciations).text,
            natural_seconds=self.profile.natural_seconds,
            is_normalised=is_normalised,
        )
        reading = self.reading(script, normalise, pronunciations)
        if is_normalised:
            read = partial(self.reading, in_words=True, pronunciations=pronunciations)
            return with_reading(check(reading.text), reading, check, lambda text: read(text).text)
        # Only the words of the list differ: findings and their repairs are those of the script.
        size = check(reading.text).num_bytes if reading.changes else None
        report = check(script)
        return report if size is None else replace(report, reading=reading, num_bytes=size)

    def seconds_of(self, max_tokens: int) -> float:
        """Seconds of audio that max_tokens can hold."""
        return max(0, self.config.frames_within(max_tokens)) / self.frames_per_second

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
from dia_demo.codec.files import HUB_FILES
from dia_demo.config import PARAMS, ModelConfig
from dia_demo.engine.rows.base_row import BaseRow
from dia_demo.errors import InputError
from dia_demo.hub.fetch import locate_all
from dia_demo.hub.transfer import RemoteFile
from dia_demo.model.loading import LoadedModel, PreparedModel, Stages
from dia_demo.model.weights.packed_cache import ROUNDING, prepared_file, stored_weights_name
from dia_demo.task import result_of
from dia_demo.text.checks.checks import NATURAL_SECONDS
from dia_demo.text.checks.script_check import ScriptReport, add_reading, check_script
from dia_demo.text.dialogue.pauses import seconds_with_pauses
from dia_demo.text.formats.table import write_turns
from dia_demo.text.normaliser import Reading, read_as_written
from dia_demo.text.normaliser import normalise as plain_words
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.text.script import SECONDS_PER_CHARACTER, expected_seconds

# Markup and spaces may be removed: a script of this many characters may still fit.
_MOST_CHARACTERS_PER_BYTE = 4


@dataclass(frozen=True)
class Profile:
    """What is known of a checkpoint besides its files, in words for people and as estimates.

    short_name and summary: in a sentence. seconds_per_character: its pace; length_deviation: how
    far takes are from it, as the standard deviation of the logarithm of their length. normalises:
    the model gets every script in plain words, because it was trained only on them; otherwise byte
    for byte. natural_seconds: the shortest and longest audio it was made for, if known. hints: the
    useful values of sampling parameters, in words. presets: sampling parameters that differ from
    the defaults, by the name of the preset, measured by tools/measure_presets.py. license: the
    hub's identifier, and language, if known. realtime: seconds of audio per second by precision, as
    docs/performance.md has them.
    batch_exponent: the time of a step grows with the number of takes made at once to this power.
    With weights that are read from memory once for all takes it was 0.5 (8 takes of Dia's size).
    included: its folder, if it is part of the program. is_recommended: the page offers it beside
    the included voice, and says how fast this machine is with it. is_listed: menus have it.
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
    presets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    license: str | None = None
    language: str | None = None
    realtime: Mapping[str, float] = field(default_factory=dict)
    batch_exponent: float = 0.5
    included: Path | None = None
    is_recommended: bool = False
    is_listed: bool = False


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
    """How a family's codes become audio. Every function gets a checkpoint's folder; `open` takes a
    `precision` of decoding as well.

    format: that of a hub model whose files are not on this machine yet. find: fetches the codec's
    files if necessary, unless allow_download is False; open: loads it as well. repository: where
    on the hub it comes from, "" if only from a checkpoint's folder. credit: who made it and under
    which licence, a sentence for the card of an export, where its licence asks for it.
    """

    format: CodecFormat
    read_format: Callable[[Path], CodecFormat]
    open: Callable[..., Generator[float, None, Codec]]
    find: Callable[..., Generator[float, None, Any]]
    repository: str = ""
    credit: str = ""

    def is_here(self, folder: Path) -> bool:
        """Whether the codec of a checkpoint's folder is on this machine. No network."""
        try:
            result_of(self.find(folder, allow_download=False))
        except InputError:
            return False
        return True

    def remote_files(self, folder: Path) -> Generator[float, None, list[RemoteFile]]:
        """What `find` would take from the hub, with sizes; the files of `<folder>/codec` are the
        checkpoint's. Raises InputError where the hub does not say."""
        if not self.repository or (folder / "codec").is_dir() or self.is_here(folder):
            return []
        return (yield from locate_all(self.repository, HUB_FILES))


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
    this CPU; prepare(…): the same in packed form, to be exported. check_files: raises InputError
    where a downloaded checkpoint is not complete.

    config: that of a hub model whose files are not on this machine yet. profiles: what is known of
    checkpoints, by name, and `other` of all others. has_word_times: its takes know when each word
    begins, and its voice prompts need to. makes_pauses: the pauses that a script asks for are a
    part of a take. needs_last_tag: its takes may cut off the last word unless the other speaker's
    tag follows. can_continue_text: a take may begin before its text is complete. files: what a
    checkpoint may have beside config and weights, and a download brings, such as a tokenizer.
    """

    name: str
    is_config: Callable[[Mapping[str, Any]], bool]
    read_config: Callable[[dict[str, Any], Path], ModelConfig]
    codecs: Codecs
    encode: Callable[[str, str], bytes]
    row: Callable[..., BaseRow]
    load: Callable[[ModelInfo, str, int], Stages[LoadedModel]]
    prepare: Callable[[ModelInfo, str, int], Stages[PreparedModel]]
    check_files: Callable[[ModelInfo], None]
    weights: Weights
    config: ModelConfig
    profiles: Mapping[str, Profile]
    other: Profile
    random_sizes: Mapping[str, RandomSize] = field(default_factory=dict)
    has_word_times: bool = False
    makes_pauses: bool = False
    needs_last_tag: bool = True
    can_continue_text: bool = False
    files: tuple[str, ...] = ()


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
    def needs_last_tag(self) -> bool:
        """See Family. A model with voices by name was taught to end without the tag."""
        return self.family.needs_last_tag and self.config.voices is None

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
        self,
        script: str,
        in_words: bool = False,
        pronunciations: Pronunciations = NONE,
        in_parts: bool = False,
    ) -> Reading:
        """The script as the model reads it, and what differs from how it was written.

        in_words: normalise it for a model that reads what is written, because a person asked.
        pronunciations: the person's words, said as they wish whatever the model. in_parts: it may
        be made in parts, between which there are its pauses.
        """
        normalises = self.profile.normalises
        longest = _MOST_CHARACTERS_PER_BYTE * self.config.encoder.max_positions
        # A longer script is rejected in any case.
        if not (normalises or in_words) or len(write_turns(script)) > longest:
            return read_as_written(script, pronunciations)
        return plain_words(script, normalises, pronunciations, in_parts or self.family.makes_pauses)

    def check(
        self,
        script: str,
        max_tokens: int,
        transcript: str = "",
        normalise: bool = False,
        pronunciations: Pronunciations = NONE,
        in_parts: bool = False,
    ) -> ScriptReport:
        """The script checker's report for this number of tokens. in_parts: see `reading`.

        If the script is normalised, the normalised text is checked, and repairs apply to the
        original.
        """
        is_normalised = self.profile.normalises or normalise
        keeps_pauses = in_parts or self.family.makes_pauses
        read = partial(self.reading, pronunciations=pronunciations, in_parts=in_parts)
        check = partial(
            check_script,
            byte_limit=self.config.encoder.max_positions,
            seconds_per_character=self.profile.seconds_per_character,
            max_seconds=self.seconds_of(max_tokens),
            most_seconds=self.seconds_of(int(PARAMS["max_tokens"].range(self.config).high)),
            transcript=read(transcript, normalise).text,
            natural_seconds=self.profile.natural_seconds,
            is_normalised=is_normalised,
            keeps_pauses=keeps_pauses,
            needs_last_tag=self.needs_last_tag,
        )
        reading = read(script, normalise)
        if is_normalised:
            return add_reading(
                check(reading.text),
                reading,
                check,
                lambda text: read(text, True).text,
                lambda text: plain_words(text, keeps_pauses=keeps_pauses).text,
            )
        # Only the words of the list differ: findings and their repairs are those of the script.
        size = check(reading.text).num_bytes if reading.changes else None
        report = check(script)
        return report if size is None else replace(report, reading=reading, num_bytes=size)

    def expected_seconds(self, text: str) -> float:
        """An estimate of how long a take of a text is, in seconds, as the model reads it."""
        seconds = seconds_with_pauses if self.family.makes_pauses else expected_seconds
        return seconds(text, self.profile.seconds_per_character)

    def seconds_of(self, max_tokens: int) -> float:
        """Seconds of audio that max_tokens can hold."""
        return max(0, self.config.frames_within(max_tokens)) / self.frames_per_second

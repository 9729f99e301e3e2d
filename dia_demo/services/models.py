"""The models a person can choose, described before any weight is read."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from dia_demo.checkpoint_config import read_model_config
from dia_demo.checkpoint_files import MANIFEST, weight_files
from dia_demo.codec.config import CodecFormat, check_codec_fits, codec_format
from dia_demo.config import PARAMS, GenerationParams, ModelConfig
from dia_demo.engine.memory import STEP_BYTES, gb, model_bytes, needed_bytes
from dia_demo.errors import InputError
from dia_demo.files import Stamp, file_stamp
from dia_demo.hub.cache import cached_config
from dia_demo.hub.fetch import fetch_config
from dia_demo.model.checkpoint import EMBEDDED, local_folder
from dia_demo.model.packed_cache import ROUNDING, prepared_file, stored_weights_name
from dia_demo.text.checks.checks import NATURAL_SECONDS
from dia_demo.text.checks.script_check import ScriptReport, check_script, with_reading
from dia_demo.text.formats.table import in_turns
from dia_demo.text.normaliser import Reading, normalise, unchanged
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.text.script import SECONDS_PER_CHARACTER

DIA_NAME = "nari-labs/Dia-1.6B-0626"
# The generation defaults of that checkpoint, shown until its own file has been downloaded.
DIA_DEFAULTS = GenerationParams(temperature=1.8, cfg_scale=3.0, top_p=0.90, top_k=45)
# The size of the download from the hub, in float32.
DIA_DOWNLOAD = gb(model_bytes(ModelConfig(), "float32"))
# The memory that a take needs, by precision.
DIA_MEMORY = {precision: gb(needed_bytes(ModelConfig(), precision)) for precision in STEP_BYTES}
# Seconds of audio over seconds of wall time, codec included: docs/performance.md, first table of
# its bench, one utterance on two cores of a Zen 5 server.
DIA_REALTIME = {"bfloat16": 0.20, "int8": 0.34, "int4": 0.61}
# The files that a description is read from.
_DESCRIBING = ("config.json", "generation_config.json", MANIFEST, "codec", "codec/config.json")
# Measured on the examples and scripts of assets/, pauses within turns included.
NANO_SECONDS_PER_CHARACTER = 0.075
# Standard deviations of the logarithm of a take's length over the estimate: of the nano voice
# measured on 15 scripts of 2 to 7 s (0.07), otherwise assumed.
NANO_DEVIATION, DEVIATION = 0.1, 0.2
# What is useful of each range: as measured for the nano voice (its model card), for Dia the ends of
# the sliders in Nari Labs' own demo.
_HINTS = {
    EMBEDDED: {
        "temperature": "Above 1 this voice slurs.",
    },
    DIA_NAME: {
        "temperature": "For Dia-1.6B 1.0 to 2.5 is usual.",
        "cfg_scale": "For Dia-1.6B 1 to 5 is usual.",
        "top_p": "For Dia-1.6B 0.7 to 1 is usual.",
        "top_k": "For Dia-1.6B 15 to 100 is usual.",
    },
}
# Title and note of the models that are known.
_TITLES = {
    EMBEDDED: (
        "Nano voice (embedded)",
        "A small synthetic voice for trying out the program. It is included and needs no "
        "download. Dia-1.6B is the original model.",
    ),
    DIA_NAME: (
        "Dia-1.6B (0626)",
        f"The original model by Nari Labs. It is downloaded once, {DIA_DOWNLOAD}, and a take "
        "needs some minutes on a CPU.",
    ),
}
# Markup and spaces may be removed: a script of this many characters may still fit.
_MOST_CHARACTERS_PER_BYTE = 4


@dataclass(frozen=True)
class ModelInfo:
    """A model. seconds_per_character: an estimate of its pace; length_deviation: how far takes are
    from it, as the standard deviation of the logarithm of their length.

    normalises: the model gets every script in plain words, because it was trained only on them;
    otherwise byte for byte. natural_seconds: the shortest and longest audio it was made for, if
    known. hints: the useful values of sampling parameters, in words, if known.
    """

    name: str
    title: str
    note: str
    config: ModelConfig
    sample_rate: int
    frames_per_second: float
    seconds_per_character: float
    normalises: bool = False
    natural_seconds: tuple[float, float] | None = NATURAL_SECONDS
    hints: Mapping[str, str] = field(default_factory=dict)
    length_deviation: float = DEVIATION

    def reading(
        self, script: str, in_words: bool = False, pronunciations: Pronunciations = NONE
    ) -> Reading:
        """The script as the model reads it, and what differs from how it was written.

        in_words: normalise it for a model that reads what is written, because a person asked.
        pronunciations: the person's words, said as they wish whatever the model.
        """
        longest = _MOST_CHARACTERS_PER_BYTE * self.config.encoder.max_positions
        # A longer script is rejected in any case.
        if not (self.normalises or in_words) or len(in_turns(script)) > longest:
            return unchanged(script, pronunciations)
        return normalise(script, self.normalises, pronunciations)

    def check(
        self,
        script: str,
        max_tokens: int,
        transcript: str = "",
        normalise: bool = False,
        pronunciations: Pronunciations = NONE,
    ) -> ScriptReport:
        """The script checker's report for this number of tokens (see `Synthesis.check`)."""
        check = partial(
            check_script,
            byte_limit=self.config.encoder.max_positions,
            seconds_per_character=self.seconds_per_character,
            max_seconds=self.seconds_of(max_tokens),
            most_seconds=self.seconds_of(int(PARAMS["max_tokens"].range(self.config).high)),
            transcript=self.reading(transcript, normalise, pronunciations).text,
            natural_seconds=self.natural_seconds,
            is_normalised=self.normalises or normalise,
        )
        reading = self.reading(script, normalise, pronunciations)
        if self.normalises or normalise:
            read = partial(self.reading, in_words=True, pronunciations=pronunciations)
            return with_reading(check(reading.text), reading, check, lambda text: read(text).text)
        # Only the words of the list differ: findings and their repairs are those of the script.
        size = check(reading.text).num_bytes if reading.changes else None
        report = check(script)
        return report if size is None else replace(report, reading=reading, num_bytes=size)

    def seconds_of(self, max_tokens: int) -> float:
        """Seconds of audio that max_tokens can hold."""
        return max(0, self.config.frames_within(max_tokens)) / self.frames_per_second


@dataclass(frozen=True)
class ModelRef:
    """A model's name and the folders of its files. Create it with `resolve`.

    local: the folder of "nano", or a folder given as the name. cached: a hub model's folder in the
    hub's cache, which may contain only its config files; None if nothing was downloaded.
    """

    name: str
    local: Path | None
    cached: Path | None

    @classmethod
    def resolve(cls, name: str) -> ModelRef:
        """Raises InputError if `name` is neither "nano", nor a folder, nor a hub name."""
        local = local_folder(name)
        return cls(name, local, cached_config(name) if local is None else None)

    @property
    def folder(self) -> Path | None:
        """The folder with its config files on this machine, None without them."""
        return self.local or self.cached

    @property
    def has_weights(self) -> bool:
        """Whether its weights are on this machine, so that nothing is downloaded."""
        try:
            return self.folder is not None and bool(weight_files(self.folder))
        except InputError:
            return False

    def stored_weights(self, precision: str) -> str | None:
        """Which rounding its prepared weights have, as in a take's numerics; None where there is
        only one, or none are stored yet."""
        if self.folder is None or precision not in ROUNDING:
            return None
        return stored_weights_name(prepared_file(self.folder, precision))

    def describe(self) -> ModelInfo:
        """A description without network access. Its files are read again when they change."""
        if self.folder is None:
            return self._as_dia()
        stamps = tuple(map(file_stamp, (self.folder / name for name in _DESCRIBING)))
        return _of_folder(self.name, self.folder, stamps)

    def describe_choice(self) -> ModelInfo:
        """`describe` for a menu, which a hub model with an unusable config must not empty: what is
        wrong with it is the download's and the take's to say."""
        try:
            return self.describe()
        except InputError:
            if self.local is not None:
                raise
            return self._as_dia()

    def _as_dia(self) -> ModelInfo:
        config = replace(ModelConfig(), defaults=DIA_DEFAULTS)
        return _info(self.name, config, CodecFormat())


def first_choice(start: str) -> str:
    """The model that a page begins with: `start`, or the embedded voice if `start` has to be
    downloaded."""
    ref = ModelRef.resolve(start)
    return start if ref.local or ref.has_weights else EMBEDDED


def choices(listed: Sequence[str], start: str) -> list[ModelInfo]:
    """The listed models, and the model the app was started with."""
    first = [] if first_choice(start) == start else [EMBEDDED]
    names = dict.fromkeys([*first, *listed, start])
    return [ModelRef.resolve(name).describe_choice() for name in names]


def fetch_description(name: str) -> Generator[float, None, ModelInfo]:
    """A model's description. Downloads the config files of a hub model first and yields the
    fraction done."""
    if ModelRef.resolve(name).local is None:
        yield from fetch_config(name)
    return ModelRef.resolve(name).describe()


@lru_cache(maxsize=64)
def _of_folder(name: str, folder: Path, _stamps: tuple[Stamp | None, ...]) -> ModelInfo:
    """The description from a folder's files. `_stamps` changes with them and is a cache key."""
    config, codec = read_model_config(folder), codec_format(folder)
    if (folder / "codec").is_dir():
        check_codec_fits(config, codec, str(folder))
    return _info(name, config, codec)


def _info(name: str, config: ModelConfig, codec: CodecFormat) -> ModelInfo:
    # What prepared weights were made from speaks alike.
    original = name if config.prepared is None else config.prepared.base
    embedded = original == EMBEDDED
    title, note = _TITLES.get(original, (name, "A Dia checkpoint of your own."))
    if config.prepared is not None:
        title += f", prepared in {config.prepared.precision}"
        note = f"Weights of {original}, prepared in {config.prepared.precision}."
    pace = NANO_SECONDS_PER_CHARACTER if embedded else SECONDS_PER_CHARACTER
    return ModelInfo(
        name,
        title,
        note,
        config,
        codec.sample_rate,
        codec.frames_per_second,
        pace,
        normalises=embedded,
        natural_seconds=None if embedded else NATURAL_SECONDS,
        hints=_HINTS.get(original, {}),
        length_deviation=NANO_DEVIATION if embedded else DEVIATION,
    )

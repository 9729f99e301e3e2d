"""The models a person can choose, described before any weight is read."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path

from dia_demo.checkpoint_config import read_model_config
from dia_demo.codec.config import CodecFormat, check_codec_fits, codec_format
from dia_demo.config import GenerationParams, ModelConfig
from dia_demo.engine.memory import STEP_BYTES, gb, model_bytes, needed_bytes
from dia_demo.hub import cached_config, fetch_config
from dia_demo.model.checkpoint import EMBEDDED, local_folder
from dia_demo.text.normaliser import plain_characters
from dia_demo.text.script import SECONDS_PER_CHARACTER

DIA_NAME = "nari-labs/Dia-1.6B-0626"
# Generation defaults of that checkpoint on the hub, shown until its own file is here.
DIA_DEFAULTS = GenerationParams(temperature=1.8, cfg_scale=3.0, top_p=0.90, top_k=45)
# What is fetched from the hub, in float32.
DIA_DOWNLOAD = gb(model_bytes(ModelConfig(), "float32"))
# The memory that a take needs, by precision.
DIA_MEMORY = {precision: gb(needed_bytes(ModelConfig(), precision)) for precision in STEP_BYTES}
# Seconds of audio over seconds of wall time, codec included: docs/performance.md, first table of
# its bench, one utterance on two cores of a Zen 5 server.
DIA_REALTIME = {"bfloat16": 0.20, "int8": 0.34, "int4": 0.71}
# Measured on its held-out sentences: its phones have fixed lengths.
NANO_SECONDS_PER_CHARACTER = 0.065


@dataclass(frozen=True)
class ModelInfo:
    """One choice. `seconds_per_character` is an estimate of its pace.

    normalises: scripts reach the model in plain characters, which are all it was taught; without
    it they reach the model byte for byte.
    """

    name: str
    title: str
    note: str
    config: ModelConfig
    sample_rate: int
    frames_per_second: float
    seconds_per_character: float
    normalises: bool = False

    def as_read(self, script: str) -> str:
        """The script as the model reads it."""
        return plain_characters(script) if self.normalises else script

    def seconds_of(self, max_tokens: int) -> float:
        """Seconds of audio that max_tokens can hold."""
        return max(0, self.config.frames_within(max_tokens)) / self.frames_per_second


def choices(current: str) -> list[ModelInfo]:
    """The embedded voice, Dia-1.6B, and whatever else the app was started with."""
    names = list(dict.fromkeys([EMBEDDED, DIA_NAME, current]))
    return [describe(name) for name in names]


def describe(name: str) -> ModelInfo:
    """What is known of a model without the network; InputError where there is no such model."""
    folder = local_folder(name) or cached_config(name)
    if folder is not None:
        return _of_folder(name, folder)
    config = replace(ModelConfig(), defaults=DIA_DEFAULTS)
    return _info(name, config, CodecFormat())


def fetch_description(name: str) -> Generator[float, None, ModelInfo]:
    """Like `describe`, but fetches a hub model's config files first; yields the fraction done."""
    folder = local_folder(name)
    if folder is None:
        folder = yield from fetch_config(name)
    return _of_folder(name, folder)


def _of_folder(name: str, folder: Path) -> ModelInfo:
    config, codec = read_model_config(folder), codec_format(folder)
    if (folder / "codec").is_dir():
        check_codec_fits(config, codec, str(folder))
    return _info(name, config, codec)


def _info(name: str, config: ModelConfig, codec: CodecFormat) -> ModelInfo:
    titles = {
        EMBEDDED: (
            "Nano voice (embedded)",
            "A small synthetic voice made for trying things: it ships with the app and needs no "
            "download. Dia-1.6B is the real one.",
        ),
        DIA_NAME: (
            "Dia-1.6B (0626)",
            f"The real model by Nari Labs: {DIA_DOWNLOAD} are fetched from the hub the first time, "
            "and a CPU needs a while for each take.",
        ),
    }
    title, note = titles.get(name, (name, "A Dia checkpoint of your own."))
    embedded = name == EMBEDDED
    pace = NANO_SECONDS_PER_CHARACTER if embedded else SECONDS_PER_CHARACTER
    rates = codec.sample_rate, codec.frames_per_second
    return ModelInfo(name, title, note, config, *rates, pace, normalises=embedded)

"""Settings with three lifetimes, which never mix.

`ModelConfig` describes a checkpoint (`checkpoint_config` reads it), `RuntimeConfig` how a model
runs on this machine, `GenerationParams` how one row (one take) is sampled. No torch here.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from dia_demo.errors import InputError
from dia_demo.voices import VoiceTable

# "int8+int5" is for models of two parts (Dia2): the format of the first part, and of the second.
PRECISIONS = ("auto", "float32", "bfloat16", "int8", "int8+int5", "int4")
ONE_PART = tuple(name for name in PRECISIONS[1:] if "+" not in name)
# cuda goes through the same self-check as xpu; the page does not offer it.
DEVICES = ("cpu", "xpu", "cuda")


@dataclass(frozen=True)
class Range:
    """Allowed values of one number, both ends included; in Annotated, pydantic checks it."""

    low: float
    high: float
    whole: bool = False

    def check(self, name: str, value: Any) -> Any:
        """The number, an int where `whole`. Raises InputError with field, value and range."""
        try:
            return self._parse(value)
        except ValueError as error:
            raise InputError(f"{name} {error}") from None

    def _parse(self, value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and self.low <= value <= self.high and (not self.whole or value == int(value)):
            return int(value) if self.whole else float(value)
        kind = "a whole number" if self.whole else "a number"
        raise ValueError(f"must be {kind} from {self.low:.10g} to {self.high:.10g}, not {value!r}.")

    def __get_pydantic_core_schema__(self, _kind: Any, _handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self._parse)


SEED_LIMIT = 2**32 - 1
# What the CFG scale may be with an ordinary checkpoint.
LARGEST_CFG_SCALES = (0.0, 20.0)


@dataclass(frozen=True)
class ParamSpec:
    """A sampling parameter as the page, the command line and the API offer it.

    allowed: its range, which may depend on the model. step: of its slider and number fields; None:
    it has no slider. advanced: under "More" on the page. saved_as: its key in
    `generation_config.json`, if it is another.
    """

    default: float
    label: str
    help: str
    allowed: Range | Callable[[ModelConfig], Range]
    step: float | None = None
    advanced: bool = False
    saved_as: str = ""

    @property
    def is_whole(self) -> bool:
        return isinstance(self.default, int)

    def range(self, config: ModelConfig) -> Range:
        """What the parameter may be with this checkpoint."""
        return self.allowed if isinstance(self.allowed, Range) else self.allowed(config)


def _param(spec: ParamSpec) -> Any:
    return field(default=spec.default, metadata={"spec": spec})


@dataclass(frozen=True)
class GenerationParams:
    """How one row is sampled. Every field is an entry of `PARAMS`.

    temperature: 0 is greedy. cfg_scale: guided = cond + cfg_scale * (cond - uncond), so 0 is off,
    in Dia; in Dia2 (model/dia2/drawing.py) 1 is off. text_temperature: of Dia2's actions alone.
    top_k counts the codes kept per channel; top_p is the probability mass kept. max_tokens is an
    absolute position: it includes a voice prompt and the tail that undoes the delays.
    """

    temperature: float = _param(
        ParamSpec(
            1.2,
            "Temperature",
            "Low is steady, high is lively but less reliable; 0 turns sampling off.",
            Range(0.0, 5.0),
            step=0.05,
        )
    )
    cfg_scale: float = _param(
        ParamSpec(
            3.0,
            "CFG scale",
            "How closely the speech follows the script.",
            lambda config: Range(*config.cfg_scales),
            step=0.1,
            saved_as="guidance_scale",
        )
    )
    top_p: float = _param(
        ParamSpec(
            0.95,
            "Top-p",
            "Excludes the least likely sounds; 1 excludes none.",
            Range(0.01, 1.0),
            step=0.01,
            advanced=True,
        )
    )
    top_k: int = _param(
        ParamSpec(
            45,
            "Top-k",
            "The number of sounds to choose from at each step.",
            lambda config: Range(1, config.decoder.vocab_size, whole=True),
            step=1,
            advanced=True,
        )
    )
    max_tokens: int = _param(
        ParamSpec(
            3072,
            "Max tokens",
            "The length at which the take is cut off.",
            lambda config: Range(
                config.shortest_max_tokens, config.decoder.max_positions, whole=True
            ),
            step=1,
            saved_as="max_length",
        )
    )
    seed: int = _param(
        ParamSpec(
            0,
            "Seed",
            "The same seed with the same settings repeats a take.",
            Range(0, SEED_LIMIT, whole=True),
        )
    )
    text_temperature: float = _param(
        ParamSpec(
            0.6,
            "Text temperature",
            "How freely the model places its words in time; 0 turns sampling off.",
            Range(0.0, 5.0),
            step=0.05,
        )
    )

    def check(self, config: ModelConfig) -> GenerationParams:
        """The same parameters, or an InputError that names the first field out of range."""
        for name, allowed in self.limits(config).items():
            allowed.check(name, getattr(self, name))
        whole = {name: int(getattr(self, name)) for name, spec in PARAMS.items() if spec.is_whole}
        return replace(self, **whole)

    @staticmethod
    def check_known(names: Iterable[str], config: ModelConfig) -> None:
        """Raise InputError for a parameter that means nothing to this model."""
        if unknown := [name for name in names if name not in config.params]:
            raise InputError(
                f"This model has no {unknown[0].replace('_', ' ')}: leave it out. It has "
                f"{', '.join(config.params)}."
            )

    @staticmethod
    def limits(config: ModelConfig) -> dict[str, Range]:
        """What each field may be with this checkpoint."""
        return {name: spec.range(config) for name, spec in PARAMS.items()}


# Sliders, options of the command line, arguments of the API and fields of a comparison are
# generated from this.
PARAMS: dict[str, ParamSpec] = {
    param.name: param.metadata["spec"] for param in fields(GenerationParams)
}


@dataclass(frozen=True)
class RuntimeConfig:
    """Which model runs where and how. threads: None for one per core granted to the process.

    insist: run on an accelerator even though it was slower than the CPU in the self-check.
    """

    model: str = "nano"
    precision: str = "auto"
    device: str = "cpu"
    threads: int | None = None
    insist: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (("precision", PRECISIONS), ("device", DEVICES)):
            value = getattr(self, name)
            if value not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")
        if self.threads is not None:
            Range(1, 1024, whole=True).check("threads", self.threads)


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of the text encoder. `max_positions` is the longest text in bytes."""

    num_layers: int = 12
    hidden_size: int = 1024
    num_heads: int = 16
    num_kv_heads: int = 16
    head_dim: int = 128
    intermediate_size: int = 4096
    vocab_size: int = 256
    max_positions: int = 1024
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of the audio decoder and its special codes. `max_positions` counts frames."""

    num_layers: int = 18
    hidden_size: int = 2048
    num_heads: int = 16
    num_kv_heads: int = 4
    head_dim: int = 128
    cross_num_heads: int = 16
    cross_num_kv_heads: int = 16
    cross_head_dim: int = 128
    intermediate_size: int = 8192
    vocab_size: int = 1028
    max_positions: int = 3072
    num_channels: int = 9
    eos: int = 1024
    pad: int = 1025
    bos: int = 1026
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0


@dataclass(frozen=True)
class PreparedWeights:
    """What the folder of an export contains: weights in one precision, and the model they are of.

    base: a hub name, "nano", or "./" and the name of a folder.
    """

    precision: str
    base: str


@dataclass(frozen=True)
class ModelConfig:
    """A Dia checkpoint's shape. The defaults are those of Dia-1.6B-0626.

    guidance_scales: the CFG scales of the vectors in a checkpoint whose guidance is distilled: the
    model was trained to give guided logits itself, for every scale between the first and the last.
    Empty for an ordinary checkpoint.
    frames_per_step: frames that one pass of the decoder reads and gives; 1 for an ordinary one.
    prepared: None for original weights, which can be loaded in every precision.
    voices: those that the checkpoint was taught by name; None for Dia itself, whose voices a seed
    chooses by what it samples first.
    """

    encoder: EncoderConfig = EncoderConfig()
    decoder: DecoderConfig = DecoderConfig()
    delay_pattern: tuple[int, ...] = (0, 8, 9, 10, 11, 12, 13, 14, 15)
    defaults: GenerationParams = GenerationParams()
    guidance_scales: tuple[float, ...] = ()
    frames_per_step: int = 1
    prepared: PreparedWeights | None = None
    voices: VoiceTable | None = None

    @property
    def params(self) -> tuple[str, ...]:
        """The sampling parameters that mean something to this model."""
        return tuple(name for name in PARAMS if name != "text_temperature")

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions in which the weights can be loaded, most bits first."""
        return ONE_PART if self.prepared is None else (self.prepared.precision,)

    @property
    def cfg_scales(self) -> tuple[float, float]:
        """The smallest and the largest CFG scale that this checkpoint can be sampled with."""
        scales = self.guidance_scales or LARGEST_CFG_SCALES
        return scales[0], scales[-1]

    @property
    def guided_branches(self) -> int:
        """Sequences that a row with guidance is computed as: conditional and unconditional, or one
        where guidance is distilled."""
        return 1 if self.guidance_scales else 2

    def branches(self, cfg_scale: float) -> int:
        """Sequences that a row with this CFG scale is computed as."""
        return 1 if cfg_scale == 0 else self.guided_branches

    @property
    def codes_per_step(self) -> int:
        """Codes that a step of one sequence reads: those of all channels, of each of its frames."""
        return self.frames_per_step * self.decoder.num_channels

    def steps_within(self, positions: int) -> int:
        """Steps of a row of this many positions."""
        return -(-positions // self.frames_per_step)

    @property
    def light_steps(self) -> int:
        """How many first steps are shorter: they draw codes that nobody reads, by the delays."""
        return 0

    @property
    def max_delay(self) -> int:
        return max(self.delay_pattern)

    @property
    def num_codes(self) -> int:
        """Codes below this are audio; EOS, PAD and BOS follow."""
        return self.decoder.eos

    @property
    def shortest_max_tokens(self) -> int:
        """BOS, one frame, and the tail that undoes the delays."""
        return self.max_delay + 2

    def frames_within(self, max_tokens: int, prompt_frames: int = 0) -> int:
        """New audio frames a row can yield before `max_tokens` cuts it."""
        return max_tokens - self.max_delay - 1 - prompt_frames


def random_seed() -> int:
    """A seed where none was given."""
    return secrets.randbelow(SEED_LIMIT + 1)

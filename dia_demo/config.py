"""Settings in three lifetimes, which never mix.

`ModelConfig` comes from a checkpoint and describes it; `RuntimeConfig` says how a model runs on
this machine; `GenerationParams` belongs to one row (one take). No torch here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from dia_demo.errors import InputError
from dia_demo.untrusted import read_json

PRECISIONS = ("auto", "float32", "bfloat16", "int8", "int4")
# cuda goes through the same self-check as xpu; the page does not offer it.
DEVICES = ("cpu", "xpu", "cuda")


@dataclass(frozen=True)
class Range:
    """Allowed values of one number, both ends included."""

    low: float
    high: float
    whole: bool = False

    def check(self, name: str, value: float) -> None:
        """Raise InputError, naming the field, the value and the range, unless `value` is inside."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and self.low <= value <= self.high and (not self.whole or value == int(value)):
            return
        kind = "a whole number" if self.whole else "a number"
        raise InputError(
            f"{name} must be {kind} from {self.low:.10g} to {self.high:.10g}, not {value!r}."
        )


SEED_LIMIT = 2**32 - 1
_ABOVE_ZERO = Range(1e-30, 1e30)


@dataclass(frozen=True)
class GenerationParams:
    """How one row is sampled.

    temperature: 0 is greedy. cfg_scale: guided = cond + cfg_scale * (cond - uncond), so 0 is off.
    top_k counts the codes kept per channel; top_p is the probability mass kept. max_tokens is an
    absolute position: it includes a voice prompt and the tail that undoes the delays.
    """

    temperature: float = 1.2
    cfg_scale: float = 3.0
    top_p: float = 0.95
    top_k: int = 45
    max_tokens: int = 3072
    seed: int = 0

    def checked(self, config: ModelConfig) -> GenerationParams:
        """The same parameters, or an InputError that names the first field out of range."""
        for name, allowed in self.limits(config).items():
            allowed.check(name, getattr(self, name))
        whole = ("top_k", "max_tokens", "seed")
        return replace(self, **{name: int(getattr(self, name)) for name in whole})

    @staticmethod
    def limits(config: ModelConfig) -> dict[str, Range]:
        """What each field may be with this checkpoint."""
        return {
            "temperature": Range(0.0, 5.0),
            "cfg_scale": Range(0.0, 20.0),
            "top_p": Range(0.01, 1.0),
            "top_k": Range(1, config.decoder.vocab_size, whole=True),
            "max_tokens": Range(
                config.shortest_max_tokens, config.decoder.max_positions, whole=True
            ),
            "seed": Range(0, SEED_LIMIT, whole=True),
        }


@dataclass(frozen=True)
class RuntimeConfig:
    """Which model runs where and how. `threads` None means one per core really granted.

    insist: run on an accelerator although it was slower than the CPU in its race.
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
class ModelConfig:
    """A Dia checkpoint's shape. The defaults are those of Dia-1.6B-0626."""

    encoder: EncoderConfig = EncoderConfig()
    decoder: DecoderConfig = DecoderConfig()
    delay_pattern: tuple[int, ...] = (0, 8, 9, 10, 11, 12, 13, 14, 15)
    defaults: GenerationParams = GenerationParams()

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

    @classmethod
    def from_folder(cls, folder: Path) -> ModelConfig:
        """Read `config.json` and, where there is one, `generation_config.json`.

        Raises InputError when a file is missing, is not JSON, or describes another model.
        """
        config = cls.from_dict(read_json(folder / "config.json"), str(folder / "config.json"))
        generation = folder / "generation_config.json"
        if not generation.is_file():
            return config
        return replace(config, defaults=_defaults(read_json(generation), config, str(generation)))

    @classmethod
    def from_dict(cls, raw: dict, source: str = "config.json") -> ModelConfig:
        """From the parsed config of transformers or of nari-labs/dia (2025-06 and later).

        Raises InputError for the April 2025 layout (its decoder and sampler differ), for any
        other model, and for sizes that contradict one another.
        """
        _refuse_other_generations(raw, source)
        encoder = _section(raw, "encoder_config", EncoderConfig, _ENCODER_KEYS, source)
        decoder = _section(raw, "decoder_config", DecoderConfig, _DECODER_KEYS, source)
        # Checkpoints of mid-2025 keep the special codes at the top level.
        decoder = replace(decoder, **_sizes(raw, _SPECIAL_KEYS, source))
        delays = _delays(raw.get("delay_pattern"), source) or cls.delay_pattern
        config = cls(encoder=encoder, decoder=decoder, delay_pattern=delays)
        cross_width = _table(raw, "decoder_config", source).get("cross_hidden_size")
        _check_sizes(config, cross_width, source)
        limit = config.decoder.max_positions
        defaults = replace(cls.defaults, max_tokens=limit, top_k=min(45, decoder.vocab_size))
        return replace(config, defaults=defaults)


# Far above any Dia. Nothing is built of larger sizes, which are a mistake or an attack.
LARGEST_SIZE = 2**20
LARGEST_SIZES = {"num_hidden_layers": 1000, "num_channels": 100}

_ENCODER_KEYS = {
    "num_hidden_layers": "num_layers",
    "hidden_size": "hidden_size",
    "num_attention_heads": "num_heads",
    "num_key_value_heads": "num_kv_heads",
    "head_dim": "head_dim",
    "intermediate_size": "intermediate_size",
    "vocab_size": "vocab_size",
    "max_position_embeddings": "max_positions",
}
_SPECIAL_KEYS = {"eos_token_id": "eos", "pad_token_id": "pad", "bos_token_id": "bos"}
_DECODER_KEYS = (
    _ENCODER_KEYS
    | _SPECIAL_KEYS
    | {
        "cross_num_attention_heads": "cross_num_heads",
        "cross_num_key_value_heads": "cross_num_kv_heads",
        "cross_head_dim": "cross_head_dim",
        "num_channels": "num_channels",
    }
)


def _refuse_other_generations(raw: dict, source: str) -> None:
    if isinstance(raw.get("model"), dict) and isinstance(raw.get("data"), dict):
        raise InputError(
            f"{source} is the layout of Dia-1.6B of April 2025. That generation rotates its "
            "cross-attention and samples differently, so its weights give noise here; use "
            "nari-labs/Dia-1.6B-0626 instead."
        )
    if raw.get("model_type", "dia") != "dia" or "decoder_config" not in raw:
        kind = raw.get("model_type", "unknown")
        raise InputError(f"{source} describes a model of type {kind!r}, not a Dia checkpoint.")


def _section(raw: dict, name: str, cls, keys: dict[str, str], source: str):
    """One part's sizes. Keys that do not shape the computation are left alone."""
    section = _table(raw, name, source)
    where = f"{source}, {name}"
    values = _sizes(section, keys, where)
    if "num_heads" in values and "num_kv_heads" not in values:
        values["num_kv_heads"] = values["num_heads"]
    # transformers wrote rope_scaling (null for plain rotary positions) before rope_parameters.
    rope = _table(section, "rope_parameters", where) or _table(section, "rope_scaling", where)
    kinds = {
        "hidden_act": (section.get("hidden_act", "silu"), "silu"),
        "rope_type": (rope.get("rope_type", rope.get("type", "default")), "default"),
    }
    for key, (found, supported) in kinds.items():
        if found != supported:
            raise InputError(f"{where}: {key} {found!r} is not Dia's {supported!r}.")
    numbers = {
        "norm_eps": (section.get("norm_eps"), raw.get("norm_eps"), cls.norm_eps),
        "rope_theta": (rope.get("rope_theta"), section.get("rope_theta"), cls.rope_theta),
    }
    for key, places in numbers.items():
        values[key] = next(value for value in places if value is not None)
        _ABOVE_ZERO.check(f"{where}: {key}", values[key])
    return cls(**values)


def _table(raw: dict, name: str, source: str) -> dict:
    """A part of a config that may be left out or null."""
    found = raw.get(name)
    if found is not None and not isinstance(found, dict):
        raise InputError(f"{source}: {name} must be a JSON object, not {found!r}.")
    return found or {}


def _sizes(raw: dict, keys: dict[str, str], source: str) -> dict[str, int]:
    """Those of `keys` that are there, under our names."""
    found = {theirs: raw[theirs] for theirs in keys if raw.get(theirs) is not None}
    wrong = {
        key: value
        for key, value in found.items()
        if type(value) is not int or not 1 <= value <= LARGEST_SIZES.get(key, LARGEST_SIZE)
    }
    if wrong:
        told = ", ".join(
            f"{key} is {value!r} (allowed: 1 to {LARGEST_SIZES.get(key, LARGEST_SIZE):,})"
            for key, value in wrong.items()
        )
        raise InputError(f"{source}: sizes must be positive whole numbers, but {told}.")
    return {keys[theirs]: value for theirs, value in found.items()}


def _delays(found: object, source: str) -> tuple[int, ...] | None:
    if found is None:
        return None
    if not isinstance(found, list) or not all(type(lag) is int and lag >= 0 for lag in found):
        raise InputError(f"{source}: delay_pattern must list whole numbers from 0, not {found!r}.")
    if not found or found[0] != 0:
        raise InputError(f"{source}: delay_pattern must start with 0, not {found!r}.")
    return tuple(found)


def _check_sizes(config: ModelConfig, cross_width: int | None, source: str) -> None:
    encoder, decoder = config.encoder, config.decoder
    specials = (decoder.eos, decoder.pad, decoder.bos)
    text_width = encoder.hidden_size if cross_width is None else cross_width
    problems = {
        "cross_hidden_size is not the encoder's hidden_size": text_width != encoder.hidden_size,
        "delay_pattern and num_channels differ in length": (
            len(config.delay_pattern) != decoder.num_channels
        ),
        "heads must be a multiple of key/value heads": (
            encoder.num_heads % encoder.num_kv_heads
            or decoder.num_heads % decoder.num_kv_heads
            or decoder.cross_num_heads % decoder.cross_num_kv_heads
        ),
        "head_dim must be even": encoder.head_dim % 2 or decoder.head_dim % 2,
        "eos, pad and bos must differ, follow the codes and lie inside the vocabulary": (
            len(set(specials)) < 3
            or max(specials) >= decoder.vocab_size
            or decoder.eos != min(specials)
        ),
        "text needs a vocabulary of 256 bytes": encoder.vocab_size < 256,
        "max_position_embeddings leaves no room for a frame": (
            decoder.max_positions < config.shortest_max_tokens
        ),
    }
    found = [problem for problem, there in problems.items() if there]
    if found:
        raise InputError(f"{source} does not fit together: {'; '.join(found)}.")


def _defaults(raw: dict, config: ModelConfig, source: str) -> GenerationParams:
    names = {"guidance_scale": "cfg_scale", "max_length": "max_tokens"}
    known = {field.name for field in fields(GenerationParams)} - {"seed"}
    given = {names.get(key, key): value for key, value in raw.items() if value is not None}
    values = {key: value for key, value in given.items() if key in known}
    limit = config.decoder.max_positions
    if isinstance(values.get("max_tokens"), int | float):
        values["max_tokens"] = min(values["max_tokens"], limit)
    try:
        return replace(config.defaults, **values).checked(config)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None

"""Reads a checkpoint's `config.json` and `generation_config.json` into a `ModelConfig`.

Two layouts of `config.json` are supported: that of transformers and that of nari-labs/dia.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from dia_demo.checkpoint_files import ADAPTER, ADAPTER_CONFIG, QUANT_METHOD, check_configs
from dia_demo.config import (
    LARGEST_CFG_SCALES,
    PARAMS,
    PRECISIONS,
    DecoderConfig,
    EncoderConfig,
    GenerationParams,
    ModelConfig,
    PreparedWeights,
    Range,
)
from dia_demo.errors import InputError
from dia_demo.untrusted import read_json
from dia_demo.voices import VoiceTable, parse_voices

T = TypeVar("T", EncoderConfig, DecoderConfig)

# Far above any Dia. Larger sizes are a mistake or an attack, and are rejected before allocation.
LARGEST_SIZE = 2**20
LARGEST_SIZES = {"num_hidden_layers": 1000, "num_channels": 100}

# More would make a table larger than what it stands for.
MOST_GUIDANCE_SCALES = 64
FRAMES_PER_STEP = Range(1, 4, whole=True)

# The longest name of a base model that is shown.
LONGEST_NAME = 200

_ABOVE_ZERO = Range(1e-30, 1e30)

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


def read_config_file(folder: Path) -> dict[str, Any]:
    """The parsed `config.json` of a checkpoint's folder.

    Raises InputError where it is missing or not JSON, where it is not as the folder's manifest
    lists it, if there is one, and for the folder of a LoRA adapter.
    """
    check_configs(folder)
    if (folder / ADAPTER_CONFIG).is_file():
        raise InputError(f"{folder} contains {ADAPTER_CONFIG}: {ADAPTER}")
    return read_json(folder / "config.json")


def read_model_config(folder: Path) -> ModelConfig:
    """The config of a checkpoint in `folder`. Raises as `read_config_file` and `parse_checkpoint`
    do."""
    return parse_checkpoint(read_config_file(folder), folder)


def parse_checkpoint(raw: dict[str, Any], folder: Path) -> ModelConfig:
    """The config from the parsed `config.json` of a folder, and from its `generation_config.json`
    where there is one. Raises InputError as `parse_model_config` does."""
    config = parse_model_config(raw, str(folder / "config.json"))
    generation = folder / "generation_config.json"
    if not generation.is_file():
        return config
    return replace(config, defaults=_defaults(read_json(generation), config, str(generation)))


def parse_model_config(raw: dict, source: str = "config.json") -> ModelConfig:
    """Convert the parsed `config.json` of transformers or of nari-labs/dia (2025-06 and later).

    Raises InputError for the April 2025 layout (its decoder and sampler differ), for any
    other model, and for sizes that contradict one another.
    """
    _refuse_other_generations(raw, source)
    encoder = _section(raw, "encoder_config", EncoderConfig, _ENCODER_KEYS, source)
    decoder = _section(raw, "decoder_config", DecoderConfig, _DECODER_KEYS, source)
    # Checkpoints of mid-2025 keep the special codes at the top level.
    decoder = replace(decoder, **_sizes(raw, _SPECIAL_KEYS, source))
    delays = _delays(raw.get("delay_pattern"), source) or ModelConfig.delay_pattern
    config = ModelConfig(
        encoder=encoder,
        decoder=decoder,
        delay_pattern=delays,
        guidance_scales=_guidance_scales(raw, source),
        frames_per_step=FRAMES_PER_STEP.check(
            f"{source}: frames_per_step", raw.get("frames_per_step", 1)
        ),
        prepared=prepared_weights(raw, source),
    )
    cross_width = get_table(raw, "decoder_config", source).get("cross_hidden_size")
    _check_sizes(config, cross_width, source)
    config = replace(config, voices=_voices(raw, config, source))
    limit = config.decoder.max_positions
    low, high = config.cfg_scales
    defaults = replace(
        ModelConfig.defaults,
        cfg_scale=min(max(ModelConfig.defaults.cfg_scale, low), high),
        max_tokens=limit,
        top_k=min(45, decoder.vocab_size),
    )
    return replace(config, defaults=defaults)


def _refuse_other_generations(raw: dict, source: str) -> None:
    if isinstance(raw.get("model"), dict) and isinstance(raw.get("data"), dict):
        raise InputError(
            f"{source} has the layout of Dia-1.6B of April 2025. That version rotates its "
            "cross-attention and samples differently, so its weights would produce noise here: use "
            "nari-labs/Dia-1.6B-0626 instead."
        )
    if raw.get("model_type", "dia") != "dia" or "decoder_config" not in raw:
        kind = raw.get("model_type", "unknown")
        raise InputError(f"{source} describes a model of type {kind!r}, not a Dia checkpoint.")


def _section(raw: dict, name: str, cls: type[T], keys: dict[str, str], source: str) -> T:
    """The encoder's or decoder's config. Keys that do not affect the computation are ignored."""
    section = get_table(raw, name, source)
    where = f"{source}, {name}"
    values: dict[str, Any] = dict(_sizes(section, keys, where))
    if "num_heads" in values and "num_kv_heads" not in values:
        values["num_kv_heads"] = values["num_heads"]
    # transformers wrote rope_scaling (null for plain rotary positions) before rope_parameters.
    rope = get_table(section, "rope_parameters", where) or get_table(section, "rope_scaling", where)
    kinds = {
        "hidden_act": (section.get("hidden_act", "silu"), "silu"),
        "rope_type": (rope.get("rope_type", rope.get("type", "default")), "default"),
    }
    for key, (value, supported) in kinds.items():
        if value != supported:
            raise InputError(f"{where}: {key} must be {supported!r}, as in Dia, not {value!r}.")
    numbers = {
        "norm_eps": (section.get("norm_eps"), raw.get("norm_eps"), cls.norm_eps),
        "rope_theta": (rope.get("rope_theta"), section.get("rope_theta"), cls.rope_theta),
    }
    for key, candidates in numbers.items():
        value = next(value for value in candidates if value is not None)
        values[key] = _ABOVE_ZERO.check(f"{where}: {key}", value)
    return cls(**values)


def get_table(raw: dict, name: str, source: str) -> dict:
    """A section of a config, empty where it is missing or null."""
    section = raw.get(name)
    if section is not None and not isinstance(section, dict):
        raise InputError(f"{source}: {name} must be a JSON object, not {section!r}.")
    return section or {}


def prepared_weights(raw: dict, source: str) -> PreparedWeights | None:
    """What `python -m dia_demo export` noted in a config.json of any family; other quantization
    shows in the tensors' names. Raises InputError where that is damaged."""
    section = get_table(raw, "quantization_config", source)
    if section.get("quant_method") != QUANT_METHOD:
        return None
    precision, base = section.get("precision"), section.get("base_model")
    if precision not in PRECISIONS[1:]:
        allowed = ", ".join(PRECISIONS[1:])
        raise InputError(f"{source}: its precision must be one of {allowed}, not {precision!r}.")
    if not isinstance(base, str) or not base.isprintable() or len(base) > LONGEST_NAME:
        raise InputError(f"{source}: base_model must name a model, not {str(base)[:50]!r}.")
    return PreparedWeights(precision, base)


def _sizes(raw: dict, keys: dict[str, str], source: str) -> dict[str, int]:
    """The sizes in `raw` that `keys` lists, under our names."""
    sizes = {theirs: raw[theirs] for theirs in keys if raw.get(theirs) is not None}
    wrong = {
        key: value
        for key, value in sizes.items()
        if type(value) is not int or not 1 <= value <= LARGEST_SIZES.get(key, LARGEST_SIZE)
    }
    if wrong:
        problems = ", ".join(
            f"{key} is {value!r} (allowed: 1 to {LARGEST_SIZES.get(key, LARGEST_SIZE):,})"
            for key, value in wrong.items()
        )
        raise InputError(f"{source}: sizes must be positive whole numbers, but {problems}.")
    return {keys[theirs]: value for theirs, value in sizes.items()}


def _delays(value: object, source: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(lag) is int and lag >= 0 for lag in value):
        raise InputError(f"{source}: delay_pattern must list whole numbers from 0, not {value!r}.")
    if not value or value[0] != 0:
        raise InputError(f"{source}: delay_pattern must start with 0, not {value!r}.")
    return tuple(value)


def _guidance_scales(raw: dict, source: str) -> tuple[float, ...]:
    """The CFG scales of a checkpoint whose guidance is distilled, empty for an ordinary one."""
    guidance, scales = raw.get("guidance"), raw.get("guidance_scales")
    if guidance is None and scales is None:
        return ()
    if guidance != "distilled":
        raise InputError(
            f'{source}: guidance must be "distilled" or left out, not {guidance!r}. (An ordinary '
            "checkpoint has neither guidance nor guidance_scales.)"
        )
    low, high = LARGEST_CFG_SCALES
    if (
        not isinstance(scales, list)
        or not 2 <= len(scales) <= MOST_GUIDANCE_SCALES
        or not all(type(scale) in (int, float) and low <= scale <= high for scale in scales)
        or any(before >= after for before, after in pairwise(scales))
    ):
        raise InputError(
            f"{source}: with distilled guidance, guidance_scales must list 2 to "
            f"{MOST_GUIDANCE_SCALES} numbers from {low:g} to {high:g}, each larger than the one "
            f"before, not {str(scales)[:80]}."
        )
    return tuple(float(scale) for scale in scales)


def _voices(raw: dict, config: ModelConfig, source: str) -> VoiceTable | None:
    """The voices of a checkpoint that was taught them by name."""
    section = raw.get("voices")
    if section is None:
        return None
    decoder = config.decoder
    table = parse_voices(
        section, decoder.num_channels, config.num_codes, decoder.cross_num_heads, source
    )
    # The codes of the turn's first frames must be known where the mark is sampled.
    if config.delay_pattern[-1] < config.max_delay:
        raise InputError(f"{source}: with voices, the last channel must have the longest delay.")
    return table


def _check_sizes(config: ModelConfig, cross_width: int | None, source: str) -> None:
    encoder, decoder = config.encoder, config.decoder
    specials = (decoder.eos, decoder.pad, decoder.bos)
    text_width = encoder.hidden_size if cross_width is None else cross_width
    checks = {
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
    problems = [problem for problem, failed in checks.items() if failed]
    if problems:
        raise InputError(f"{source} is inconsistent: {'; '.join(problems)}.")


def _defaults(raw: dict, config: ModelConfig, source: str) -> GenerationParams:
    """The sampling defaults that `generation_config.json` sets."""
    names = {spec.saved_as: name for name, spec in PARAMS.items() if spec.saved_as}
    known = PARAMS.keys() - {"seed"}
    renamed = {names.get(key, key): value for key, value in raw.items() if value is not None}
    values = {key: value for key, value in renamed.items() if key in known}
    limit = config.decoder.max_positions
    if isinstance(values.get("max_tokens"), int | float):
        values["max_tokens"] = min(values["max_tokens"], limit)
    try:
        return replace(config.defaults, **values).check(config)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None

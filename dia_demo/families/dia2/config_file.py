"""Reads the config.json of a Dia2 checkpoint, in upstream's layout, into a `Dia2Config`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dia_demo.checkpoint_config import get_table, prepared_weights
from dia_demo.config import DecoderConfig, Range
from dia_demo.errors import InputError
from dia_demo.model.dia2.checkpoint import DEPTH_TEXT
from dia_demo.model.dia2.config import ACTION_NEW_WORD, DepthConfig, Dia2Config, TextIds

_SIZE = Range(1, 2**20, whole=True)
_LAYERS = Range(1, 1000, whole=True)
_CHANNELS = Range(4, 102, whole=True)
_NUMBER = Range(1e-30, 1e30)
_ACTIVATIONS = ["silu", "linear"]


def is_config(raw: Mapping[str, Any]) -> bool:
    """Whether a config.json has the sections of Dia2's. Dia-1.6B of April 2025 has `data` and
    `model`, too, but no depth transformer."""
    model = raw.get("model")
    return isinstance(raw.get("data"), dict) and isinstance(model, dict) and "depformer" in model


def read_config(raw: dict[str, Any], folder: Path) -> Dia2Config:
    """The config of the checkpoint in a folder.

    Raises InputError for what is missing, is no size, or what this program does not compute.
    """
    source = f"{folder / 'config.json'}"
    data, model = _Section(raw, "data", source), _Section(raw, "model", source)
    runtime = _Section(raw, "runtime", source)
    decoder = _decoder(data, model, runtime)
    depth = _depth(model, runtime, decoder.num_channels - 1)
    config = Dia2Config(
        decoder=decoder,
        delay_pattern=_delays(data, decoder.num_channels),
        depth=depth,
        text_ids=_text_ids(data),
        text_vocab=data.number("text_vocab_size", _SIZE),
        text_width=_text_width(model.section("decoder"), decoder),
        actions=data.number("action_vocab_size", Range(2, 2**20, whole=True)),
        second_stream_ahead=data.number("second_stream_ahead", Range(0, 100, whole=True), 0),
        folder=folder,
        prepared=prepared_weights(raw, source),
    )
    _check(config, data)
    defaults = replace(
        config.defaults,
        max_tokens=decoder.max_positions,
        top_k=min(config.defaults.top_k, decoder.vocab_size),
    )
    return replace(config, defaults=defaults)


class _Section:
    """An object within a config.json, and where it is."""

    def __init__(self, parent: Mapping[str, Any], name: str, source: str) -> None:
        raw = parent.get(name)
        if not isinstance(raw, dict):
            raise InputError(f"{source} has no section {name!r}: a Dia2 checkpoint has one.")
        self.raw, self.source = raw, f"{source}, {name}"

    def section(self, name: str) -> _Section:
        return _Section(self.raw, name, self.source)

    def number(self, name: str, allowed: Range, default: float | None = None) -> Any:
        return allowed.check(f"{self.source}: {name}", self.raw.get(name, default))


def _decoder(data: _Section, model: _Section, runtime: _Section) -> DecoderConfig:
    section, vocab = model.section("decoder"), data.number("audio_vocab_size", _SIZE)
    if model.number("rope_min_timescale", _NUMBER, 1) != 1:
        raise InputError(f"{model.source}: rope_min_timescale must be 1, as in Dia2.")
    linear = get_table(model.raw, "linear", model.source)
    _check_activations(linear, f"{model.source}, linear")
    bos = data.number("audio_bos_token_id", Range(1, vocab - 1, whole=True), vocab - 2)
    pad = data.number("audio_pad_token_id", Range(1, vocab - 1, whole=True), vocab - 1)
    return DecoderConfig(
        num_layers=section.number("n_layer", _LAYERS),
        hidden_size=section.number("n_embd", _SIZE),
        num_heads=section.number("gqa_query_heads", _SIZE),
        num_kv_heads=section.number("kv_heads", _SIZE),
        head_dim=section.number("gqa_head_dim", _SIZE),
        intermediate_size=section.number("n_hidden", _SIZE),
        vocab_size=vocab,
        max_positions=runtime.number("max_context_steps", _SIZE, 1500),
        num_channels=data.number("channels", _CHANNELS) - 2,
        eos=min(bos, pad),
        pad=pad,
        bos=bos,
        norm_eps=model.number("normalization_layer_epsilon", _NUMBER, 1e-5),
        rope_theta=model.number("rope_max_timescale", _NUMBER, 10000),
    )


def _depth(model: _Section, runtime: _Section, stages: int) -> DepthConfig:
    section = model.section("depformer")
    if section.raw.get("text_embedding", True):
        raise InputError(f"{section.source} {DEPTH_TEXT}")
    _check_activations(section.raw, section.source)
    heads = section.number("gqa_query_heads", _SIZE)
    if section.number("kv_heads", _SIZE, heads) != heads:
        raise InputError(f"{section.source}: kv_heads must be gqa_query_heads, {heads}.")
    return DepthConfig(
        num_layers=section.number("n_layer", _LAYERS),
        hidden_size=section.number("n_embd", _SIZE),
        num_heads=heads,
        head_dim=section.number("gqa_head_dim", _SIZE),
        intermediate_size=section.number("n_hidden", _SIZE),
        schedule=_schedule(runtime, stages),
        apply_rope=bool(section.raw.get("apply_rope", True)),
    )


def _schedule(runtime: _Section, stages: int) -> tuple[int, ...]:
    schedule = runtime.raw.get("weights_schedule", list(range(stages)))
    is_list = isinstance(schedule, list) and all(type(i) is int and i >= 0 for i in schedule)
    if not is_list or len(schedule) != stages:
        length = len(schedule) if isinstance(schedule, list) else repr(schedule)
        raise InputError(
            f"{runtime.source}: weights_schedule must list a set of weights, from 0, for each of "
            f"the {stages} codebooks after the first, not {length}: fetch the checkpoint again."
        )
    return tuple(schedule)


def _delays(data: _Section, channels: int) -> tuple[int, ...]:
    delays = data.raw.get("delay_pattern")
    is_list = isinstance(delays, list) and all(type(lag) is int and lag >= 0 for lag in delays)
    if not isinstance(delays, list) or not is_list or len(delays) != channels:
        raise InputError(
            f"{data.source}: delay_pattern must list whole numbers from 0, one for each of the "
            f"{channels} codebooks, not {str(delays)[:80]}."
        )
    return tuple(delays)


def _text_ids(data: _Section) -> TextIds:
    ids = Range(0, data.number("text_vocab_size", _SIZE) - 1, whole=True)
    return TextIds(
        new_word=data.number("text_new_word_token_id", ids),
        pad=data.number("text_pad_token_id", ids),
        zero=data.number("text_zero_token_id", ids, TextIds.zero),
    )


def _text_width(section: _Section, decoder: DecoderConfig) -> int:
    if section.raw.get("low_rank_dim") is None:
        return decoder.hidden_size
    return section.number("low_rank_dim", _SIZE)


def _check_activations(raw: Mapping[str, Any], source: str) -> None:
    found = raw.get("mlp_activations", _ACTIVATIONS)
    if found != _ACTIVATIONS:
        raise InputError(f"{source}: mlp_activations must be {_ACTIVATIONS}, not {found!r}.")


def _check(config: Dia2Config, data: _Section) -> None:
    """Raise InputError for sizes that contradict one another."""
    d, depth = config.decoder, config.depth
    actions = data.raw.get("action_pad_token_id"), data.raw.get("action_new_word_token_id")
    checks = {
        "the query heads must be a multiple of the key/value heads": d.num_heads % d.num_kv_heads,
        "the heads must have an even size": d.head_dim % 2 or depth.head_dim % 2,
        "BOS and pad must be the last two codes": {d.bos, d.pad} != {d.eos, d.eos + 1}
        or d.vocab_size != d.eos + 2,
        "action 0 must be pad and 1 a new word": actions != (0, ACTION_NEW_WORD),
        "max_context_steps must have room for the delays": d.max_positions
        <= config.shortest_max_tokens,
    }
    if problems := [problem for problem, failed in checks.items() if failed]:
        raise InputError(f"{data.source}: {'; '.join(problems)}.")

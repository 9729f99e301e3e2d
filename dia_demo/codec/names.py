"""The codec's tensors under the names of dac.DAC, with weight norm folded into the weights."""

from __future__ import annotations

import re

import torch

_WEIGHT_NORMS = (
    ("weight_g", "weight_v"),
    ("parametrizations.weight.original0", "parametrizations.weight.original1"),
)
_RESIDUAL_UNIT = {"snake1": "0", "conv1": "1", "snake2": "2", "conv2": "3"}
# Per side: what its stack is called, the places of a block's own parts, and of its first unit.
_SIDES = {
    "encoder": ("block", {"snake1": "3", "conv1": "4"}, 0),
    "decoder": ("model", {"snake1": "0", "conv_t1": "1"}, 2),
}
_ARGUMENTS = {
    "encoder_hidden_size": "encoder_dim",
    "downsampling_ratios": "encoder_rates",
    "decoder_hidden_size": "decoder_dim",
    "n_codebooks": "n_codebooks",
    "codebook_size": "codebook_size",
    "codebook_dim": "codebook_dim",
    "sampling_rate": "sample_rate",
}


def is_transformers(config: dict) -> bool:
    """Whether a config.json is that of transformers' DacModel, rather than dac.DAC's arguments."""
    return config.get("model_type") == "dac" or "downsampling_ratios" in config


def from_transformers(config: dict) -> dict:
    """Convert a config of transformers' DacConfig to the arguments of dac.DAC."""
    # DacConfig's defaults are those of dac.DAC but for the rate.
    known = {"sampling_rate": 16000, "downsampling_ratios": [2, 4, 8, 8]} | config
    kwargs = {ours: known[theirs] for theirs, ours in _ARGUMENTS.items() if theirs in known}
    kwargs["decoder_rates"] = list(kwargs["encoder_rates"])[::-1]
    return kwargs


def dac_name(name: str, depth: int) -> str:
    """dac.DAC's name for a tensor of a DacModel with `depth` blocks per side; others unchanged."""
    side, _, rest = name.partition(".")
    if side not in _SIDES:
        return name
    stack, parts, first_unit = _SIDES[side]
    ends = {"conv1": "0", "snake1": str(depth + 1), "conv2": str(depth + 2)}
    head, _, tail = rest.partition(".")
    if head in ends:
        return f"{side}.{stack}.{ends[head]}.{tail}"
    if match := re.fullmatch(r"block\.(\d+)\.res_unit(\d)\.(snake[12]|conv[12])\.(.+)", rest):
        unit = first_unit + int(match[2]) - 1
        path = f"{unit}.block.{_RESIDUAL_UNIT[match[3]]}.{match[4]}"
    elif match := re.fullmatch(rf"block\.(\d+)\.({'|'.join(parts)})\.(.+)", rest):
        path = f"{parts[match[2]]}.{match[3]}"
    else:
        return name
    return f"{side}.{stack}.{int(match[1]) + 1}.block.{path}"


def fold_names(shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[str, ...]]:
    """dac.DAC's names without weight norm, each with the tensors that `fold` makes it from."""
    sources: dict[str, tuple[str, ...]] = {name: (name,) for name in shapes}
    for name, shape in shapes.items():
        for g_end, v_end in _WEIGHT_NORMS:
            stem = name.removesuffix(g_end)
            if stem != name and len(shapes.get(stem + v_end, ())) == len(shape):
                del sources[name], sources[stem + v_end]
                sources[stem + "weight"] = (name, stem + v_end)
    return sources


def fold(tensors: list[torch.Tensor]) -> torch.Tensor:
    """float32 of a tensor, or of (g, v) with weight norm folded: g * v / |v|, norms per first axis.

    Salimans and Kingma, https://arxiv.org/abs/1602.07868.
    """
    if len(tensors) == 1:
        return tensors[0].to(
            torch.float32, copy=True
        )  # A copy, so that a mapped file can be closed.
    g, v = tensors
    return torch._weight_norm(v.float(), g.float(), 0)

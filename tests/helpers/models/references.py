"""Random Dia models of transformers, the public implementation that ours is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import DiaConfig, DiaForConditionalGeneration

# Four shapes with nothing in common: widths, head counts, GQA ratios, depths, channels, delays.
SHAPES = {
    "nine channels, gqa 4": dict(
        encoder=dict(layers=2, width=48, heads=4, kv=4, dim=16, mlp=96),
        decoder=dict(layers=3, width=64, heads=8, kv=2, dim=8, cross=4, cross_dim=16, mlp=160),
        delay=[0, 8, 9, 10, 11, 12, 13, 14, 15],
        codes=1024,
    ),
    "four channels, gqa 1": dict(
        encoder=dict(layers=1, width=32, heads=2, kv=2, dim=32, mlp=80),
        decoder=dict(layers=2, width=80, heads=5, kv=5, dim=16, cross=2, cross_dim=24, mlp=96),
        delay=[0, 1, 2, 3],
        codes=128,
    ),
    "five channels, all heads on one": dict(
        encoder=dict(layers=3, width=64, heads=8, kv=8, dim=8, mlp=64),
        decoder=dict(layers=1, width=96, heads=6, kv=1, dim=32, cross=3, cross_dim=8, mlp=200),
        delay=[0, 2, 2, 5, 7],
        codes=256,
    ),
    "two channels, deep": dict(
        encoder=dict(layers=2, width=40, heads=5, kv=5, dim=12, mlp=56),
        decoder=dict(layers=5, width=36, heads=4, kv=2, dim=18, cross=6, cross_dim=10, mlp=72),
        delay=[0, 3],
        codes=500,
    ),
}


@dataclass(frozen=True)
class Reference:
    """A random transformers model in eval mode and the folder it was saved to."""

    model: DiaForConditionalGeneration
    folder: Path


def reference_config(shape: dict, max_positions: int = 256) -> DiaConfig:
    encoder, decoder, codes = shape["encoder"], shape["decoder"], shape["codes"]
    return DiaConfig(
        delay_pattern=shape["delay"],
        encoder_config=dict(
            num_hidden_layers=encoder["layers"],
            hidden_size=encoder["width"],
            num_attention_heads=encoder["heads"],
            num_key_value_heads=encoder["kv"],
            head_dim=encoder["dim"],
            intermediate_size=encoder["mlp"],
            max_position_embeddings=1024,
        ),
        decoder_config=dict(
            num_hidden_layers=decoder["layers"],
            hidden_size=decoder["width"],
            num_attention_heads=decoder["heads"],
            num_key_value_heads=decoder["kv"],
            head_dim=decoder["dim"],
            cross_num_attention_heads=decoder["cross"],
            cross_num_key_value_heads=decoder["cross"],
            cross_head_dim=decoder["cross_dim"],
            cross_hidden_size=encoder["width"],
            intermediate_size=decoder["mlp"],
            max_position_embeddings=max_positions,
            num_channels=len(shape["delay"]),
            vocab_size=codes + 4,
            eos_token_id=codes,
            pad_token_id=codes + 1,
            bos_token_id=codes + 2,
        ),
    )


def make_reference(name: str, folder: Path, seed: int = 0, **save) -> Reference:
    """A model of the named shape, random enough that its greedy codes wander, not loop."""
    torch.manual_seed(seed)
    model = DiaForConditionalGeneration(reference_config(SHAPES[name])).eval()
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if key.endswith("norm.weight"):
                weight.normal_(1.0, 0.2)
            elif "embed" in key:
                weight.normal_(0.0, 0.5)
            else:
                weight.normal_(0.0, 1.2 * weight.shape[-1] ** -0.5)
        # EOS never wins by itself; a test that wants an end puts one where it likes.
        model.logits_dense.weight[model.config.decoder_config.eos_token_id] = 0
    model.save_pretrained(folder, **save)
    return Reference(model, folder)

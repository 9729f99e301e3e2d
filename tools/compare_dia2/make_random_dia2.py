"""Write a Dia2 checkpoint of random weights with a tokenizer, for comparisons and tests.

    python -m tools.compare_dia2.make_random_dia2 FOLDER                  # small
    python -m tools.compare_dia2.make_random_dia2 FOLDER --size dia2-1b   # its full size, 4.3 GB

Names, shapes and config.json are upstream's (nari-labs/dia2). Weights are scaled so that rounding
does not grow through the layers: greedy codes of two implementations can be compared. The tokenizer
is a small BPE with [S1] and [S2], trained on the words of this file.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file

from dia_demo.config import DecoderConfig
from dia_demo.model.dia2.checkpoint import tensors
from dia_demo.model.dia2.config import DepthConfig, Dia2Config
from dia_demo.model.weights.tensor_names import TensorSlice

SMALL = Dia2Config(
    decoder=DecoderConfig(
        num_layers=2,
        hidden_size=32,
        num_heads=4,
        num_kv_heads=2,
        head_dim=8,
        intermediate_size=48,
        vocab_size=130,
        max_positions=300,
        num_channels=6,
        eos=128,
        pad=129,
        bos=128,
    ),
    delay_pattern=(2, 4, 4, 4, 4, 4),
    depth=DepthConfig(2, 24, 2, 8, 40, schedule=(0, 0, 1, 1, 2)),
    text_vocab=320,
    text_width=32,
)
SIZES = {"small": SMALL, "dia2-1b": Dia2Config()}


def config_json(config: Dia2Config) -> dict:
    """The config as upstream writes it."""
    d, depth, ids = config.decoder, config.depth, config.text_ids
    return {
        "data": {
            "channels": d.num_channels + 2,
            "text_vocab_size": config.text_vocab,
            "audio_vocab_size": d.vocab_size,
            "action_vocab_size": config.actions,
            "text_pad_token_id": ids.pad,
            "text_new_word_token_id": ids.new_word,
            "text_zero_token_id": ids.zero,
            "audio_pad_token_id": d.pad,
            "audio_bos_token_id": d.bos,
            "action_pad_token_id": 0,
            "action_new_word_token_id": 1,
            "delay_pattern": list(config.delay_pattern),
            "first_word_min_start": 0,
            "max_pad": 0,
            "second_stream_ahead": config.second_stream_ahead,
        },
        "model": {
            "decoder": {
                "n_layer": d.num_layers,
                "n_embd": d.hidden_size,
                "n_hidden": d.intermediate_size,
                "gqa_query_heads": d.num_heads,
                "kv_heads": d.num_kv_heads,
                "gqa_head_dim": d.head_dim,
                "low_rank_dim": None if config.text_width == d.hidden_size else config.text_width,
            },
            "depformer": {
                "n_layer": depth.num_layers,
                "n_embd": depth.hidden_size,
                "n_hidden": depth.intermediate_size,
                "gqa_query_heads": depth.num_heads,
                "kv_heads": depth.num_heads,
                "gqa_head_dim": depth.head_dim,
                "apply_rope": depth.apply_rope,
                "text_embedding": False,
                "mlp_activations": ["silu", "linear"],
            },
            "linear": {"mlp_activations": ["silu", "linear"]},
            "dropout": 0.0,
            "rope_min_timescale": 1,
            "rope_max_timescale": int(d.rope_theta),
            "normalization_layer_epsilon": d.norm_eps,
        },
        "runtime": {
            "weights_schedule": list(depth.schedule),
            "max_context_steps": d.max_positions,
        },
        "assets": {"tokenizer": None, "mimi": "kyutai/mimi"},
    }


def random_tensor(
    name: str, target: TensorSlice, config: Dia2Config, generator: torch.Generator
) -> torch.Tensor:
    """Normal weights: a linear's output is about as large as its input, and what a layer adds to
    the residual stream gets smaller with the number of layers. Norms are near one; those of the
    queries near 1 / sqrt(head size), because attention is not scaled."""
    if len(target.shape) == 1:
        near_one = 1 + 0.1 * torch.randn(target.shape, generator=generator)
        return near_one * (target.shape[0] ** -0.5 if ".q_norm." in name else 1)
    gain = 1.0
    if name.endswith(("o_proj.weight", "wo.weight")) or ".out_proj." in name:
        layers = config.depth if name.startswith("depformer") else config.decoder
        gain = (2 * layers.num_layers) ** -0.5
    elif "embed" in name:
        gain = target.shape[-1] ** 0.5 * (
            1 if "text" in name else config.decoder.num_channels**-0.5
        )
    elif "head" in name or "logits" in name:
        gain = 3.0  # Sharper than random: otherwise codes are about as likely as one another.
    return torch.randn(target.shape, generator=generator) * gain * target.shape[-1] ** -0.5


def write_tokenizer(folder: Path, size: int) -> None:
    """A byte-level BPE of at most `size` tokens. The ids below 8 are special, as Dia2 uses them."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    special = ["<unk>", "<s>", "<new_word>", "<pad>", "[S1]", "[S2]", "</s>", "<zero>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in special],
        show_progress=False,
    )
    tokenizer.train_from_iterator((__doc__ or "").split("\n"), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2))


def write_checkpoint(folder: Path, config: Dia2Config = SMALL, seed: int = 0) -> Path:
    """config.json, tokenizer and weights of a random Dia2."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_json(config), indent=2))
    manifest = {"config": "config.json", "weights": "model.safetensors", "mimi": "kyutai/mimi"}
    (folder / "dia2_assets.json").write_text(json.dumps(manifest, indent=2))
    write_tokenizer(folder, min(config.text_vocab, 2000))
    generator = torch.Generator().manual_seed(seed)
    state = {
        name: random_tensor(name, target, config, generator) for name, target in tensors(config)
    }
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--layers", type=int, help="temporal layers, for a shorter model")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    config = SIZES[options.size]
    if options.layers:
        config = replace(config, decoder=replace(config.decoder, num_layers=options.layers))
    write_checkpoint(options.folder, config, options.seed)


if __name__ == "__main__":
    main()

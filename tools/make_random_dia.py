"""Write a Dia checkpoint of random weights, for measuring speed and for tests.

    python -m tools.make_random_dia FOLDER                       # Dia-1.6B's size, 6.4 GB
    python -m tools.make_random_dia FOLDER --size tiny --naming nari

Speed and memory do not depend on the values. Rounding does, so the weights are scaled as a trained
model's would be at its start: greedy codes of two implementations can be compared. They are made
and written shard by shard, so memory stays near one shard. With --codec a random codec of
Descript's 44.1 kHz size is added.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file

from dia_demo.checkpoint_files import INDEX
from dia_demo.config import DecoderConfig, EncoderConfig, ModelConfig
from dia_demo.model.weights.tensor_names import TensorSlice, nari_tensors, transformers_tensors

TINY = ModelConfig(
    encoder=EncoderConfig(2, 32, 2, 2, 16, 64),
    decoder=DecoderConfig(2, 48, 4, 2, 16, 2, 2, 16, 96, max_positions=512),
)
SIZES = {"dia-1.6b": ModelConfig(), "tiny": TINY}
NAMINGS = {"transformers": transformers_tensors, "nari": nari_tensors}
# The arguments of Descript's 44.1 kHz codec, and of one small enough for a test.
CODECS = {
    "dia-1.6b": dict(sample_rate=44100),
    "tiny": dict(
        encoder_dim=4, encoder_rates=[2, 4, 8, 8], decoder_dim=32, decoder_rates=[8, 8, 4, 2],
        latent_dim=16, n_codebooks=9, codebook_size=1024, codebook_dim=4, sample_rate=44100,
    ),
}  # fmt: skip


def config_json(config: ModelConfig) -> dict:
    """The config as transformers writes it (nari-labs/Dia-1.6B-0626 uses the same layout)."""
    encoder, decoder = config.encoder, config.decoder

    def common(part: EncoderConfig | DecoderConfig) -> dict:
        return {
            "num_hidden_layers": part.num_layers,
            "hidden_size": part.hidden_size,
            "num_attention_heads": part.num_heads,
            "num_key_value_heads": part.num_kv_heads,
            "head_dim": part.head_dim,
            "intermediate_size": part.intermediate_size,
            "vocab_size": part.vocab_size,
            "max_position_embeddings": part.max_positions,
            "hidden_act": "silu",
            "norm_eps": part.norm_eps,
            "rope_parameters": {"rope_type": "default", "rope_theta": part.rope_theta},
        }

    cross = {
        "cross_num_attention_heads": decoder.cross_num_heads,
        "cross_num_key_value_heads": decoder.cross_num_kv_heads,
        "cross_head_dim": decoder.cross_head_dim,
        "cross_hidden_size": encoder.hidden_size,
    }
    specials = {
        "eos_token_id": decoder.eos,
        "pad_token_id": decoder.pad,
        "bos_token_id": decoder.bos,
    }
    audio = cross | specials | {"num_channels": decoder.num_channels}
    distilled = {"guidance": "distilled", "guidance_scales": list(config.guidance_scales)}
    several = {"frames_per_step": config.frames_per_step}
    students = (distilled if config.guidance_scales else {}) | (
        several if config.frames_per_step > 1 else {}
    )
    return students | {
        "model_type": "dia",
        "architectures": ["DiaForConditionalGeneration"],
        "delay_pattern": list(config.delay_pattern),
        "encoder_config": {"model_type": "dia_encoder"} | common(encoder),
        "decoder_config": {"model_type": "dia_decoder"} | common(decoder) | audio,
    }


def random_tensor(target: TensorSlice, gain: float, generator: torch.Generator) -> torch.Tensor:
    """Normal weights: a linear's output is about `gain` times its input. Norms are near one."""
    if len(target.shape) == 1:
        return 1 + 0.1 * torch.randn(target.shape, generator=generator)
    width = 1
    for size in target.shape[: target.inputs] if target.inputs else target.shape[1:]:
        width *= size
    return torch.randn(target.shape, generator=generator) * gain * width**-0.5


def gain_of(name: str, target: TensorSlice, config: ModelConfig) -> float:
    """What keeps rounding from growing through the layers, so that two implementations agree.

    Dia's attention has no scale, so the queries have it: otherwise every query attends to one key,
    and a rounding error chooses another. What a layer adds to the residual stream gets smaller with
    the number of layers.
    """
    encoder, decoder = config.encoder, config.decoder
    if name.endswith("q_proj.weight"):
        is_cross = ".cross_attention." in name
        part = encoder if target.name.startswith("encoder.") else decoder
        return (decoder.cross_head_dim if is_cross else part.head_dim) ** -0.5
    if target.name.endswith(("o_proj.weight", "down_proj.weight")):
        is_encoder = target.name.startswith("encoder.")
        return (2 * encoder.num_layers if is_encoder else 3 * decoder.num_layers) ** -0.5
    return 1.0


def shards(slices: dict[str, TensorSlice], limit: int) -> Iterator[list[str]]:
    """Names in groups of at most `limit` bytes of float32 (a larger tensor stands alone)."""
    group: list[str] = []
    size = 0
    for name, target in slices.items():
        nbytes = 4 * torch.Size(target.shape).numel()
        if group and size + nbytes > limit:
            yield group
            group, size = [], 0
        group.append(name)
        size += nbytes
    yield group


def write_checkpoint(
    folder: Path, config: ModelConfig, naming: str, seed: int = 0, shard_bytes: int = 2**30
) -> None:
    """config.json and sharded safetensors (with their index) under either public naming."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_json(config), indent=2))
    generator = torch.Generator().manual_seed(seed)
    slices = dict(NAMINGS[naming](config))
    groups = list(shards(slices, shard_bytes))
    weight_map = {}
    for number, group in enumerate(groups, start=1):
        file = f"model-{number:05d}-of-{len(groups):05d}.safetensors"
        tensors = {}
        for name in group:
            gain = gain_of(name, slices[name], config)
            tensors[name] = random_tensor(slices[name], gain, generator)
        save_file(tensors, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(group, file)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}, indent=2))


def write_codec(folder: Path, arguments: dict) -> None:
    """A codec of random weights as `codec/` beside the checkpoint."""
    from dia_demo.codec.weights import build_dac

    model = build_dac(arguments)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(full_arguments(arguments)))
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(t.shape, generator=generator) / max(1, t[0].numel()) ** 0.5
        for name, t in model.state_dict().items()
    }
    save_file(weights, folder / "model.safetensors")


def full_arguments(arguments: dict) -> dict:
    return dict(encoder_rates=[2, 4, 8, 8], decoder_rates=[8, 8, 4, 2]) | arguments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="dia-1.6b")
    parser.add_argument("--naming", choices=NAMINGS, default="transformers")
    parser.add_argument("--layers", type=int, help="decoder layers, for a shorter model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--codec", action="store_true")
    options = parser.parse_args()
    config = SIZES[options.size]
    if options.layers:
        config = replace(config, decoder=replace(config.decoder, num_layers=options.layers))
    write_checkpoint(options.folder, config, options.naming, options.seed)
    if options.codec:
        write_codec(options.folder / "codec", CODECS[options.size])


if __name__ == "__main__":
    main()

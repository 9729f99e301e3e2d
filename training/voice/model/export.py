"""Write assets/nano. `python -m training.voice.model.export --work DIR --out assets/nano`.

The language model goes out under transformers' names and without attention scale (Dia has none:
1/sqrt(head_dim) is folded into the query weights), the codec as the state of `dac.DAC(**config)`.
Loads the result through transformers and refuses it if a tensor is missing, surplus or too large.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tools.torchaudio_guard import hide_broken_torchaudio
from training.voice.codec import network as codec_network
from training.voice.model.network import (
    BOS,
    CHANNELS,
    DELAYS,
    EOS,
    PAD,
    VOCABULARY,
    Nano,
    Shape,
    load_nano,
)

FILE_LIMIT = 10_000_000  # bytes, each file
SHARD_LIMIT = 9_000_000
MAX_TEXT, MAX_POSITIONS = 1024, 1536  # bytes; frames (36.8 s)
SAMPLING = {  # the best of evaluate.py's sweep, see LOG.md
    "do_sample": True,
    "temperature": 0.1,
    "top_k": 30,
    "top_p": 0.99,  # an even draw among the voice marks loses none
    "guidance_scale": 1.0,
    "max_length": 1024,
}
# what training alone has
AIDS = ("phone_head.", "spell_head.", "voice_head.", "text_tag_head.", "frame_tag_head.")
FIXED_NAMES = {
    "text_embedding.weight": "model.encoder.embedding.weight",
    "encoder_norm.weight": "model.encoder.norm.weight",
    "code_embedding.weight": "model.decoder.embeddings.embed.weight",
    "decoder_norm.weight": "model.decoder.norm.weight",
    "logits_dense.weight": "logits_dense.weight",
}
ROPE = {"rope_theta": 10000.0, "rope_type": "default"}


def dia_config(s: Shape) -> dict:
    """transformers' DiaConfig of the trained shape."""
    shared = {
        "hidden_act": "silu",
        "norm_eps": 1e-5,
        "initializer_range": 0.02,
        "rope_parameters": ROPE,
    }
    encoder = {
        "model_type": "dia_encoder",
        "hidden_size": s.encoder_width,
        "num_hidden_layers": s.encoder_layers,
        "num_attention_heads": s.encoder_heads,
        "num_key_value_heads": s.encoder_heads,
        "head_dim": s.encoder_width // s.encoder_heads,
        "intermediate_size": s.encoder_mlp,
        "vocab_size": 256,
        "max_position_embeddings": MAX_TEXT,
        **shared,
    }
    decoder = {
        "model_type": "dia_decoder",
        "hidden_size": s.decoder_width,
        "num_hidden_layers": s.decoder_layers,
        "num_attention_heads": s.decoder_heads,
        "num_key_value_heads": s.decoder_kv_heads,
        "head_dim": s.decoder_width // s.decoder_heads,
        "cross_num_attention_heads": s.cross_heads,
        "cross_num_key_value_heads": s.cross_heads,
        "cross_head_dim": s.decoder_width // s.cross_heads,
        "cross_hidden_size": s.encoder_width,
        "intermediate_size": s.decoder_mlp,
        "num_channels": CHANNELS,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": MAX_POSITIONS,
        "eos_token_id": EOS,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "is_encoder_decoder": True,
        "use_cache": True,
        **shared,
    }
    return {
        "architectures": ["DiaForConditionalGeneration"],
        "model_type": "dia",
        "dtype": "float16",
        "delay_pattern": DELAYS,
        "encoder_config": encoder,
        "decoder_config": decoder,
        "is_encoder_decoder": True,
        "norm_eps": 1e-5,
        "initializer_range": 0.02,
        "use_cache": True,
        "transformers_version": "5.23.0",
    }


def dia_name(name: str) -> str:
    """A trained tensor's name in transformers."""
    layer = re.sub(r"^(encoder|decoder)\.(\d+)\.", r"model.\1.layers.\2.", name)
    return FIXED_NAMES.get(name, layer)


def attention_scale(name: str, shape: Shape) -> float:
    """What a query weight is multiplied with on export; 1 for every other tensor."""
    if "q_proj" not in name:
        return 1.0
    if "cross_attention" in name:
        return (shape.decoder_width // shape.cross_heads) ** -0.5
    if name.startswith("encoder"):
        return (shape.encoder_width // shape.encoder_heads) ** -0.5
    return (shape.decoder_width // shape.decoder_heads) ** -0.5


def dia_weights(model: Nano) -> dict[str, torch.Tensor]:
    """Trained names -> transformers' names, attention scale folded in, training aids dropped."""
    return {
        dia_name(name): (tensor * attention_scale(name, model.shape)).half().contiguous()
        for name, tensor in model.state_dict().items()
        if not name.startswith(AIDS)
    }


def trained_weights(folder: Path, model: Nano) -> dict[str, torch.Tensor]:
    """dia_weights undone: an exported folder's tensors under the trained names of `model`.

    A decoder layer that the folder does not have is to add nothing at first.
    """
    found: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        found |= load_file(path)
    weights = {}
    for name, tensor in model.state_dict().items():
        if dia_name(name) in found:
            scale = attention_scale(name, model.shape)
            weights[name] = found[dia_name(name)].float() / scale
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            weights[name] = torch.zeros_like(tensor)
    return weights


def split_shards(weights: dict[str, torch.Tensor], limit: int) -> list[dict[str, torch.Tensor]]:
    """Tensors in order, cut where a file would pass `limit` bytes."""
    shards, size = [{}], 0
    for name, tensor in weights.items():
        if size + tensor.nbytes > limit and shards[-1]:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += tensor.nbytes
    return shards


def write_weights(weights: dict[str, torch.Tensor], out: Path, limit: int = SHARD_LIMIT) -> None:
    """One model.safetensors, or shards with their index where it would grow too large."""
    for old in out.glob("model*.safetensors*"):
        old.unlink()
    shards = split_shards(weights, limit)
    if len(shards) == 1:
        save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
        return
    index = {}
    for k, shard in enumerate(shards, 1):
        name = f"model-{k:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, out / name, metadata={"format": "pt"})
        index |= dict.fromkeys(shard, name)
    total = sum(t.nbytes for t in weights.values())
    record = {"metadata": {"total_size": total}, "weight_map": index}
    (out / "model.safetensors.index.json").write_text(json.dumps(record, indent=2) + "\n")


def write_codec(codec, out: Path) -> None:
    out.mkdir(exist_ok=True)
    config = json.dumps(codec_network.CODEC | codec_network.PLAYBACK, indent=2) + "\n"
    (out / "config.json").write_text(config)
    state = {k: v.half().contiguous() for k, v in codec.state_dict().items()}
    save_file(state, out / "model.safetensors", metadata={"format": "pt"})


def verify(out: Path) -> None:
    """transformers and dac load what was written, completely; every file is small enough."""
    hide_broken_torchaudio()
    from transformers import DiaForConditionalGeneration

    _, info = DiaForConditionalGeneration.from_pretrained(
        out, dtype=torch.float32, output_loading_info=True
    )
    faults = {k: v for k, v in info.items() if v}
    if faults:
        raise SystemExit(f"transformers does not load {out} cleanly: {faults}")
    codec_network.load_exported(out / "codec")
    for path in out.rglob("*"):
        if path.is_file() and path.stat().st_size >= FILE_LIMIT:
            raise SystemExit(f"{path} has {path.stat().st_size} bytes, limit {FILE_LIMIT}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("assets/nano"))
    parser.add_argument(
        "--codec", default="codec.pt", help="a checkpoint in DIR, or the folder of a shipped codec"
    )
    parser.add_argument("--model", default="nano.pt")
    parser.add_argument("--untrained", action="store_true", help="a model of the right shape only")
    args = parser.parse_args()
    args.codec = Path(args.codec) if Path(args.codec).is_dir() else args.work / args.codec
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model = Nano() if args.untrained else load_nano(args.work / args.model)[0]
    config = dia_config(model.shape)
    if (args.out / "config.json").is_file():  # judge/voice_table.py measures them.
        config["voices"] = json.loads((args.out / "config.json").read_text())["voices"]
    (args.out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {
        **SAMPLING,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "pad_token_id": PAD,
        "transformers_version": "5.23.0",
    }
    (args.out / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    write_weights(dia_weights(model), args.out)
    if not args.codec.is_dir():
        write_codec(codec_network.load_codec(args.codec), args.out / "codec")
    elif args.codec.resolve() != (args.out / "codec").resolve():
        shutil.copytree(args.codec, args.out / "codec", dirs_exist_ok=True)
    for path in args.out.rglob("*.safetensors"):
        path.chmod(0o644)  # safetensors writes for the owner alone
    verify(args.out)
    total = sum(p.stat().st_size for p in args.out.rglob("*") if p.is_file())
    print(f"{args.out}: {total / 1e6:.2f} MB")


if __name__ == "__main__":
    main()

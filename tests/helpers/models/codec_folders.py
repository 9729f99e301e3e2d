"""Small codecs as others build them, and folders that hold them in any public layout."""

import json

import numpy as np
import torch

from dia_demo.codec import files

NATIVE = dict(
    encoder_dim=4, encoder_rates=[4, 2, 2], decoder_dim=32, decoder_rates=[2, 2, 4],
    n_codebooks=4, codebook_size=64, codebook_dim=4, latent_dim=20, sample_rate=8000,
)  # fmt: skip
HF_SHAPE = dict(
    encoder_hidden_size=4, downsampling_ratios=[2, 4, 3], decoder_hidden_size=32, n_codebooks=5,
    codebook_size=64, codebook_dim=4, sampling_rate=8000,
)  # fmt: skip


def write_codec(folder, kwargs, tensors):
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(kwargs))
    save_file(tensors, folder / "model.safetensors")
    return folder


def dac_model(seed=0):
    """A dac.DAC with its weight norm, its weights large enough to make a difference."""
    with files.ignore_dac_warnings(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = files.import_dac().DAC(**NATIVE).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.add_(0.1 * torch.randn(tensor.shape, generator=generator))
    return model


def transformers_dac(seed=0):
    """A transformers DacModel, its weights large enough to make a difference."""
    from transformers import DacConfig, DacModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = DacModel(DacConfig(**HF_SHAPE)).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.add_(0.1 * torch.randn(tensor.shape, generator=generator))
    return model


def hf_tensors(model, norm):
    """The model's tensors: plain, or with weight norm as transformers or older files write it."""
    plain = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    if norm == "plain":
        return plain
    ends = {
        "parametrised": ("parametrizations.weight.original0", "parametrizations.weight.original1"),
        "old": ("weight_g", "weight_v"),
    }[norm]
    split = {}
    for name, tensor in plain.items():
        if tensor.ndim == 3 and name.endswith("weight"):
            stem = name.removesuffix("weight")
            split[stem + ends[0]] = torch.norm_except_dim(tensor, 2, 0)
            split[stem + ends[1]] = 3 * tensor  # Only the direction of v counts.
        else:
            split[name] = tensor
    return split


def decode_interleaved(codec, takes, frames):
    """The audio of takes that are decoded as streams at the same time, `frames` of each in turn."""
    streams, chunks = [codec.stream() for _ in takes], [[] for _ in takes]
    for start in range(0, max(map(len, takes)), frames):
        for stream, codes, audio in zip(streams, takes, chunks, strict=True):
            audio.append(stream.push(codes[start : start + frames]))
    return [
        np.concatenate([*audio, stream.finish()])
        for stream, audio in zip(streams, chunks, strict=True)
    ]


def random_codes(codec, frames, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, codec.codebook_size, (frames, codec.num_codebooks)).astype(np.int16)


def signal_to_noise(found, expected):
    """In dB."""
    noise = np.square(found[: expected.size] - expected).sum(dtype=float)
    return 10 * np.log10(np.square(expected).sum(dtype=float) / noise)

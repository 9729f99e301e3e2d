"""Small Mimis: transformers' own as the reference, and its files in a folder."""

import torch

SMALL_MIMI = dict(
    hidden_size=16, num_filters=4, upsampling_ratios=[4, 3], codebook_size=16, codebook_dim=8,
    num_quantizers=4, num_hidden_layers=2, intermediate_size=24, num_attention_heads=2,
    head_dim=8, sliding_window=7, sampling_rate=7200,
)  # fmt: skip


def transformers_mimi(seed=0, **sizes):
    """A transformers MimiModel, its weights large enough to make a difference."""
    from transformers import MimiConfig, MimiModel

    hidden, dim = sizes.get("hidden_size", 512), sizes.get("codebook_dim", 256)
    heads = sizes.get("num_attention_heads", 8)
    config = MimiConfig(
        **sizes,
        upsample_groups=hidden,
        vector_quantization_hidden_dimension=dim,
        num_key_value_heads=heads,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MimiModel(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            noise = torch.randn(tensor.shape, generator=generator)
            if name.endswith("cluster_usage"):
                tensor.copy_(1 + noise.abs())
            elif name.endswith("embed_sum"):
                tensor.copy_(noise)
            elif name.endswith("scale"):
                tensor.copy_(0.3 * noise)
            elif not name.endswith("initialized"):
                tensor.add_(0.05 * noise)
    return model


def write_mimi(folder, model):
    """The model's files, as transformers writes them and kyutai/mimi has them."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    return folder


def write_small_dia2(folder):
    """A Dia2 of random weights with a Mimi that fits it, at the rates of the real one."""
    from tools.compare_dia2.make_random_dia2 import write_checkpoint

    rates = {"upsampling_ratios": [8, 6, 5, 4], "sampling_rate": 24000}
    mimi = SMALL_MIMI | rates | {"num_quantizers": 6, "codebook_size": 128}
    write_mimi(write_checkpoint(folder) / "codec", transformers_mimi(**mimi))
    return folder

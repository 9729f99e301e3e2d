"""Mimi's encoder: a waveform to codes, whole. Shapes: [1, channels, T]."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from dia_demo.codec.mimi.config import STRIDE
from dia_demo.codec.mimi.transformer import rotary_frequencies, rotary_tables, rotate
from dia_demo.codec.mimi.weights import StoredMimi, codebook_names


class MimiEncoder:
    """Samples to codes, in float32 by torch."""

    def __init__(self, stored: StoredMimi) -> None:
        self._config = stored.config
        sides = ("encoder.", "encoder_transformer.", "downsample.")
        names = [name for name in stored.names if name.startswith(sides)]
        self._weights = {name: stored.read(name) for name in names}
        self._quantizers = [
            (
                stored.read(f"{name}.input_proj.weight"),
                [stored.codebook(codebook) for codebook in codebooks],
            )
            for name, codebooks in codebook_names(stored.config)
        ]

    def __call__(self, samples_N: Tensor) -> Tensor:
        """Samples [N] to codes int64 [T, C], T the frames that have begun."""
        x = self._convolve_all(samples_N[None, None])
        x = self._transform(x[0].t()).t()[None]
        x = self._convolve("downsample", x, STRIDE, "replicate")
        codes = [self._quantize(x, *quantizer) for quantizer in self._quantizers]
        return torch.cat(codes, dim=1)

    def _convolve_all(self, x: Tensor) -> Tensor:
        name = "encoder.layers"
        x = self._convolve(f"{name}.0", x)
        for stage, ratio in enumerate(reversed(self._config.upsampling_ratios)):
            inner, unit = functional.elu(x), f"{name}.{3 * stage + 1}.block"
            inner = functional.elu(self._convolve(f"{unit}.1", inner))
            x = x + self._convolve(f"{unit}.3", inner)
            x = self._convolve(f"{name}.{3 * stage + 3}", functional.elu(x), ratio)
        last = f"{name}.{3 * len(self._config.upsampling_ratios) + 2}"
        return self._convolve(last, functional.elu(x))

    def _convolve(self, name: str, x: Tensor, stride: int = 1, mode: str = "constant") -> Tensor:
        """A causal convolution, padded to whole strides."""
        weight, bias = self._weights[f"{name}.conv.weight"], self._weights.get(f"{name}.conv.bias")
        ends = weight.shape[-1] - stride, -x.shape[-1] % stride
        return functional.conv1d(functional.pad(x, ends, mode), weight, bias, stride)

    def _transform(self, x_TC: Tensor) -> Tensor:
        config, positions = self._config, torch.arange(len(x_TC))
        rotary = rotary_tables(positions, rotary_frequencies(config))
        age_TT = positions[:, None] - positions
        is_visible = (age_TT >= 0) & (age_TT < config.sliding_window)
        for number in range(config.num_hidden_layers):
            name = f"encoder_transformer.layers.{number}"
            x_TC = x_TC + self._attend(
                name, self._normalize(f"{name}.input", x_TC), rotary, is_visible
            )
            inner = self._normalize(f"{name}.post_attention", x_TC)
            inner = functional.gelu(inner @ self._weights[f"{name}.mlp.fc1.weight"].t())
            inner = inner @ self._weights[f"{name}.mlp.fc2.weight"].t()
            x_TC = x_TC + self._weights[f"{name}.mlp_layer_scale.scale"] * inner
        return x_TC

    def _normalize(self, name: str, x_TC: Tensor) -> Tensor:
        weight, bias = (self._weights[f"{name}_layernorm.{end}"] for end in ("weight", "bias"))
        return functional.layer_norm(x_TC, x_TC.shape[1:], weight, bias, self._config.norm_eps)

    def _attend(
        self, name: str, x_TC: Tensor, rotary: tuple[Tensor, Tensor], is_visible: Tensor
    ) -> Tensor:
        parts = []
        for part in "qkv":
            out = x_TC @ self._weights[f"{name}.self_attn.{part}_proj.weight"].t()
            parts.append(out.unflatten(1, (self._config.num_attention_heads, -1)).transpose(0, 1))
        q_HTK, k_HTK = (rotate(part, *rotary) for part in parts[:2])
        mixed_HTK = functional.scaled_dot_product_attention(
            q_HTK, k_HTK, parts[2], attn_mask=is_visible
        )
        out = mixed_HTK.transpose(0, 1).flatten(1)
        out = out @ self._weights[f"{name}.self_attn.o_proj.weight"].t()
        return self._weights[f"{name}.self_attn_layer_scale.scale"] * out

    def _quantize(self, x: Tensor, projection: Tensor, codebooks_VD: list[Tensor]) -> Tensor:
        """Codes [T, codebooks]: of what is left each time, the nearest vector."""
        left_TD = functional.conv1d(x, projection)[0].t()
        codes = []
        for codebook_VD in codebooks_VD:
            code_T = torch.cdist(left_TD[None], codebook_VD[None])[0].argmin(dim=1)
            left_TD = left_TD - codebook_VD[code_T]
            codes.append(code_T)
        return torch.stack(codes, dim=1)

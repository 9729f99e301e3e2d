"""Dia2 written from its description, in plain torch on a checkpoint's tensors: no class of the
program's model, no cache, every step computed from the whole past."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn.functional import linear, scaled_dot_product_attention, silu


def norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotate(x, positions, theta):
    """x [T, H, K]."""
    half = x.shape[-1] // 2
    angles = positions[:, None] / theta ** (torch.arange(half) / half)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attention(q, k, v):
    """Causal, not scaled; [T, H, K] and [T, G, K]."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    out = scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
    return out.transpose(0, 1).flatten(1)


class Reference:
    """The tensors of the checkpoint in `folder`."""

    def __init__(self, folder: Path, config) -> None:
        self.w = {
            name.removesuffix(".weight"): tensor
            for name, tensor in load_file(folder / "model.safetensors").items()
        }
        self.config, self.d, self.eps = config, config.decoder, config.decoder.norm_eps

    def mlp(self, x, name):
        gate, up = linear(x, self.w[f"{name}.wi"]).chunk(2, -1)
        return linear(silu(gate) * up, self.w[f"{name}.wo"])

    def temporal(self, text, codes, positions):
        """The states [T, D] of one branch."""
        w, d = self.w, self.d
        embed = w["transformer.text_embed.embedding"]
        second = linear(embed[text[:, 1]], w["transformer.text_embed.second_proj"])
        x = linear(embed[text[:, 0]], w["transformer.text_embed.main_proj"])
        x = x + second * (text[:, 1:] != self.config.text_ids.pad)
        for channel in range(d.num_channels):
            x = x + w[f"transformer.audio_embeds.{channel}"][codes[:, channel]]
        for n in range(d.num_layers):
            layer = f"transformer.layers.{n}"
            h = norm(x, w[f"{layer}.pre_norm"], self.eps)
            q, k, v = (
                linear(h, w[f"{layer}.attn.{kind}_proj"]).unflatten(1, (-1, d.head_dim))
                for kind in "qkv"
            )
            q, k = (
                rotate(norm(x_, w[f"{layer}.attn.{kind}_norm"], self.eps), positions, d.rope_theta)
                for x_, kind in ((q, "q"), (k, "k"))
            )
            x = x + linear(attention(q, k, v), w[f"{layer}.attn.o_proj"])
            x = x + self.mlp(norm(x, w[f"{layer}.post_norm"], self.eps), f"{layer}.mlp")
        return norm(x, w["transformer.norm"], self.eps)

    def stage(self, codes, state):
        """Logits after the codes of codebooks 0 to s of this frame: stage s."""
        w, depth = self.w, self.config.depth
        number = len(codes)
        rows = [
            linear(state, w[f"depformer.depformer_in.{depth.schedule[s]}"])
            + w[f"depformer.audio_embeds.{s}"][codes[s]]
            for s in range(number)
        ]
        x, positions = torch.stack(rows), torch.arange(number)
        for n in range(depth.num_layers):
            layer = f"depformer.layers.{n}"
            attn = f"{layer}.self_attention"
            h = norm(x, w[f"{layer}.pre_norm"], self.eps)
            stacked = torch.stack(
                [linear(h[s], w[f"{attn}.in_proj.{depth.schedule[s]}"]) for s in range(number)]
            )
            q, k, v = stacked.unflatten(1, (3, -1, depth.head_dim)).unbind(1)
            q, k = norm(q, w[f"{attn}.q_norm"], self.eps), norm(k, w[f"{attn}.k_norm"], self.eps)
            if depth.apply_rope:
                q, k = (rotate(each, positions, self.d.rope_theta) for each in (q, k))
            out = attention(q, k, v)
            x = x + torch.stack(
                [linear(out[s], w[f"{attn}.out_proj.{depth.schedule[s]}"]) for s in range(number)]
            )
            x = x + self.mlp(norm(x, w[f"{layer}.post_norm"], self.eps), f"{layer}.mlp")
        last = norm(x[-1], w["depformer.norm"], self.eps)
        return linear(last, w[f"depformer.logits.{number - 1}"])[: self.config.num_codes]

    def draw(self, cond, uncond, scale, temperature, top_k, uniform, excluded=()):
        """A code from both branches' logits [V]."""
        cond = cond.clone()
        if scale != 1:
            guided = torch.lerp(uncond, cond, scale)
            cond[guided < guided.topk(min(50, len(guided))).values[-1]] = -torch.inf
        cond[list(excluded)] = -torch.inf
        if temperature == 0:
            return int(cond.argmax())
        likely, codes = torch.softmax(cond / temperature, -1).topk(min(top_k, len(cond)))
        total = likely.double().cumsum(0)
        return int(codes[(total <= uniform * total[-1]).sum()])

    @torch.inference_mode()
    def step(self, texts, codes, positions, params, uniforms):
        """The action and the codes of the step after all of these."""
        ids, d, scale = self.config.text_ids, self.d, params.cfg_scale
        nothing = torch.tensor([[ids.zero, ids.pad]]).expand(len(texts), 2)
        codes, positions = torch.from_numpy(np.array(codes)), torch.tensor(positions)
        states = [
            self.temporal(text, codes, positions)[-1] for text in (torch.tensor(texts), nothing)
        ]
        heads = self.w["transformer.action_head"], self.w["transformer.cb0_head"]
        actions, first = ([linear(state, head) for state in states] for head in heads)
        action = self.draw(*actions, scale, params.text_temperature, 50, uniforms[0])
        rest = scale, params.temperature, params.top_k
        made = [self.draw(*first, *rest, uniforms[1], (d.bos, d.pad))]
        for s in range(self.config.stages):
            made.append(self.draw(*(self.stage(made, x) for x in states), *rest, uniforms[s + 2]))
        return action, made

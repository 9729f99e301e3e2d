"""The small Dia as it is trained: Dia's architecture, plus what training alone needs.

Differences from the exported model, all removed by export.py: attention is scaled by
1/sqrt(head_dim) (folded into the query weights), cross-attention returns its weights (for the
guide), two auxiliary heads predict phones: one on the decoder (the phone of each frame), one on
the text encoder (the phones in order, two guesses a letter, for a CTC loss), and one on the decoder
predicts the voice (name, pitch, source with formants): after two layers that of each frame, after
four that of the turn that begins.
Two more count tags: how many stand before a letter, and before what a frame says.

Shapes: B batch, T frames, S text bytes, C channels, V vocabulary, H heads.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn

from dia_demo.files import write_atomic
from training.voice.codec.network import CODEC
from training.voice.teacher.phones import PHONES
from training.voice.teacher.voices import FREE, PITCHES, WARPS

CODES = CODEC["codebook_size"]
CHANNELS = CODEC["n_codebooks"]
EOS, PAD, BOS, VOCABULARY = CODES, CODES + 1, CODES + 2, CODES + 4
DELAYS = list(range(CHANNELS))
SPELLED = 2  # guesses at a phone for every letter; the class after the phones is "none"
CHUNK = 160  # queries at a time: less of the triangle above the diagonal is computed
FRAME_HEADS_AFTER, ONSET_HEAD_AFTER = 2, 4  # decoder layers below the auxiliary heads
MOST_VOICES = 32  # with names
# logits of the voice head: for names, for pitches, for sources with formants
VOICE_CLASSES = MOST_VOICES, PITCHES, len(FREE) * WARPS
TAG_COUNTS = 12  # classes of "tags so far": 0..10 and more
REMAINING = 13  # classes of "frames left in this phone": 0..11 and more


@dataclass(frozen=True)
class Shape:
    """Sizes of the network; head_dim is width / heads throughout."""

    encoder_layers: int = 3
    encoder_width: int = 192
    encoder_heads: int = 4
    encoder_mlp: int = 448
    decoder_layers: int = 6
    decoder_width: int = 256
    decoder_heads: int = 8
    decoder_kv_heads: int = 2
    decoder_mlp: int = 576
    cross_heads: int = 8


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x.float(), (x.shape[-1],), self.weight, 1e-5).to(x.dtype)


def rotate(x: torch.Tensor) -> torch.Tensor:
    """RoPE on [B, H, T, D], half-split, theta 10000."""
    length, dim = x.shape[-2:]
    steps = torch.arange(dim // 2, device=x.device)
    frequency = 1.0 / 10000 ** (steps * 2 / dim)
    angle = torch.arange(length, device=x.device)[:, None].float() * frequency
    sine, cosine = angle.sin(), angle.cos()
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1).to(x.dtype)


def heads(x: torch.Tensor, count: int) -> torch.Tensor:
    return x.view(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def attend(q, k, v, bias):
    """(values [B, H, T, D], weights [B, H, T, S]). Written out: on a CPU the backward of torch's
    fused attention takes three times as long. The scores keep their type, bfloat16 in training:
    most of the time goes into moving them."""
    scores = q / math.sqrt(q.shape[-1]) @ k.mT
    weights = (scores + bias.to(scores.dtype)).softmax(-1)
    return weights.to(v.dtype) @ v, weights


def attend_back(q, k, v):
    """Causal attention's values: every CHUNK of queries meets the keys up to its own end only."""
    if q.is_cuda:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    length, out = q.shape[2], []
    future = torch.full((CHUNK, CHUNK), -1e9, device=q.device, dtype=q.dtype).triu(1)
    for a in range(0, length, CHUNK):
        b = min(a + CHUNK, length)
        bias = F.pad(future[: b - a, : b - a], (a, 0))
        out.append(attend(q[:, :, a:b], k[:, :, :b], v[:, :, :b], bias)[0])
    return torch.cat(out, 2)


class SelfAttention(nn.Module):
    def __init__(self, width: int, count: int, kv_count: int) -> None:
        super().__init__()
        self.count, self.kv_count = count, kv_count
        kv_width = width // count * kv_count
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, kv_width, bias=False)
        self.v_proj = nn.Linear(width, kv_width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, bias=None):
        """bias [.., T, T] is -1e9 where a position may not look; without it, into the past."""
        q = rotate(heads(self.q_proj(x), self.count))
        k = rotate(heads(self.k_proj(x), self.kv_count))
        v = heads(self.v_proj(x), self.kv_count)
        repeat = self.count // self.kv_count
        if repeat > 1:
            k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        out = attend_back(q, k, v) if bias is None else attend(q, k, v, bias)[0]
        return self.o_proj(out.transpose(1, 2).flatten(2))


class CrossAttention(nn.Module):
    def __init__(self, width: int, text_width: int, count: int) -> None:
        super().__init__()
        self.count = count
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(text_width, width, bias=False)
        self.v_proj = nn.Linear(text_width, width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, text, bias):
        """bias [B, 1, 1, S] is -inf on padding. Returns (out, weights [B, H, T, S] float32)."""
        q, k = heads(self.q_proj(x), self.count), heads(self.k_proj(text), self.count)
        v = heads(self.v_proj(text), self.count)
        out, weights = attend(q, k, v, bias)
        return self.o_proj(out.transpose(1, 2).flatten(2)), weights


class GatedMLP(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_up_proj = nn.Linear(width, 2 * hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        gate, up = self.gate_up_proj(x).chunk(2, -1)
        return self.down_proj(F.silu(gate) * up)


class EncoderLayer(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.pre_sa_norm, self.post_sa_norm = Norm(s.encoder_width), Norm(s.encoder_width)
        self.self_attention = SelfAttention(s.encoder_width, s.encoder_heads, s.encoder_heads)
        self.mlp = GatedMLP(s.encoder_width, s.encoder_mlp)

    def forward(self, x, bias):
        x = x + self.self_attention(self.pre_sa_norm(x), bias)
        return x + self.mlp(self.post_sa_norm(x))


class DecoderLayer(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        width = s.decoder_width
        self.pre_sa_norm, self.pre_ca_norm, self.pre_mlp_norm = (
            Norm(width),
            Norm(width),
            Norm(width),
        )
        self.self_attention = SelfAttention(width, s.decoder_heads, s.decoder_kv_heads)
        self.cross_attention = CrossAttention(width, s.encoder_width, s.cross_heads)
        self.mlp = GatedMLP(width, s.decoder_mlp)

    def forward(self, x, text, bias):
        x = x + self.self_attention(self.pre_sa_norm(x))
        out, weights = self.cross_attention(self.pre_ca_norm(x), text, bias)
        x = x + out
        return x + self.mlp(self.pre_mlp_norm(x)), weights


class Nano(nn.Module):
    def __init__(self, shape: Shape = Shape()) -> None:  # noqa: B008 - frozen
        super().__init__()
        self.shape = shape
        self.text_embedding = nn.Embedding(256, shape.encoder_width)
        self.encoder = nn.ModuleList([EncoderLayer(shape) for _ in range(shape.encoder_layers)])
        self.encoder_norm = Norm(shape.encoder_width)
        self.code_embedding = nn.Embedding(CHANNELS * VOCABULARY, shape.decoder_width)
        self.decoder = nn.ModuleList([DecoderLayer(shape) for _ in range(shape.decoder_layers)])
        self.decoder_norm = Norm(shape.decoder_width)
        self.logits_dense = nn.Linear(shape.decoder_width, CHANNELS * VOCABULARY, bias=False)
        self.phone_head = nn.Linear(shape.decoder_width, len(PHONES) + 1 + REMAINING)
        self.voice_head = nn.Linear(shape.decoder_width, sum(VOICE_CLASSES))
        self.spell_head = nn.Linear(shape.encoder_width, SPELLED * (len(PHONES) + 1))
        self.text_tag_head = nn.Linear(shape.encoder_width, TAG_COUNTS)
        self.frame_tag_head = nn.Linear(shape.decoder_width, TAG_COUNTS)
        self.register_buffer("offsets", torch.arange(CHANNELS) * VOCABULARY, persistent=False)
        self._initialise()

    def _initialise(self) -> None:
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, 0, min(0.05, p.shape[1] ** -0.5))
        nn.init.normal_(self.code_embedding.weight, 0, 0.1)
        nn.init.normal_(self.text_embedding.weight, 0, 0.3)
        for layer in [*self.encoder, *self.decoder]:
            layer.mlp.down_proj.weight.data *= 0.3
            layer.self_attention.o_proj.weight.data *= 0.3

    def encode(self, text, mask):
        """text [B, S], mask [B, S] bool -> states [B, S, D], bias [B, 1, 1, S] of the padding."""
        bias = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -1e9)[:, None, None]
        x = self.text_embedding(text)
        for layer in self.encoder:
            x = layer(x, bias)
        return self.encoder_norm(x), bias

    def spell(self, encoded):
        """Spelling logits [B, 2 S, phones + 1]."""
        return self.spell_head(encoded).view(len(encoded), -1, len(PHONES) + 1)

    def forward(self, text, mask, tokens):
        """text [B, S], mask [B, S] bool, tokens [B, T, C].

        Returns logits [B, T, C, V], one weight tensor [B, H, T, S] a layer, phone logits, spelling
        logits, logits of the voice of each frame and of the turn [B, T, sum(VOICE_CLASSES)], of the
        count of tags up to each letter [B, S, TAG_COUNTS] and each frame [B, T, TAG_COUNTS].
        """
        encoded, bias = self.encode(text, mask)
        x = self.code_embedding(tokens + self.offsets).sum(2)
        attention, early, late = [], x, x
        for n, layer in enumerate(self.decoder, 1):
            x, weights = layer(x, encoded, bias)
            attention.append(weights)
            early = x if n == FRAME_HEADS_AFTER else early
            late = x if n == ONSET_HEAD_AFTER else late
        logits = self.logits_dense(self.decoder_norm(x))
        return (
            logits.view(*x.shape[:2], CHANNELS, VOCABULARY),
            attention,
            self.phone_head(early),
            self.spell(encoded),
            self.voice_head(early),
            self.voice_head(late),
            self.text_tag_head(encoded),
            self.frame_tag_head(early),
        )


def save_nano(path, model: Nano, **extra) -> None:
    state = {"shape": asdict(model.shape), "model": model.state_dict(), **extra}
    with write_atomic(path) as part:
        torch.save(state, part)


def load_nano(path) -> tuple[Nano, dict]:
    saved = torch.load(path, map_location="cpu", weights_only=False)
    model = Nano(Shape(**saved["shape"]))
    model.load_state_dict(saved["model"])
    return model, saved

"""Where a model runs, in which precision and with how many threads, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dia_demo.config import ModelConfig, RuntimeConfig
from dia_demo.errors import InputError
from dia_demo.machine import granted_cores

# Below this many decoder weights a step is bound by its operations, not by reading weights.
SMALL_WEIGHTS = 30_000_000


@dataclass(frozen=True)
class XpuStatus:
    """Whether the experimental XPU toggle may be used, and in plain words why not."""

    usable: bool
    reason: str


@dataclass(frozen=True)
class Placement:
    """How a model runs here. `reason` tells the person why this precision."""

    device: str
    precision: str
    threads: int
    reason: str


def xpu_status() -> XpuStatus:
    """What keeps an Intel GPU from being used."""
    if getattr(torch.version, "xpu", None) is None:
        return XpuStatus(
            False,
            "this build of torch has no XPU support; Intel GPUs need the XPU build from "
            "pytorch.org's own xpu index.",
        )
    if not torch.xpu.is_available():
        return XpuStatus(False, "torch finds no Intel GPU or no working driver for one.")
    return XpuStatus(
        False,
        "an Intel GPU is there, but this version has no self-check yet, and without one it "
        "must not run: earlier projects got distorted audio.",
    )


def place(runtime: RuntimeConfig, config: ModelConfig) -> Placement:
    """Decide device, precision and threads. InputError where what is asked cannot be had."""
    if runtime.device == "xpu":
        raise InputError(f"The XPU cannot be used: {xpu_status().reason} Use --device cpu.")
    cores = granted_cores()
    threads = runtime.threads or cores
    if threads > cores:
        raise InputError(f"threads must be from 1 to {cores}, the cores granted here: {threads}.")
    precision, reason = _precision(runtime.precision, config)
    return Placement("cpu", precision, threads, reason)


def has_fast_bfloat16() -> bool:
    """Whether the CPU multiplies bfloat16 itself (AVX512_BF16, AMX, Arm bf16)."""
    supported = torch.cpu.get_capabilities()
    return any(supported.get(key) for key in ("avx512_bf16", "amx_bf16", "bf16"))


def _precision(asked: str, config: ModelConfig) -> tuple[str, str]:
    if asked != "auto":
        return asked, "as asked"
    if decoder_weights(config) < SMALL_WEIGHTS:
        return "float32", "a model this small gains nothing from fewer bits"
    if has_fast_bfloat16():
        return "bfloat16", "this CPU multiplies bfloat16 itself, and half the bytes are read"
    return "float32", "this CPU has no fast bfloat16"


def decoder_weights(config: ModelConfig) -> int:
    """Weights of the linears that every decoder step reads."""
    d = config.decoder
    self_attention = (2 * d.num_heads + 2 * d.num_kv_heads) * d.head_dim * d.hidden_size
    cross_attention = 2 * d.cross_num_heads * d.cross_head_dim * d.hidden_size
    mlp = 3 * d.hidden_size * d.intermediate_size
    head = d.num_channels * d.vocab_size * d.hidden_size
    return d.num_layers * (self_attention + cross_attention + mlp) + head

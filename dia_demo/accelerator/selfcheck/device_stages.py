"""Stages 1 and 5 to 7: the device itself, selection, copies, and the codec's layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from dia_demo.accelerator.selfcheck.context import CheckContext
from dia_demo.accelerator.selfcheck.op_stages import BRANCHES, random
from dia_demo.accelerator.selfcheck.recorder import StageRecorder

# Weights, caches and temporary tensors, as a multiple of the weights.
MEMORY_FACTOR = 1.3
ALLOCATION_BYTES = 256 * 2**20


def device(context: CheckContext, recorder: StageRecorder) -> None:
    """Which card this is, whether work runs on it, and whether it has memory for the model."""
    backend = context.backend
    recorder.begin("asking which card this is")
    card = backend.card()
    integrated = {True: "integrated", False: "discrete", None: "integrated or not: unknown"}
    recorder.facts.append(f"{card.name}, driver {card.driver}, {integrated[card.integrated]}")
    if context.expected_card is not None and card != context.expected_card:
        expected = context.expected_card.name
        recorder.add_problem(f"a different card responded: {card.name}, not {expected}")
    recorder.begin("a first computation")
    with backend.active():
        result = backend.put(torch.arange(8.0)) * 2 + 1
        backend.synchronize()
    if backend.location(result) != str(backend.device):
        recorder.add_problem(
            f"work for {backend.device} lands on the wrong device {backend.location(result)}"
        )
    recorder.compare(backend.fetch(result), torch.arange(8.0) * 2 + 1, "a first computation")
    _check_memory(context, recorder)


def _check_memory(context: CheckContext, recorder: StageRecorder) -> None:
    backend, needed = context.backend, int(MEMORY_FACTOR * context.weight_bytes)
    free = backend.memory().free
    available = "unknown" if free is None else f"{free / 2**30:.1f} GiB"
    recorder.facts.append(f"memory: {needed / 2**30:.2f} GiB needed, free: {available}")
    if free is not None and free < needed:
        recorder.add_problem(
            f"out of memory: {free / 2**30:.1f} GiB are free, {needed / 2**30:.1f} GiB needed "
            f"({MEMORY_FACTOR} times the weights)"
        )
        return
    recorder.begin(f"allocating {needed / 2**30:.2f} GiB, {MEMORY_FACTOR} times the weights")
    starts = range(0, needed, ALLOCATION_BYTES)
    blocks = [backend.allocate(min(ALLOCATION_BYTES, needed - start)) for start in starts]
    backend.synchronize()
    del blocks
    backend.release()


def selection(context: CheckContext, recorder: StageRecorder) -> None:
    """Top-k, sort, cumulative sum and softmax over a channel's codes.

    Torch 2.13 is reported to give wrong top-k indices on Intel GPUs. Sampling stays on the CPU, so
    this stage can only note.
    """
    decoder, backend = context.config.decoder, context.backend
    size = decoder.vocab_size
    order = torch.stack(
        [
            torch.randperm(size, generator=torch.Generator().manual_seed(seed))
            for seed in range(BRANCHES * decoder.num_channels)
        ]
    )
    logits = order.float() * (12 / size)
    count = min(45, size)
    cases: dict[str, Callable[[Tensor], Tensor]] = {
        "topk values": lambda x: x.topk(count).values,
        "topk indices": lambda x: x.topk(count).indices,
        "sort indices": lambda x: x.sort(descending=True).indices,
        "argmax": lambda x: x.argmax(dim=-1),
        "softmax": lambda x: x.softmax(dim=-1),
        "cumsum": lambda x: x.softmax(dim=-1).cumsum(dim=-1),
    }
    device_logits = backend.put(logits)
    for name, compute in cases.items():
        recorder.begin(name)
        with backend.active():
            result = compute(device_logits)
        actual, expected = backend.fetch(result), compute(logits)
        if expected.is_floating_point():
            recorder.compare(actual, expected, name)
        else:
            recorder.compare_bits(actual, expected, name)


def copies(context: CheckContext, recorder: StageRecorder) -> None:
    """Copies to the device and back are bitwise equal, strided ones too; the same input gives the
    same output again and again."""
    backend = context.backend
    x = random(6, 10, 4)
    kinds = {
        "float32": x,
        "bfloat16": x.bfloat16(),
        "int64": (1000 * x).long(),
        "bool": x > 0,
        "transposed": x.transpose(0, 2),
        "every second": x[:, ::2],
        "expanded": x[:1].expand(3, -1, -1),
    }
    for name, tensor in kinds.items():
        where = f"copy of {name} data"
        recorder.begin(where)
        copy = backend.fetch(backend.put(tensor))
        recorder.compare_bits(copy.contiguous(), tensor.contiguous(), where)
    views: dict[str, Callable[[Tensor], Tensor]] = {
        "transposed": lambda t: t.transpose(0, 2),
        "strided": lambda t: t[:, 1::2],
        "sliced": lambda t: t[..., 1:3],
    }
    device_x = backend.put(x)
    for name, view in views.items():
        where = f"contiguous copy of {name} data on the device"
        recorder.begin(where)
        with backend.active():
            result = view(device_x).contiguous()
        recorder.compare_bits(backend.fetch(result), view(x).contiguous(), where)
    _repeat_same_input(context, recorder)


def _repeat_same_input(context: CheckContext, recorder: StageRecorder) -> None:
    decoder, where = context.config.decoder, "the same input again"
    weight = random(decoder.hidden_size, decoder.hidden_size) / decoder.hidden_size**0.5
    weight, x = context.put(weight), context.put(random(BRANCHES, decoder.hidden_size, seed=2))
    recorder.begin(where)
    first = None
    for _ in range(context.plan.same_repeats):
        with context.backend.active():
            result = context.fetch(functional.linear(x, weight).softmax(dim=-1))
        first = result if first is None else first
        recorder.compare(result, first, where)


def codec_layers(context: CheckContext, recorder: StageRecorder) -> None:
    """The layers of the Descript codec's decoder: dilated and transposed convolutions, snake.

    The codec stays on the CPU, so this stage can only note. Dilated convolutions are reported to
    fail on Intel GPUs with "could not create a primitive".
    """
    channels = context.plan.codec_channels
    x = random(1, channels, 96)
    kernel = random(channels, channels, 7, seed=2) / (7 * channels) ** 0.5
    transposed_kernel = random(channels, channels // 2, 16, seed=3) / (2 * channels) ** 0.5
    alpha = random(1, channels, 1, seed=4).abs() + 0.5

    def dilated_conv(x: Tensor, w: Tensor, dilation: int) -> Tensor:
        return functional.conv1d(x, w, dilation=dilation, padding=3 * dilation)

    def transposed_conv(x: Tensor, w: Tensor) -> Tensor:
        return functional.conv_transpose1d(x, w, stride=8, padding=4)

    def snake(x: Tensor, alpha: Tensor) -> Tensor:
        return x + (alpha * x).sin().pow(2) / alpha

    cases: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
        f"convolution dilated by {dilation}": (
            partial(dilated_conv, dilation=dilation),
            (x, kernel),
        )
        for dilation in (1, 3, 9)
    }
    cases["transposed convolution"] = transposed_conv, (x, transposed_kernel)
    cases["snake"] = snake, (x, alpha)
    for name, (compute, inputs) in cases.items():
        recorder.begin(name)
        device_inputs = [context.backend.put(tensor) for tensor in inputs]
        try:
            with context.backend.active():
                result = compute(*device_inputs)
            recorder.compare(context.backend.fetch(result), compute(*inputs), name)
        except (RuntimeError, NotImplementedError) as error:
            recorder.add_problem(f"{name} does not run: {error}")

"""Stages 1 and 5 to 7: the device itself, selection, copies, and the codec's layers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from dia_demo.accelerator.selfcheck.context import Subject
from dia_demo.accelerator.selfcheck.op_stages import HALVES, random
from dia_demo.accelerator.selfcheck.recorder import Tally

# Weights, caches and what the operations need beside them.
ROOM = 1.3
PIECE = 256 * 2**20


def device(subject: Subject, tally: Tally) -> None:
    """Which card answers, whether work sent to it arrives there, and room for the model."""
    backend = subject.backend
    tally.trying("asking which card this is")
    card = backend.card()
    integrated = {True: "integrated", False: "discrete", None: "not told whether integrated"}
    tally.facts.append(f"{card.name}, driver {card.driver}, {integrated[card.integrated]}")
    if subject.expected_card not in (None, card):
        tally.wrong(f"another card answers: {card.name}, not {subject.expected_card.name}")
    tally.trying("a first computation")
    with backend.active():
        there = backend.put(torch.arange(8.0)) * 2 + 1
        backend.synchronize()
    if backend.location(there) != str(backend.device):
        tally.wrong(
            f"work for {backend.device} lands on the wrong device {backend.location(there)}"
        )
    tally.compare(backend.fetch(there), torch.arange(8.0) * 2 + 1, "a first computation")
    needed = int(ROOM * subject.weight_bytes)
    free = backend.memory().free
    told = "not told" if free is None else f"{free / 2**30:.1f} GiB"
    tally.facts.append(f"memory: {needed / 2**30:.2f} GiB needed, free: {told}")
    if free is not None and free < needed:
        tally.wrong(
            f"out of memory: {free / 2**30:.1f} GiB are free, {needed / 2**30:.1f} GiB needed "
            f"({ROOM} times the weights)"
        )
        return
    tally.trying(f"allocating {needed / 2**30:.2f} GiB, {ROOM} times the weights")
    held = [backend.allocate(min(PIECE, needed - at)) for at in range(0, needed, PIECE)]
    backend.synchronize()
    del held
    backend.release()


def selection(subject: Subject, tally: Tally) -> None:
    """Top-k, sort, cumulative sum and softmax over a channel's codes.

    Torch 2.13 is reported to give wrong top-k indices on Intel GPUs. Sampling stays on the CPU, so
    this stage only tells.
    """
    decoder, backend = subject.config.decoder, subject.backend
    size = decoder.vocab_size
    order = torch.stack(
        [
            torch.randperm(size, generator=torch.Generator().manual_seed(seed))
            for seed in range(HALVES * decoder.num_channels)
        ]
    )
    logits = order.float() * (12 / size)
    count = min(45, size)
    cases = {
        "topk values": lambda x: x.topk(count).values,
        "topk indices": lambda x: x.topk(count).indices,
        "sort indices": lambda x: x.sort(descending=True).indices,
        "argmax": lambda x: x.argmax(dim=-1),
        "softmax": lambda x: x.softmax(dim=-1),
        "cumsum": lambda x: x.softmax(dim=-1).cumsum(dim=-1),
    }
    there = backend.put(logits)
    for name, compute in cases.items():
        tally.trying(name)
        with backend.active():
            out = compute(there)
        got, expected = backend.fetch(out), compute(logits)
        check = tally.compare if expected.is_floating_point() else tally.same
        check(got, expected, name)


def copies(subject: Subject, tally: Tally) -> None:
    """There and back bit for bit, strided too; then the same input again and again."""
    backend = subject.backend
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
        tally.trying(where)
        tally.same(backend.fetch(backend.put(tensor)).contiguous(), tensor.contiguous(), where)
    views = {
        "transposed": lambda t: t.transpose(0, 2),
        "strided": lambda t: t[:, 1::2],
        "sliced": lambda t: t[..., 1:3],
    }
    there = backend.put(x)
    for name, view in views.items():
        where = f"contiguous copy of {name} data on the device"
        tally.trying(where)
        with backend.active():
            out = view(there).contiguous()
        tally.same(backend.fetch(out), view(x).contiguous(), where)
    _same_again(subject, tally)


def _same_again(subject: Subject, tally: Tally) -> None:
    decoder, where = subject.config.decoder, "the same input again"
    weight = random(decoder.hidden_size, decoder.hidden_size) / decoder.hidden_size**0.5
    weight, x = subject.put(weight), subject.put(random(HALVES, decoder.hidden_size, seed=2))
    tally.trying(where)
    first = None
    for _ in range(subject.plan.same_repeats):
        with subject.backend.active():
            out = subject.fetch(functional.linear(x, weight).softmax(dim=-1))
        first = out if first is None else first
        tally.compare(out, first, where)


def codec_layers(subject: Subject, tally: Tally) -> None:
    """What the Descript codec's decoder is made of: dilated and transposed convolutions, snake.

    The codec stays on the CPU, so this stage only tells: dilated convolutions are reported to fail
    on Intel GPUs with "could not create a primitive".
    """
    channels = subject.plan.codec_channels
    x = random(1, channels, 96)
    kernel = random(channels, channels, 7, seed=2) / (7 * channels) ** 0.5
    turned = random(channels, channels // 2, 16, seed=3) / (2 * channels) ** 0.5
    alpha = random(1, channels, 1, seed=4).abs() + 0.5

    def snake(x: Tensor, alpha: Tensor) -> Tensor:
        return x + (alpha * x).sin().pow(2) / alpha

    cases = {
        f"convolution dilated by {dilation}": (
            lambda x, w, dilation=dilation: functional.conv1d(
                x, w, dilation=dilation, padding=3 * dilation
            ),
            (x, kernel),
        )
        for dilation in (1, 3, 9)
    }
    cases["transposed convolution"] = (
        lambda x, w: functional.conv_transpose1d(x, w, stride=8, padding=4),
        (x, turned),
    )
    cases["snake"] = (snake, (x, alpha))
    for name, (compute, given) in cases.items():
        tally.trying(name)
        there = [subject.backend.put(tensor) for tensor in given]
        try:
            with subject.backend.active():
                out = compute(*there)
            tally.compare(subject.backend.fetch(out), compute(*given), name)
        except (RuntimeError, NotImplementedError) as error:
            tally.wrong(f"{name} does not run: {error}")

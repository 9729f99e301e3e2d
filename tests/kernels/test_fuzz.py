"""Random shapes and values: compiled linears against float64, whole steps against torch.

CI runs this folder once for each class of processors (DIA_CPU).
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from dia_demo.config import DecoderConfig, EncoderConfig, ModelConfig
from dia_demo.kernels.packing import GROUP
from dia_demo.model.dia import Dia
from dia_demo.model.kv_cache import RowCache
from dia_demo.model.linear import KERNELS, Kernel, can_compile
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.model.weights import checkpoint
from dia_demo.task import result_of

pytestmark = [
    pytest.mark.processor,
    pytest.mark.skipif(not can_compile(), reason="needs numba"),
]

LINEARS, STEPS = 30, 3
COMPILED = [kernel for kernel in KERNELS if kernel.compiled]
CASES = [(kernel, precision) for kernel in COMPILED for precision in kernel.precisions]
IDS = [f"{kernel.name}, {precision}" for kernel, precision in CASES]
# Allowed errors of products of bytes and of bfloat16, relative to the sum of all |x * weight|, and
# of a step's logits, relative to their norm: activations are rounded to the format's numbers.
ROUNDED = {"bfloat16": 4e-3, "int8": 5e-3, "int4": 5e-3}
LOGITS = {"float32": 2e-5, "bfloat16": 2e-2, "int8": 4e-2, "int4": 4e-2}
# The same with several frames a step: their inputs are the sums of more embeddings, and every frame
# has one more gated MLP on rounded activations.
SEVERAL = {"float32": 2e-5, "bfloat16": 2e-2, "int8": 8e-2, "int4": 8e-2}


def weights_of(packed: PackedLinear) -> Tensor:
    """float32 [outputs, inputs], as the precision stores them."""
    return packed.weights(torch.float32).transpose(1, 2).flatten(0, 1)[: packed.outputs]


def as_bytes(x: Tensor) -> Tensor:
    """float64: activations rounded to int8 with one scale for each group of inputs."""
    groups = torch.nn.functional.pad(x, (0, -x.shape[1] % GROUP)).view(len(x), -1, GROUP)
    peak = groups.abs().amax(2, keepdim=True)
    per_step = torch.where(peak > 0, 127 / peak, 0)
    numbers = (groups * per_step).round().double()
    return (numbers * (peak / 127).double()).view(len(x), -1)[:, : x.shape[1]]


def random_linear(seed: int) -> tuple[Tensor, Tensor, int]:
    """A weight, activations, and a number of threads."""
    dice = random.Random(seed)
    outputs = dice.choice([1, 7, 63, 64, 65, 130, 200, dice.randint(1, 500)])
    inputs = dice.choice([1, 3, 17, 63, 64, 65, 129, 1025, dice.randint(1, 900)])
    rows = dice.choice([1, 2, 3, 4, 5, 7, 8, 9, 16, 18])
    torch.manual_seed(seed)
    weight, x = torch.randn(outputs, inputs), torch.randn(rows, inputs)
    kind = dice.choice(["normal", "normal", "heavy tails", "zeros", "constant"])
    if kind == "heavy tails":
        weight, x = weight**5, x**5
    elif kind == "zeros":
        weight[dice.randrange(outputs)] = x[dice.randrange(rows)] = 0
    elif kind == "constant":
        weight[:], x[:] = dice.choice([-1.0, 1.0]), dice.choice([-3.0, 3.0])
    return weight, x * dice.choice([1e-20, 1e-4, 1.0, 1.0, 30.0, 1e6]), dice.choice([1, 2, 3])


@pytest.mark.parametrize(("kernel", "precision"), CASES, ids=IDS)
def test_random_linears_equal_the_exact_product(kernel, precision):
    """And a row is the same to the last bit alone, on one thread."""
    for seed in range(LINEARS):
        weight, x, threads = random_linear(seed)
        packed = PackedLinear.from_weight(weight, precision)
        try:
            result = kernel.run(packed, x, threads)
        except NotImplementedError as reason:
            pytest.skip(str(reason))
        exact, allowed = x.double(), 2e-6
        if kernel.use_dot and precision == "bfloat16":
            allowed = ROUNDED[precision]
        elif kernel.use_dot:
            exact = as_bytes(x)
        stored = weights_of(packed).double()
        largest = (exact.abs() @ stored.abs().t()).clamp_min(1e-300)
        error = ((result - exact @ stored.t()).abs() / largest).max()
        assert error <= allowed, (seed, weight.shape, len(x), threads)
        assert torch.equal(kernel.run(packed, x[:1], 1)[0], result[0]), (seed, len(x), threads)


def random_config(dice: random.Random) -> ModelConfig:
    kv_heads, cross_kv_heads = dice.choice([1, 2, 3]), dice.choice([1, 2, 3])
    vocabulary, channels = dice.choice([20, 68, 131]), dice.choice([1, 2, 5, 9])
    decoder = DecoderConfig(
        num_layers=2,
        hidden_size=dice.choice([32, 36, 65, 100, 128]),
        num_heads=kv_heads * dice.choice([1, 2, 4]),
        num_kv_heads=kv_heads,
        head_dim=dice.choice([2, 6, 8, 16, 18, 32, 64]),
        cross_num_heads=cross_kv_heads * dice.choice([1, 2, 4]),
        cross_num_kv_heads=cross_kv_heads,
        cross_head_dim=dice.choice([1, 3, 8, 15, 16, 33]),
        intermediate_size=dice.choice([40, 63, 64, 130]),
        vocab_size=vocabulary,
        max_positions=900,
        num_channels=channels,
        eos=vocabulary - 4,
        pad=vocabulary - 3,
        bos=vocabulary - 2,
    )
    encoder = EncoderConfig(1, dice.choice([16, 48, 66]), 2, 2, 8, 48, max_positions=100)
    return ModelConfig(encoder, decoder, delay_pattern=tuple(range(channels)))


def reference_of(model: Dia, config: ModelConfig) -> Dia:
    """A model of torch's modules, in float32, with the weights that `model` stores."""
    reference = result_of(checkpoint.load_random(config, "float32"))
    for name, module in model.named_modules():
        if isinstance(module, PackedLinear):
            reference.get_submodule(name).weight.data = weights_of(module).contiguous()
        elif getattr(module, "weight", None) is not None:
            reference.get_submodule(name).weight.data = module.weight.data.float()
    return reference


def start(cache: RowCache, positions: int, seed: int) -> RowCache:
    """The cache after some positions with random keys and values."""
    generator = torch.Generator().manual_seed(seed)
    cache.reserve(positions)
    cache.advance(positions)
    for branch in range(cache.branches):
        for k, v in cache.layers_of_branch(branch):
            for numbers in (k, v):
                noise = 0.3 * torch.randn(numbers.shape, generator=generator)
                numbers.copy_(noise.bfloat16())
    return cache


def worst_step(kernel: Kernel, precision: str, seed: int, frames: int = 1) -> float:
    """The largest relative error of three steps of some rows, one of which grows its cache."""
    dice = random.Random(seed)
    config = random_config(dice)
    if seed % 2:
        config = replace(config, guidance_scales=(0.0, 1.0, 3.0))
    config = replace(config, frames_per_step=frames)
    dia = result_of(checkpoint.load_random(config, precision, kernel, seed))
    reference, model = reference_of(dia, config), kernel.install(dia, dice.choice([1, 2, 3]))
    rows = [
        (bytes(dice.choices(range(256), k=dice.choice([1, 7, 64, 65]))),
         1.7 * (dice.random() < 0.6), dice.choice([0, 1, 15, 254, 255, 256]))
        for _ in range(dice.choice([1, 2, 3, 8]))
    ]  # fmt: skip
    generator, worst = torch.Generator().manual_seed(seed), 0.0
    with torch.inference_mode():
        ours, theirs = [], []
        for number, (text, cfg_scale, positions) in enumerate(rows):
            ours.append(start(model.encode(text, cfg_scale, 600), positions, number))
            cache = start(reference.encode(text, cfg_scale, 600), positions, number)
            cache.cross = [[(k.float(), v.float()) for k, v in branch] for branch in ours[-1].cross]
            theirs.append(cache)
        branches = sum(cache.branches for cache in ours)
        vocabulary, channels = config.decoder.vocab_size, config.decoder.num_channels
        for _ in range(3):
            shape = (branches, 1, config.codes_per_step)
            codes = torch.randint(0, vocabulary, shape, generator=generator)
            expected, result = reference(codes, theirs), model(codes, ours)
            worst = max(worst, float((result - expected).norm() / expected.norm()))
            for number in range(1, config.frames_per_step):
                frame = torch.randint(0, vocabulary, (branches, channels), generator=generator)
                expected = reference.next_frame(frame, theirs, number)
                result = model.next_frame(frame, ours, number)
                worst = max(worst, float((result - expected).norm() / expected.norm()))
    return worst


@pytest.mark.parametrize(("kernel", "precision"), CASES, ids=IDS)
def test_random_steps_equal_torchs(kernel, precision):
    try:
        errors = [worst_step(kernel, precision, seed) for seed in range(STEPS)]
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    assert max(errors) <= LOGITS[precision], errors


@pytest.mark.parametrize(("kernel", "precision"), CASES, ids=IDS)
def test_random_steps_of_several_frames_equal_torchs(kernel, precision):
    try:
        errors = [worst_step(kernel, precision, seed, 2 + seed % 2) for seed in range(STEPS)]
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    assert max(errors) <= SEVERAL[precision], errors

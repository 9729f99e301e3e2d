"""Kernels of the step linears: every one that runs here says what the exact product says."""

from __future__ import annotations

import platform
import time

import pytest
import torch
from torch import nn

from dia_demo.errors import InputError
from dia_demo.model import autotune, linear
from dia_demo.model.linear import FLOATS, INTEGERS, KERNELS, LARGEST_ERROR, Kernel
from dia_demo.model.packed_linear import FORMATS, PackedLinear
from tests.helpers.models.checkpoints import SMALL
from tests.helpers.models.kernels import COMPILED
from tests.helpers.processes import run_python

pytestmark = pytest.mark.processor

CASES = [(kernel, precision) for kernel in KERNELS for precision in kernel.precisions]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Trials of other tests, and of this machine's owner, decide nothing here."""
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)


def as_kept(weight, precision):
    """float64 weights as a precision keeps them."""
    blocks = PackedLinear.from_weight(weight, precision)
    joined = blocks.weights(torch.float32).transpose(1, 2).flatten(0, 1)
    return joined[: len(weight)].double()


@pytest.mark.parametrize(
    ("kernel", "precision"),
    CASES,
    ids=[f"{kernel.name}, {precision}" for kernel, precision in CASES],
)
@pytest.mark.parametrize("slots", [1, 2, 3, 7, 16])
@pytest.mark.parametrize(("outputs", "inputs"), [(70, 48), (130, 1100), (192, 256)])
def test_kernel_equals_the_product(kernel, precision, slots, outputs, inputs):
    torch.manual_seed(0)
    weight = torch.randn(outputs, inputs)
    x = torch.randn(slots, inputs)
    x = x if precision == "float32" else x.bfloat16()
    with torch.inference_mode():
        try:
            found = kernel.run(kernel.build(weight, precision), x, threads=2)
        except (RuntimeError, AttributeError, NotImplementedError) as reason:
            pytest.skip(f"{kernel.name} does not run on this machine: {reason}")
    expected = x.double() @ as_kept(weight, precision).t()
    assert found.shape == (slots, outputs)
    assert (found.double() - expected).norm() <= LARGEST_ERROR[precision] * expected.norm()


def test_four_bits_without_calibration_are_within_eight_percent():
    """Sixteen even steps, with one scale for 64 inputs, were 10% off."""
    torch.manual_seed(0)
    weight = torch.randn(192, 512)
    assert (as_kept(weight, "int4") - weight).norm() < 0.08 * weight.norm()


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("precision", FLOATS + INTEGERS)
def test_every_block_is_done_once_whoever_comes_for_it(precision, threads):
    """The last of 14 blocks are nobody's beforehand; the same linear again and again."""
    if not linear.can_compile():
        pytest.skip("needs numba")
    torch.manual_seed(0)
    packed, x = (
        PackedLinear.from_weight(torch.randn(14 * 64 - 5, 96), precision),
        torch.randn(2, 96),
    )
    alone = COMPILED.run(packed, x, threads=1)
    for _ in range(100):
        assert torch.equal(COMPILED.run(packed, x, threads), alone)


@pytest.mark.parametrize("precision", FLOATS + INTEGERS)
def test_far_more_threads_than_cores_and_blocks_compute_the_same(precision):
    """As on a machine of 64 cores of which a container may use one."""
    if not linear.can_compile():
        pytest.skip("needs numba")
    torch.manual_seed(0)
    packed, x = PackedLinear.from_weight(torch.randn(5 * 64 - 3, 96), precision), torch.randn(2, 96)
    alone = COMPILED.run(packed, x, threads=1)
    assert torch.equal(COMPILED.run(packed, x, threads=64), alone)


@pytest.mark.parametrize("precision", INTEGERS)
def test_an_outlier_among_the_activations_spoils_its_own_group_alone(precision):
    """Bytes with one scale for a whole row would round everything beside an outlier to nothing."""
    kernel = KERNELS[0]
    assert kernel.use_dot
    torch.manual_seed(0)
    weight, x = torch.randn(64, 512), torch.randn(2, 512)
    x[:, 100] = 1000.0
    try:
        found = kernel.run(kernel.build(weight, precision), x, threads=1)
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    kept = as_kept(weight, precision)
    error = found - x.double() @ kept.t()
    # One step of its group is 8: what else stands in it is lost, and no more.
    x[:, 100] = 0
    lost = x[:, 64:128].double() @ kept[:, 64:128].t()
    assert error.norm() <= 1.1 * lost.norm() < 0.6 * (x.double() @ kept.t()).norm()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("kernel", "precision"),
    [case for case in CASES if case[0].compiled],
    ids=[f"{kernel.name}, {precision}" for kernel, precision in CASES if kernel.compiled],
)
def test_what_is_not_finite_stays_so(kernel, precision, value):
    """Turned to bytes, NaN could become a number like any other."""
    torch.manual_seed(0)
    linear, x = kernel.build(torch.randn(70, 200), precision), torch.randn(3, 200)
    x[1, 77] = value
    try:
        found = kernel.run(linear, x, threads=1)
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    assert not found[1].isfinite().any()
    assert found[0].isfinite().all() and found[2].isfinite().all()


def test_a_kernel_that_errs_or_fails_is_never_chosen(monkeypatch, tmp_path):
    """Speed alone must not decide: a wrong kernel is often the fastest."""
    # Tests in other processes write into the usual folder.
    monkeypatch.setenv("DIA_CACHE", str(tmp_path))

    class Wrong(nn.Module):
        def __init__(self, weight, precision):
            super().__init__()
            self.outputs = weight.shape[0]

        def forward(self, x):
            return torch.zeros(len(x), self.outputs)

    def broken(weight, precision):
        raise RuntimeError("could not create a primitive")

    plain = Kernel("plain", linear.PlainLinear, ("float32",))
    kernels = (Kernel("wrong", Wrong, ("float32",)), Kernel("broken", broken, ("float32",)), plain)
    monkeypatch.setattr(linear, "KERNELS", kernels)
    choice = linear.choose_kernel(SMALL, "float32", threads=1)
    assert choice.kernel is plain
    assert autotune.wrong_results() == {"linears in float32": {"wrong": "1.0e+00"}}


def test_a_kernel_must_be_right_for_every_number_of_rows(monkeypatch):
    """Blocks of four rows, say, whose last is lost: right for one utterance, wrong for eight."""

    class WrongWithMany(linear.PlainLinear):
        def forward(self, x):
            return super().forward(x) * (torch.nan if len(x) > 2 else 1)

    plain = Kernel("plain", linear.PlainLinear, ("float32",))
    few = Kernel("few", WrongWithMany, ("float32",))
    monkeypatch.setattr(linear, "KERNELS", (few, plain))
    assert linear.choose_kernel(SMALL, "float32", threads=1).kernel is plain


@pytest.mark.parametrize("precision", FLOATS + INTEGERS)
def test_no_stopwatch_decides_which_take_a_seed_gives(monkeypatch, precision):
    """Kernels round differently. However slow one is, the first that is right is used: with dot
    products where the processor has them."""
    from dia_demo.kernels.llvm_simd import dot_lanes

    def slow(self, linear, x, threads, run=Kernel.run):
        time.sleep(0.01 if self is expected else 0)
        return run(self, linear, x, threads)

    use_dot = bool(dot_lanes(FORMATS[precision]))
    expected = KERNELS[0] if use_dot else COMPILED
    monkeypatch.setattr(Kernel, "run", slow)
    for threads in (1, 2):
        assert linear.choose_kernel(SMALL, precision, threads).kernel is expected


def test_without_numba_torchs_kernels_serve(monkeypatch):
    monkeypatch.setattr(linear, "can_compile", lambda: False)
    for precision in FLOATS:
        assert not linear.choose_kernel(SMALL, precision, threads=1).kernel.compiled
    with pytest.raises(InputError, match="pip install numba"):
        linear.choose_kernel(SMALL, "int4", threads=1)


OTHER_PROCESSOR = """
from dia_demo.kernels.llvm_simd import dot_lanes
from dia_demo.model.linear import KERNELS
import torch

assert [dot_lanes(format) for format in range(4)] == [0, 0, 8, 8]
by_dot, compiled = KERNELS[:2]
torch.manual_seed(0)
weight, x = torch.randn(70, 200), torch.randn(3, 200)
for precision in ("bfloat16", "int4"):  # One of each kind of block.
    linear = compiled.build(weight, precision)
    kept = linear.weights(torch.float32).transpose(1, 2).flatten(0, 1)[:70].double()
    expected = x.double() @ kept.t()
    assert (compiled.run(linear, x, threads=1) - expected).norm() < 1e-5 * expected.norm()
    try:
        found = by_dot.run(linear, x, threads=1)
        print(float((found - expected).norm() / expected.norm()) < 2e-2)
    except NotImplementedError:
        print("refused")
"""


@pytest.mark.long
def test_a_processor_with_avx2_alone_is_served(tmp_path):
    """No AVX-512, no vpdpbusd: code compiled for such a processor, which runs here as well."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("needs a processor that runs AVX2 code")
    done = run_python(OTHER_PROCESSOR, cache=tmp_path, DIA_CPU="avx2")
    assert done.stdout.split() == ["refused", "True"]


@pytest.mark.parametrize("precision", INTEGERS)
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_largest_products_of_bytes_do_not_saturate(precision, rows):
    """Every weight and activation at its extreme, of equal and of opposite signs: by AVX2 two of
    these products are added in 16 bits."""
    by_dot = KERNELS[0]
    signs = torch.tensor([1.0, -1.0]).repeat(64)
    weight = torch.stack([torch.ones(128), -torch.ones(128), signs, -signs]).repeat(20, 1)
    x = torch.stack([torch.ones(128), -torch.ones(128), signs, -signs, signs])[:rows] * 3
    try:
        found = by_dot.run(by_dot.build(weight, precision), x, threads=1)
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    expected = x.double() @ as_kept(weight, precision).t()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)

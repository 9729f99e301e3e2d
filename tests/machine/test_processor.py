"""What the processor can do, the override, and that nothing multiplies bfloat16 in software."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dia_demo.codec.codec import random_codec
from dia_demo.errors import InputError
from dia_demo.files import ROOT
from dia_demo.machine import processor
from dia_demo.model import autotune, linear
from dia_demo.model.layers import activation_dtype
from dia_demo.model.linear import KERNELS
from dia_demo.model.weights.checkpoint import load_random
from dia_demo.services.settings import Settings
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import SMALL

pytestmark = pytest.mark.processor

BFLOAT16_FEATURES = frozenset({"avx2", "avx512bf16"})
X86 = platform.machine() in ("x86_64", "AMD64")
# Parts of the names of torch's operations that multiply matrices.
PRODUCTS = ("mm", "matmul", "linear", "conv", "attention", "addmv", "einsum", "bilinear")


class Bfloat16Products(TorchDispatchMode):
    """Names of the operations that were given bfloat16 to multiply."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        tensors = [one for one in args if isinstance(one, torch.Tensor)]
        is_bfloat16 = any(tensor.dtype == torch.bfloat16 for tensor in tensors)
        if is_bfloat16 and any(part in name for part in PRODUCTS):
            self.found.add(name)
        return function(*args, **(kwargs or {}))


@pytest.fixture(params=[False, True], ids=["without bfloat16", "with bfloat16"])
def in_hardware(request, monkeypatch):
    """Whether the processor has instructions for bfloat16, as far as the program can tell."""
    features = BFLOAT16_FEATURES if request.param else frozenset({"avx2"})
    monkeypatch.setattr(processor, "features", lambda: features)
    return request.param


def model_of(precision: str, kernel: str):
    return result_of(load_random(SMALL, precision, {one.name: one for one in KERNELS}[kernel]))


def products_of(run) -> set[str]:
    with Bfloat16Products() as products, torch.inference_mode():
        run()
    return products.found


@pytest.mark.parametrize(
    ("precision", "kernel"),
    [("bfloat16", "plain"), ("bfloat16", "compiled"), ("int8", "compiled"), ("int4", "compiled")],
)
def test_prompts_use_bfloat16_products_only_in_hardware(in_hardware, precision, kernel):
    model = model_of(precision, kernel)
    prompt = torch.zeros(2, 7, SMALL.decoder.num_channels, dtype=torch.int64)
    caches = []

    def run() -> None:
        caches.append(model.encode(b"\x01 Hello there.", cfg_scale=1.0, max_positions=40))
        model(prompt, caches)
        model(prompt[:, :1], caches)

    found = products_of(run)
    assert bool(found) == in_hardware, found
    # Caches keep what the steps read, whatever it was computed in.
    assert caches[0].dtype == torch.bfloat16 == caches[0].cross[0][0][0].dtype


@pytest.mark.parametrize("precision", ["bfloat16", "int8", "int4"])
def test_a_prefill_in_float32_is_as_exact(monkeypatch, precision):
    """Its logits differ from bfloat16's by bfloat16's own rounding alone."""
    model = model_of(precision, "compiled")
    generator = torch.Generator().manual_seed(0)
    shape = (2, 9, SMALL.decoder.num_channels)
    prompt = torch.randint(0, SMALL.num_codes, shape, generator=generator)
    logits = []
    for features in (BFLOAT16_FEATURES, frozenset()):
        monkeypatch.setattr(processor, "features", lambda features=features: features)
        cache = model.encode(b"\x01 Hello there.", cfg_scale=1.0, max_positions=40)
        logits.append(model(prompt, [cache])[..., : SMALL.num_codes])
    off = (logits[0] - logits[1]).norm() / logits[1].norm()
    assert 0 < off < 0.03


def test_the_codec_chooses_no_bfloat16_without_instructions(monkeypatch):
    """Neither its trial nor its decoding does; asked for by name, bfloat16 is seen."""
    monkeypatch.setattr(processor, "features", lambda: frozenset({"avx2"}))
    shape = dict(encoder_dim=4, encoder_rates=[2, 4], decoder_dim=16, decoder_rates=[4, 2])
    shape |= dict(latent_dim=16, n_codebooks=2, codebook_size=32, codebook_dim=4, sample_rate=16000)

    def decode(precision: str) -> None:
        codec = random_codec(precision=precision, **shape)
        codec.decode(np.zeros((30, 2), np.int64))

    assert products_of(lambda: decode("auto")) == set()
    assert products_of(lambda: decode("bfloat16"))


def test_kernels_that_multiply_bfloat16_are_not_tried_without_instructions(monkeypatch, tmp_path):
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(processor, "features", lambda: frozenset({"avx2"}))
    found = products_of(lambda: linear.choose_kernel(SMALL, "bfloat16", threads=1))
    assert found == set()


def test_activations_other_than_cpu_bfloat16_keep_their_dtype(in_hardware):
    assert activation_dtype(torch.zeros(1)) == torch.float32
    on_device = torch.zeros(1, dtype=torch.bfloat16, device="meta")
    assert activation_dtype(on_device) == torch.bfloat16


# The override


def python(code: str, **environment: str) -> subprocess.CompletedProcess:
    inherited = {k: v for k, v in os.environ.items() if k not in processor.CLASSES["avx2"].settings}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | {"DIA_CPU": ""} | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


DESCRIBE = """
import json
from dia_demo.machine import processor
import torch
from dia_demo.kernels.llvm_simd import dot_lanes
from dia_demo.kernels import jit
jit.use_cache_folder()
import os
print(json.dumps({
    "torch": torch.backends.cpu.get_cpu_capability(),
    "features": sorted(processor.features()),
    "lanes": [dot_lanes(kind) for kind in range(4)],
    "bfloat16": processor.multiplies_bfloat16(),
    "kernels": os.environ["NUMBA_CACHE_DIR"],
}))
"""


# What each class has: torch's capability, lanes of the products of packed weights, and the features
# that it must not have.
EXPECTED = {
    "avx2": ("AVX2", [0, 0, 8, 8], ("avx512", "avxvnni", "amx")),
    "avx-vnni": ("AVX2", [0, 0, 8, 8], ("avx512", "amx")),
    "avx512": ("AVX512", [0, 0, 8, 8], ("avx512vnni", "avx512bf16", "avxvnni", "amx")),
    "avx512-vnni": ("AVX512", [0, 0, 16, 16], ("avx512bf16", "avxvnni", "amx")),
}


def needs_class(name: str) -> None:
    if name not in processor.classes_here():
        pytest.skip(f"this processor cannot act as one of the class {name}")


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """This processor without an override."""
    return json.loads(python(DESCRIBE, DIA_CACHE=str(tmp_path_factory.mktemp("cache"))).stdout)


@pytest.mark.long
@pytest.mark.parametrize("name", EXPECTED)
def test_the_override_limits_every_library(name, native, tmp_path):
    needs_class(name)
    limited = python(DESCRIBE, DIA_CPU=name, DIA_CACHE=str(tmp_path))
    assert limited.returncode == 0, limited.stderr
    found = json.loads(limited.stdout)
    capability, lanes, hidden = EXPECTED[name]
    assert found["torch"] == capability and found["lanes"] == lanes and not found["bfloat16"]
    assert set(processor.CLASSES[name].required) <= set(found["features"])
    assert not [feature for feature in found["features"] if feature.startswith(hidden)]
    if native["features"] != found["features"]:
        # Compiled for another processor.
        assert Path(native["kernels"]).name != Path(found["kernels"]).name


def test_a_class_beyond_this_processor_is_refused(monkeypatch):
    """Its kernels would end the program by an illegal instruction."""
    monkeypatch.setattr(processor, "_host_features", lambda: frozenset({"avx", "avx2"}))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(InputError, match="needs a processor with avx512bw.*avx512vnni"):
        processor.check_override({"DIA_CPU": "avx512-vnni"})
    monkeypatch.setenv("DIA_CPU", "avx512-vnni")
    assert processor.override() is None


@pytest.mark.long
@pytest.mark.skipif(not X86, reason="the override is for x86-64")
def test_an_override_that_comes_too_late_is_refused():
    late = python("import torch, dia_demo", DIA_CPU="avx2")
    assert late.returncode == 1 and "import dia_demo first" in late.stderr


@pytest.mark.long
def test_an_unknown_class_is_refused_with_those_allowed():
    with pytest.raises(
        InputError,
        match="DIA_CPU must be one of native, avx2, avx-vnni, avx512, avx512-vnni, not 'pentium'",
    ):
        Settings.from_env({"DIA_CPU": "pentium"})
    code = "import sys; from dia_demo.cli.main import main; sys.exit(main(['doctor']))"
    done = python(code, DIA_CPU="pentium")
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_the_override_needs_an_x86_processor(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(InputError, match="needs an x86-64 processor"):
        processor.check_override({"DIA_CPU": "avx2"})


def test_features_chosen_for_numba_by_hand_count(monkeypatch):
    processor.features.cache_clear()
    monkeypatch.setenv("NUMBA_CPU_NAME", "haswell")
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "+avx2,-avx512bf16,+avxvnni")
    try:
        assert processor.features() == {"avx2", "avxvnni"}
        assert processor.byte_product_lanes() == 8 and not processor.multiplies_bfloat16()
    finally:
        processor.features.cache_clear()

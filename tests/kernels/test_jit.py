"""Compiled kernels: the first run, which compiles them, computes what every later run computes."""

from __future__ import annotations

import pytest

from dia_demo.machine import processor
from tests.helpers.processes import run_python

pytestmark = pytest.mark.processor

LOGITS = """
import hashlib
import torch
from dia_demo.model.weights import checkpoint
from dia_demo.model.linear import KERNELS
from dia_demo.task import result_of
from tests.helpers.models.known import EMBEDDED_FOLDER

for precision, name in (("bfloat16", "compiled"), ("int4", "compiled, dot products")):
    kernel = {one.name: one for one in KERNELS}[name]
    try:
        loading = checkpoint.load(EMBEDDED_FOLDER, precision, kernel=kernel)
        model = kernel.install(result_of(loading), 1)
    except NotImplementedError:
        continue
    digest = hashlib.md5()
    cache = model.encode(b"\\x01 We walk along.", 1.0, 300)
    for code in range(200):  # A softmax over many positions is where it showed.
        codes = torch.full((2, 1, model.config.decoder.num_channels), code)
        digest.update(model(codes, [cache]).numpy().tobytes())
    print(precision, digest.hexdigest())
"""


@pytest.mark.long
def test_compiled_kernels_give_the_same_logits_when_loaded_later(tmp_path):
    """Guards a bug: helper functions existed twice in the process that compiled them, and the one
    that was called rounded differently from the one that later processes load."""
    found = []
    for _ in range(2):
        found.append(run_python(LOGITS, cache=tmp_path).stdout.split())
    assert found[0] == found[1] and len(found[0]) >= 2
    assert list(tmp_path.rglob("*.nbc")), "nothing was kept for the second run"


COUNT_COMPILED = """
import shutil, sys
from pathlib import Path
from dia_demo.machine import processor
from dia_demo.kernels import jit
import numpy as np

folder = Path(sys.argv[1]) / "kernels" / jit.digest()
if len(sys.argv) > 2:  # Code for another processor, as if it were for this one.
    shutil.copytree(Path(sys.argv[1]) / "kernels" / sys.argv[2], folder)
from dia_demo.kernels.snake import snake_float32

ones = np.ones((2, 3), np.float32)
snake_float32(ones, ones[0], ones[0], np.empty_like(ones))
stats = snake_float32.stats
print(jit.digest(), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.mark.long
def test_code_for_another_processor_is_compiled_again(tmp_path):
    """It would end the program by an illegal instruction. Its folder has another name, and even
    under this processor's name numba does not load it."""
    if "avx512" not in processor.classes_here():
        pytest.skip("needs a processor that can act as two classes")

    def count(limit: str, *arguments: str) -> tuple[str, int, int]:
        done = run_python(COUNT_COMPILED, str(tmp_path), *arguments, cache=tmp_path, DIA_CPU=limit)
        name, hits, misses = done.stdout.split()
        return name, int(hits), int(misses)

    wide, hits, misses = count("avx512")
    assert (hits, misses) == (0, 1)
    assert count("avx512") == (wide, 1, 0), "the test could not fail here"
    narrow, hits, misses = count("avx2", wide)
    assert narrow != wide and (hits, misses) == (0, 1)

"""Compiled kernels: the first run, which compiles them, computes what every later run computes."""

from __future__ import annotations

import pytest

from tests.helpers.processes import run_python

pytestmark = pytest.mark.processor

LOGITS = """
import hashlib
import torch
from dia_demo.model import checkpoint
from dia_demo.model.linear import KERNELS
from dia_demo.task import result_of

for precision, name in (("bfloat16", "compiled"), ("int4", "compiled, dot products")):
    kernel = {one.name: one for one in KERNELS}[name]
    try:
        loading = checkpoint.load(checkpoint.EMBEDDED_FOLDER, precision, kernel=kernel)
        model = kernel.install(result_of(loading), 1)
    except NotImplementedError:
        continue
    digest = hashlib.md5()
    cache = model.encode(b"\\x01 We walk along.", True, 300)
    for code in range(200):  # A softmax over many positions is where it showed.
        codes = torch.full((2, 1, model.config.decoder.num_channels), code)
        digest.update(model(codes, [cache]).numpy().tobytes())
    print(precision, digest.hexdigest())
"""


def test_compiled_kernels_give_the_same_logits_when_loaded_later(tmp_path):
    """Guards a bug: helper functions existed twice in the process that compiled them, and the one
    that was called rounded differently from the one that later processes load."""
    found = []
    for _ in range(2):
        found.append(run_python(LOGITS, cache=tmp_path).stdout.split())
    assert found[0] == found[1] and len(found[0]) >= 2
    assert list(tmp_path.rglob("*.nbc")), "nothing was kept for the second run"

"""What the unconditional branch computes from a voice prompt is kept, and changes no take."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import run, run_to_end
from dia_demo.errors import RunError
from dia_demo.model.cpu_model import CpuModel
from dia_demo.model.kv_cache import PromptMemory, PromptState
from dia_demo.model.linear import KERNELS
from dia_demo.model.weights import checkpoint
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import (
    SMALL,
    marks_for_case,
    random_codes,
    threads_for,
    write_small,
)

pytestmark = pytest.mark.processor

VOICE, OTHER_VOICE = random_codes(SMALL, 40), random_codes(SMALL, 40, seed=1)
CASES = [
    (kernel, precision)
    for kernel in KERNELS
    for precision in kernel.precisions
    if (kernel.name, precision)
    in {("plain", "float32"), ("compiled", "bfloat16"), ("compiled, dot products", "int8")}
]


@pytest.fixture(
    scope="module",
    params=[pytest.param(case, marks=marks_for_case(*case)) for case in CASES],
    ids=lambda case: f"{case[0].name}, {case[1]}",
)
def loaded(request, tmp_path_factory) -> CpuModel:
    kernel, precision = request.param
    folder = write_small(tmp_path_factory.mktemp("small"))
    try:
        dia = result_of(checkpoint.load(folder, precision, kernel=kernel))
        return kernel.install(dia, threads_for(kernel))
    except NotImplementedError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def new_model(loaded, monkeypatch):
    """A function that gives the model with nothing kept, which counts the prompts it computes."""

    def new() -> CpuModel:
        model = CpuModel(loaded.dia, loaded._threads, loaded._stepper)
        model.computed = 0
        for_branch = model._compute_branch

        def counted(*arguments):
            model.computed += 1
            return for_branch(*arguments)

        model._compute_branch = counted
        return model

    return new


def make_row(text=b"\x01 Hello there.", prompt=VOICE, cancel=None, **params) -> Row:
    params = replace(SMALL.defaults, **(dict(temperature=1.0, max_tokens=70, seed=3) | params))
    return Row(SMALL, text, params, prompt, cancel)


def take(model, **options) -> np.ndarray:
    row = make_row(**options)
    run_to_end(model, [row])
    return row.codes()


def test_a_take_is_the_same_with_a_voice_that_was_read_before(new_model):
    used, fresh = new_model(), new_model()
    take(used, text=b"\x02 Another text before it.")
    assert used.computed == 2
    np.testing.assert_array_equal(take(used), take(fresh))
    assert (used.computed, fresh.computed) == (3, 2), (
        "only the conditional branch is computed again"
    )


def test_what_is_reused_is_the_same_to_the_last_bit(new_model):
    model = new_model()
    codes = torch.from_numpy(make_row().previous_inputs)[None].expand(2, -1, -1)
    caches = [model.encode(b"\x01 Hello.", 1.0, 70) for _ in range(2)]
    logits = [model(codes, [cache]) for cache in caches]
    assert model.computed == 3 and torch.equal(*logits)
    for branch in range(2):
        first, second = (cache.layers_of_branch(branch) for cache in caches)
        for numbers, again in zip(sum(first, ()), sum(second, ()), strict=True):
            assert numbers.isfinite().all() and torch.equal(numbers, again)


@pytest.mark.parametrize("other", [OTHER_VOICE, VOICE[:39], VOICE[1:], VOICE[::-1]])
def test_another_voice_is_computed(new_model, other):
    used, fresh = new_model(), new_model()
    take(used)
    np.testing.assert_array_equal(take(used, prompt=other), take(fresh, prompt=other))
    assert used.computed == 4


def test_the_same_voice_in_a_batch_is_read_once(new_model):
    """Each row is the same as alone."""
    together, fresh = new_model(), new_model()
    rows = [make_row(seed=seed) for seed in (1, 2, 3)]
    run_to_end(together, rows)
    assert together.computed == 4
    for row, seed in zip(rows, (1, 2, 3), strict=True):
        np.testing.assert_array_equal(row.codes(), take(fresh, seed=seed))


def test_a_take_without_guidance_keeps_nothing(new_model):
    model = new_model()
    take(model, cfg_scale=0.0)
    assert model.computed == 1 and model.prompts.size_bytes == 0


def test_a_prefill_that_fails_leaves_nothing(new_model, monkeypatch):
    """Half of the layers of the unconditional branch have been computed when it fails."""
    model, calls = new_model(), []
    last = model.dia.decoder.layers[-1]
    forward = last.forward

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise RuntimeError("out of memory")
        return forward(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(last, "forward", failing)
        with pytest.raises(RunError, match="out of memory"):
            take(model)
    assert model.prompts.size_bytes == 0
    np.testing.assert_array_equal(take(model), take(new_model()))


def test_a_cancelled_prefill_leaves_the_next_take_as_it_is(new_model, monkeypatch):
    """A row is cancelled, and its run closed, while its prompt is read beside another's steps."""
    model, cancel = new_model(), threading.Event()
    rows = [make_row(prompt=None), make_row(cancel=cancel)]
    reached, resume = threading.Event(), threading.Event()
    compute = model._compute_branch

    def waiting(*arguments):
        reached.set()
        assert resume.wait(30)
        return compute(*arguments)

    monkeypatch.setattr(model, "_compute_branch", waiting)
    steps = run(model, rows, places=1)
    for _ in range(2):  # The one that waits is read beside the second step of the other.
        next(steps)
    assert reached.wait(30)
    cancel.set()
    assert any(row is rows[1] for _, row in zip(range(3), steps, strict=False))
    resume.set()
    steps.close()
    monkeypatch.undo()
    assert rows[1].cache is None
    np.testing.assert_array_equal(take(model), take(new_model()))


def test_another_precision_has_a_memory_of_its_own(tmp_path):
    """The same voice in float32 and bfloat16, one after the other."""
    plain = next(kernel for kernel in KERNELS if kernel.name == "plain")
    folder = write_small(tmp_path)
    models = {}
    for precision in ("float32", "bfloat16"):
        dia = result_of(checkpoint.load(folder, precision, kernel=plain))
        models[precision] = plain.install(dia, 1)
        run_to_end(models[precision], [make_row()])
    kept = {name: model.prompts.get(_delayed(VOICE)) for name, model in models.items()}
    assert {name: state.layers[0][0].dtype for name, state in kept.items()} == {
        "float32": torch.float32,
        "bfloat16": torch.bfloat16,
    }


def _delayed(prompt: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(make_row(prompt=prompt).previous_inputs)


# The memory itself


def state_of(value: float, size: int = 10) -> PromptState:
    numbers = torch.full((1, size, 4), value)
    return PromptState([(numbers, numbers)], torch.zeros(1, 1, 1, 1))


def codes_of(number: int) -> torch.Tensor:
    return torch.full((5, 3), number)


def test_the_voice_that_was_not_used_for_longest_is_dropped():
    size = state_of(0).size_bytes
    memory = PromptMemory(limit=3 * size + 1)
    for number in range(3):
        memory.put(codes_of(number), state_of(number))
    assert memory.get(codes_of(0)) is not None
    memory.put(codes_of(3), state_of(3))
    assert [memory.get(codes_of(number)) is not None for number in range(4)] == [1, 0, 1, 1]
    assert memory.size_bytes == 3 * size


def test_a_prompt_beyond_the_limit_drops_no_other():
    memory = PromptMemory(limit=2 * state_of(0).size_bytes)
    memory.put(codes_of(0), state_of(0))
    memory.put(codes_of(1), state_of(1, size=1000))
    assert memory.get(codes_of(0)) is not None and memory.get(codes_of(1)) is None


def test_what_is_kept_shares_no_memory_with_a_row():
    memory, state = PromptMemory(), state_of(1.0)
    memory.put(codes_of(0), state)
    state.layers[0][0].fill_(9.0)
    kept = memory.get(codes_of(0))
    assert kept is not None and (kept.layers[0][0] == 1.0).all()

"""Placement: weights, caches and every op of a whole generation lie on the one device."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

from dia_demo.accelerator.backend import Backend
from dia_demo.accelerator.device_model import DeviceModel
from dia_demo.config import ModelConfig
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import run_to_end
from dia_demo.errors import RunError
from dia_demo.model import kv_cache
from dia_demo.model.dia import Dia
from tests.helpers.models.checkpoints import SMALL, load, say
from tests.helpers.stand_ins.fake_xpu import FakeXpu
from tests.helpers.stand_ins.faults import FaultyBackend


@pytest.fixture
def fake(folder):
    backend = FakeXpu()
    return DeviceModel.from_model(load(folder), backend, torch.float32)


@pytest.mark.long
def test_a_whole_generation_mixes_no_devices(fake, monkeypatch):
    """Encoder, prompt, every step past the cache's growths, the end: all on the fake XPU."""
    monkeypatch.setattr(kv_cache, "FIRST_POSITIONS", 12)
    prompt = np.zeros((9, 3), np.int64)
    row = say(fake, prompt=prompt, max_tokens=40, temperature=1.0, seed=3)
    assert row.done and len(row.codes()) == SMALL.frames_within(40, 9)
    assert fake.backend.fetched == row.steps + 1


FULL_SIZE = ModelConfig()


def at_full_size(backend) -> DeviceModel:
    """Dia-1.6B on the fake XPU: shapes without numbers take no memory."""
    with torch.device("meta"):
        model = Dia(FULL_SIZE)
    return DeviceModel.from_model(model.requires_grad_(False), backend, torch.float32)


@pytest.mark.long
def test_steps_of_the_full_size_mix_no_devices():
    """Every layer of Dia-1.6B, with guidance and a prompt: 18 decoder layers, 9 channels."""
    device_model = at_full_size(FakeXpu(FULL_SIZE))
    prompt = np.zeros((5, 9), np.int64)
    row = say(device_model, prompt=prompt, max_tokens=30, temperature=1.2, cfg_scale=3.0, seed=3)
    assert row.done and len(row.codes()) == FULL_SIZE.frames_within(30, 5)
    assert device_model.backend.fetched == row.steps + 1


@pytest.mark.long
def test_rows_of_either_guidance_mix_no_devices(fake):
    """Several rows of other lengths share the steps, and end one after the other."""
    rows = [
        Row(fake.config, b"\x01 Hello.", replace(fake.config.defaults, **changes, seed=seed))
        for seed, changes in enumerate(
            (dict(max_tokens=30), dict(max_tokens=20, cfg_scale=1.0), dict(max_tokens=40))
        )
    ]
    run_to_end(fake, rows)
    assert all(row.done for row in rows)


def test_an_op_that_mixes_devices_is_found(fake):
    """The walk can fail: one weight left on the CPU is enough."""
    with fake.backend.mode:
        left = torch.empty_like(fake.model.decoder.norm.weight, device="cpu")
    fake.model.decoder.norm.weight = torch.nn.Parameter(left, requires_grad=False)
    with pytest.raises(RuntimeError, match="[Dd]evice"):
        say(fake, max_tokens=20)


def test_weights_on_the_wrong_device_are_refused(folder):
    with pytest.raises(RunError, match="was sent to cpu but is on xpu:1"):
        DeviceModel.from_model(load(folder), FaultyBackend("wrong device index"), torch.float32)


def test_attention_is_plain_without_gradients(folder):
    seen = []

    class Watching(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.nn.functional.scaled_dot_product_attention:
                flags = torch.backends.cuda
                seen.append((torch.is_inference_mode_enabled(), flags.flash_sdp_enabled()))
            return func(*args, **(kwargs or {}))

    with Watching():
        device_model = DeviceModel.from_model(load(folder), Backend("cpu"), torch.float32)
        device_model.encode(b"x", 1.0, 20)
    assert seen and set(seen) == {(True, False)}

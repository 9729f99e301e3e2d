"""Memory is estimated before anything is loaded, and what does not fit is refused with numbers."""

from dataclasses import replace

import pytest

from dia_demo.config import ModelConfig, RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.engine.loading.memory import (
    check_free,
    fitting_precisions,
    model_bytes,
    needed_bytes,
)
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.errors import InputError
from dia_demo.families.dia.weights import count_weights
from dia_demo.families.resolve import resolve
from dia_demo.machine import system
from dia_demo.model.dia import Dia
from dia_demo.model.weights import checkpoint
from dia_demo.model.weights.tensor_names import transformers_tensors
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import SMALL, write_small
from tests.helpers.models.known import info_of

DIA = info_of(ModelConfig())
NAMED = list(DIA.config.precisions)


@pytest.mark.parametrize("config", [SMALL, ModelConfig()], ids=["small", "dia"])
def test_every_weight_is_counted_once(config):
    slices = dict(transformers_tensors(config)).values()
    matrices = [target.shape for target in slices if len(target.shape) > 1]
    total = sum(rows * columns for rows, columns in matrices)
    assert count_weights(config) == total


def test_fewer_bits_need_less():
    needed = [needed_bytes(DIA, precision) for precision in NAMED]
    assert needed == sorted(needed, reverse=True)
    assert model_bytes(DIA, "float32") == pytest.approx(6.44e9, rel=0.01)
    assert fitting_precisions(DIA, None) == NAMED and fitting_precisions(DIA, 10**9) == []


def test_more_than_the_machine_has_is_refused_with_what_fits(monkeypatch):
    monkeypatch.setattr(system, "memory_bytes", lambda: 6 * 10**9)
    with pytest.raises(InputError, match=r"7\.\d GB, and this machine has 6\.0 GB") as caught:
        place_on_cpu(RuntimeConfig(precision="float32"), DIA)
    assert "bfloat16 (" in str(caught.value)
    monkeypatch.setattr(system, "memory_bytes", lambda: 10**9)
    for precision in NAMED:
        with pytest.raises(InputError, match="embedded nano voice"):
            place_on_cpu(RuntimeConfig(precision=precision), DIA)


def test_auto_chooses_a_precision_that_fits(monkeypatch):
    free = place_on_cpu(RuntimeConfig(), DIA).precision
    room = needed_bytes(DIA, free) - 1
    monkeypatch.setattr(system, "memory_bytes", lambda: room)
    fits = [name for name in fitting_precisions(DIA, room) if name != "int4"]
    if fits:
        placed = place_on_cpu(RuntimeConfig(), DIA)
        assert placed.precision == fits[0] and f"{free} would need" in placed.reason
    else:
        with pytest.raises(InputError, match="Not enough memory"):
            place_on_cpu(RuntimeConfig(), DIA)


def test_an_unknown_memory_refuses_nothing(monkeypatch):
    monkeypatch.setattr(system, "memory_bytes", lambda: None)
    monkeypatch.setattr(system, "available_bytes", lambda: None)
    place_on_cpu(RuntimeConfig(precision="float32"), DIA)
    check_free(DIA, "float32")


def test_what_others_hold_is_seen_before_a_tensor_is_read(tmp_path, monkeypatch):
    folder = write_small(tmp_path / "small")
    monkeypatch.setattr(checkpoint, "load", lambda *_: pytest.fail("a tensor was read"))
    monkeypatch.setattr(system, "available_bytes", lambda: 10**7)
    with pytest.raises(InputError, match=r"0\.0 GB are free now.*close other programs"):
        result_of(Engine.load(resolve(str(folder)), RuntimeConfig(str(folder))))


def test_positions_are_counted():
    """Their rotary tables are made at once: 10^10 of them asked for 40 GB."""
    decoder = replace(SMALL.decoder, max_positions=10**6)
    encoder = replace(SMALL.encoder, max_positions=10**6)
    long = replace(SMALL, decoder=decoder, encoder=encoder)
    tables = [table for rotary in Dia(long).rotaries for table in (rotary.cos, rotary.sin)]
    grown = needed_bytes(info_of(long), "float32") - needed_bytes(info_of(SMALL), "float32")
    assert grown >= 0.99 * sum(table.nbytes for table in tables)

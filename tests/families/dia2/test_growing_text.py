"""Text that comes while a row speaks: its codes are those of the whole text, whenever it comes."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.engine.events import FinishReason
from dia_demo.engine.rows.text_queue import TextQueue
from dia_demo.engine.scheduler import Scheduler, run_to_end
from dia_demo.families.dia2.row import Dia2Row
from dia_demo.families.resolve import resolve
from dia_demo.model.dia2.checkpoint import load
from dia_demo.model.dia2.torch_model import TorchDia2
from dia_demo.task import result_of
from dia_demo.text.script import encode_script
from tools.compare_dia2.make_random_dia2 import SMALL, write_checkpoint

PIECES = ["[S1] Hello", "there. (pause 0.5)", "[S2] Hi: who", "is that?", "[S1]", "Me."]


@pytest.fixture(scope="module", params=[2, 0], ids=["two words ahead", "one stream"])
def loaded(request, tmp_path_factory):
    """(config, model), of models that look at words ahead and not."""
    shape = replace(SMALL, second_stream_ahead=request.param)
    folder = write_checkpoint(tmp_path_factory.mktemp("dia2"), shape)
    config = resolve(str(folder)).config
    return config, TorchDia2(result_of(load(folder, config)), 1)


def row_of(config, text, seed=1, **more) -> Dia2Row:
    return Dia2Row(config, encode_script(text), replace(config.defaults, seed=seed), **more)


@pytest.mark.parametrize("every", [1, 3, 40])
def test_the_codes_are_those_of_the_whole_text(loaded, every):
    config, model = loaded
    whole = row_of(config, " ".join(PIECES))
    run_to_end(model, [whole])
    text = TextQueue()
    row, other = row_of(config, PIECES[0], more_text=text), row_of(config, "[S1] Yes.", seed=2)
    alone = row_of(config, "[S1] Yes.", seed=2)
    run_to_end(model, [alone])
    scheduler, rest, rounds, waited = Scheduler(model, 2), PIECES[1:], 0, 0
    scheduler.add([row, other])
    while scheduler.waiting or scheduler.running:
        scheduler.schedule()
        waited += row not in scheduler.step() and not row.done
        rounds += 1
        if rounds % every == 0:
            if rest:
                text.add(rest.pop(0))
            else:
                text.finish()
    assert waited or every < 40
    assert row.finish_reason == FinishReason.END and row.words == whole.words
    np.testing.assert_array_equal(row.codes(), whole.codes())
    np.testing.assert_array_equal(other.codes(), alone.codes())


def test_a_row_waits_only_where_it_may_begin_a_word(loaded):
    config, model = loaded
    text = TextQueue()
    row, scheduler = row_of(config, "[S1] Hello", more_text=text), Scheduler(model, 1)
    scheduler.add([row])
    scheduler.schedule()
    while scheduler.step():
        pass
    begun = row.steps
    # Without words ahead it can say the first word; both stay as they are until there is more.
    assert len(row.words) == (0 if config.second_stream_ahead else 1)
    assert not scheduler.step() and row.steps == begun
    text.add("there.")
    text.finish()
    assert scheduler.step() == [row]


def test_a_row_that_waits_is_stopped_like_any_other(loaded):
    config, model = loaded
    cancel = threading.Event()
    row = row_of(config, "[S1] Hello", cancel=cancel, more_text=TextQueue())
    scheduler = Scheduler(model, 1)
    scheduler.add([row])
    scheduler.schedule()
    while scheduler.step():
        pass
    cancel.set()
    assert scheduler.schedule() == ([row], []) and not scheduler.running

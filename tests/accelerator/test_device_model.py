"""A run on a device: the same codes as on the CPU, which devices may run, failures."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from dia_demo.accelerator import remote
from dia_demo.accelerator.device_model import DeviceModel
from dia_demo.accelerator.selfcheck.report import Race
from dia_demo.engine.events import AudioChunk, Failed, Finished, Progress, Started, Waiting
from dia_demo.errors import InputError
from tests.helpers.long import long_after
from tests.helpers.models.checkpoints import load, write_small
from tests.helpers.stand_ins.accelerators import (
    ANYTHING,
    FASTER,
    LIMITS,
    events_of,
    mark_trusted,
    request,
    service,
    stand_in,
)
from tests.helpers.stand_ins.faults import FaultyBackend


def test_a_seed_gives_the_same_take_as_on_the_cpu(folder, in_threads):
    synthesis = service(mark_trusted(stand_in(), folder))
    on_cpu = events_of(synthesis, request(folder, "cpu", sound=True))
    on_device = events_of(synthesis, request(folder, sound=True))
    ours, theirs = on_cpu[-1].result, on_device[-1].result
    np.testing.assert_array_equal(ours.codes, theirs.codes)
    np.testing.assert_allclose(ours.samples, theirs.samples, atol=1e-6)
    assert (ours.figures.device, theirs.figures.device) == ("cpu", "xpu")
    # While it runs there are figures, but no sound: all of it comes at the end, in one piece.
    kinds = [type(event) for event in on_device]
    assert kinds.count(AudioChunk) == 1 and kinds[-2:] == [AudioChunk, Finished]
    assert kinds.count(Progress) > 10
    assert [type(event) for event in on_cpu].count(AudioChunk) > 1


def test_rows_of_any_kind_share_the_device(folder, in_threads):
    """Rows with and without guidance, of other lengths, that end one after the other."""
    both = [request(folder, seed=1), request(folder, seed=2)]
    params = replace(both[1].params, cfg_scale=0.0, max_tokens=30)
    both[1] = replace(both[1], params=params)
    results = {}
    for device in ("cpu", "xpu"):
        synthesis = service(mark_trusted(stand_in(), folder))
        asked = [replace(each, runtime=replace(each.runtime, device=device)) for each in both]
        events = synthesis.stream_together(asked, threading.Event())
        results[device] = {e.row: e.result.codes for e in events if isinstance(e, Finished)}
    for row in (0, 1):
        np.testing.assert_array_equal(results["cpu"][row], results["xpu"][row])


def test_caches_are_freed_on_the_device(folder):
    device_model = DeviceModel.from_model(load(folder), FaultyBackend("healthy"), torch.float32)
    server = remote.RowServer(device_model, LIMITS)
    numbers = [server.answer(remote.EncodeRequest(b"x", 1.0, 20, ())).number for _ in range(3)]
    server.forget(numbers[:2])
    assert list(server._caches) == numbers[2:]


def test_without_a_check_the_device_is_refused(folder):
    with pytest.raises(InputError, match="Generate tab, or with: .*doctor --device xpu"):
        events_of(service(stand_in()), request(folder))


def test_what_failed_the_check_is_refused_with_its_reason(folder):
    accelerator = mark_trusted(stand_in(), folder, failure="stage 2: zeros")
    with pytest.raises(InputError, match="stage 2: zeros"):
        events_of(service(accelerator), request(folder))


def test_slower_than_the_cpu_needs_insisting(folder, in_threads):
    accelerator = mark_trusted(stand_in(), folder, race=Race(1.0, 4.0, "int8"))
    synthesis = service(accelerator)
    with pytest.raises(InputError, match=r"1.0 steps/s here, 4.0 on the CPU \(int8\)"):
        events_of(synthesis, request(folder))
    assert isinstance(events_of(synthesis, request(folder, insist=True))[-1], Finished)
    faster = service(mark_trusted(stand_in(), folder, FASTER))
    assert isinstance(events_of(faster, request(folder))[-1], Finished)


def test_bfloat16_needs_a_check_of_its_own(folder):
    accelerator = mark_trusted(stand_in(), folder)
    with pytest.raises(InputError, match="in bfloat16 .precision changed since the last one"):
        events_of(service(accelerator), request(folder, precision="bfloat16"))


def test_a_verdict_on_another_checkpoint_does_not_count(folder, tmp_path):
    accelerator = mark_trusted(stand_in(), folder)
    other = write_small(tmp_path / "other", seed=9)
    with pytest.raises(InputError, match="checkpoint changed"):
        events_of(service(accelerator), request(other))


MID_TAKE = {
    "NaN mid-take": "NaN or infinity among the logits",
    "device lost mid-take": "the driver lost the device",
    "growth of memory": "memory grew by",
    "drift that starts after 1,000 steps": "the device drifts",
}


@pytest.mark.parametrize("fault", long_after(1, MID_TAKE))
def test_a_failure_mid_take_drops_the_whole_take(folder, in_threads, fault):
    check_dropped(folder, fault, MID_TAKE[fault], step_seconds=5.0)


@pytest.mark.long
def test_a_device_that_hangs_mid_take_drops_the_whole_take(folder):
    """In a process: a thread could not be killed."""
    check_dropped(folder, "hang", "no answer for 1 s, the device hangs", step_seconds=1.0)


def check_dropped(folder, fault, reason, step_seconds):
    limits = replace(LIMITS, step_seconds=step_seconds)
    # Of the device's first 13 steps three are the sentinel's: one at first, two repeats.
    accelerator = mark_trusted(stand_in(fault, late=13, limits=limits), folder)
    synthesis = service(accelerator)
    events = events_of(synthesis, request(folder, sound=fault == "NaN mid-take"))
    assert isinstance(events[-1], Failed) and events[-1].device == "xpu"
    for words in (reason, "The XPU failed", "step ", "take was dropped", "XPU off", "same seed"):
        assert words in events[-1].message
    assert not [event for event in events if isinstance(event, AudioChunk | Finished)]
    # It is not trusted again before it has been checked again; the CPU is there at once.
    with pytest.raises(InputError, match="a run failed after the check"):
        events_of(synthesis, request(folder))
    on_cpu = events_of(synthesis, request(folder, "cpu"))
    assert isinstance(on_cpu[-1], Finished)


@pytest.mark.long
def test_a_driver_that_aborts_ends_only_its_own_process(folder):
    """The real thing: a process that dies by SIGABRT while another person waits for the CPU."""
    synthesis = service(mark_trusted(stand_in("abort of the process", late=8), folder))
    waiting: list = []
    other = threading.Thread(
        target=lambda: waiting.extend(events_of(synthesis, request(folder, "cpu")))
    )
    events = []
    for event in synthesis.stream(request(folder), threading.Event()):
        events.append(event)
        if isinstance(event, Started):
            other.start()
    other.join(60)
    assert isinstance(events[-1], Failed) and "SIGABRT" in events[-1].message
    assert isinstance(waiting[0], Waiting) and isinstance(waiting[-1], Finished)


def test_stop_keeps_what_was_made_on_the_device(folder, in_threads):
    synthesis, cancel = service(mark_trusted(stand_in(), folder)), threading.Event()
    for event in synthesis.stream(request(folder), cancel):
        if isinstance(event, Progress) and event.step == 30:
            cancel.set()
    assert 27 <= len(event.result.codes) < 57
    assert event.result.figures.finish_reason == "cancelled"


def test_distorted_sound_is_not_handed_over(folder, in_threads):
    """Random weights hiss: to the waveform check that is what a broken device sounds like."""
    bounds = replace(ANYTHING, high_band=1e-6)
    synthesis = service(mark_trusted(stand_in(bounds=bounds), folder))
    events = events_of(synthesis, request(folder, sound=True))
    assert isinstance(events[-1], Failed) and "a hiss" in events[-1].message
    assert not [event for event in events if isinstance(event, AudioChunk)]

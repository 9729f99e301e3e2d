"""A cluster of three engines: its listeners cannot tell it from one machine, whatever is killed."""

import os
import signal
import threading
from dataclasses import replace

import httpx
import numpy as np
import pytest

from dia_demo.engine.events import AudioChunk, Cancelled, Finished, Progress
from dia_demo.errors import InputError
from dia_demo.server.address import Address
from dia_demo.services.models import find_model
from dia_demo.services.remote.synthesis import open_synthesis
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, VoicePrompt
from tests.helpers.engines import until
from tools.chaos.cluster_faults import kill_one_of, processes

pytest.importorskip("ray", reason="pip install -r requirements-serve.txt")
from dia_demo.server.cluster.start import local_cluster  # noqa: E402

pytestmark = pytest.mark.long
REPLICAS = 3
SCRIPT = "[S1] Good morning, and welcome to the programme. [S2] Thank you, I am glad to be here."


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a cluster on this machine."""
    folder = tmp_path_factory.mktemp("cluster")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIA_TAKES", str(folder / "takes"))
        patch.setenv("DIA_KEPT", str(folder / "kept"))
        patch.setenv("DIA_ADDRESS_PLACES", "1000")
        with local_cluster(REPLICAS, Address(ports=range(1)), cores=1) as url:
            yield url


@pytest.fixture(scope="module")
def remote(cluster, tmp_path_factory):
    return open_synthesis(Settings(engine=cluster, takes_folder=tmp_path_factory.mktemp("here")))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One machine."""
    synthesis = Synthesis(Settings(takes_folder=tmp_path_factory.mktemp("alone"), measure=False))
    yield synthesis
    synthesis.close()


def request_of(seed, script=SCRIPT, **changes) -> Request:
    info = find_model("nano")
    return replace(Request(script, replace(info.config.defaults, seed=seed), info), **changes)


def sound(events) -> np.ndarray:
    return np.concatenate([e.samples for e in events if isinstance(e, AudioChunk)])


def test_a_take_is_the_same_as_on_one_machine(remote, alone):
    request = request_of(4)
    there, here = (list(each.stream(request, threading.Event())) for each in (remote, alone))
    np.testing.assert_array_equal(sound(there), here[-1].result.samples)
    np.testing.assert_array_equal(there[-1].result.places, here[-1].result.places)


def test_killing_a_replica_under_load_loses_nothing(cluster):
    """Streams of the HTTP route: none is lost, and none has another byte than in peace."""
    kill_one_of(REPLICAS, cluster, streams=30)
    until(lambda: len(processes("EngineReplica")) == REPLICAS, 120)


def test_the_rows_of_a_run_are_spread(remote, alone):
    requests = [request_of(seed) for seed in range(12)]
    events = list(remote.stream_together(requests, threading.Event()))
    ends = {event.row: event.result for event in events if isinstance(event, Finished)}
    assert len(ends) == 12
    expected = list(alone.stream_together(requests[:2], threading.Event()))
    for event in expected:
        if isinstance(event, Finished):
            np.testing.assert_array_equal(ends[event.row].codes, event.result.codes)
    together = {result.figures.shared_with for result in ends.values()}
    assert max(together) < 11, "no replica made all of them"


def test_its_gateway_can_be_watched(cluster):
    assert httpx.get(f"{cluster}/ready").json() == {"ready": True}
    assert "dia_rows" in httpx.get(f"{cluster}/metrics").text


def test_stop_keeps_what_was_made(remote):
    cancel, events = threading.Event(), []
    for event in remote.stream(request_of(1, SCRIPT * 4), cancel):
        events.append(event)
        if isinstance(event, Progress):
            cancel.set()
    assert isinstance(events[-1], Cancelled) and len(events[-1].result.codes)


def test_a_voice_travels_to_the_replicas(remote, alone):
    first = list(alone.stream(request_of(2), threading.Event()))[-1].result
    voice = VoicePrompt(None, first.codes, SCRIPT)
    request = request_of(3, "[S1] And now the news. [S2] Yes.", voice=voice)
    for _ in range(2):
        there, here = (list(each.stream(request, threading.Event())) for each in (remote, alone))
        np.testing.assert_array_equal(there[-1].result.codes, here[-1].result.codes)


def test_what_is_wrong_is_said_by_the_gateway(remote, cluster):
    with pytest.raises(InputError, match="temperature must be"):
        request = request_of(1)
        params = replace(request.params, temperature=9.0)
        list(remote.stream(replace(request, params=params), threading.Event()))
    answer = httpx.post(
        f"{cluster}/v1/audio/speech", json={"model": "nano", "input": "", "speed": 9}
    )
    assert answer.status_code == 400 and answer.json()["error"]["message"]


def test_killing_the_gateway_does_not_end_a_take(remote, alone):
    request = request_of(5, SCRIPT * 3)
    expected = list(alone.stream(request, threading.Event()))[-1].result
    events = []
    for event in remote.stream(request, threading.Event()):
        events.append(event)
        if isinstance(event, AudioChunk) and len(processes("Gateway")) == 1 and len(events) < 8:
            os.kill(processes("Gateway")[0].pid, signal.SIGKILL)
    np.testing.assert_array_equal(sound(events), expected.samples)

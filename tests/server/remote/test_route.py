"""The engine's route answers every first message, and closes the connection."""

import json

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from dia_demo.server.remote.route import engine_router
from dia_demo.server.speech.api import SpeechApi
from tests.helpers.sockets import ToneSpeaker, running_server


@pytest.mark.parametrize("message", [b"", b"bytes", "", "no json", "{}", '{"requests": [1]}'])
def test_what_is_no_order_gets_a_sentence(synthesis, message):
    speech = SpeechApi.with_speaker(ToneSpeaker(), synthesis.settings)
    with (
        running_server(speech, engine_router(synthesis)) as server,
        connect(f"ws://{server}/v1/engine", proxy=None) as socket,
    ):
        socket.send(message)
        answer = json.loads(socket.recv(timeout=180))
        assert answer["error"] == "input" and "no order for an engine" in answer["message"]
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=180)
    assert closed.value.rcvd.code == 1000

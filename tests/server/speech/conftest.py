"""What the tests of the WebSocket share: a server whose speaker has no model."""

import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.server.speech.api import SpeechApi
from dia_demo.services.settings import Settings
from tests.helpers.sockets import ToneSpeaker, running_server


@pytest.fixture(scope="module")
def speaker():
    return ToneSpeaker()


@pytest.fixture(scope="module")
def speech(speaker, tmp_path_factory):
    settings = Settings(RuntimeConfig("nano"), takes_folder=tmp_path_factory.mktemp("takes"))
    return SpeechApi.with_speaker(speaker, settings)


@pytest.fixture(scope="module")
def server(speech):
    with running_server(speech) as address:
        yield address

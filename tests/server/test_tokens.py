"""Who may use the routes for programs, what the others read, and whose turn a request takes."""

from __future__ import annotations

import logging

import pytest
from fastapi import Depends, FastAPI, WebSocket
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from dia_demo.server.address import LOCAL, Address
from dia_demo.server.errors import add_error_handlers
from dia_demo.server.tokens import (
    CLOSED,
    NO_LOGIN,
    NO_TOKEN,
    WRONG_TOKEN,
    Access,
    caller_of,
    require_token,
    require_websocket_token,
)
from dia_demo.services.people import Visitor, is_key, key_of_token, token_hash
from dia_demo.services.settings import Settings

FIRST, SECOND = "first-token-0123456789", "second-token-0123456789"
EVERYWHERE = Address("0.0.0.0")


def make_client(settings: Settings, address: Address = LOCAL) -> TestClient:
    application = FastAPI()
    application.state.access = Access(settings, address)
    add_error_handlers(application)

    @application.get("/v1/speech", dependencies=[Depends(require_token)])
    def speech(request: Request) -> dict:
        return vars(caller_of(request).visitor)

    @application.get("/other")
    def other() -> None:
        raise HTTPException(418, "No tea.")

    @application.websocket("/v1/stream", dependencies=[Depends(require_websocket_token)])
    async def stream(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_json(vars(caller_of(socket).visitor))

    return TestClient(application, client=("10.0.0.7", 5000))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_request_needs_one_of_the_tokens():
    client = make_client(Settings(tokens=(FIRST, SECOND)))
    for token in (FIRST, SECOND):
        assert client.get("/v1/speech", headers=bearer(token)).status_code == 200
        assert client.get("/v1/speech", headers={"authorization": f"bearer  {token}"}).is_success
    for headers in (
        bearer(FIRST[:-1]),
        bearer(f"{FIRST} {SECOND}"),
        bearer(""),
        {"Authorization": f"Basic {FIRST}"},
        {"Authorization": FIRST},
        {"Authorization": b"Bearer \xff\xfe"},
    ):
        refused = client.get("/v1/speech", headers=headers)
        assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer"
        assert refused.json()["error"]["message"] == WRONG_TOKEN


def test_the_refusal_has_the_shape_that_clients_of_openai_read():
    refused = make_client(Settings(tokens=(FIRST,))).get("/v1/speech")
    assert refused.json() == {
        "error": {
            "message": NO_TOKEN,
            "type": "authentication_error",
            "param": None,
            "code": None,
        }
    }


def test_other_routes_answer_as_usual():
    answer = make_client(Settings()).get("/other")
    assert answer.status_code == 418 and answer.json() == {"detail": "No tea."}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_without_tokens_a_server_for_this_machine_is_open(host):
    client = make_client(Settings(), Address(host))
    assert client.get("/v1/speech").status_code == 200
    # The openai package insists on sending a key.
    assert client.get("/v1/speech", headers=bearer("sk-none")).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org"])
def test_beyond_this_machine_it_is_closed_until_that_is_set(host):
    refused = make_client(Settings(), Address(host)).get("/v1/speech")
    assert refused.status_code == 401 and refused.json()["error"]["message"] == CLOSED
    assert make_client(Settings(open_api=True), Address(host)).get("/v1/speech").is_success
    # Tokens are asked for whatever else is set.
    both = make_client(Settings(open_api=True, tokens=(FIRST,)), Address(host))
    assert both.get("/v1/speech").status_code == 401


def test_logins_of_the_page_close_the_routes_without_tokens():
    """Behind a proxy every request comes from this machine."""
    logins = (("ann", "her password"),)
    refused = make_client(Settings(logins=logins)).get("/v1/speech")
    assert refused.status_code == 401 and refused.json()["error"]["message"] == NO_LOGIN
    assert make_client(Settings(logins=logins, open_api=True)).get("/v1/speech").is_success
    client = make_client(Settings(logins=logins, tokens=(FIRST,)))
    assert client.get("/v1/speech", headers=bearer(FIRST)).is_success


def test_a_websocket_needs_a_token_as_well():
    client = make_client(Settings(tokens=(FIRST,)))
    with pytest.raises(WebSocketDisconnect) as refused:
        with client.websocket_connect("/v1/stream"):
            pass
    assert refused.value.code == 1008
    with client.websocket_connect("/v1/stream", headers=bearer(FIRST)) as socket:
        assert socket.receive_json()["token"] == token_hash(FIRST)


def test_a_request_takes_the_turn_of_its_address_and_token():
    client = make_client(Settings(tokens=(FIRST, SECOND)))
    answers = [client.get("/v1/speech", headers=bearer(token)).json() for token in (FIRST, SECOND)]
    expected = [Visitor("10.0.0.7", token=token_hash(token)) for token in (FIRST, SECOND)]
    assert [Visitor(**answer) for answer in answers] == expected
    # Where there are no tokens, nobody gets more turns by inventing some.
    answer = make_client(Settings(), EVERYWHERE).get("/v1/speech", headers=bearer(FIRST))
    assert answer.status_code == 401
    answer = make_client(Settings(open_api=True)).get("/v1/speech", headers=bearer(FIRST)).json()
    assert Visitor(**answer) == Visitor("10.0.0.7")


def test_the_hash_of_a_token_opens_nothing():
    assert is_key(key_of_token(FIRST)) and key_of_token(FIRST) != token_hash(FIRST)
    assert key_of_token(FIRST) != key_of_token(SECOND)


def test_a_token_is_in_no_text_of_the_settings(caplog):
    caplog.set_level(logging.DEBUG)
    settings = Settings(tokens=(FIRST,), logins=(("ann", "her password"),))
    assert FIRST not in repr(settings) and "her password" not in repr(settings)
    client = make_client(settings)
    client.get("/v1/speech", headers=bearer(FIRST))
    assert FIRST not in caplog.text


def test_an_application_describes_its_tokens():
    client = make_client(Settings(tokens=(FIRST,)))
    description = client.get("/openapi.json").json()
    schemes = description["components"]["securitySchemes"]
    assert schemes["HTTPBearer"]["scheme"] == "bearer"
    assert description["paths"]["/v1/speech"]["get"]["security"] == [{"HTTPBearer": []}]

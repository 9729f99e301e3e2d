"""`/v1/compare`: one order, a link, the result; nobody reaches the tests of another token."""

from __future__ import annotations

import time

import pytest
from fastapi import APIRouter, Depends, FastAPI
from fastapi.testclient import TestClient

from dia_demo.server.address import LOCAL
from dia_demo.server.errors import add_error_handlers
from dia_demo.server.listening.programs import CompareRoutes
from dia_demo.server.tokens import Access, require_token
from dia_demo.services.listening.owner.jobs import TestJobs
from dia_demo.services.listening.owner.tests import OwnTests
from dia_demo.services.listening.panel.store import PanelStore
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.settings import Settings
from tests.helpers.comparisons import SCRIPTS
from tests.services.listening.panel.helpers import take_test

TOKENS = ("the token of one program", "the token of another one")
ORDER = {
    "script": "\n---\n".join(SCRIPTS),
    "settings": [
        {"temperature": 0.7, "max_tokens": 60},
        {"temperature": 1.9, "max_tokens": 60},
    ],
    "pairs": 2,
    "seed": 1,
    "test": {"design": "cmos", "raters": 2, "training": 0},
}


@pytest.fixture
def own(synthesis, tmp_path):
    return OwnTests(PanelStore(tmp_path), ComparisonStore(tmp_path, synthesis))


@pytest.fixture
def client(own):
    """A client of the routes, which need one of TOKENS."""
    tokens = tuple(token.replace(" ", "-") for token in TOKENS)
    application = FastAPI()
    application.state.access = Access(Settings(tokens=tokens), LOCAL)
    add_error_handlers(application)
    router = APIRouter(dependencies=[Depends(require_token)])
    CompareRoutes(TestJobs(own)).add_to(router)
    application.include_router(router)
    with TestClient(application) as client:
        client.headers["authorization"] = f"Bearer {tokens[0]}"
        client.other = {"authorization": f"Bearer {tokens[1]}"}
        yield client


def order(client, **changes):
    return client.post("/v1/compare", json=ORDER | changes)


def wait_until_open(client, test: str) -> dict:
    for _ in range(6000):
        told = client.get(f"/v1/compare/{test}").json()
        if told["state"] != "making":
            return told
        time.sleep(0.01)
    raise AssertionError("the test was not made")


def test_one_order_gives_a_link_and_in_the_end_a_result(client, own):
    answer = order(client)
    assert answer.status_code == 202
    ordered = answer.json()
    told = wait_until_open(client, ordered["id"])
    assert (told["state"], told["link"]) == ("open", ordered["link"])
    panel = own.panels.by_link(ordered["link"].rpartition("/")[2])
    url = f"/v1/compare/{panel.plan.id}"
    assert client.get(f"{url}/report").status_code == 400
    refused = client.post(f"{url}/reveal")
    assert refused.status_code == 400 and "0 do so far" in refused.json()["error"]["message"]
    for seed in (1, 2):
        take_test(panel, 0.5, seed)
    told = client.post(f"{url}/reveal").json()
    assert told["state"] == "revealed" and told["result"]["verdict"] in ("passed", "failed")
    assert len(told["result"]["contrasts"]) == 1
    votes, report = client.get(f"{url}/votes"), client.get(f"{url}/report")
    assert votes.text.startswith("rater,") and report.text.startswith("<!doctype html>")
    assert client.delete(url).json()["deleted"] and client.get(url).status_code == 404


def test_tests_belong_to_their_token(client):
    test = order(client).json()["id"]
    wait_until_open(client, test)
    url = f"/v1/compare/{test}"
    for method, path in (("GET", url), ("POST", f"{url}/reveal"), ("DELETE", url)):
        assert client.request(method, path, headers=client.other).status_code == 404
    client.headers.pop("authorization")
    assert client.get(url).status_code == 401 and order(client).status_code == 401


def test_a_test_is_closed_and_opened(client):
    test = order(client).json()["id"]
    wait_until_open(client, test)
    assert client.post(f"/v1/compare/{test}/close").json()["state"] == "closed"
    assert client.post(f"/v1/compare/{test}/open").json()["state"] == "open"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test": {"design": "taste"}}, "design must be one of"),
        ({"test": {"voters": 3}}, "no option 'voters'"),
        ({"settings": [{"temperature": 1}]}, "settings"),
        ({"settings": [{"warmth": 1}, {}]}, "No setting is called 'warmth'"),
        ({"script": " "}, "script is empty"),
        ({"pairs": 3}, "multiple of the number of scripts"),
        ({"model": "none"}, "model must be one of"),
    ],
)
def test_a_wrong_order_is_refused_at_once(client, changes, message):
    answer = order(client, **changes)
    assert answer.status_code == 400 and message in answer.json()["error"]["message"]

"""Where the page is served: the next free port, and a sentence for every mistake."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from dia_demo.errors import InputError, RunError
from dia_demo.files import ROOT
from dia_demo.server.address import HIGHEST_PORT, HOST, PORT, Address


def test_the_page_is_for_this_machine_alone_unless_a_variable_says_more():
    assert Address.from_env({}) == Address.from_env({"GRADIO_SERVER_NAME": ""}) == Address()
    assert (Address().host, Address().ports[0]) == (HOST, PORT)
    assert Address.from_env({"GRADIO_SERVER_NAME": "[::1]"}).host == "::1"


def test_the_next_free_port_is_used():
    with socket.create_server((HOST, 0)) as taken:
        port = str(taken.getsockname()[1])
        with Address.from_env({"GRADIO_SERVER_PORT": port}).listen() as found:
            assert found.getsockname()[1] > int(port)
        only = Address.from_env({"GRADIO_SERVER_PORT": port, "GRADIO_NUM_PORTS": "1"})
        with pytest.raises(RunError, match="GRADIO_SERVER_PORT"):
            only.listen()


def test_no_port_beyond_the_highest_is_tried():
    assert Address.from_env({"GRADIO_SERVER_PORT": str(HIGHEST_PORT)}).ports == range(65535, 65536)


@pytest.mark.parametrize("value", ["abc", "", "-1", "65536", "7860.5", "9" * 30])
@pytest.mark.parametrize("name", ["GRADIO_SERVER_PORT", "GRADIO_NUM_PORTS"])
def test_a_port_that_is_none_is_refused(name, value):
    with pytest.raises(InputError, match=f"{name} .*number"):
        Address.from_env({name: value})


def test_all_mistakes_are_in_one_message():
    with pytest.raises(InputError) as caught:
        Address.from_env({"GRADIO_NUM_PORTS": "9" * 20, "GRADIO_SERVER_PORT": ""})
    assert str(caught.value).splitlines() == [
        "GRADIO_SERVER_PORT is empty: give it a number, or remove it.",
        f"GRADIO_NUM_PORTS must be a whole number from 1 to 65535, not '{'9' * 20}'.",
    ]


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "..", "a" * 80])
def test_the_address_of_another_machine_is_refused(host):
    with pytest.raises(InputError, match="GRADIO_SERVER_NAME must be an address of this machine"):
        Address(host).listen()


@pytest.mark.slow
def test_the_app_ends_with_a_line_for_each_mistake():
    """Before it imports gradio, which would fail at them."""
    mistakes = {"GRADIO_SERVER_PORT": "abc", "GRADIO_NUM_PORTS": "0"}
    ran = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=os.environ | mistakes,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2 and ran.stderr.splitlines() == [
        "error: GRADIO_SERVER_PORT must be a whole number from 0 to 65535, not 'abc'.",
        "error: GRADIO_NUM_PORTS must be a whole number from 1 to 65535, not '0'.",
    ]


def test_what_listens_names_its_protocol():
    """Otherwise asyncio leaves Nagle's algorithm on, and short answers take 40 ms longer."""
    with Address(ports=range(0, 1)).listen() as listening:
        assert listening.proto == socket.IPPROTO_TCP
        with socket.create_connection(listening.getsockname()) as client:
            accepted, _ = listening.accept()
            accepted.close()
            client.close()

"""The command `serve`: what it starts, and what it refuses."""

import sys

import pytest

from dia_demo.cli.main import main
from dia_demo.files import ROOT
from dia_demo.server import run
from dia_demo.server.cluster import start
from dia_demo.server.cluster.command import register


def said_by(capsys, *arguments) -> str:
    assert main(["serve", *arguments], [register]) == 2
    return capsys.readouterr().err


def test_it_starts_the_app_without_compiling_twice(monkeypatch):
    """Its kernels are compiled while it is imported."""
    started = []
    monkeypatch.setattr("dia_demo.kernels.precompile.Precompilation", lambda precision: precision)
    monkeypatch.setattr(run, "serve_app", lambda *given: started.append(given))
    monkeypatch.setenv("DIA_PRECISION", "int8")
    assert main(["serve"], [register]) == 0
    assert started == [("int8", False)]


def test_replicas_are_those_of_a_cluster(capsys):
    assert "--replicas needs --ray" in said_by(capsys, "--replicas", "2")
    assert "--mcp is for the app itself" in said_by(capsys, "--ray", "--mcp")


@pytest.mark.parametrize("replicas", ["0", "-1", "100000"])
def test_each_replica_has_a_core(capsys, replicas):
    assert f"not {replicas}." in said_by(capsys, "--ray", "--replicas", replicas)


def test_without_ray_it_says_how_to_install_it(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    message = said_by(capsys, "--ray")
    assert start.NO_RAY in message
    for name in ("requirements.txt", "requirements-serve.txt"):
        assert name in message and (ROOT / name).is_file()


def test_an_address_that_cannot_be_used_is_refused_first(capsys, monkeypatch):
    monkeypatch.setenv("GRADIO_SERVER_PORT", "high")
    assert "GRADIO_SERVER_PORT" in said_by(capsys, "--ray")

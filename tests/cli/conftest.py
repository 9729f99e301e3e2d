"""Commands run in this process, in an empty folder, with a small model."""

from __future__ import annotations

import pytest

from dia_demo.cli.main import main
from tests.helpers.models.checkpoints import write_small


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("cli") / "small", codec=True)


@pytest.fixture
def cli(folder, tmp_path, monkeypatch, capsys):
    """Runs a command in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    for name in ("DIA_MODEL", "DIA_PRECISION", "DIA_THREADS", "DIA_QUEUE"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        out = capsys.readouterr()
        return code, out.out, out.err

    return run


@pytest.fixture
def say(cli, folder):
    """`say` with the small model, few tokens and a seed; what a test gives comes last and wins."""

    def run(script, *arguments):
        usual = ("--model", folder, "--threads", 1, "--max-tokens", 60, "--seed", 1)
        return cli("say", script, *usual, *arguments)

    return run

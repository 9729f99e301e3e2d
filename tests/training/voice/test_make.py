"""The stages that make the shipped voice: their commands, and going on after an interruption."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import pytest

from training.voice import make


class Parsed(Exception):
    """The arguments of a stage are understood."""


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("stage", make.STAGES, ids=lambda stage: stage.name)
def test_every_stage_understands_its_arguments(monkeypatch, stage, device):
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(parser):
        parse(parser)
        raise Parsed

    _, module, *options = stage.arguments(Path("work"), device)
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
    monkeypatch.setattr(sys, "argv", [module, *options])
    with pytest.raises(Parsed):
        importlib.import_module(module).main()


def test_a_stage_that_failed_is_run_again_and_those_before_it_are_not(tmp_path):
    run, codes = [], {make.STAGES[2].name: 1}

    def carry_out(arguments: list[str]) -> int:
        stage = next(s for s in make.STAGES if s.arguments(tmp_path, "cpu") == arguments)
        run.append(stage.name)
        return codes.pop(stage.name, 0)

    names = [stage.name for stage in make.STAGES]
    assert make.make(tmp_path, "cpu", carry_out) == names[2]
    assert make.make(tmp_path, "cpu", carry_out) is None
    assert run == [*names[:3], *names[2:]]
    assert make.make(tmp_path, "cpu", carry_out) is None and len(run) == len(names) + 1

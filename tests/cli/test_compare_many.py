"""`compare --listeners`: a test for many from one command, its progress, its gate."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import soundfile

from dia_demo.cli.main import main
from dia_demo.services.listening.panel.panel import Panel
from tests.services.listening.panel.helpers import honest_answer, new_id, take_test


@pytest.fixture
def compare(capsys, monkeypatch, folder):
    """Run the command; returns its exit code, stdout and stderr."""
    monkeypatch.setenv("DIA_MODEL", str(folder))
    monkeypatch.setenv("DIA_THREADS", "1")

    def run(*words):
        code = main(["compare", *map(str, words)])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def clips(tmp_path):
    random = np.random.default_rng(1)
    for system in ("new", "old"):
        (tmp_path / "clips" / system).mkdir(parents=True)
        for number in range(4):
            wave = random.normal(0, 0.1, 16_000)
            soundfile.write(tmp_path / "clips" / system / f"{number}.flac", wave, 16_000)
    return tmp_path / "clips"


@pytest.fixture
def made(compare, clips, tmp_path):
    """A test of the clips for two listeners, in its folder."""
    options = ["design=cmos", "goal=noninferiority", "margin=2", "candidate=0", "baseline=1"]
    words = ["--clips", clips, "-o", tmp_path / "out", "--listeners", 2, "--test", *options]
    code, out, _ = compare(*words, "--json")
    assert code == 0
    told = json.loads(out)
    assert told["link"].startswith("/listen/") and "of the time" in told["can_show"]
    assert told["goal"] == {"kind": "noninferiority", "margin": 2.0, "first": 0, "second": 1}
    return tmp_path / "out"


def test_a_gate_is_open_then_decided_by_the_plan(compare, made, tmp_path):
    code, out, err = compare("--gate", made)
    assert code == 2 and "0 do so far" in err and not out
    panel = Panel.open(made / "panel")
    for seed in (1, 2):
        take_test(panel, 1.0, seed, partial(honest_answer, deviation=0.0))
    code, out, _ = compare("--gate", made)
    assert code == 0 and "not worse" in out
    assert compare("--gate", made, "--json")[0] == 0, "the same whenever it is asked"
    files = ["--csv", tmp_path / "votes.csv", "--report", tmp_path / "report.html"]
    code, out, _ = compare("--score", made, *files)
    assert code == 0 and "listener 2" in out
    assert all(path.stat().st_size for path in files[1::2])


def test_a_gate_fails_where_the_goal_is_missed(compare, made):
    panel = Panel.open(made / "panel")
    for seed in (1, 2):
        take_test(panel, -3.0, seed)
    code, out, _ = compare("--gate", made)
    assert code == 1 and "not shown" in out


def test_who_has_not_finished_is_not_left_out_yet(compare, made):
    panel = Panel.open(made / "panel")
    take_test(panel, 0.0, 1)
    panel.start_rater(new_id())
    out = compare("--score", made)[1]
    assert "listener 2: 0 of" in out and "left out" not in out
    assert "listener 2: 0 of" in (ended := compare("--score", made, "--reveal")[1])
    assert "left out: answered 0 of" in ended


def test_listeners_are_left_out_and_the_test_is_closed(compare, made):
    panel = Panel.open(made / "panel")
    take_test(panel, 0.0, 1)
    code, out, _ = compare("--score", made, "--leave-out", 1, "asked for it", "--close")
    assert code == 0 and "left out: asked for it" in out and panel.state.closed
    assert "left out" not in compare("--score", made, "--leave-out", 1, "")[1]
    code, _, err = compare("--score", made, "--leave-out", 2, "x")
    assert code == 2 and "1 to 1" in err
    code, _, err = compare("--score", made, "--csv", made / "votes.csv")
    assert code == 2 and "reveal" in err


def test_takes_become_a_test_too(compare, tmp_path):
    script = tmp_path / "script.txt"
    script.write_text("[S1] Hello there. [S2] Yes.\n---\n[S1] What now? [S2] Nothing.")
    sides = ["--a", "temperature=0.7", "max_tokens=60", "--b", "temperature=1.9,max_tokens=60"]
    words = [*sides, "--script", script, "--pairs", 2, "-o", tmp_path / "out"]
    code, _, err = compare(*words, "--listeners", 3, "--test", "design=taste")
    assert code == 2 and "design must be one of" in err
    code, out, _ = compare("-o", tmp_path / "out", *words[:-2], "--listeners", 3)
    assert code == 0 and "DIA_COMPARE=" in out and "3 listeners, 2 screens each" in out
    code, _, err = compare("-o", tmp_path / "out", "--listeners", 3)
    assert code == 2 and "already holds a test" in err


def test_a_folder_without_a_test_has_no_gate(compare, tmp_path):
    code, _, err = compare("--gate", tmp_path)
    assert code == 2 and "--listeners" in err
    code, _, err = compare("-o", tmp_path, "--offline", tmp_path / "x.zip")
    assert code == 2 and "with --score DIR" in err

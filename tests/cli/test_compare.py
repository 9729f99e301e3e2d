"""The command `compare`: make, go on, make again, score; exit codes and one line on stderr."""

from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile

from dia_demo.cli.main import main
from dia_demo.errors import InputError
from dia_demo.machine.processor import class_name
from dia_demo.services.listening.archive import import_zip
from dia_demo.services.listening.comparison import Comparison
from tests.helpers.models.checkpoints import write_small
from tests.helpers.models.known import NANO
from tests.helpers.voices import NO_VOICES

SIDES = ["--a", "temperature=0.7", "max_tokens=60", "--b", "temperature=1.9,max-tokens=60"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_small(tmp_path_factory.mktemp("cli") / "small", codec=True))


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.txt"
    path.write_text("[S1] Hello there. [S2] Yes.")
    return str(path)


@pytest.fixture
def compare(model, capsys, monkeypatch):
    """Run the command; returns its exit code, stdout and stderr."""
    monkeypatch.setenv("DIA_MODEL", model)
    monkeypatch.setenv("DIA_THREADS", "1")

    def run(*words):
        code = main(["compare", *map(str, words)])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_a_comparison_made_by_the_command_can_be_scored(compare, script, tmp_path):
    folder = tmp_path / "out"
    words = [*SIDES, "--script", script, "--pairs", 2, "--seed", 3, "-o", folder, "--json"]
    code, out, err = compare(*words)
    assert code == 0 and err.startswith(
        "warning: The two sides of a pair will be different speakers"
    )
    made = json.loads(out.splitlines()[-1])
    assert err == f"warning: {made['warnings'][0]}\n" and made["warning"] is None
    assert made["pairs"] == made["pairs_made"] == 2 and made["seeds"] == [3, 4]
    assert made["differences"] == {"temperature": [0.7, 1.9]}
    assert "flip" not in out and made["realtime_factor"] > 0
    assert len(list((folder / "clips").glob("*.wav"))) == 4

    comparison = Comparison.open(folder)
    for trial in comparison.plan.trials:
        comparison.vote(trial.id, "none", {"A": 9, "B": 9})
    code, out, err = compare("--score", folder, "--json")
    scored = json.loads(out.splitlines()[-1])
    assert code == 0 and scored["voted"] == 2 and scored["overall"]["ties"] == 2
    code, out, _ = compare("--score", folder)
    assert code == 0 and "No difference was heard in any of 2 pairs." in out
    assert "all pairs: temperature 0.7 0, temperature 1.9 0, no difference 2" in out


def test_a_missing_clip_is_made_again_exactly(compare, script, tmp_path):
    folder, again = tmp_path / "out", tmp_path / "again"
    assert compare(*SIDES, "--script", script, "--pairs", 1, "-o", folder)[0] == 0
    trial = Comparison.open(folder).plan.trials[0]
    clip = folder / "clips" / trial.clips[0]
    before = clip.read_bytes()
    clip.unlink()
    plan = folder / "plan.json"
    plan.write_text(plan.read_text().replace(f'"{class_name()}"', '"riscv64"'))
    code, out, err = compare("-o", folder, "--zip", tmp_path / "out.zip")
    assert "riscv64" in err and "the same seed may give a different take" in err
    assert import_zip(tmp_path / "out.zip", tmp_path / "in").trials[0].id == trial.id
    assert f"DIA_COMPARE={folder} python app.py" in out
    code, scored, _ = compare("--score", tmp_path / "out.zip")
    assert code == 0 and "0 of 1 pairs judged" in scored
    refused, _, err = compare("--score", tmp_path / "out.zip", "--reveal")
    assert refused == 2 and "is a zip" in err
    assert code == 0 and "1 of 1 pairs" in out and clip.read_bytes() == before
    code, _, err = compare("--rebuild", folder, "-o", again)
    assert code == 0 and "riscv64" in err
    assert (again / "clips" / trial.clips[0]).read_bytes() == before


def test_a_plan_keeps_its_pronunciations(compare, script, tmp_path):
    folder, again, listed = tmp_path / "out", tmp_path / "again", tmp_path / "list.txt"
    listed.write_text("Hello = Hallo")
    words = [*SIDES, "--script", script, "--pairs", 1, "--seed", 3]
    assert compare(*words, "--pronunciations", listed, "-o", folder)[0] == 0
    assert compare(*words, "-o", tmp_path / "without")[0] == 0
    listed.unlink()
    assert compare("--rebuild", folder, "-o", again)[0] == 0

    assert Comparison.open(again).plan.settings[0].pronunciations.text == "Hello = Hallo"
    takes = [comparison_codes(of) for of in (folder, again, tmp_path / "without")]
    assert takes[0] == takes[1] != takes[2]
    for options in (["--rebuild", folder, "-o", tmp_path / "new"], ["-o", folder]):
        code, _, err = compare(*options, "--pronunciations", listed)
        assert code == 2 and err.count("\n") == 1


def comparison_codes(folder) -> dict:
    plan = Comparison.open(folder).plan
    return {slot.setting: plan.facts[slot.id]["codes_sha256"] for slot in plan.slots}


def test_an_open_test_tells_counts_until_it_is_ended(compare, script, tmp_path):
    folder = tmp_path / "out"
    assert compare(*SIDES, "--script", script, "--pairs", 3, "-o", folder)[0] == 0
    comparison = Comparison.open(folder)
    for trial in comparison.plan.trials[:2]:
        comparison.vote(trial.id, "A", {"A": 9, "B": 9})
    code, out, _ = compare("--score", folder)
    assert code == 0 and "The test is open: 2 of 3 pairs judged" in out and "--reveal" in out
    for telling in ("won", "p =", "%", "0.7", "script 1"):
        assert telling not in out, out
    scored = json.loads(compare("--score", folder, "--json")[1])
    assert scored["open"] and scored["voted"] == 2 and scored["overall"] is None
    assert not (scored["by_script"] or scored["by_seed"] or scored["notes"])

    code, out, _ = compare("--score", folder, "--reveal")
    assert code == 0 and "of 2 pairs" in out and "temperature 1.9" in out
    ended = Comparison.open(folder)
    with pytest.raises(InputError, match="votes are no longer accepted"):
        ended.vote(ended.plan.trials[2].id, "A", {"A": 9, "B": 9})
    assert json.loads(compare("--score", folder, "--json")[1])["overall"]["first"] in (0, 1, 2)


def test_the_votes_come_as_a_table(compare, script, tmp_path):
    folder, table = tmp_path / "out", tmp_path / "votes.csv"
    assert compare(*SIDES, "--script", script, "--pairs", 2, "-o", folder)[0] == 0
    code, out, err = compare("--score", folder, "--csv", table)
    assert code == 2 and "--reveal" in err and not table.exists()
    assert compare("--score", folder, "--csv", table, "--reveal")[0] == 0
    header, *rows = table.read_text().splitlines()
    assert header.startswith("pair,script,seed,clip_1") and len(rows) == 2
    assert "temperature 0.7" in rows[0] and "temperature 1.9" in rows[0]


def test_without_a_number_of_pairs_every_script_is_heard(compare, tmp_path):
    five = tmp_path / "five.txt"
    five.write_text("\n---\n".join(f"[S1] This is number {n}." for n in range(5)))
    code, out, _ = compare(*SIDES, "--script", five, "-o", tmp_path / "out", "--json")
    assert code == 0 and json.loads(out)["pairs"] == 15, "a multiple of five, and twelve at least"


def test_abx_of_takes_that_differ_by_chance_is_warned_of(compare, script, tmp_path):
    words = ["--abx", "--script", script, "--pairs", 1, "--json"]
    code, out, err = compare(*SIDES, *words, "-o", tmp_path / "sampled")
    assert code == 0 and "differ by chance" in json.loads(out)["warning"]
    assert err.startswith("warning: ") and "differ by chance" in err
    sides = ["--a", "max_tokens=60", "--b", "max_tokens=60", "speed=1.2"]
    code, out, err = compare(*sides, *words, "-o", tmp_path / "speed")
    assert code == 0 and json.loads(out)["warning"] is None and err == ""


def test_the_command_offers_other_kinds_of_comparison(compare, script, tmp_path):
    code, *_ = compare(*SIDES, "--abx", "--script", script, "--pairs", 1, "-o", tmp_path / "abx")
    assert code == 0 and len(list((tmp_path / "abx" / "clips").iterdir())) == 3
    third = ["--c", "temperature=1.2", "max_tokens=60"]
    code, out, _ = compare(*SIDES, *third, "--script", script, "--pairs", 1, "-o", tmp_path / "r")
    assert code == 0 and "3 of 3 pairs" in out


@pytest.mark.parametrize(
    "words, message",
    [
        (["-o", "OUT"], "both sides"),
        ([*SIDES, "-o", "OUT"], "--script FILE"),
        ([*SIDES, "--script", "SCRIPT"], "-o DIR"),
        ([*SIDES, "--script", "nowhere.txt", "-o", "OUT"], "nowhere.txt"),
        ([*SIDES, "--script", "SCRIPT", "--pairs", "0", "-o", "OUT"], "number of pairs"),
        (
            [*SIDES, "--script", "SCRIPT", "--script", "SCRIPT", "--pairs", "3", "-o", "OUT"],
            ", 2, ",
        ),
        (["--a", "hot", "--b", "top_k=3", "--script", "SCRIPT", "-o", "OUT"], "NAME=VALUE"),
        (["--a", "heat=1", "--b", "top_k=3", "--script", "SCRIPT", "-o", "OUT"], "heat"),
        (["--a", "top_k=3", "--b", "top_k=3", "--script", "SCRIPT", "-o", "OUT"], "identical"),
        (["--a", "top_k=0", "--b", "top_k=3", "--script", "SCRIPT", "-o", "OUT"], "top_k must be"),
        (["--a", "top_k=2", "--c", "top_k=3", "--script", "SCRIPT", "-o", "OUT"], "both sides"),
        ([*SIDES, "--d", "top_k=3", "--script", "SCRIPT", "-o", "OUT"], "gap"),
        (["--score", "OUT"], "plan.json"),
        (["--score", "OUT", *SIDES], "takes no other options"),
        ([*SIDES, "--script", "SCRIPT", "-o", "OUT", "--reveal"], "with --score"),
        ([*SIDES, "--script", "SCRIPT", "-o", "OUT", "--csv", "x.csv"], "with --score"),
        (["--rebuild", "OUT", "-o", "OUT"], "is missing"),
        (["--pairs", "many"], "invalid int"),
        ([*SIDES, "--script", "SCRIPT", "-o", "OUT", "--zip", "OUT/no/x.zip"], "does not exist"),
    ],
)
def test_mistakes_are_told_in_one_line(compare, script, tmp_path, words, message):
    places = {"OUT": str(tmp_path / "out"), "SCRIPT": script}
    words = [word.replace("OUT/", f"{tmp_path}/out/") for word in words]
    code, out, err = compare(*(places.get(word, word) for word in words))
    assert code == 2 and out == ""
    assert err.count("\n") == 1 and err.startswith("error: ") and message in err
    assert not (tmp_path / "out").exists()


def test_a_comparison_is_not_overwritten(compare, script, tmp_path):
    words = [*SIDES, "--script", script, "--pairs", 1, "-o", tmp_path / "out"]
    assert compare(*words)[0] == 0
    code, _, err = compare(*words)
    assert code == 2 and "already holds a comparison" in err


def test_normalise_holds_for_all_sides(compare, script, tmp_path):
    folder = tmp_path / "out"
    words = [*SIDES, "--script", script, "--pairs", 1, "--normalise", "-o", folder, "--json"]
    assert compare(*words)[0] == 0
    settings = Comparison.open(folder).plan.settings
    assert [setting.normalise for setting in settings] == [True, True]
    assert all(setting.request(NANO, "It’s", 1, None, NO_VOICES).normalise for setting in settings)
    code, _, err = compare("--normalise", "-o", folder)
    assert code == 2 and "already holds a comparison" in err


def test_clips_that_exist_can_be_compared(compare, tmp_path):
    for system in ("alpha", "beta"):
        (tmp_path / "clips" / system).mkdir(parents=True)
        wave = np.random.default_rng(len(system)).normal(0, 0.1, 16_000)
        soundfile.write(tmp_path / "clips" / system / "001.flac", wave, 16_000)
    words = ["--clips", tmp_path / "clips", "-o", tmp_path / "out"]
    code, _, err = compare(*words, "--pairs", 2)
    assert code == 2 and "leave out the sides" in err
    code, out, err = compare(*words, "--json")
    assert code == 0 and not err and json.loads(out)["differences"] == {"system": ["alpha", "beta"]}
    code, _, err = compare("--rebuild", tmp_path / "out" / "plan.json", "-o", tmp_path / "again")
    assert code == 2 and "were uploaded" in err

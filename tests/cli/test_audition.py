"""`audition`: several takes of one script."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dia_demo.audio import read_metadata
from dia_demo.prompt.codes import unpack_codes
from tests.helpers.cli import SCRIPT, error_line


@pytest.fixture
def audition(cli, folder):
    def run(*arguments):
        usual = ("--model", folder, "--threads", 1, "--max-tokens", 60, "--seed", 1)
        return cli("audition", SCRIPT, *usual, "-o", "takes", *arguments)

    return run


def test_each_take_is_that_of_say_with_its_seed(audition, say):
    code, out, _ = audition("-n", 3, "--json")
    made = json.loads(out)
    assert code == 0 and [take["seed"] for take in made] == [1, 2, 3]
    assert [Path(take["file"]).name[:2] for take in made] == ["1_", "2_", "3_"]
    for take in made:
        say(SCRIPT, "--seed", take["seed"], "--codes", "alone.npy")
        codes = unpack_codes(read_metadata(take["file"])["codes"])
        assert np.array_equal(codes, np.load("alone.npy"))


def test_the_files_have_the_chosen_format(audition):
    code, out, _ = audition("-n", 2, "--format", "flac")
    files = sorted(Path("takes").iterdir())
    assert code == 0 and [soundfile.info(str(file)).format for file in files] == ["FLAC", "FLAC"]
    assert out.count("s of audio, seed") == 2 and str(files[0]) in out


def test_seeds_after_the_last_one_begin_again(audition):
    code, out, _ = audition("-n", 2, "--seed", 2**32 - 1, "--json")
    assert code == 0 and [take["seed"] for take in json.loads(out)] == [2**32 - 1, 0]


@pytest.mark.parametrize("count", [1, 9])
def test_there_are_two_to_eight_takes(audition, count):
    assert "2 to 8" in error_line(audition("-n", count))


def test_a_folder_that_cannot_be_made_is_refused_first(audition):
    Path("file").write_text("")
    assert "cannot be created" in error_line(audition("-o", "file/takes"))

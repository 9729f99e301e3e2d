"""A person's list of pronunciations: what it contains, where it applies, where it is kept."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from dia_demo.errors import InputError
from dia_demo.services.earlier.take_metadata import read_take
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request
from dia_demo.text.normaliser import normalise, read_as_written
from dia_demo.text.pronunciations import MAX_ENTRIES, Pronunciations, merge_lists
from tests.helpers.models.known import NANO

LIST = """
# People
Nguyen = win      # the family
nginx = engine X
LaTeX = lay tech
SQL = sequel
New York = the city
O'Brien => oh bryan
"""


@pytest.fixture(scope="module")
def listed():
    return Pronunciations.parse(LIST)


@pytest.fixture(scope="module")
def synthesis():
    return Synthesis(Settings())


@pytest.mark.parametrize(
    "written, read",
    [
        ("Nguyen and NGUYEN run NGINX.", "win and win run engine X."),
        ("I write LaTeX in latex gloves.", "I write lay tech in latex gloves."),
        ("SQL is not MySQLite.", "sequel is not MySQLite."),
        ("New  York, by O’Brien", "the city, by oh bryan"),
        ("Nguyen's Nguyens", "win's Nguyens"),
    ],
)
def test_whole_words_are_said_as_the_list_says(listed, written, read):
    assert read_as_written(f"[S1] {written}", listed).text == f"[S1] {read}"


def test_an_entry_wins_over_the_rules(listed):
    reading = normalise("[S1] SQL costs $5 at 7pm, Nguyen.", True, listed)
    assert reading.text == "[S1] sequel costs five dollars at seven pee em, win."
    jif = Pronunciations.parse("GIF = JIF\n5G = five gee")
    assert normalise("[S1] A GIF on 5G.", pronunciations=jif).text == "[S1] A jif on five gee."


def test_tags_and_sounds_are_no_words():
    listed = Pronunciations.parse("S1 = one\nlaughs = ha ha")
    script = "[S1] He laughs. (laughs) [S2] S1."
    assert read_as_written(script, listed).text == "[S1] He ha ha. (laughs) [S2] one."


@pytest.mark.parametrize(
    "text, words",
    [
        ("nginx", "line 1: write “word = how to say it”"),
        ("a = b\n\n= b", "line 3: write"),
        ("a = ", "line 1: write"),
        ("a = [S2] b", "line 1: “[” is not allowed"),
        ("# fine\nSQL = b\nSQL = c", "line 3: “SQL” is already listed, in line 2"),
        ("Ann = b\nann = c", "line 2: “ann” is already listed, in line 1"),
        (f"{'x' * 61} = b", "has 61 characters, and at most 60 are allowed"),
        (f"b = {'x' * 121}", "has 121 characters, and at most 120 are allowed"),
        ("\n".join(f"w{n} = b" for n in range(MAX_ENTRIES + 1)), "line 201: at most 200 words"),
        ("x" * 50_000, "50,000 characters, and at most 40,000"),
    ],
)
def test_a_bad_list_is_refused_in_one_sentence(text, words):
    with pytest.raises(InputError) as error:
        Pronunciations.parse(text)
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name, text",
    [
        ("list.txt", "# mine\nnginx = engine X\nNguyen = win\n"),
        ("list.csv", '# mine\nnginx,engine X\n"Nguyen","win"\n'),
        ("list.json", json.dumps({"nginx": "engine X", "Nguyen": "win"})),
    ],
)
def test_a_list_is_read_from_a_file(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8-sig")
    listed = Pronunciations.read(path)
    assert listed.entries == (("nginx", "engine X"), ("Nguyen", "win"))
    assert Pronunciations.parse(listed.text) == listed


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("list.txt", b"nginx engine", "list.txt: Pronunciations, line 1: write"),
        ("list.txt", b"\xff\xfe\x00", "is not UTF-8 text"),
        ("list.csv", b"a,b\nc\n", "line 2: write two columns"),
        ("list.json", b'{"a": 1}', "how to say it"),
        ("list.json", b'{\n"a"', "line 2: this is not valid JSON"),
        (None, b"", "cannot be read"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, name, content, words):
    path = tmp_path / (name or "missing.txt")
    if name:
        path.write_bytes(content)
    with pytest.raises(InputError) as error:
        Pronunciations.read(path)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_the_checker_shows_what_is_read(synthesis, listed):
    report = NANO.check("[S1] Hello, Nguyen. [S2] Hi. [S1]", 400, pronunciations=listed)
    assert report.reading.text == "[S1] Hello, win. [S2] Hi. [S1]"


def test_a_take_keeps_its_list_and_is_made_with_it(synthesis, listed, tmp_path):
    info = synthesis.models["nano"]
    params = replace(info.config.defaults, max_tokens=40, seed=5)
    request = Request("[S1] Hello, Nguyen.", params, info, pronunciations=listed)
    assert request.encode() == b"\x01 Hello, win."
    *_, last = synthesis.stream(request, threading.Event())
    take = synthesis.take(request, last.result)
    path = take.save(tmp_path / "take.wav")
    restored = read_take(path)["pronunciations"]
    assert Pronunciations.parse(restored) == listed


@pytest.mark.parametrize(
    "own, of_take, result, added, set_aside",
    [
        ("", "gif = jif", "gif = jif", ["gif"], []),
        ("gif = jif # mine", "gif = jif", "gif = jif # mine", [], []),
        ("nginx = engine X", "", "nginx = engine X", [], []),
        ("gif = jif\n# own\nSQL = sequel", "", "# gif = jif\n# own\nSQL = sequel", [], ["gif"]),
        ("gif = jif", "gif = gift", "# gif = jif\ngif = gift", ["gif"], ["gif"]),
        ("no entry", "SQL = sequel", "no entry", [], []),
    ],
)
def test_a_restored_list_says_a_script_as_the_take_and_loses_nothing(
    own, of_take, result, added, set_aside
):
    script = "[S1] A gif."
    assert merge_lists(own, Pronunciations.parse(of_take), script) == (result, added, set_aside)
    for line in own.splitlines():
        assert line in result

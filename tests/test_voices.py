"""The voices by name: what a seed draws from the embedded voice's table, and what is no table."""

from collections import Counter
from copy import deepcopy
from itertools import product
from math import dist

import pytest

from dia_demo.checkpoint_config import parse_model_config, read_model_config
from dia_demo.errors import InputError
from dia_demo.untrusted import read_json
from dia_demo.voices import parse_voices
from tests.helpers.models.known import EMBEDDED_FOLDER

RAW = read_json(EMBEDDED_FOLDER / "config.json")
TABLE = read_model_config(EMBEDDED_FOLDER).voices
SEEDS = range(20_000)


def changed(**entries):
    """The table with some of its entries replaced."""
    return parse_voices({**RAW["voices"], **entries}, 4, 256, 8, "config.json")


def test_the_two_voices_of_a_seed_are_apart_in_pitch_and_envelope():
    for seed in SEEDS:
        one, two = TABLE.draw(seed)
        assert abs(one.semitones - two.semitones) >= 3
        assert dist(one.envelope, two.envelope) >= 0.5


def test_all_voices_that_seeds_choose_come_up_and_all_pairs_are_equally_likely():
    drawn = Counter((one.name, two.name) for one, two in map(TABLE.draw, SEEDS))
    pairs = Counter((one.name, two.name) for one, two in TABLE.pairs)
    assert set(drawn) == set(pairs)
    assert {pair[0] for pair in drawn} == {voice.name for voice in TABLE.voices if voice.is_drawn}
    assert {pair[1] for pair in drawn} == {
        voice.name for voice in TABLE.voices if voice.is_drawn and not voice.opens
    }
    for pair, count in drawn.items():
        expected = len(SEEDS) * pairs[pair] / pairs.total()
        assert 0.5 * expected < count < 1.6 * expected, pair


def test_a_voice_that_opens_is_that_of_the_first_speaker():
    entries = [
        {"name": name, "mark": mark, "semitones": 3 * mark, "envelope": [mark]}
        for mark, name in enumerate("abcd")
    ]
    before = changed(table=entries)
    entries[1]["opens"] = True
    table = changed(table=entries)
    for seed in range(40):
        names = ["".join(voice.name for voice in each.draw(seed)) for each in (before, table)]
        assert names[1] == (names[0][::-1] if names[0][1] == "b" else names[0])
    one, two = table.draw(3, one=table.find("a"))
    assert one.name == "a" and two.name in "bcd", "what a person chose stays"


def test_a_voice_that_opens_is_not_drawn_for_s2_beside_a_chosen_voice_or_a_prompt():
    opening = {voice.name for voice in TABLE.voices if voice.opens}
    drawn: dict[int, set[str]] = {1: set(), 2: set()}
    for voice, seed in product(TABLE.voices, range(100)):
        drawn[1].add(TABLE.draw(seed, two=voice)[0].name)
        drawn[2].add(TABLE.draw(seed, one=voice)[1].name)
        for speaker, names in drawn.items():
            names.add(TABLE.draw_apart_from(seed, voice.semitones, speaker).name)
    assert opening and opening <= drawn[1] and not opening & drawn[2]


def test_a_seed_draws_the_same_voices_on_every_machine():
    entries = [
        {"name": name, "mark": mark, "semitones": 3 * mark, "envelope": [mark]}
        for mark, name in enumerate("abcd")
    ]
    table = changed(table=entries)
    drawn = [table.draw(seed) for seed in (0, 1, 2, 2**32 - 1)]
    assert ["".join(voice.name for voice in pair) for pair in drawn] == ["db", "ac", "dc", "cb"]


def test_a_voice_left_out_of_the_table_is_never_drawn():
    rest = RAW["voices"]["table"][:-1]
    table = changed(table=rest)
    assert {voice.name for pair in table.pairs for voice in pair} == {
        one["name"] for one in rest if one.get("drawn", True)
    }


def test_a_voice_can_be_known_without_being_drawn():
    entries = deepcopy(RAW["voices"]["table"])
    entries[-1]["drawn"] = False
    table, name = changed(table=entries), entries[-1]["name"]
    assert name in {voice.name for voice in table.voices}
    assert name not in {voice.name for pair in table.pairs for voice in pair}


def test_dia_has_no_voices_by_name():
    raw = {key: value for key, value in RAW.items() if key != "voices"}
    assert parse_model_config(raw).voices is None


@pytest.mark.parametrize(
    "key, value",
    [
        ("table", []),
        ("table", "all"),
        ("table", RAW["voices"]["table"] * 2),
        ("table", [{"name": "one", "mark": 1}]),
        ("turn_start", []),
        ("turn_start", [[1, 2, 3]]),
        ("turn_start", [[1, 2, 3, 256]]),
        ("turn_start", [[1, 2, 3, 4]] * 21),
        ("silence", [1, 2, 3]),
        ("silence", "quiet"),
        ("quiet", []),
        ("quiet", [[1]] * 5),
        ("quiet", [[256]]),
        ("semitones_apart", "far"),
        ("semitones_apart", 100),
        ("envelopes_apart", float("nan")),
        ("text_head", 8),
        ("text_head", -1),
        ("text_head", None),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_the_file(key, value):
    with pytest.raises(InputError, match=r"^config\.json: "):
        changed(**{key: value})


@pytest.mark.parametrize(
    "key, value",
    [
        ("name", ""),
        ("name", "a\nb"),
        ("name", "a" * 51),
        ("name", 5),
        ("mark", -1),
        ("mark", 256),
        ("mark", True),
        ("drawn", "no"),
        ("semitones", float("inf")),
        ("envelope", [0.1]),
        ("envelope", ["a", "b"]),
        ("spectrum", [0.1]),
        ("spectrum", ["a"] * 20),
        ("ratios", 5),
        ("ratios", "AAAA"),
        ("ratios", "Ärger"),
    ],
)
def test_a_voice_that_cannot_be_used_is_refused_with_the_file(key, value):
    table = deepcopy(RAW["voices"]["table"])
    table[0][key] = value
    with pytest.raises(InputError, match=r"^config\.json: "):
        changed(table=table)


def test_voices_need_the_last_channels_delay_to_be_the_longest():
    with pytest.raises(InputError, match="longest delay"):
        parse_model_config({**RAW, "delay_pattern": [0, 1, 3, 2]})

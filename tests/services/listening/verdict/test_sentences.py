"""Results in words: settings by their values, chance as a frequency."""

from __future__ import annotations

import pytest

from dia_demo.config import GenerationParams, RuntimeConfig
from dia_demo.services.listening.plan.names import setting_names
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.listening.verdict import stats
from dia_demo.services.listening.verdict.sentences import (
    abx_sentence,
    chance_clause,
    how_often,
    preference_sentence,
)

NAMES = ("temperature 0.2", "temperature 1.0")


def told(first: int, second: int, ties: int = 0) -> str:
    """The sentence where each script has one vote."""
    leads = [1] * first + [-1] * second + [0] * ties
    return preference_sentence(NAMES, (first, second), ties, leads)


def test_a_result_names_the_value_that_was_chosen():
    assert told(2, 4) == (
        "No clear preference: temperature 1.0 was chosen in 4 of 6 pairs, which chance does two "
        "times in three."
    )


def test_a_clear_preference_is_called_so():
    assert told(10, 2) == (
        "Clear preference: temperature 0.2 was chosen in 10 of 12 pairs, which chance alone does "
        "only one time in 26."
    )


@pytest.mark.parametrize(
    "counts, sentence",
    [
        ((3, 3), "No preference: temperature 0.2 and temperature 1.0 were each chosen in 3 of 6"),
        ((3, 4), "temperature 1.0 was chosen in 4 of 7 pairs, which is what chance gives."),
        ((0, 3), "Too few scripts to tell: temperature 1.0 was chosen in 3 of 3 pairs. Only 3"),
        ((4, 2, 2), "In 2 more pairs no difference was heard."),
        ((0, 0, 6), "No difference was heard in any of 6 pairs."),
        ((0, 0, 1), "No difference was heard."),
        ((0, 0, 0), "No pair was judged."),
    ],
)
def test_every_outcome_has_its_sentence(counts, sentence):
    assert sentence in told(*counts)


def test_scripts_are_named_where_each_has_several_votes():
    sentence = preference_sentence(NAMES, (14, 6), 0, [1] * 8 + [-1] * 2)
    assert "chosen in 14 of 20 pairs and is ahead on 8 of 10 scripts, which chance does" in sentence


@pytest.mark.parametrize(
    "p, words",
    [
        (0.688, "two times in three"),
        (0.5, "half the time"),
        (0.34, "one time in three"),
        (0.109, "one time in nine"),
        (0.0391, "one time in 26"),
        (1e-6, "less than one time in 1,000"),
    ],
)
def test_chance_is_told_as_a_frequency(p, words):
    assert how_often(p) == words


def test_the_words_are_never_far_from_the_figure():
    """Every p that up to 40 scripts can give, against the frequency that is named."""
    numbers = dict(
        zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True)
    )
    for n in range(1, 41):
        for k in range(n + 1):
            p = stats.binomial_two_sided(k, n)
            words = how_often(p).split()
            if p < 0.001 or chance_clause(p).startswith("which is what"):
                continue
            if words == ["half", "the", "time"]:
                named = 0.5
            else:
                last = words[-1]
                named = numbers[words[0]] / (numbers.get(last) or int(last))
            assert abs(named - p) < 0.08 and 0.7 < named / p < 1.4, (k, n, p, words)


def test_an_abx_result_says_what_guessing_gives():
    assert abx_sentence(4, 6, 6, True) == (
        "No audible difference was shown: 4 of 6 answers were right, which guessing does one time "
        "in three."
    )
    assert "audible on this script: 6 of 6" in abx_sentence(6, 6, 1, True)
    assert "At least 5 are needed" in abx_sentence(3, 3, 3, True)


# -- names -------------------------------------------------------------------------------------

BASE = Setting(GenerationParams(), RuntimeConfig(model="nano"))


@pytest.mark.parametrize(
    "changes, names",
    [
        ([{"temperature": 0.2}, {"temperature": 1.0}], ("temperature 0.2", "temperature 1.0")),
        ([{"cfg_scale": 2}, {"cfg_scale": 4}], ("CFG scale 2.0", "CFG scale 4.0")),
        ([{"precision": "int8"}, {"precision": "int4"}], ("precision int8", "precision int4")),
        (
            [{}, {"model": "nari-labs/Dia-1.6B-0626", "temperature": 1.8}],
            ("model nano", "model Dia-1.6B-0626"),
        ),
        (
            [{"model": "/a/voice"}, {"model": "/b/voice"}],
            ("model /a/voice", "model /b/voice"),
        ),
        (
            [{"temperature": 0.2, "top_k": 3}, {"temperature": 1.0, "top_k": 9}],
            ("temperature 0.2, top-k 3", "temperature 1.0, top-k 9"),
        ),
        ([{"normalise": "no"}, {"normalise": "yes"}], ("text as written", "text in words")),
        ([{}, {}], ("the first side", "the second side")),
    ],
)
def test_settings_are_named_by_what_differs(changes, names):
    assert setting_names([BASE.change(change) for change in changes]) == names


def test_names_stay_apart_where_many_settings_differ():
    common = {"temperature": 1.0, "cfg_scale": 2.0, "top_p": 0.5}
    settings = [
        BASE,
        BASE.change(common | {"top_k": 3}),
        BASE.change(common | {"top_k": 9}),
    ]
    assert len(set(setting_names(settings))) == 3

"""Settings: a value out of range is refused by field, value and range."""

from dataclasses import fields, replace

import pytest

from dia_demo.config import DecoderConfig, GenerationParams, ModelConfig, Range, RuntimeConfig
from dia_demo.errors import InputError

# Parameters of a row


CONFIG = ModelConfig(
    decoder=DecoderConfig(vocab_size=70, max_positions=200, num_channels=4, eos=64, pad=65, bos=66),
    delay_pattern=(0, 2, 3, 5),
    defaults=GenerationParams(max_tokens=200),
)
LIMITS = {
    "temperature": (0.0, 5.0),
    "cfg_scale": (0.0, 20.0),
    "top_p": (0.01, 1.0),
    "top_k": (1, 70),
    "max_tokens": (7, 200),
    "seed": (0, 2**32 - 1),
    "text_temperature": (0.0, 5.0),
}


def test_both_ends_of_every_range_are_allowed():
    assert LIMITS.keys() == {field.name for field in fields(GenerationParams)}
    for name, ends in LIMITS.items():
        for end in ends:
            params = replace(CONFIG.defaults, **{name: end}).check(CONFIG)
            assert getattr(params, name) == end


@pytest.mark.parametrize("name", LIMITS)
def test_an_out_of_range_value_is_refused_with_its_range(name):
    low, high = LIMITS[name]
    step = 1 if isinstance(low, int) else 0.01
    for value in (low - step, high + step):
        said = param_refusal(name, value)
        assert name in said and repr(value) in said
        assert f"{low:.10g}" in said and f"{high:.10g}" in said


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_no_number_is_refused(name):
    for value in (float("nan"), float("inf"), -float("inf"), True, "1", None, [1]):
        said = param_refusal(name, value)
        assert name in said and repr(value) in said


@pytest.mark.parametrize("name", ["top_k", "max_tokens", "seed"])
def test_whole_numbers_are_whole(name):
    """A slider hands over 45.0, which is 45; nothing is rounded behind anybody's back."""
    params = replace(CONFIG.defaults, **{name: 45.0}).check(CONFIG)
    assert getattr(params, name) == 45 and type(getattr(params, name)) is int
    assert "whole" in param_refusal(name, 45.5)


def param_refusal(name, value) -> str:
    with pytest.raises(InputError) as caught:
        replace(CONFIG.defaults, **{name: value}).check(CONFIG)
    return str(caught.value)


def test_a_large_range_is_told_in_full():
    """%g once turned the largest seed into 4.29497e+09, which nobody can type."""
    with pytest.raises(InputError, match="4294967295"):
        Range(0, 2**32 - 1, whole=True).check("seed", -1)


def test_shortest_max_tokens_holds_exactly_one_frame():
    assert CONFIG.frames_within(CONFIG.shortest_max_tokens) == 1
    assert CONFIG.frames_within(CONFIG.shortest_max_tokens + 9, prompt_frames=9) == 1


# How a model runs


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("precision", "float16"),
        ("precision", None),
        ("device", "tpu"),
        ("threads", 0),
        ("threads", 1.5),
        ("threads", True),
        ("threads", "2"),
    ],
)
def test_an_impossible_runtime_is_refused(name, value):
    with pytest.raises(InputError) as caught:
        RuntimeConfig(**{name: value})
    assert name in str(caught.value) and repr(value) in str(caught.value)

"""Settings: what a checkpoint says is read as it is, or refused by field, value and remedy."""

import json
from copy import deepcopy

import pytest

from dia_demo.checkpoint_config import parse_model_config, read_model_config
from dia_demo.config import GenerationParams, ModelConfig
from dia_demo.errors import InputError

ENCODER = {
    "head_dim": 16,
    "hidden_act": "silu",
    "hidden_size": 40,
    "intermediate_size": 72,
    "max_position_embeddings": 300,
    "model_type": "dia_encoder",
    "norm_eps": 1e-6,
    "num_attention_heads": 6,
    "num_hidden_layers": 3,
    "num_key_value_heads": 3,
    "rope_theta": 5000.0,
    "vocab_size": 260,
}
DECODER = {
    "cross_head_dim": 10,
    "cross_hidden_size": 40,
    "cross_num_attention_heads": 4,
    "cross_num_key_value_heads": 2,
    "head_dim": 12,
    "hidden_act": "silu",
    "hidden_size": 56,
    "intermediate_size": 88,
    "max_position_embeddings": 200,
    "model_type": "dia_decoder",
    "norm_eps": 1e-4,
    "num_attention_heads": 8,
    "num_channels": 4,
    "num_hidden_layers": 5,
    "num_key_value_heads": 2,
    "rope_theta": 20000.0,
    "vocab_size": 70,
}
SPECIALS = {"eos_token_id": 64, "pad_token_id": 65, "bos_token_id": 66}
# As nari-labs/Dia-1.6B-0626 lays it out, with no size at its default.
LAYOUT_0626 = {
    "architectures": ["DiaForConditionalGeneration"],
    "model_type": "dia",
    "encoder_config": ENCODER,
    "decoder_config": DECODER,
    "delay_pattern": [0, 2, 3, 5],
    "norm_eps": 1e-5,
    "src_vocab_size": 128,
    "is_encoder_decoder": True,
} | SPECIALS
LAYOUT_APRIL = {
    "model": {"encoder": {"n_layer": 12}, "decoder": {"n_layer": 18}},
    "training": {"dtype": "bfloat16"},
    "data": {"channels": 9, "delay_pattern": [0, 8, 9, 10, 11, 12, 13, 14, 15]},
}


def changed(path: str, value) -> dict:
    """The 0626 layout with one value replaced; a dot descends into a section."""
    raw = deepcopy(LAYOUT_0626)
    *sections, key = path.split(".")
    place = raw
    for section in sections:
        place = place[section]
    place[key] = value
    return raw


def refusal(raw: dict) -> str:
    with pytest.raises(InputError) as caught:
        parse_model_config(raw, "some/config.json")
    assert "some/config.json" in str(caught.value)
    return str(caught.value)


def test_every_size_reaches_its_field():
    """No two sizes are alike here, so one read in another's place shows."""
    config = parse_model_config(LAYOUT_0626)
    encoder, decoder = config.encoder, config.decoder
    assert (encoder.num_layers, encoder.hidden_size, encoder.num_heads) == (3, 40, 6)
    assert (encoder.num_kv_heads, encoder.head_dim, encoder.intermediate_size) == (3, 16, 72)
    assert (encoder.vocab_size, encoder.max_positions) == (260, 300)
    assert (encoder.norm_eps, encoder.rope_theta) == (1e-6, 5000.0)
    assert (decoder.num_layers, decoder.hidden_size, decoder.num_heads) == (5, 56, 8)
    assert (decoder.num_kv_heads, decoder.head_dim, decoder.intermediate_size) == (2, 12, 88)
    assert (decoder.cross_num_heads, decoder.cross_num_kv_heads) == (4, 2)
    assert (decoder.cross_head_dim, decoder.vocab_size, decoder.max_positions) == (10, 70, 200)
    assert (decoder.num_channels, decoder.norm_eps, decoder.rope_theta) == (4, 1e-4, 20000.0)
    assert (decoder.eos, decoder.pad, decoder.bos) == (64, 65, 66)
    assert config.delay_pattern == (0, 2, 3, 5) and config.max_delay == 5
    assert config.defaults.max_tokens == 200


def test_transformers_layout_is_the_same_config():
    """transformers 5 moves theta into rope_parameters and the special codes into the decoder."""
    raw = deepcopy(LAYOUT_0626)
    for section in ("encoder_config", "decoder_config"):
        theta = raw[section].pop("rope_theta")
        raw[section]["rope_parameters"] = {"rope_type": "default", "rope_theta": theta}
    for key in SPECIALS:
        raw["decoder_config"][key] = raw.pop(key)
    assert parse_model_config(raw) == parse_model_config(LAYOUT_0626)


def test_what_a_config_leaves_out_is_dia_1_6b():
    config = parse_model_config({"model_type": "dia", "encoder_config": {}, "decoder_config": {}})
    assert config == ModelConfig()


def test_norm_eps_of_the_top_level_stands_in_for_a_sections_own():
    raw = changed("norm_eps", 1e-3)
    del raw["encoder_config"]["norm_eps"]
    config = parse_model_config(raw)
    assert (config.encoder.norm_eps, config.decoder.norm_eps) == (1e-3, 1e-4)


def test_april_layout_is_refused_with_the_remedy():
    said = refusal(LAYOUT_APRIL)
    assert "April 2025" in said and "nari-labs/Dia-1.6B-0626" in said


@pytest.mark.parametrize("raw", [{"model_type": "llama"}, {}, {"model_type": "dia"}])
def test_other_models_are_refused(raw):
    assert "not a Dia checkpoint" in refusal(raw)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("decoder_config.cross_hidden_size", 48, "cross_hidden_size"),
        ("delay_pattern", [0, 1, 2], "delay_pattern and num_channels"),
        ("delay_pattern", [1, 2, 3, 4], "start with 0"),
        ("delay_pattern", [0, 2, -3, 5], "delay_pattern"),
        ("encoder_config.num_key_value_heads", 4, "multiple"),
        ("decoder_config.num_key_value_heads", 3, "multiple"),
        ("decoder_config.cross_num_key_value_heads", 3, "multiple"),
        ("encoder_config.head_dim", 15, "even"),
        ("decoder_config.head_dim", 13, "even"),
        ("eos_token_id", 66, "eos, pad and bos"),
        ("pad_token_id", 70, "eos, pad and bos"),
        ("bos_token_id", 63, "eos, pad and bos"),
        ("encoder_config.vocab_size", 255, "256 bytes"),
        ("decoder_config.max_position_embeddings", 6, "no room"),
        ("encoder_config.hidden_act", "gelu", "gelu"),
        ("decoder_config.rope_parameters", {"rope_type": "yarn"}, "yarn"),
        ("decoder_config.rope_scaling", {"rope_type": "linear", "factor": 2.0}, "linear"),
    ],
)
def test_sizes_that_contradict_are_refused(path, value, said):
    assert said in refusal(changed(path, value))


SIZE_FIELDS = [
    *(f"encoder_config.{key}" for key, value in ENCODER.items() if type(value) is int),
    *(f"decoder_config.{key}" for key, value in DECODER.items() if type(value) is int),
    *SPECIALS,
]


@pytest.mark.parametrize("path", SIZE_FIELDS)
def test_a_size_that_is_no_size_is_refused(path):
    """0 and empty values once fell back to Dia-1.6B's own size without a word."""
    for value in (0, -1, 1.5, "7", True, [], float("nan")):
        said = refusal(changed(path, value))
        assert path.rpartition(".")[2] in said


@pytest.mark.parametrize("path", ["delay_pattern", "encoder_config", "decoder_config"])
def test_a_part_of_another_type_is_refused(path):
    for value in (5, "7", True, [0, "1"], [0, 1.5], [[0]]):
        assert path in refusal(changed(path, value))


@pytest.mark.parametrize("part", ["encoder_config", "decoder_config"])
@pytest.mark.parametrize("key", ["norm_eps", "rope_theta"])
def test_a_number_that_cannot_be_computed_with_is_refused(part, key):
    for value in (0, -1e-5, "1e-5", True, [], float("nan"), float("inf")):
        assert key in refusal(changed(f"{part}.{key}", value))


# Files


def write_config(folder, config=LAYOUT_0626, generation=None):
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text)
    if generation is not None:
        text = generation if isinstance(generation, str) else json.dumps(generation)
        (folder / "generation_config.json").write_text(text)
    return folder


def folder_refusal(folder) -> str:
    with pytest.raises(InputError) as caught:
        read_model_config(folder)
    return str(caught.value)


def test_defaults_are_the_checkpoints_own(tmp_path):
    generation = {
        "temperature": 1.8,
        "guidance_scale": 2.5,
        "top_p": 0.9,
        "top_k": 50,
        "max_length": 150,
        "do_sample": True,
        "decoder_start_token_id": 66,
        "transformers_version": "5.23.0",
    }
    config = read_model_config(write_config(tmp_path, generation=generation))
    assert config.defaults == GenerationParams(1.8, 2.5, 0.9, 50, 150, seed=0)


def test_defaults_without_a_file_are_nari_labs_within_the_models_length(tmp_path):
    config = read_model_config(write_config(tmp_path))
    assert config.defaults == GenerationParams(1.2, 3.0, 0.95, 45, 200, seed=0)


def test_unusable_generation_defaults_are_replaced(tmp_path):
    generation = {"temperature": None, "max_length": 3072}
    config = read_model_config(write_config(tmp_path, generation=generation))
    assert (config.defaults.temperature, config.defaults.max_tokens) == (1.2, 200)


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ("temperature", "temperature", -1),
        ("guidance_scale", "cfg_scale", "3"),
        ("top_p", "top_p", 1.5),
        ("top_k", "top_k", 0),
        ("max_length", "max_tokens", "long"),
        ("max_length", "max_tokens", 3),
    ],
)
def test_the_refusal_of_a_default_says_where_to_find_it(tmp_path, key, name, value):
    said = folder_refusal(write_config(tmp_path, generation={key: value}))
    assert "generation_config.json" in said and name in said and repr(value) in said


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"a": 1} trailing'])
def test_broken_json_names_the_file(tmp_path, file, text):
    write_config(tmp_path)
    (tmp_path / file).write_text(text)
    assert str(tmp_path / file) in folder_refusal(tmp_path)


def test_json_that_is_no_text_names_the_file(tmp_path):
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00{")
    assert "config.json" in folder_refusal(tmp_path)


def test_a_missing_config_is_named(tmp_path):
    assert str(tmp_path / "config.json") in folder_refusal(tmp_path)


DISTILLED = LAYOUT_0626 | {"guidance": "distilled", "guidance_scales": [0, 1, 2.5]}


def test_distilled_guidance_is_read():
    config = parse_model_config(DISTILLED)
    assert config.guidance_scales == (0.0, 1.0, 2.5)
    assert config.cfg_scales == (0.0, 2.5)


def test_the_default_cfg_scale_lies_within_the_distilled_ones():
    assert parse_model_config(DISTILLED).defaults.cfg_scale == 2.5
    assert parse_model_config(LAYOUT_0626).defaults.cfg_scale == 3.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"guidance": "none"}, "guidance must be \"distilled\" or left out, not 'none'"),
        ({"guidance": None}, 'guidance must be "distilled" or left out, not None'),
        ({"guidance": True}, 'guidance must be "distilled" or left out, not True'),
        ({"guidance_scales": None}, "must list 2 to 64 numbers from 0 to 20"),
        ({"guidance_scales": [1]}, "must list 2 to 64 numbers from 0 to 20"),
        ({"guidance_scales": [0, 3, 2]}, "each larger than the one before"),
        ({"guidance_scales": [1, 1]}, "each larger than the one before"),
        ({"guidance_scales": [-1, 1]}, "numbers from 0 to 20"),
        ({"guidance_scales": [0, 21]}, "numbers from 0 to 20"),
        ({"guidance_scales": [0, float("nan")]}, "numbers from 0 to 20"),
        ({"guidance_scales": [0, "3"]}, "must list"),
        ({"guidance_scales": [False, True]}, "must list"),
        ({"guidance_scales": list(range(100))}, "must list"),
        ({"guidance_scales": "0 1 2"}, "must list"),
    ],
    ids=str,
)
def test_wrong_guidance_is_refused_in_words(changed, message):
    with pytest.raises(InputError) as error:
        parse_model_config(DISTILLED | changed)
    assert message in str(error.value)

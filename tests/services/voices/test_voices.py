"""Keeping voices of the embedded model's takes and of recordings, and speaking with them."""

import numpy as np
import pytest

import dia_demo
from dia_demo.audio import read_metadata, write_audio
from dia_demo.errors import InputError
from dia_demo.prompt.voice_file import SUFFIX
from dia_demo.services.voices.keep import keep, keep_take
from tests.helpers.models.known import NANO
from tests.helpers.voices import write_voice

SCRIPT = "[S1] Hello there, how are you? [S2] I am fine, thank you."
ONE = "[S1] Hello there, my name is Anna."


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIA_KEPT", str(tmp_path_factory.mktemp("kept")))
        with dia_demo.load("nano", threads=1) as loaded:
            yield loaded


@pytest.fixture(scope="module")
def anna(model):
    """A take of one speaker, kept as Anna."""
    take = model.generate(ONE, seed=5, voice="rms high")
    model.keep_voice(take, "Anna")
    return take


# Voices by name


def test_voices_by_name_are_those_that_are_heard(model):
    take = model.generate(SCRIPT, seed=3, voice=("rms deep", "AWB high"))
    assert take.voices == ("rms deep", "awb high")
    assert take.metadata()["chosen_voices"] == ("rms deep", "awb high")


def test_the_speaker_without_a_choice_has_a_voice_that_is_apart(model):
    table = model.info.config.voices
    for voice in table.voices:
        for seed in range(20):
            one, two = table.draw(seed, voice)
            assert one is voice and table.are_apart(one, two) and two.is_drawn
            assert table.draw(seed, None, voice)[1] is voice


def test_a_choice_changes_nothing_for_the_same_voices(model):
    """The seed draws the same numbers, so a take made again by its voices' names is the take."""
    drawn = model.generate(SCRIPT, seed=3)
    named = model.generate(SCRIPT, seed=3, voice=drawn.voices)
    assert np.array_equal(named.codes, drawn.codes)


def test_a_voice_that_does_not_exist_is_refused_with_those_that_do(model, anna):
    with pytest.raises(InputError, match=r"no voice 'Zed'\. There are: Anna, awb"):
        model.generate(SCRIPT, voice="Zed")


# Kept voices


def test_a_kept_voice_is_the_exact_codes_and_words_of_the_take(model, anna):
    voice = model._kept.get("anna")
    assert np.array_equal(voice.codes, anna.codes) and voice.transcript == ONE
    assert voice.model == "nano" and voice.seed == 5
    assert "Anna" in model.voices


def test_a_kept_voice_speaks_what_its_prompt_would(model, anna, tmp_path):
    """A kept voice is a voice prompt of the take's codes."""
    from dia_demo.cli.main import main

    np.save(tmp_path / "anna.npy", anna.codes)
    kept = model.generate("[S1] What a lovely day.", seed=8, voice="Anna")
    arguments = ["--voice-codes", str(tmp_path / "anna.npy"), "--voice-transcript", ONE]
    codes = tmp_path / "codes.npy"
    common = ["--seed", "8", "--threads", "1", "--codes", str(codes)]
    assert main(["say", "[S1] What a lovely day.", *arguments, *common]) == 0
    assert np.array_equal(kept.codes, np.load(codes))


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".mp3", ".opus"])
def test_a_saved_take_has_its_codes_inside(model, anna, tmp_path, suffix):
    voice = keep(anna.save(tmp_path / f"anna{suffix}"), "Anna", model=NANO)
    assert np.array_equal(voice.codes, anna.codes) and voice.codec == model._kept.get("Anna").codec


def test_two_kept_voices_speak_in_one_take(model, anna):
    model.keep_voice(
        model.generate("[S1] I am Ben, hello to you.", seed=6, voice="awb deep"), "Ben"
    )
    take = model.generate(SCRIPT, seed=2, voice=("Anna", "Ben"))
    assert take.voices == (None, None)
    prompt = take.request.voice
    assert prompt.transcript == f"{ONE} [S2] I am Ben, hello to you."
    assert len(prompt.codes) == sum(len(model._kept.get(name).codes) for name in ("Anna", "Ben"))
    mixed = model.generate(SCRIPT, seed=2, voice=("awb", "Ben"))
    assert mixed.voices == ("awb", None) and mixed.request.voice.transcript.startswith("[S2] I am")


def test_a_voice_of_two_speakers_is_for_both(model, anna):
    model.keep_voice(model.generate(SCRIPT, seed=3), "Pair")
    assert model.generate(SCRIPT, seed=4, voice="Pair").voices == (None, None)
    both = model.generate(SCRIPT, seed=4, voice=("Pair", "Pair"))
    assert np.array_equal(both.codes, model.generate(SCRIPT, seed=4, voice="Pair").codes)
    with pytest.raises(InputError, match="Pair has the voices of two speakers"):
        model.generate(SCRIPT, voice=("Pair", "Anna"))
    with pytest.raises(InputError, match="is for both"):
        model.generate(SCRIPT, voice=("awb", "Pair"))
    with pytest.raises(InputError, match="at most 2 voices"):
        model.generate(SCRIPT, voice=("awb", "awb", "awb"))


def test_a_voice_file_is_a_choice_as_well(model, anna, tmp_path):
    file = model._kept.export_file("Anna", tmp_path / "copy")
    assert file.name == f"copy{SUFFIX}"
    theirs = model.generate("[S1] Good morning.", seed=1, voice=str(file))
    assert np.array_equal(
        theirs.codes, model.generate("[S1] Good morning.", seed=1, voice="Anna").codes
    )


def test_a_take_as_the_voice_prompt_has_its_own_codes(model, anna, tmp_path):
    kept = model.generate("[S1] Good morning.", seed=1, voice="Anna")
    for suffix in ".wav", ".mp3":
        file = anna.save(tmp_path / f"anna{suffix}")
        prompted = model.generate("[S1] Good morning.", seed=1, voice_prompt=file)
        assert np.array_equal(prompted.codes, kept.codes)


def test_a_take_that_was_changed_is_a_recording(model, anna, tmp_path):
    file = anna.save(tmp_path / "anna.wav")
    shorter, rate = anna.samples[: -anna.sample_rate // 4], anna.sample_rate
    cut = write_audio(tmp_path / "cut.wav", shorter, rate, anna.metadata())
    metadata = anna.metadata()
    metadata["figures"]["numerics"]["codebooks"] = "0" * 32
    other = write_audio(tmp_path / "other.wav", anna.samples, rate, metadata)
    codes = [
        model.generate(
            "[S1] Good morning.", seed=1, voice_prompt=path, voice_transcript=words
        ).codes.tobytes()
        for path, words in (
            (file, ""),
            (file, f" {ONE}"),
            (file, "[S1] Other words."),
            (cut, ONE),
            (other, ONE),
        )
    ]
    assert codes[0] == codes[1] and codes[0] not in codes[2:]


@pytest.mark.parametrize(
    "damage",
    [
        {"script": 5},
        {"frames_per_second": 0},
        {"frames_per_second": "many"},
        {"speed": []},
        {"codes": "no codes"},
        {"figures": {"finish_reason": "end"}},
        {"figures": {"finish_reason": "end", "sample_rate": 1, "numerics": 1, "model": ""}},
    ],
)
def test_a_damaged_take_is_a_recording(model, anna, tmp_path, damage):
    file = write_audio(tmp_path / "a.wav", anna.samples, anna.sample_rate, anna.metadata() | damage)
    made = model.generate(ONE, seed=1, voice_prompt=file, voice_transcript=ONE)
    assert len(made.codes)


def test_a_voice_of_another_codec_is_refused(model, anna):
    from dataclasses import replace

    stranger = replace(model._kept.get("Anna"), name="Stranger", codec="0" * 32)
    model._kept.add(stranger)
    model._kept.add(replace(stranger, name="Dia2's", codes=np.tile(stranger.codes, 8)))
    for name in "Stranger", "Dia2's":
        with pytest.raises(InputError, match="another codec"):
            model.generate(ONE, voice=name)


def test_a_kept_voice_and_a_voice_prompt_exclude_each_other(model, anna, tmp_path):
    with pytest.raises(InputError, match="not both"):
        model.generate(ONE, voice="Anna", voice_prompt=anna.save(tmp_path / "a.wav"))


# What is kept


def test_a_part_needs_its_own_words(model, anna, tmp_path):
    path = anna.save(tmp_path / "anna.wav")
    with pytest.raises(InputError, match="Enter exactly what is said in this part"):
        keep(path, "Part", model=NANO, part=(0.0, 1.2))
    voice = keep(path, "Part", model=NANO, part=(0.0, 1.2), transcript="Hello there,")
    fps = model.info.frames_per_second
    assert np.array_equal(voice.codes, anna.codes[: round(1.2 * fps)])
    assert voice.transcript == "[S1] Hello there,"
    with pytest.raises(InputError, match="from a time to a later one"):
        keep(path, "Part", model=NANO, part=(1.0, 0.5), transcript="Hello")
    with pytest.raises(InputError, match="0.5 s"):
        keep(path, "Part", model=NANO, part=(0.5, 1.0), transcript="Hello")


def test_a_take_that_was_cut_off_is_not_kept_whole(model):
    take = model.generate("[S1] " + "We talk and talk. " * 9, seed=1, max_tokens=120)
    with pytest.raises(InputError, match="cut off"):
        keep_take(take.metadata(), "Cut")


def test_a_take_of_an_earlier_version_is_refused_with_what_to_do(anna):
    contents = anna.metadata()
    del contents["codes"]
    with pytest.raises(InputError, match="Make a short take"):
        keep_take(contents, "Old")


def test_a_recording_is_encoded_once_and_needs_consent(model, tmp_path):
    path = write_voice(tmp_path / "me.wav", 4.0)
    assert read_metadata(path) is None
    with pytest.raises(InputError, match="consent"):
        keep(path, "Me", model=NANO, transcript="Hello")
    with pytest.raises(InputError, match="Enter exactly"):
        keep(path, "Me", model=NANO, has_consent=True)
    voice = keep(path, "Me", model=NANO, transcript="Hello to you.", has_consent=True)
    assert voice.source == "recording" and "agreed" in voice.consent
    assert 4.0 <= voice.seconds < 4.6 and voice.codec == model._kept.get("Anna").codec
    part = keep(path, "Me", model=NANO, transcript="Hello.", has_consent=True, part=(1.0, 3.0))
    assert 2.0 <= part.seconds < 2.6


def test_noise_is_not_a_voice(model, tmp_path):
    import soundfile

    noise = np.random.default_rng(0).normal(0, 0.1, 3 * 16000)
    soundfile.write(tmp_path / "noise.wav", noise, 16000)
    with pytest.raises(InputError, match="not speech"):
        keep(tmp_path / "noise.wav", "N", model=NANO, transcript="a", has_consent=True)

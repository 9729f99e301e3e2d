"""A notice is heard at the start of every file, and nowhere else: takes stay as they are."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from dia_demo.audio import read_metadata
from dia_demo.disclosure.notice import PAUSE_SECONDS, Notice, seconds_in, tone
from dia_demo.errors import InputError
from dia_demo.prompt.prompt import read_prompt
from dia_demo.services.dialogue.output import (
    joined_samples,
    whole_figures,
    words_in_file,
    write_dialogue,
    write_with_notice,
)
from dia_demo.services.dialogue.plan import make_plan
from dia_demo.services.dialogue.run import DialogueRun
from dia_demo.services.dialogue.single_take import with_words, words_of_take
from dia_demo.services.dialogue.store import DialogueStore
from dia_demo.services.earlier.formats import convert_take
from dia_demo.services.loading.notice import NoticeSound
from dia_demo.services.models import Models
from dia_demo.services.settings import Settings
from dia_demo.services.voices.keep import keep_take
from tests.helpers.dialogues import SCRIPT, judge_by_test
from tests.helpers.synthesis_requests import make_request, say
from tests.helpers.voices import speech_like

RATE = 16000


@pytest.fixture
def tones(synthesis, monkeypatch):
    """The samples of the notice that the service uses."""
    monkeypatch.setattr(synthesis, "notice", NoticeSound(Notice.TONE, {}))
    return synthesis.notice.samples(RATE)


@pytest.fixture
def made(synthesis, tones):
    """A request, its result and its take."""
    request = make_request(synthesis, max_tokens=120)
    result = say(synthesis, request)[-1].result
    return request, result, with_words(synthesis.take(request, result), result)


def read(path) -> np.ndarray:
    return soundfile.read(path, dtype="float32")[0]


def test_the_setting_names_the_allowed_values():
    assert Settings.from_env({}).notice is Notice.OFF
    assert Settings.from_env({"DIA_NOTICE": "spoken"}).notice is Notice.SPOKEN
    with pytest.raises(InputError, match="DIA_NOTICE.*tone"):
        Settings.from_env({"DIA_NOTICE": "loud"})


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_the_tones_are_short_and_audible_and_do_not_click(rate):
    sound = tone(rate)
    assert 0.2 < len(sound) / rate < 1 and 0.05 < np.abs(sound).max() < 0.3
    assert np.abs(sound[[0, -1]]).max() < 0.01 and np.abs(np.diff(sound)).max() < 0.15
    assert len(NoticeSound(Notice.TONE, {}).samples(rate)) > len(sound) + 0.9 * PAUSE_SECONDS * rate
    assert not len(NoticeSound(Notice.OFF, {}).samples(rate))


def test_a_takes_file_begins_with_it_and_the_take_does_not(made, tones, tmp_path):
    _, result, take = made
    samples = read(take.save(tmp_path / "take.wav"))
    np.testing.assert_allclose(samples[: len(tones)], tones, atol=1e-4)
    np.testing.assert_allclose(samples[len(tones) :], take.samples, atol=1e-4)
    assert np.array_equal(take.samples, result.samples)
    assert take.health.seconds == len(take.samples) / RATE
    assert seconds_in(read_metadata(tmp_path / "take.wav")) == pytest.approx(len(tones) / RATE)


def test_another_format_of_a_take_has_it_once(made, tmp_path):
    take = made[2]
    path = convert_take(take.save(tmp_path / "take.wav"), ".flac")
    assert len(read(path)) == len(take.in_file)
    assert seconds_in(read_metadata(path)) == take.notice_seconds


def test_the_times_of_words_are_those_of_the_file(made):
    request, result, take = made
    later = [word.shift(take.notice_seconds) for word in words_of_take(request, result)]
    assert list(take.words) == later and take.metadata()["words"][0]["start"] == later[0].start


def test_a_part_of_the_file_is_kept_without_it(made):
    take = made[2]
    contents = take.metadata()
    without = {name: value for name, value in contents.items() if name != "notice_seconds"}
    shifted = take.notice_seconds, 1.1 + take.notice_seconds
    kept = keep_take(contents, "Anna", shifted, "[S1] A.")
    assert np.array_equal(kept.codes, keep_take(without, "Anna", (0.0, 1.1), "[S1] A.").codes)


def test_a_file_as_voice_prompt_is_read_without_it(made, tmp_path):
    voice = speech_like(3.0)
    take = replace(made[2], samples=voice)
    plain = replace(take, notice=take.notice[:0])
    prompts = [
        read_prompt(each.save(tmp_path / f"{number}.wav"), RATE, 20.0)
        for number, each in enumerate((take, plain))
    ]
    np.testing.assert_array_equal(prompts[0].samples, prompts[1].samples)


def test_a_dialogue_has_it_once_at_the_start_of_each_file(synthesis, tones, tmp_path, monkeypatch):
    judge_by_test(monkeypatch)
    plan = make_plan(make_request(synthesis, SCRIPT, max_tokens=500))
    dialogue = DialogueRun(synthesis, plan, DialogueStore.for_output(tmp_path / "out.wav", plan))
    list(dialogue.stream(threading.Event()))
    write_dialogue(tmp_path / "out.wav", dialogue, whole_figures(dialogue, 2.0, 0.5))
    samples, whole = read(tmp_path / "out.wav"), joined_samples(dialogue)
    np.testing.assert_allclose(samples, np.concatenate([tones, whole]), atol=1e-4)
    words = read_metadata(tmp_path / "out.wav")["words"]
    seconds = len(tones) / RATE
    assert words[0]["start"] == pytest.approx(
        dialogue.timeline().words[0].start + seconds, abs=1e-3
    )
    assert words_in_file(dialogue)[0].start == words[0]["start"]
    part = write_with_notice(tmp_path / "part.wav", dialogue, whole, RATE, {})
    np.testing.assert_allclose(read(part), samples, atol=1e-4)


@pytest.mark.slow
def test_the_sentence_is_said_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path))
    models = Models(["nano"], "nano")
    first = NoticeSound(Notice.SPOKEN, models).samples(RATE)
    assert 1.5 < len(first) / RATE < 5 and len(list(tmp_path.glob("notice-*.wav"))) == 1
    monkeypatch.setattr("dia_demo.services.loading.notice._say", lambda *_: pytest.fail("again"))
    np.testing.assert_array_equal(NoticeSound(Notice.SPOKEN, models).samples(RATE), first)
    assert (
        abs(len(NoticeSound(Notice.SPOKEN, models).samples(44100)) / 44100 - len(first) / RATE)
        < 0.01
    )

"""Voices of a model that has to know when their words are said: of recordings and of its takes."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import soundfile

import dia_demo
from dia_demo import audio
from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Finished, Started
from dia_demo.services.models import find_model
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.services.voices.choice import add_voices
from dia_demo.services.voices.keep import keep
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.services.wording import ESTIMATED, SPREAD
from tests.helpers.models.mimi import write_small_dia2
from tests.helpers.voices import speech_like, write_voice

SCRIPT = "[S1] Hello there, my friend."


@pytest.fixture(scope="module")
def synthesis(tmp_path_factory):
    folder = write_small_dia2(tmp_path_factory.mktemp("voices") / "dia2")
    runtime = RuntimeConfig(model=str(folder), precision="float32", threads=1)
    made = Synthesis(Settings(runtime, takes_folder=folder / "takes"))
    yield made
    made.close()


@pytest.fixture
def recording(tmp_path):
    return write_voice(tmp_path / "me.wav", 4.0)


def request_with(synthesis, voice=None) -> Request:
    info = find_model(synthesis.settings.runtime.model)
    return Request(SCRIPT, info.config.defaults, info, synthesis.settings.runtime, voice=voice)


def made(synthesis, request):
    """The notes of a take and its result."""
    events = list(synthesis.stream(request, threading.Event()))
    (started,) = (event for event in events if isinstance(event, Started))
    assert isinstance(events[-1], Finished), events[-1]
    return started.notes, events[-1].result


def test_a_recording_tells_roughly_when_its_words_are_said(synthesis, recording):
    request = request_with(synthesis, VoicePrompt(recording, transcript="[S1] Well, it is me."))
    notes, result = made(synthesis, request)
    assert ESTIMATED in notes and SPREAD not in notes
    assert [word.word for word in result.words] == ["Hello", "there,", "my", "friend."]


def test_a_kept_recording_has_them_in_its_file(synthesis, recording, tmp_path):
    info = find_model(synthesis.settings.runtime.model)
    voice = keep(recording, "Me", model=info, transcript="Well: it is me.", has_consent=True)
    assert [(word, speaker) for word, _, speaker in voice.words] == [
        ("Well", 1), ("it", 1), ("is", 1), ("me.", 1),
    ]  # fmt: skip
    assert all(0 <= at <= voice.seconds for _, at, _ in voice.words)
    kept = KeptVoices(tmp_path / "kept")
    kept.add(voice)
    request = add_voices(request_with(synthesis), ["Me"], kept)
    notes, _ = made(synthesis, request)
    assert ESTIMATED in notes
    # As an earlier version kept it.
    older = replace(request, voice=replace(request.voice, words=()))
    notes, _ = made(synthesis, older)
    assert SPREAD in notes and ESTIMATED not in notes


def test_an_aligner_finds_the_words_of_english_speech(synthesis, tmp_path):
    pytest.importorskip("pocketsphinx")
    words = "Well, I do not know. Maybe we should ask her first?"
    with dia_demo.load("nano", threads=1) as nano:
        take = nano.generate(f"[S1] {words}", seed=1)
    info = find_model(synthesis.settings.runtime.model)
    soundfile.write(tmp_path / "spoken.wav", take.samples, take.sample_rate)
    spoken = VoicePrompt(tmp_path / "spoken.wav", transcript=words)
    notes, _ = made(synthesis, request_with(synthesis, spoken))
    assert not {ESTIMATED, SPREAD} & set(notes)
    voice = keep(tmp_path / "spoken.wav", "Her", model=info, transcript=words, has_consent=True)
    kept = KeptVoices(tmp_path / "kept")
    kept.add(voice)
    assert kept.get("Her").words == voice.words and kept.get("Her").is_aligned
    request = add_voices(request_with(synthesis), ["Her"], kept)
    notes, _ = made(synthesis, request)
    assert not {ESTIMATED, SPREAD} & set(notes)


def test_a_take_knows_them_exactly(synthesis):
    _, take = made(synthesis, request_with(synthesis))
    voice = VoicePrompt(codes=take.codes, transcript=SCRIPT, words=take.words)
    notes, _ = made(synthesis, request_with(synthesis, voice))
    assert not {ESTIMATED, SPREAD} & set(notes)


def test_a_take_as_the_voice_prompt_knows_when_its_words_are_said(synthesis, tmp_path):
    request = request_with(synthesis)
    _, result = made(synthesis, request)
    take = synthesis.take(request, result)
    # With random weights a take is noise, which no voice prompt may be.
    sound = speech_like(len(take.samples) / take.sample_rate, take.sample_rate)
    file = audio.write_audio(tmp_path / "a.wav", sound, take.sample_rate, take.metadata())
    prompted = request_with(synthesis, VoicePrompt.from_file(file, ""))
    notes, of_prompt = made(synthesis, prompted)
    assert not {ESTIMATED, SPREAD} & set(notes)
    kept = KeptVoices(tmp_path / "kept")
    kept.add(keep(file, "It", model=request.model))
    _, of_kept = made(synthesis, add_voices(request, ["It"], kept))
    assert np.array_equal(of_prompt.codes, of_kept.codes) and of_prompt.words == of_kept.words

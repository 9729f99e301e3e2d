"""Voice prompts: sound or codes before the script, what is noted, what is refused."""

import threading

import numpy as np
import pytest
import soundfile

from dia_demo.engine.events import Finished, Started
from dia_demo.errors import InputError
from dia_demo.prompt.prompt import read_prompt
from dia_demo.prompt.voice_traits import voice_traits
from dia_demo.services.take import VoicePrompt
from tests.helpers.models.checkpoints import SMALL, random_codes
from tests.helpers.synthesis_requests import make_request, refusal, say
from tests.helpers.voices import RATE, write_voice

pytestmark = [pytest.mark.processor, pytest.mark.usefixtures("talkative")]

# Room for a prompt of 1.5 s and some frames.
TOKENS = 150


def started(events) -> Started:
    return next(event for event in events if isinstance(event, Started))


def test_a_prompt_as_sound_is_its_codes_as_prompt(synthesis, tmp_path):
    """And the take holds new frames alone, within max_tokens less the prompt."""
    wav = write_voice(tmp_path / "voice.wav", 1.5)
    voice = VoicePrompt(wav, transcript="[S1] Before.")
    sound = say(synthesis, make_request(synthesis, voice=voice, max_tokens=TOKENS))
    codes = synthesis._model.engine.codec.encode(read_prompt(wav, RATE, 10).samples)
    as_codes = VoicePrompt(codes=codes, transcript="[S1] Before.")
    request = make_request(synthesis, voice=as_codes, max_tokens=TOKENS)
    expected = say(synthesis, request)[-1].result
    np.testing.assert_array_equal(sound[-1].result.codes, expected.codes)
    assert len(expected.codes) == SMALL.frames_within(TOKENS, len(codes))
    without = say(synthesis, make_request(synthesis, max_tokens=TOKENS))[-1].result.codes
    assert (expected.codes != without[: len(expected.codes)]).any()


def test_one_voice_for_several_takes_is_encoded_once(synthesis, tmp_path, monkeypatch):
    voice = VoicePrompt(write_voice(tmp_path / "voice.wav", 1.5), transcript="[S1] Before.")
    requests = [
        make_request(synthesis, voice=voice, seed=seed, max_tokens=TOKENS) for seed in (1, 2, 3)
    ]
    alone = [say(synthesis, request)[-1].result.codes for request in requests]
    codec, heard = synthesis._model.engine.codec, []
    encode = codec.encode
    monkeypatch.setattr(codec, "encode", lambda wave: heard.append(len(wave)) or encode(wave))
    codes_by_row = {}
    for event in synthesis.stream_together(requests, threading.Event()):
        if isinstance(event, Finished):
            codes_by_row[event.row] = event.result.codes
    assert len(heard) == 1
    for row, codes in enumerate(alone):
        np.testing.assert_array_equal(codes_by_row[row], codes)


def test_the_transcript_is_read_before_the_script(synthesis):
    codes = random_codes(SMALL, 10)
    joined = VoicePrompt(codes=codes, transcript="[S1] Before.")
    plain = VoicePrompt(codes=codes)
    first = say(synthesis, make_request(synthesis, "[S2] After.", joined))[-1].result
    second = say(synthesis, make_request(synthesis, "[S1] Before.\n[S2] After.", plain))[-1].result
    np.testing.assert_array_equal(first.codes, second.codes)


def test_only_a_prompt_without_transcript_brings_a_warning(synthesis):
    codes = random_codes(SMALL, 10)
    warned = started(say(synthesis, make_request(synthesis, voice=VoicePrompt(codes=codes))))
    assert any("no transcript" in note for note in warned.notes)
    voice = VoicePrompt(codes=codes, transcript="[S1] Before.")
    assert started(say(synthesis, make_request(synthesis, voice=voice))).notes == ()


def test_what_was_done_to_a_prompt_is_noted(synthesis, tmp_path):
    wav = write_voice(tmp_path / "voice.wav", 1.5, rate=96000, channels=2, level=0.02)
    voice = VoicePrompt(wav, transcript="[S1] Hm.")
    events = say(synthesis, make_request(synthesis, voice=voice, max_tokens=TOKENS))
    notes = " ".join(started(events).notes)
    assert "Channel 1 of 2" in notes and "dB louder" in notes and "of speech: 5-10 s" in notes
    assert isinstance(events[-1], Finished)


def test_a_prompt_leaves_room_for_a_frame(synthesis, tmp_path):
    wav = write_voice(tmp_path / "voice.wav", 1.5)
    seconds = len(read_prompt(wav, RATE, 10).samples) / RATE
    frames = round(seconds * RATE / 256 + 0.5)
    fits = next(n for n in range(1000) if SMALL.frames_within(n) > frames)
    voice = VoicePrompt(wav, transcript=".")
    assert isinstance(
        say(synthesis, make_request(synthesis, voice=voice, max_tokens=fits))[-1], Finished
    )
    less = make_request(synthesis, voice=voice, max_tokens=fits - 2)
    assert "fit" in refusal(synthesis, less)


def test_an_unusable_prompt_is_refused_before_the_run_waits(synthesis, tmp_path):
    soundfile.write(tmp_path / "tone.wav", 0.3 * np.sin(np.arange(4 * RATE) / 6), RATE)
    request = make_request(synthesis, voice=VoicePrompt(tmp_path / "tone.wav"), max_tokens=600)
    with pytest.raises(InputError, match="not speech"):
        synthesis.validate(request)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: write_voice(path, 2.0, level=0.0), "silent"),
        (lambda path: write_voice(path, 600.0, rate=8000), "600.0 s long"),
        (lambda path: soundfile.write(path, np.zeros(0), RATE), "empty"),
        (lambda path: path.write_bytes(b"not audio at all" * 100), "cannot be read as audio"),
        (lambda path: path.write_bytes(b""), "cannot be read as audio"),
        (lambda path: None, "does not exist"),
    ],
)
def test_a_prompt_without_a_voice_is_refused(synthesis, tmp_path, write, message):
    path = tmp_path / "voice.wav"
    write(path)
    request = make_request(synthesis, voice=VoicePrompt(path, transcript="."), max_tokens=600)
    assert message in refusal(synthesis, request)


def test_how_a_voice_sounds_is_measured_once_for_all_its_takes(synthesis, tmp_path, monkeypatch):
    measured = []
    monkeypatch.setattr(
        "dia_demo.engine.engine.voice_traits",
        lambda wave: measured.append(len(wave)) or voice_traits(wave),
    )
    voice = VoicePrompt(write_voice(tmp_path / "voice.wav", 1.3), transcript="[S1] Before.")
    for seed in (1, 2):
        say(synthesis, make_request(synthesis, voice=voice, seed=seed, max_tokens=TOKENS))
    assert len(measured) == 1

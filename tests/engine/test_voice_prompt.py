"""Voice prompts: sound or codes before the script, what is noted, what is refused."""

import threading

import numpy as np
import pytest
import soundfile

from dia_demo.engine.events import Finished, Started
from dia_demo.services.take import VoicePrompt
from tests.helpers.models.checkpoints import SMALL, random_codes
from tests.helpers.synthesis_requests import make_request, refusal, say

pytestmark = [pytest.mark.processor, pytest.mark.usefixtures("talkative")]


def write_wav(path, seconds, rate=16000, channels=1, subtype="FLOAT", level=0.3):
    time = np.arange(int(seconds * rate)) / rate
    wave = level * np.sin(2 * np.pi * 220 * time) * (1 + 0.3 * np.sin(2 * np.pi * 3 * time))
    soundfile.write(path, np.stack([wave] * channels, axis=1), rate, subtype=subtype)
    return path


def started(events) -> Started:
    return next(event for event in events if isinstance(event, Started))


def test_a_prompt_as_sound_is_its_codes_as_prompt(synthesis, tmp_path):
    """And the take holds new frames alone, within max_tokens less the prompt."""
    wav = write_wav(tmp_path / "voice.wav", 0.4)
    voice = VoicePrompt(wav, transcript="[S1] Before.")
    sound = say(synthesis, make_request(synthesis, voice=voice))
    samples, _ = soundfile.read(wav, dtype="float32")
    codes = synthesis._engine.codec.encode(samples)
    as_codes = VoicePrompt(codes=codes, transcript="[S1] Before.")
    expected = say(synthesis, make_request(synthesis, voice=as_codes))[-1].result
    np.testing.assert_array_equal(sound[-1].result.codes, expected.codes)
    assert len(codes) == 25 and len(expected.codes) == SMALL.frames_within(60, 25)
    without = say(synthesis, make_request(synthesis))[-1].result.codes
    assert (expected.codes != without[: len(expected.codes)]).any()


def test_one_voice_for_several_takes_is_encoded_once(synthesis, tmp_path, monkeypatch):
    voice = VoicePrompt(write_wav(tmp_path / "voice.wav", 0.4), transcript="[S1] Before.")
    requests = [make_request(synthesis, voice=voice, seed=seed) for seed in (1, 2, 3)]
    alone = [say(synthesis, request)[-1].result.codes for request in requests]
    codec, heard = synthesis._engine.codec, []
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


def test_a_96_khz_stereo_float_prompt_is_converted(synthesis, tmp_path):
    wav = write_wav(tmp_path / "voice.wav", 0.4, rate=96000, channels=2)
    events = say(synthesis, make_request(synthesis, voice=VoicePrompt(wav, transcript="[S1] Hm.")))
    assert any("2 channels" in note for note in started(events).notes)
    assert len(events[-1].result.codes) == SMALL.frames_within(60, 25)


def test_a_prompt_of_a_second_is_used_with_a_note(synthesis, tmp_path):
    wav = write_wav(tmp_path / "voice.wav", 1.0)
    events = say(
        synthesis, make_request(synthesis, voice=VoicePrompt(wav, transcript="."), max_tokens=200)
    )
    assert "only 1.0 s" in " ".join(started(events).notes)
    assert isinstance(events[-1], Finished)


def test_the_longest_prompt_fits_but_not_one_frame_more(synthesis, tmp_path):
    room = SMALL.frames_within(60) - 1
    fits = write_wav(tmp_path / "fits.wav", room * 256 / 16000)
    events = say(synthesis, make_request(synthesis, voice=VoicePrompt(fits, transcript=".")))
    assert len(events[-1].result.codes) == 1
    longer = write_wav(tmp_path / "longer.wav", (room + 1) * 256 / 16000)
    assert "fit" in refusal(synthesis, make_request(synthesis, voice=VoicePrompt(longer)))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: write_wav(path, 2.0, level=0.0), "silent"),
        (lambda path: write_wav(path, 600.0, rate=8000, subtype="PCM_U8"), "600.0 s long"),
        (lambda path: write_wav(path, 0.0), "empty"),
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

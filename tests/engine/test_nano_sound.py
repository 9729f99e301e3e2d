"""What a person hears of the embedded voice: no rumble, no click, silence after the last sound."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import AudioChunk, Cancelled, Finished, Progress
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, VoicePrompt
from tests.helpers.long import long_after
from tests.helpers.models.known import NANO

pytestmark = pytest.mark.usefixtures("talkative")

RATE = 16000
SCRIPTS = [
    "[S1] Hello there.",
    "[S2] Put the blue cup on the shelf beside the door.",
    "[S1] Is that a horse? [S2] Yes, it is. [S1]",
    "[S2] He lost his watch somewhere on the beach. [S1] Ask at the shop. [S2]",
    "[S1] Would you mind if I sat near the window?",
    "[S2] No. [S1] Stop.",
]


@pytest.fixture(scope="module")
def voice(tmp_path_factory):
    runtime = RuntimeConfig(model="nano", threads=1)
    return Synthesis(Settings(runtime, takes_folder=tmp_path_factory.mktemp("takes")))


def make_request(voice, script, *, speed=1.0, prompt=None, **params) -> Request:
    params = replace(voice.models["nano"].config.defaults, **params)
    return Request(script, params, NANO, voice.settings.runtime, voice=prompt, speed=speed)


def speak(voice, script, stop_at=None, **settings):
    """(the take, its AudioChunks); stopped at a step where one is given."""
    request, cancel, chunks = make_request(voice, script, **settings), threading.Event(), []
    for event in voice.stream(request, cancel):
        match event:
            case AudioChunk():
                chunks.append(event)
            case Progress(step=step) if step == stop_at:
                cancel.set()
            case Finished(result=result) | Cancelled(result=result):
                return voice.take(request, result), chunks
    raise AssertionError("the take did not end")


def share_below_db(samples, hz):
    power = np.abs(np.fft.rfft(samples.astype(float))) ** 2
    low = np.fft.rfftfreq(len(samples), 1 / RATE) < hz
    return 10 * np.log10(power[low].sum() / power.sum())


def silence_ms(samples, level_db):
    """After the last 10 ms whose RMS is above a level in dB of full scale."""
    pieces = samples[len(samples) % 160 :].astype(float).reshape(-1, 160)
    loud = np.sqrt((pieces**2).mean(axis=1)) > 10 ** (level_db / 20)
    return 10 * (len(loud) - 1 - np.flatnonzero(loud)[-1])


@pytest.mark.parametrize("seed", long_after(1, range(len(SCRIPTS))))
def test_a_take_is_free_of_rumble_with_clean_ends(voice, seed):
    take, chunks = speak(voice, SCRIPTS[seed], seed=seed)
    samples = take.samples
    assert take.figures.finish_reason == "end"
    assert share_below_db(samples, 50) <= -25 and abs(samples.mean()) < 1e-4
    assert samples[0] == samples[-1] == 0
    # It comes up from silence and goes back: -60 dB of full scale in the outermost millisecond.
    assert np.abs(samples[:16]).max() < 1e-3 and not samples[-2400:].any()
    for level_db in (-100, -60, -50):
        assert 150 <= silence_ms(samples, level_db) <= 250
    np.testing.assert_array_equal(np.concatenate([chunk.samples for chunk in chunks]), samples)
    starts = np.cumsum([0, *(len(chunk.samples) for chunk in chunks)])[:-1] / RATE
    np.testing.assert_allclose([chunk.start_seconds for chunk in chunks], starts)
    assert take.figures.audio_seconds == len(samples) / RATE


@pytest.mark.parametrize("max_tokens", [30, 61, 90])
def test_a_take_cut_by_max_tokens_ends_at_zero_where_it_was_cut(voice, max_tokens):
    take, chunks = speak(voice, SCRIPTS[3], max_tokens=max_tokens)
    assert take.figures.finish_reason == "max_tokens"
    assert len(take.samples) == 384 * len(take.codes)
    assert take.samples[0] == take.samples[-1] == 0
    # Cut in the middle of speech, as loud as it may be, it fades out over 5 ms.
    assert np.abs(take.samples[-16:]).max() < 0.1 * np.abs(take.samples).max()
    assert share_below_db(take.samples, 50) <= -25
    np.testing.assert_array_equal(np.concatenate([chunk.samples for chunk in chunks]), take.samples)


@pytest.mark.parametrize("step", [20, 45, 71])
def test_a_stopped_take_ends_at_zero_where_it_was_stopped(voice, step):
    take, chunks = speak(voice, SCRIPTS[3], stop_at=step)
    assert take.figures.finish_reason == "cancelled" and take.samples.any()
    assert len(take.samples) <= 384 * len(take.codes)
    assert take.samples[0] == take.samples[-1] == 0
    np.testing.assert_array_equal(np.concatenate([chunk.samples for chunk in chunks]), take.samples)


@pytest.mark.parametrize("speed", long_after(1, [1.5, 0.5, 0.8, 2.0]))
def test_a_change_of_speed_keeps_the_ends(voice, speed):
    take, _ = speak(voice, SCRIPTS[1], speed=speed)
    assert take.samples[0] == take.samples[-1] == 0
    for level_db in (-100, -60, -50):
        assert 150 <= silence_ms(take.samples, level_db) <= 250


def test_a_take_after_a_voice_prompt_has_the_same_ends(voice, tmp_path):
    script = SCRIPTS[1]
    path = speak(voice, script)[0].save(tmp_path / "prompt.wav")
    take, _ = speak(voice, "[S2] It rains.", prompt=VoicePrompt(path, transcript=script))
    assert take.samples[0] == take.samples[-1] == 0 and share_below_db(take.samples, 50) <= -25
    assert 150 <= silence_ms(take.samples, -60) <= 250


def test_the_file_has_the_takes_ends(voice, tmp_path):
    take, _ = speak(voice, SCRIPTS[2])
    for suffix in (".wav", ".flac"):
        samples, rate = soundfile.read(take.save(tmp_path / f"take{suffix}"))
        assert samples[0] == samples[-1] == 0 and len(samples) == len(take.samples)
        assert 150 <= silence_ms(samples, -60) <= 250

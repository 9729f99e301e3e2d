"""The ends of a take: exactly 0, faded, and 150 to 250 ms of silence after the last sound."""

import numpy as np
import pytest

from dia_demo.engine.sound.take_audio import TakeAudio

RATES = [8000, 16000, 44100]


def finish_audio(samples, rate, ended_by_itself):
    """`TakeAudio` on all samples at once."""
    audio = TakeAudio(rate)
    return np.concatenate([audio.push(samples), audio.finish(ended_by_itself)])


def tone(seconds, rate, level=0.2):
    return (level * np.cos(2 * np.pi * 200 * np.arange(round(seconds * rate)) / rate)).astype("f")


def noise(seconds, rate, level):
    return (level * np.random.default_rng(0).standard_normal(round(seconds * rate))).astype("f")


def join(*parts):
    return np.concatenate(parts)


def silence_after(samples, rate, level):
    """Milliseconds after the last sample louder than `level`."""
    return 1000 * (len(samples) - 1 - np.flatnonzero(np.abs(samples) > level)[-1]) / rate


@pytest.mark.parametrize("rate", RATES)
def test_a_sound_up_to_the_end_is_faded_out(rate):
    made = tone(1.0, rate)
    take = finish_audio(made, rate, ended_by_itself=True)
    fade = round(0.005 * rate)
    assert take.dtype == np.float32 and take[0] == take[-1] == 0
    np.testing.assert_array_equal(take[fade : rate - fade], made[fade : rate - fade])
    assert silence_after(take, rate, 0) == pytest.approx(180, abs=2)
    # No step anywhere, at either end: at most what the tone itself has, and a little of the fade.
    assert np.abs(np.diff(take)).max() < 1.2 * np.abs(np.diff(made)).max()


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("quiet", [0.0, 0.01, 0.05, 0.16, 0.3, 3.0])
@pytest.mark.parametrize("level", [0.0, 1e-5, 5e-4])
def test_silence_is_cut_or_filled_up(rate, quiet, level):
    made = join(tone(1.0, rate), noise(quiet, rate, level))
    take = finish_audio(made, rate, ended_by_itself=True)
    for loud in (0, 1e-4, 3e-3):
        assert 150 <= silence_after(take, rate, loud) <= 250
    np.testing.assert_array_equal(take[rate // 4 : rate // 2], made[rate // 4 : rate // 2])


@pytest.mark.parametrize("quiet", [0.0, 0.1, 3.0])
def test_a_take_that_was_cut_gets_no_silence_it_did_not_make(quiet):
    made = join(tone(1.0, 16000), np.zeros(round(16000 * quiet), "f"))
    take = finish_audio(made, 16000, ended_by_itself=False)
    assert len(take) == 16000 + min(quiet, 0.18) * 16000
    assert take[0] == take[-1] == 0


def test_a_whisper_after_a_shout_is_a_sound():
    shout, whisper = tone(0.5, 16000, 0.9), noise(0.5, 16000, 0.005)
    take = finish_audio(join(shout, whisper), 16000, ended_by_itself=True)
    np.testing.assert_array_equal(take[8000 : 16000 - 80], whisper[:-80])
    assert len(take) == 16000 + 0.18 * 16000


def test_a_quiet_take_keeps_its_quiet_end():
    """What counts is the level beside the take's own: a far microphone loses no syllable."""
    loud, soft = tone(0.5, 16000, 0.01), tone(0.5, 16000, 0.0005)
    take = finish_audio(join(loud, soft, np.zeros(16000, "f")), 16000, ended_by_itself=True)
    np.testing.assert_array_equal(take[8000:16000], soft)
    assert len(take) == 16000 + 0.18 * 16000


@pytest.mark.parametrize("seed", range(20))
def test_the_take_does_not_depend_on_how_its_samples_come(seed):
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(rng.integers(1, 8)):
        level = rng.choice([0.0, 1e-5, 1e-3, 0.02, 0.3])
        parts.append(noise(rng.uniform(0, 0.4), 16000, level))
    made = join(*parts)
    whole = finish_audio(made, 16000, bool(seed % 2))
    audio, chunks, at = TakeAudio(16000), [], 0
    while at < len(made):
        step = int(rng.choice([1, 7, 384, 5000]))
        chunks.append(audio.push(made[at : at + step]))
        at += step
    np.testing.assert_array_equal(join(*chunks, audio.finish(bool(seed % 2))), whole)


def test_silence_is_held_back_until_another_sound_comes():
    """A listener may not hear what the take will not have; and waits for nothing else."""
    audio, sound, pause = TakeAudio(16000), tone(1.0, 16000), np.zeros(32000, "f")
    assert len(audio.push(sound)) == 16000 - 80
    assert len(audio.push(pause)) == 80 + round(0.015 * 16000)
    assert len(audio.push(sound)) == 32000 - round(0.015 * 16000) + 16000 - 80
    assert len(audio.finish(True)) == 80 + 0.18 * 16000


@pytest.mark.parametrize("count", [1, 2, 79, 80, 81, 100, 160, 161])
def test_a_take_of_a_few_samples_ends_at_zero_as_well(count):
    for ended_by_itself in (True, False):
        take = finish_audio(np.ones(count, "f"), 16000, ended_by_itself)
        assert take[0] == take[-1] == 0 and np.isfinite(take).all()
        assert len(take) == count + (2880 if ended_by_itself else 0)


def test_empty_or_silent_audio_is_unchanged():
    assert finish_audio(np.zeros(0, "f"), 16000, True).shape == (0,)
    silent = finish_audio(np.zeros(8000, "f"), 16000, True)
    assert len(silent) == 8000 + 2880 and not silent.any()

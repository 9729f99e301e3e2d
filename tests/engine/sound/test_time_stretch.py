"""Another speed at the same pitch, however the samples arrive."""

import numpy as np
import pytest

from dia_demo.engine.sound.time_stretch import StretchedAudio, TimeStretch
from dia_demo.errors import InputError

RATES = [16000, 44100]
SPEEDS = [0.25, 0.5, 0.8, 1.25, 2.0, 4.0]


def speech_like(seconds, rate):
    """A voice that rises and swells, with some noise."""
    t = np.arange(round(seconds * rate)) / rate
    noise = np.random.default_rng(0).standard_normal(len(t))
    voice = np.sin(2 * np.pi * (150 * t + 40 * t**2)) * (1 + np.sin(2 * np.pi * 3 * t))
    return (0.3 * voice + 0.05 * noise).astype(np.float32)


def stretched(samples, rate, speed):
    stretch = TimeStretch(rate, speed)
    return np.concatenate([stretch.push(samples), stretch.finish()])


def test_at_its_own_speed_a_wave_stays_as_it_is():
    wave = speech_like(1.0, 16000)
    np.testing.assert_allclose(stretched(wave, 16000, 1.0), wave, atol=1e-6)


@pytest.mark.parametrize("speed", SPEEDS)
def test_what_happens_in_the_wave_happens_at_its_time_over_the_speed(speed):
    rate = 16000
    wave = np.zeros(2 * rate, np.float32)
    wave[rate : rate + rate // 4] = speech_like(0.25, rate)
    loud = np.flatnonzero(np.abs(stretched(wave, rate, speed)) > 0.02)
    np.testing.assert_allclose(
        loud[[0, -1]] / rate, np.array([1.0, 1.25]) / speed, atol=0.03 / min(1, speed)
    )


def test_a_click_is_not_smeared():
    """A phase vocoder spreads it over its window of 64 ms."""
    rate = 16000
    wave = np.zeros(rate, np.float32)
    wave[rate // 2] = 1.0
    energy = stretched(wave, rate, 1.3) ** 2
    peak = int(energy.argmax())
    assert energy[peak] > 0.5 and energy[peak - 40 : peak + 40].sum() > 0.9 * energy.sum()


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("speed", [0.25, 0.95, 4.0])
def test_pieces_give_exactly_what_the_whole_gives(rate, speed):
    wave, random = speech_like(1.3, rate), np.random.default_rng(1)
    stretch, pieces, start = TimeStretch(rate, speed), [], 0
    while start < len(wave):
        size = int(random.integers(0, rate // 5))
        pieces.append(stretch.push(wave[start : start + size]))
        start += size
    assert sum(map(len, pieces)) > 0.9 * len(wave) / speed, "most of it comes before the end"
    pieces.append(stretch.finish())
    np.testing.assert_array_equal(np.concatenate(pieces), stretched(wave, rate, speed))


@pytest.mark.parametrize("speed", SPEEDS)
def test_the_pitch_stays(speed):
    rate = 44100
    tone = np.sin(2 * np.pi * 440 * np.arange(2 * rate) / rate).astype(np.float32)
    made = stretched(tone, rate, speed)
    assert made.dtype == np.float32 and len(made) == round(len(tone) / speed)
    spectrum = np.abs(np.fft.rfft(made * np.hanning(len(made))))
    assert abs(np.argmax(spectrum) * rate / len(made) - 440) < 3


@pytest.mark.parametrize("size", [0, 1, 100, 1023])
def test_any_length_is_divided_by_the_speed(size):
    assert len(stretched(np.ones(size, np.float32), 16000, 1.5)) == round(size / 1.5)


@pytest.mark.parametrize("speed", [0.24, 4.01, float("nan")])
def test_a_speed_outside_the_range_is_refused(speed):
    with pytest.raises(InputError, match="0.25 to 4"):
        TimeStretch(16000, speed)


def test_a_slow_take_ends_with_the_usual_silence():
    wave = np.concatenate([speech_like(1.0, 16000), np.zeros(2880, np.float32)])
    audio = StretchedAudio(16000, 0.5)
    take = np.concatenate([audio.push(wave), audio.finish(ended_by_itself=True)])
    quiet = len(take) - 1 - np.flatnonzero(np.abs(take) > 3e-3)[-1]
    assert take[0] == take[-1] == 0 and 0.15 <= quiet / 16000 <= 0.25

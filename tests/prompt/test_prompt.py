"""A voice prompt's way in: the same voice comes out however it was recorded, or a reason does."""

import resource
import struct

import numpy as np
import pytest
import soundfile
import soxr

from dia_demo.audio import integrated_loudness
from dia_demo.errors import InputError
from dia_demo.prompt.prompt import LEAD_SECONDS, TAIL_SECONDS, read_prompt
from tests.helpers.voices import RATE, speech_like

LONGEST = 20.0
VOICE = 0.25 * speech_like(4.0) / np.abs(speech_like(4.0)).max()
SILENCE = np.zeros(3 * RATE, np.float32)


def prompt_of(tmp_path, samples, rate=RATE, name="prompt.wav", subtype="FLOAT", longest=LONGEST):
    subtype = subtype if name.endswith("wav") else None
    soundfile.write(tmp_path / name, samples, rate, subtype=subtype)
    return read_prompt(tmp_path / name, RATE, longest)


def alike(a, b) -> float:
    """The correlation of two waves, at the best of small shifts."""
    size = min(len(a), len(b)) - 400
    shifts = [np.corrcoef(a[200 : 200 + size], b[s : s + size])[0, 1] for s in range(0, 400, 4)]
    return max(shifts)


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> np.ndarray:
    prompt = prompt_of(tmp_path_factory.mktemp("clean"), VOICE)
    assert prompt.notes == ()
    return prompt.samples


NOISE = np.random.default_rng(0).standard_normal(len(VOICE)).astype("f")


RECORDED = {
    "silence before": (np.concatenate([SILENCE, VOICE]), "s of silence"),
    "silence after": (np.concatenate([VOICE, SILENCE]), "s of silence"),
    "clicks around": (
        np.concatenate([[0.5], SILENCE, VOICE, SILENCE, [0.5]]).astype("f"), "s of silence",
    ),
    "quiet": (VOICE * 10 ** (-36 / 20), "dB louder"),
    "loud": (VOICE * 3.9, "dB quieter"),
    "offset": (VOICE + 0.3, "offset was removed"),
    "offset between silences": (
        np.concatenate([SILENCE, VOICE + 0.3, SILENCE]), "offset was removed",
    ),
    "left alone": (np.stack([VOICE, 0 * VOICE], 1), "Channel 1 of 2"),
    "right alone": (np.stack([0 * VOICE, VOICE], 1), "Channel 2 of 2"),
    "inverted": (np.stack([VOICE, -VOICE], 1), "Channel 1 of 2"),
    "two microphones": (np.stack([VOICE, np.roll(VOICE, 80)], 1), "of 2"),
    "two microphones, one inverted": (np.stack([VOICE, -np.roll(VOICE, 16)], 1), "of 2"),
    "beside noise": (np.stack([0.2 * NOISE, VOICE], 1), "Channel 2 of 2"),
    "surround": (np.stack([0.01 * VOICE, 0.01 * VOICE, VOICE], 1), "Channel 3 of 3"),
}  # fmt: skip


@pytest.mark.parametrize("kind", RECORDED)
def test_the_recording_makes_no_difference(tmp_path, clean, kind):
    samples, note = RECORDED[kind]
    prompt = prompt_of(tmp_path, samples)
    assert note in " ".join(prompt.notes)
    assert abs(len(prompt.samples) - len(clean)) < 0.1 * RATE
    levels = [integrated_loudness(wave, RATE) for wave in (prompt.samples, clean)]
    assert abs(levels[0] - levels[1]) < 3.1
    assert alike(prompt.samples, clean) > 0.97


def room(db: float, seconds: float = 3.0) -> np.ndarray:
    """A room before anybody speaks, in dB of full scale."""
    noise = np.random.default_rng(1).standard_normal(round(seconds * RATE))
    return (10 ** (db / 20) * noise).astype("f")


@pytest.mark.parametrize(("before", "after"), [(-50, None), (None, -50), (-40, -40), (-60, -45)])
@pytest.mark.parametrize("gain", [0, -24])
def test_the_noise_of_a_room_around_the_speech_is_cut(tmp_path, before, after, gain):
    """Also where it is not the quietest part, as around a take, whose pauses are silent."""
    paused = np.concatenate([VOICE[: 2 * RATE], SILENCE[: RATE // 4], VOICE[2 * RATE :]])
    first, last = (SILENCE if db is None else room(db) for db in (before, after))
    clean = prompt_of(tmp_path, paused).samples
    noisy = prompt_of(tmp_path, 10 ** (gain / 20) * np.concatenate([first, paused, last]))
    assert "s of silence" in " ".join(noisy.notes)
    assert abs(len(noisy.samples) - len(clean)) < 0.1 * RATE
    assert alike(noisy.samples, clean) > 0.97


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 96000])
@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.ogg"])
def test_no_rate_and_no_format_makes_a_difference(tmp_path, clean, rate, name):
    prompt = prompt_of(tmp_path, soxr.resample(VOICE, RATE, rate), rate, name)
    assert prompt.notes == (), "nobody can act on it"
    assert abs(len(prompt.samples) - len(clean)) < 0.1 * RATE
    low = [soxr.resample(wave, RATE, 8000) for wave in (prompt.samples, clean)]
    assert alike(*low) > 0.95


@pytest.mark.parametrize("size", [0, 2**32 - 1, 2**31])
def test_a_wav_from_a_pipe_has_no_sizes(tmp_path, clean, size):
    soundfile.write(tmp_path / "a.wav", VOICE, RATE, subtype="FLOAT")
    data = bytearray((tmp_path / "a.wav").read_bytes())
    place = data.index(b"data") + 4
    data[4:8] = data[place : place + 4] = struct.pack("<I", size)
    (tmp_path / "a.wav").write_bytes(data)
    assert np.array_equal(read_prompt(tmp_path / "a.wav", RATE, LONGEST).samples, clean)


def test_the_silence_around_a_prompt_is_that_of_a_take(tmp_path):
    first, second = (prompt_of(tmp_path, np.concatenate([pad, VOICE, pad]), name=f"{k}.wav")
                     for k, pad in enumerate([SILENCE[:0], SILENCE]))  # fmt: skip
    for prompt in (first, second):
        spoken = np.flatnonzero(np.abs(prompt.samples) > 0.01)
        assert abs(spoken[0] / RATE - LEAD_SECONDS) < 0.03
        assert abs((len(prompt.samples) - spoken[-1]) / RATE - TAIL_SECONDS) < 0.06


def test_two_channels_with_different_voices_are_mixed(tmp_path):
    half = len(VOICE) // 2
    left, right = VOICE.copy(), VOICE.copy()
    left[half:] = right[:half] = 0
    prompt = prompt_of(tmp_path, np.stack([left, right], 1))
    assert "2 channels" in " ".join(prompt.notes)
    assert alike(prompt.samples, prompt_of(tmp_path, VOICE, name="b.wav").samples) > 0.97


def test_an_unclean_prompt_is_accepted_with_a_note(tmp_path):
    short = prompt_of(tmp_path, VOICE[: 2 * RATE])
    assert "only 1.9 s of speech: 5-10 s" in " ".join(short.notes)
    loud = prompt_of(tmp_path, np.clip(8 * VOICE, -1, 1), name="b.wav")
    assert "clipped" in " ".join(loud.notes) and np.abs(loud.samples).max() <= 1.0


HUM = np.sin(2 * np.pi * 50 * np.arange(len(VOICE)) / RATE).astype("f")


@pytest.mark.parametrize("noise", [NOISE, 1.4 * HUM], ids=["noise", "hum"])
@pytest.mark.parametrize("gain", [0, -30])
def test_noise_under_the_speech_is_remarked_and_silence_around_it_does_not_hide_it(
    tmp_path, noise, gain
):
    def notes_with(db: float) -> str:
        noisy = VOICE + 10 ** (db / 20) * VOICE.std() * noise
        loud = np.concatenate([SILENCE, noisy, SILENCE])
        return " ".join(prompt_of(tmp_path, 10 ** (gain / 20) * loud, name=f"{db}.wav").notes)

    assert "noise only" in notes_with(-15)
    assert "noise" not in notes_with(-45)


def tones(*pitches: float, seconds: float = 0.4) -> np.ndarray:
    """Notes of a plucked string, one after the other."""
    time = np.arange(round(seconds * RATE)) / RATE
    notes = [
        np.exp(-4 * time) * sum(np.sin(2 * np.pi * k * hz * time) / k for k in range(1, 6))
        for hz in pitches
    ]
    return 0.1 * np.concatenate(notes).astype("f")


TIME = np.arange(4 * RATE) / RATE
BEAT = (0.5 + 0.5 * np.sin(2 * np.pi * 4 * TIME)).astype("f")
NO_VOICES = {
    "silent": (SILENCE, "silent"),
    "hiss": (1e-4 * NOISE, "silent"),
    "offset": (SILENCE + 0.2, "silent"),
    "empty": (SILENCE[:0], "empty"),
    "nan": (np.where(TIME == 1, np.nan, VOICE), "NaN or infinite"),
    "long": (np.tile(VOICE, 15), "60.0 s long, and at most 20.0 s.*5-10 s"),
    "long speech": (np.tile(VOICE, 7), "28.* s long, and at most 20.0 s.*5-10 s"),
    "a tone": (0.3 * np.sin(2 * np.pi * 440 * TIME), "not speech, but a tone"),
    "beats of a tone": (BEAT * np.sin(2 * np.pi * 220 * TIME), "not speech"),
    "a siren": (0.3 * np.sin(2 * np.pi * (300 + 90 * np.sin(TIME)) * TIME), "not speech"),
    "noise": (0.2 * NOISE, "not speech, but noise"),
    "bursts of noise": (0.2 * BEAT * NOISE, "not speech, but noise"),
    "a melody": (tones(220, 247, 262, 330, 294, 220, 196, 262, 330), "not speech"),
    "chords": (tones(220, 262, 196) + tones(277, 330, 247) + tones(330, 392, 294), "not speech"),
    "a word": (VOICE[: RATE // 5], "0.2 s"),
    "a word in silence": (np.concatenate([SILENCE, VOICE[: RATE // 2], SILENCE]), "s of speech"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_VOICES)
def test_what_holds_no_voice_is_refused_with_the_reason(tmp_path, kind):
    samples, message = NO_VOICES[kind]
    with pytest.raises(InputError, match=message):
        prompt_of(tmp_path, samples)


@pytest.mark.parametrize("name", ["a.wav", "a.raw", "a.flac", "a.m4a", "a.webm"])
def test_what_is_not_audio_is_refused(tmp_path, name):
    for content in (b"", b"not audio at all", b"RIFF\x00\x00\x00\x00WAVEfmt ", b"\0\0\0 ftypM4A "):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"{name} cannot be read as audio: use one of WAV"):
            read_prompt(tmp_path / name, RATE, LONGEST)


@pytest.mark.parametrize("head", [b"\0\0\0 ftypM4A ", b"\x1aE\xdf\xa3\x9f", b"\xff\xf1\x50\x80"])
def test_what_no_part_of_the_program_decodes_is_refused_with_what_to_do(tmp_path, head):
    """M4A, WebM and AAC, whatever they are called."""
    path = tmp_path / "memo.wav"
    path.write_bytes(head + b"sound" * 400)
    with pytest.raises(InputError, match="converted first, for example with “ffmpeg -i memo.wav"):
        read_prompt(path, RATE, LONGEST)


def test_a_prompt_that_is_not_a_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none.wav"):
        with pytest.raises(InputError, match="does not exist"):
            read_prompt(path, RATE, LONGEST)


def test_a_damaged_flac_is_refused(tmp_path):
    soundfile.write(tmp_path / "a.flac", VOICE, RATE)
    data = (tmp_path / "a.flac").read_bytes()
    (tmp_path / "a.flac").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="a.flac"):
        read_prompt(tmp_path / "a.flac", RATE, LONGEST)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_ten_minutes_are_refused_without_reading_them(tmp_path, is_streamed):
    path = tmp_path / "long.wav"
    rate, seconds = 96000, 600
    with soundfile.SoundFile(path, "w", rate, 2, "FLOAT") as file:
        file.write(np.zeros((1, 2), "f"))
    # A sparse file with the header of the whole: reading it would cost half a gigabyte.
    size = rate * seconds * 8
    data = bytearray(path.read_bytes())
    at = data.index(b"data") + 4
    data[at : at + 4] = (0 if is_streamed else size).to_bytes(4, "little")
    data[4:8] = (0 if is_streamed else at - 4 + size).to_bytes(4, "little")
    with open(path, "wb") as file:
        file.write(data[: at + 4])
        file.truncate(at + 4 + size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=r"s long, and at most 20\.0 s"):
        read_prompt(path, RATE, LONGEST)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < (250_000 if is_streamed else 20_000)  # kB

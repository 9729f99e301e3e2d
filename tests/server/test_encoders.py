"""Streamed answers sound like their source, come early, and depend on the samples alone."""

import io
import itertools
import subprocess
import sys
import tracemalloc
import wave

import numpy as np
import pytest
import soundfile

from dia_demo.audio import to_int16
from dia_demo.disclosure.tags import DIGITAL_SOURCE_TYPE
from dia_demo.errors import InputError, RunError
from dia_demo.prompt.decode import decode
from dia_demo.server.encoders import STREAM_FORMATS, _ogg_checksum, open_encoder

RATE = 44100
EVERY_FORMAT = pytest.mark.parametrize("name", STREAM_FORMATS)
EVERY_RATE = pytest.mark.parametrize("rate", [16000, 24000, 44100])


def rising_tone(seconds, rate=RATE, start_hz=200.0):
    time = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * (start_hz * time + 60 * time**2 / max(seconds, 1))
    return (0.3 * np.sin(phase)).astype(np.float32)


def encoded(name, samples, rate=RATE, model="nano", pieces=None):
    encoder = open_encoder(name, rate, model)
    pieces = [samples] if pieces is None else pieces
    return b"".join([*map(encoder.add, pieces), encoder.finish()])


def decoded(name, data, rate=RATE, length=0):
    """float32 [n] and its sample rate. length: of FLAC, whose header gives none here; libsndfile
    reads none without it."""
    if name == "pcm":
        return np.frombuffer(data, "<i2").astype(np.float32) / 32768, 24000
    if name == "flac":
        data = bytearray(data)
        data[22:26] = length.to_bytes(4, "big")
    samples, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    return samples, rate


def correlation(heard, heard_rate, source, source_rate):
    """Between two waves at the shift, of up to 0.1 s, at which they agree best."""
    times = np.arange(int(len(source) / source_rate * heard_rate)) / heard_rate
    wanted = np.interp(times, np.arange(len(source)) / source_rate, source)
    size = len(wanted) + len(heard)
    products = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(wanted, size)), size)
    best = products[: heard_rate // 10].max()
    return best / np.sqrt((heard.astype(float) ** 2).sum() * (wanted**2).sum())


def random_pieces(samples, seed, largest):
    random = np.random.default_rng(seed)
    sizes = random.integers(0, largest, 1 + 4 * len(samples) // largest)
    return np.split(samples, np.minimum(np.cumsum(sizes), len(samples)))


# The sound


@EVERY_FORMAT
@EVERY_RATE
def test_an_answer_sounds_like_its_source(name, rate):
    source = rising_tone(4, rate)
    heard, heard_rate = decoded(name, encoded(name, source, rate), length=len(source))
    assert heard_rate == open_encoder(name, rate, "nano").sample_rate
    assert heard_rate == {"pcm": 24000, "opus": 48000}.get(name, rate)
    # MP3 is whole frames, and has no room to say how much of them is padding.
    slack = 4 * 1152 / heard_rate if name == "mp3" else 1 / heard_rate
    assert 0 <= len(heard) / heard_rate - len(source) / rate <= slack
    assert correlation(heard, heard_rate, source, rate) > 0.995


@pytest.mark.parametrize("name", ["wav", "flac", "pcm"])
def test_formats_without_losses_keep_every_sample(name):
    source = np.random.default_rng(1).normal(0, 0.2, 24000).astype(np.float32)
    data = encoded(name, source, 24000)
    heard, _ = decoded(name, data, length=len(source))
    assert np.array_equal(np.rint(heard * 32768).astype(np.int16), to_int16(source))


@EVERY_FORMAT
def test_a_minute_keeps_its_length(name):
    source = rising_tone(60)
    heard, heard_rate = decoded(name, encoded(name, source), length=len(source))
    assert len(heard) / heard_rate == pytest.approx(60, abs=0.1)
    end = source[-2 * RATE :]
    assert correlation(heard[-round(2.1 * heard_rate) :], heard_rate, end, RATE) > 0.97


@EVERY_FORMAT
@pytest.mark.parametrize("length", [0, 1, 575, 576, 577])
def test_very_short_takes_are_answers_that_play(name, length):
    source = rising_tone(1)[:length]
    # Without samples, the compressed formats have one of silence: they cannot be without any.
    heard, heard_rate = decoded(name, encoded(name, source), length=max(1, length))
    assert length / RATE - 1 / heard_rate <= len(heard) / heard_rate <= length / RATE + 0.11
    assert np.abs(heard).max(initial=0) <= 0.4


@EVERY_RATE
def test_joined_mp3_answers_play_as_one(rate):
    """LibreChat asks for a long text in pieces and joins the answers."""
    low, high = rising_tone(2, rate), rising_tone(2, rate, start_hz=900)
    parts = [encoded("mp3", source, rate) for source in (low, high)]
    both, heard_rate = decoded("mp3", b"".join(parts))
    alone = [decoded("mp3", part)[0] for part in parts]
    assert len(both) == sum(map(len, alone))
    for heard, source in zip(np.split(both, [len(alone[0])]), (low, high), strict=True):
        assert correlation(heard, heard_rate, source, rate) > 0.99


@pytest.mark.parametrize("name", [name for name in STREAM_FORMATS if name != "pcm"])
def test_a_stored_answer_can_be_a_voice_prompt(name, tmp_path):
    path, source = tmp_path / "answer", rising_tone(3)
    path.write_bytes(encoded(name, source))
    channels, rate = decode(path, 10)
    assert len(channels) / rate == pytest.approx(3, abs=0.11)
    assert correlation(channels[:, 0], rate, source, RATE) > 0.995


def test_samples_beyond_full_scale_are_clipped():
    heard, _ = decoded("wav", encoded("wav", np.full(1000, 3.0, np.float32)))
    assert heard.min() > 0.999


@EVERY_FORMAT
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_samples_that_are_no_numbers_end_the_answer(name, value):
    encoder = open_encoder(name, RATE, "nano")
    samples = rising_tone(1)
    samples[20000] = value
    with pytest.raises(RunError, match="NaN or infinite"):
        encoder.add(samples)


# The bytes


@EVERY_FORMAT
@pytest.mark.parametrize("seed", range(4))
def test_the_bytes_do_not_depend_on_how_the_samples_are_split(name, seed):
    source = rising_tone(3 if seed < 3 else 0.01)
    largest = (50, 2000, 100_000, 300)[seed]
    whole = encoded(name, source)
    assert encoded(name, source, pieces=random_pieces(source, seed, largest)) == whole


def test_the_bytes_are_the_same_in_another_process():
    """libsndfile takes random numbers for Ogg, from the time and where the program was loaded."""
    program = (
        "import hashlib, numpy as np\n"
        "from dia_demo.server.encoders import STREAM_FORMATS, open_encoder\n"
        "for name in STREAM_FORMATS:\n"
        "    encoder = open_encoder(name, 44100, 'nano')\n"
        "    samples = np.sin(np.arange(90000, dtype=np.float32) / 20) / 3\n"
        "    print(name, hashlib.sha256(encoder.add(samples) + encoder.finish()).hexdigest())\n"
    )
    command = [sys.executable, "-c", program]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    )
    assert len(first) == 2 * len(STREAM_FORMATS)
    assert first == second


def test_the_checksums_of_ogg_pages_are_those_of_libsndfile():
    buffer = io.BytesIO()
    soundfile.write(buffer, rising_tone(3, 48000), 48000, "OPUS", format="OGG")
    pages = buffer.getvalue().split(b"OggS")[1:]
    assert len(pages) > 3
    for page in pages:
        page = b"OggS" + page
        cleared = page[:22] + bytes(4) + page[26:]
        assert _ogg_checksum(cleared) == int.from_bytes(page[22:26], "little")


@EVERY_FORMAT
@pytest.mark.parametrize("rate", [24000, 44100])
def test_at_most_a_tenth_of_a_second_is_held_back(name, rate):
    encoder = open_encoder(name, rate, "nano")
    step, source = 32, rising_tone(2, rate)
    came = [len(encoder.add(source[at : at + step])) for at in range(0, len(source), step)]
    times = [step * (index + 1) / rate for index, size in enumerate(came) if size]
    # The header comes first, except where there is none.
    first_sound = times[0] if name in ("pcm", "wav") else times[1]
    assert first_sound <= 0.1
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) <= 0.1


@EVERY_FORMAT
def test_what_is_handed_over_is_not_kept(name):
    encoder = open_encoder(name, RATE, "nano")
    second = rising_tone(1)
    size = len(encoder.add(second))
    tracemalloc.start()
    try:
        for _ in range(20):
            size += len(encoder.add(second))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 100_000
    assert kept < 20_000


# What an answer says about itself


@pytest.mark.parametrize("name", [name for name in STREAM_FORMATS if name != "pcm"])
def test_every_answer_says_that_it_is_synthetic_speech(name):
    data = encoded(name, rising_tone(0.2), model="models/some-voice")
    assert b"TAGSpeech" not in data  # ID3v1, which would be amid joined answers
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        assert file.artist == "Synthetic speech (some-voice, dia_demo)"
        assert DIGITAL_SOURCE_TYPE in file.comment


def test_a_wav_has_an_open_size_that_players_accept():
    source = rising_tone(1)
    data = encoded("wav", source)
    assert data[4:8] == b"\xff\xff\xff\xff"
    assert data[data.index(b"data") + 4 :][:4] == b"\xff\xff\xff\xff"
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        pcm = np.frombuffer(file.readframes(2 * RATE), "<i2")
    assert np.array_equal(pcm, to_int16(source))


def test_content_types():
    types = {name: open_encoder(name, RATE, "").content_type for name in STREAM_FORMATS}
    assert types == {
        "mp3": "audio/mpeg",
        "opus": "audio/ogg",
        "flac": "audio/flac",
        "wav": "audio/wav",
        "pcm": "audio/pcm",
    }


@pytest.mark.parametrize("name", ["aac", "MP3", "", "x" * 999, None])
def test_other_formats_are_refused_with_those_there_are(name):
    with pytest.raises(InputError, match="as mp3, opus, flac, wav or pcm, not") as refused:
        open_encoder(name, RATE, "nano")
    assert len(str(refused.value)) < 150

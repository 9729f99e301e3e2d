"""Jobs of speech made by the embedded voice: the same for the same seed, trimmed, stopped."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.engine.events import AudioChunk
from dia_demo.errors import InputError, RunError
from dia_demo.prompt.voice_file import VoiceFile
from dia_demo.services.settings import Settings
from dia_demo.services.speech.job import SpeechJob
from dia_demo.services.speech.speaker import SILENT_SECONDS, LocalSpeaker, SpeechFinished
from dia_demo.services.synthesis import Synthesis

JOB = SpeechJob("Hello there, how are you?", "nano", 7)
LONG = "[S1] One. (pause 1.5) [S2] Two. [S1] Three, and that is all."


@pytest.fixture(scope="module")
def synthesis(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    made = Synthesis(Settings(takes_folder=folder / "takes", kept_folder=folder / "kept"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def speaker(synthesis) -> LocalSpeaker:
    return LocalSpeaker(synthesis)


def speak(speaker: LocalSpeaker, job: SpeechJob) -> tuple[np.ndarray, SpeechFinished]:
    *events, last = speaker.stream(job, threading.Event())
    assert isinstance(last, SpeechFinished)
    chunks = [event.samples for event in events if isinstance(event, AudioChunk)]
    return np.concatenate(chunks), last


def test_words_without_tags_are_spoken_whole(speaker):
    samples, finished = speak(speaker, JOB)
    assert [word.word for word in finished.words] == ["Hello", "there,", "how", "are", "you?"]
    assert len(samples) / 16000 == pytest.approx(finished.figures.audio_seconds)
    silence = len(samples) - np.flatnonzero(np.abs(samples) > 0.01)[-1]
    assert silence / 16000 < 0.35, "the end is trimmed"


def test_a_seed_gives_the_same_samples_beside_others(speaker):
    alone, _ = speak(speaker, JOB)
    others = [threading.Thread(target=speak, args=(speaker, replace(JOB, seed=s))) for s in (1, 2)]
    for other in others:
        other.start()
    beside, _ = speak(speaker, JOB)
    for other in others:
        other.join()
    np.testing.assert_array_equal(alone, beside)
    different, _ = speak(speaker, replace(JOB, seed=8))
    assert len(different) != len(alone) or np.any(different != alone)


def test_a_script_with_pauses_is_made_in_parts(speaker, synthesis):
    samples, finished = speak(speaker, replace(JOB, text=LONG))
    one, two = finished.words[0], finished.words[1]
    assert (one.word, two.word, two.speaker) == ("One.", "Two.", "S2")
    assert 1.3 < two.start - one.end < 1.9
    assert len(samples) / 16000 == pytest.approx(finished.figures.audio_seconds, abs=0.01)
    assert not list(synthesis.settings.takes_folder.glob("speech-*")), "its parts are removed"


def test_a_full_disk_is_said_without_the_servers_folders(speaker, synthesis, monkeypatch):
    def full(*given, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dia_demo.services.dialogue.store.write_atomic", full)
    with pytest.raises(RunError, match="No space left on device.*DIA_TAKES") as raised:
        speak(speaker, replace(JOB, text=LONG))
    assert str(synthesis.settings.takes_folder) not in str(raised.value)


def test_a_stopped_job_ends_without_a_last_event(speaker, talkative, slow_steps):
    cancel = threading.Event()
    stream = speaker.stream(replace(JOB, text=f"[S1] {'and so on ' * 30}"), cancel)
    for event in stream:
        if isinstance(event, AudioChunk):
            cancel.set()
    assert not isinstance(event, SpeechFinished)


def test_a_promise_says_what_to_expect(speaker):
    promise = speaker.promise(JOB)
    assert promise.sample_rate == 16000 and 1.0 < promise.audio_seconds < 3.0
    assert promise.fingerprint == speaker.promise(replace(JOB, seed=1)).fingerprint
    assert promise.fingerprint != speaker.promise(replace(JOB, precision="float32")).fingerprint
    assert speaker.promise(replace(JOB, text=LONG)).audio_seconds > promise.audio_seconds


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (dict(voices=("nobody", "")), "no voice 'nobody'"),
        (dict(params={"warmth": 1}), "'warmth' is not a parameter"),
        (dict(params={"temperature": -1}), "temperature"),
        (dict(precision="int3"), "precision"),
        (dict(text="x" * 30_000), "30,000 characters"),
        (dict(speed=5.0), "speed"),
    ],
)
def test_what_cannot_be_made_is_refused_before_it_begins(speaker, changes, says):
    with pytest.raises(InputError, match=says):
        speaker.promise(replace(JOB, **changes))


def test_a_job_is_plain_values():
    job = replace(JOB, params={"temperature": 0.5}, voices=("a", "b"))
    assert pickle.loads(pickle.dumps(job)) == job and job.key == replace(job).key
    assert job.key != replace(job, params={"temperature": 0.6}).key


def test_dia_gets_a_closing_tag_and_a_limit_near_the_expected_length(synthesis):
    info = synthesis.models["nari-labs/Dia-1.6B-0626"]
    request = SpeechJob("Hello there.", info.name, 1).request(info, synthesis.settings)
    assert request.script == "[S1] Hello there. [S2]"
    assert 1.0 < info.seconds_of(request.params.max_tokens) < 6.0
    for text, script in {
        "[S1] Hello there.": "[S1] Hello there. [S2]",
        "[S2] Hello. [S2] There.": "[S2] Hello. There. [S1]",
    }.items():
        tagged = SpeechJob(text, info.name, 1).request(info, synthesis.settings)
        assert tagged.script == script
        assert 1.0 < info.seconds_of(tagged.params.max_tokens) < 6.0
    both = SpeechJob("[S1] Hello. [S2] Hi.", info.name, 1).request(info, synthesis.settings)
    assert both.script == "[S1] Hello. [S2] Hi." and both.params.max_tokens > 1000


def test_the_only_voice_is_that_of_whoever_speaks(synthesis):
    """SillyTavern's extension names one voice, and gives characters the tag [S2]."""
    info = synthesis.models["nano"]
    for text, voices in {
        "[S1] Hello.": ("rms deep", None),
        "[S2] Hello.": (None, "rms deep"),
        "[S1] Hello. [S2] Hi.": ("rms deep", None),
    }.items():
        job = SpeechJob(text, "nano", 1, voices=("rms deep", ""))
        assert job.request(info, synthesis.settings).voices == voices


def test_a_text_without_words_is_a_moment_of_silence(speaker):
    """Home Assistant checks a token with ".", and clients send rests of sentences."""
    for text in (".", "…", "[S1] - [S2] !"):
        job = replace(JOB, text=text)
        assert speaker.promise(job).audio_seconds == SILENT_SECONDS
        chunk, finished = speaker.stream(job, threading.Event())
        assert not chunk.samples.any()
        assert len(chunk.samples) == SILENT_SECONDS * chunk.sample_rate
        assert finished.figures.seed == job.seed and "no words" in finished.remarks[0]


def test_an_owners_voices_are_not_for_others(synthesis):
    from dia_demo.services.people import key_of_token
    from dia_demo.services.voices.kept import KeptVoices

    owner = key_of_token("a token of somebody")
    info = synthesis.models["nano"]
    codes = np.zeros((60, info.config.decoder.num_channels), np.int64)
    voice = VoiceFile(
        name="Mine", codes=codes, transcript="[S1] Hello.", codec="", sample_rate=16000,
        fps=info.frames_per_second, model="nano", source="take",
    )  # fmt: skip
    KeptVoices.for_person(synthesis.settings, owner).add(voice)
    job = replace(JOB, voices=("mine", ""), owner=owner)
    assert job.request(info, synthesis.settings).voice is not None
    with pytest.raises(InputError, match="no voice"):
        replace(job, owner="").request(info, synthesis.settings)

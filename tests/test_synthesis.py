"""A request from script to take: checks, queue, model, events, files; and the app works on."""

import gc
import itertools
import re
import threading
import weakref
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from checkpoints import SMALL, drain, random_codes, write_small

from dia_demo.audio import read_metadata
from dia_demo.config import GenerationParams, RuntimeConfig
from dia_demo.engine import engine as engine_module
from dia_demo.engine import events
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Failed,
    Finished,
    Loading,
    Progress,
    Started,
    Waiting,
)
from dia_demo.errors import InputError, RunError
from dia_demo.services import queue as queue_module
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Request, Synthesis, VoicePrompt, random_seed

SCRIPT = "[S1] Hello there. [S2] Hi."
LETTERS = {
    Waiting: "w", Loading: "l", Started: "s", Progress: "p", AudioChunk: "a",
    Finished: "F", Cancelled: "C", Failed: "X",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("synthesis") / "small", codec=True)


@pytest.fixture(scope="module")
def synthesis(folder, tmp_path_factory):
    """One app for all tests: whatever a test does to it, the next one finds it working."""
    return Synthesis(Settings(runtime(folder), 2, tmp_path_factory.mktemp("takes")))


@pytest.fixture(autouse=True)
def talkative(monkeypatch):
    monkeypatch.setattr(events, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(queue_module, "SAY_AGAIN_SECONDS", 0.001)


def runtime(folder, **changes) -> RuntimeConfig:
    return RuntimeConfig(model=str(folder), threads=1, **changes)


def make(synthesis, script=SCRIPT, voice=None, **changes) -> Request:
    fields = {
        name: changes.pop(name) for name in ("runtime", "speed", "with_audio") if name in changes
    }
    params = replace(SMALL.defaults, **(dict(temperature=1.0, max_tokens=60, seed=1) | changes))
    return Request(
        script, params, **({"runtime": synthesis.settings.runtime} | fields), voice=voice
    )


def say(synthesis, request, cancel=None) -> list:
    return list(synthesis.stream(request, cancel or threading.Event()))


def letters(events) -> str:
    return "".join(LETTERS[type(event)] for event in events)


def refusal(synthesis, request) -> str:
    """The message; and the app works on."""
    with pytest.raises(InputError) as caught:
        say(synthesis, request)
    assert isinstance(say(synthesis, make(synthesis))[-1], Finished)
    return str(caught.value)


# Events


def test_the_first_take_loads_and_the_next_does_not(folder, tmp_path):
    synthesis = Synthesis(Settings(runtime(folder), 2, tmp_path))
    assert re.fullmatch("l+s[pa]+F", letters(say(synthesis, make(synthesis))))
    assert re.fullmatch("s[pa]+F", letters(say(synthesis, make(synthesis))))


def test_the_same_request_is_the_same_take(synthesis):
    first, again, other = (
        say(synthesis, make(synthesis, seed=seed))[-1].result for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.codes, again.codes)
    np.testing.assert_array_equal(first.samples, again.samples)
    assert (first.codes != other.codes).any()


def test_a_take_without_audio_holds_the_same_codes(synthesis, monkeypatch):
    expected = say(synthesis, make(synthesis))[-1].result.codes
    monkeypatch.setattr(engine_module, "open_codec", lambda *_: pytest.fail("a codec was loaded"))
    fresh = Synthesis(synthesis.settings)
    events = say(fresh, make(synthesis, with_audio=False))
    assert "a" not in letters(events) and events[-1].result.samples is None
    np.testing.assert_array_equal(events[-1].result.codes, expected)
    with pytest.raises(RunError):
        fresh.take(make(synthesis), events[-1].result)


def test_a_broken_run_is_told_and_the_app_works_on(synthesis, monkeypatch):
    def broken(*_):
        raise RunError("The decoder broke. Fetch it again.")

    with monkeypatch.context() as patch:
        patch.setattr(engine_module, "run", broken)
        assert say(synthesis, make(synthesis))[-1] == Failed("The decoder broke. Fetch it again.")
    assert isinstance(say(synthesis, make(synthesis))[-1], Finished)


# Stop


def test_stop_ends_the_take_within_a_step_and_keeps_it(synthesis):
    whole = say(synthesis, make(synthesis))[-1].result
    cancel, steps = threading.Event(), []
    for event in synthesis.stream(make(synthesis), cancel):
        if isinstance(event, Progress):
            steps.append(event.step)
            if event.step == 25:
                cancel.set()
    assert max(steps) == 25 and isinstance(event, Cancelled)
    np.testing.assert_array_equal(event.result.codes, whole.codes[:22])
    take = synthesis.take(make(synthesis), event.result)
    assert len(take.samples) == 22 * 256 and take.figures.finish_reason == "cancelled"


def test_stop_before_the_start_loads_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Engine, "load", lambda *_: pytest.fail("a model was loaded"))
    synthesis = Synthesis(Settings(runtime(folder), 2, tmp_path))
    cancel = threading.Event()
    cancel.set()
    assert say(synthesis, make(synthesis), cancel) == [Cancelled(None)]


def test_stop_while_loading_stops_the_loading(folder, tmp_path):
    """The real model takes minutes to fetch and load: Stop once waited for all of it."""
    synthesis = Synthesis(Settings(runtime(folder), 2, tmp_path))
    cancel, events = threading.Event(), []
    for event in synthesis.stream(make(synthesis), cancel):
        events.append(event)
        if len(events) == 3:
            cancel.set()
    assert letters(events) == "lllC" and events[2].fraction < 1
    assert isinstance(say(synthesis, make(synthesis))[-1], Finished)


def test_closing_the_events_frees_the_place(folder, tmp_path):
    """A browser that went away counts as Stop, wherever the take was."""
    synthesis = Synthesis(Settings(runtime(folder), 0, tmp_path))
    for kind in (Loading, Started, Progress, AudioChunk):
        events = synthesis.stream(make(synthesis), threading.Event())
        next(event for event in events if isinstance(event, kind))
        with pytest.raises(InputError, match="running or waiting"):
            say(synthesis, make(synthesis))
        events.close()
    assert isinstance(say(synthesis, make(synthesis))[-1], Finished)


# Several people


def test_the_second_is_told_its_place_and_the_third_is_refused(folder, tmp_path):
    synthesis = Synthesis(Settings(runtime(folder), 1, tmp_path))
    first = synthesis.stream(make(synthesis), threading.Event())
    next(event for event in first if isinstance(event, Progress))
    second = synthesis.stream(make(synthesis), threading.Event())
    waiting = next(second)
    assert isinstance(waiting, Waiting) and waiting.place == 1 and waiting.seconds >= 0
    with pytest.raises(InputError, match="try again"):
        say(synthesis, make(synthesis))
    assert isinstance(list(first)[-1], Finished)
    assert re.fullmatch("w*s[pa]+F", letters(second))


def test_stop_while_waiting_gives_the_place_back(folder, tmp_path):
    synthesis = Synthesis(Settings(runtime(folder), 1, tmp_path))
    first = synthesis.stream(make(synthesis), threading.Event())
    next(event for event in first if isinstance(event, Started))
    cancel = threading.Event()
    second = synthesis.stream(make(synthesis), cancel)
    next(second)
    cancel.set()
    assert list(second) == [Cancelled(None)]
    third = synthesis.stream(make(synthesis), threading.Event())
    assert next(third).place == 1
    third.close()
    first.close()


def test_threads_never_interleave_and_each_gets_its_own_take(synthesis):
    alone = {seed: say(synthesis, make(synthesis, seed=seed))[-1].result for seed in (1, 2, 3)}
    log, results = [], {}

    def work(seed: int) -> None:
        for event in synthesis.stream(make(synthesis, seed=seed), threading.Event()):
            if not isinstance(event, Waiting):
                log.append(seed)
        results[seed] = event.result

    threads = [threading.Thread(target=work, args=(seed,)) for seed in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    # The last event of one may be written down after the first of the next has come.
    turns = [seed for seed, _ in itertools.groupby(log)]
    assert len(turns) <= 2 * len(alone) and set(turns) == set(alone)
    for seed, result in results.items():
        np.testing.assert_array_equal(result.codes, alone[seed].codes)
        np.testing.assert_array_equal(result.samples, alone[seed].samples)


# Models


def test_another_model_replaces_the_first_which_goes_before_the_new_one_loads(
    synthesis, folder, tmp_path, monkeypatch
):
    """Two models side by side may not fit into memory."""
    say(synthesis, make(synthesis))
    old, load, seen = weakref.ref(synthesis._engine), Engine.load, []

    def watched(runtime):
        gc.collect()
        seen.append(old())
        return load(runtime)

    monkeypatch.setattr(Engine, "load", watched)
    other = write_small(tmp_path / "other", seed=5, codec=True)
    result = say(synthesis, make(synthesis, runtime=runtime(other)))[-1].result
    assert seen == [None] and result.figures.model == str(other)
    result = say(synthesis, make(synthesis, runtime=runtime(other, precision="bfloat16")))[
        -1
    ].result
    assert result.figures.precision == "bfloat16" and result.codes.max() < SMALL.num_codes


def test_a_model_that_does_not_load_leaves_the_app_working(synthesis, folder, tmp_path):
    broken = write_small(tmp_path / "broken", codec=True)
    (weights,) = broken.glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "damaged" in refusal(synthesis, make(synthesis, runtime=runtime(broken)))


def test_a_warmed_up_app_speaks_at_once_and_the_same(synthesis, folder, tmp_path):
    warm = Synthesis(Settings(runtime(folder), 2, tmp_path))
    warm.warm_up()
    warm._warming.join(timeout=60)
    events = say(warm, make(warm))
    assert re.fullmatch("s[pa]+F", letters(events))
    expected = say(synthesis, make(synthesis))[-1].result.codes
    np.testing.assert_array_equal(events[-1].result.codes, expected)


def test_a_warm_up_that_fails_is_no_end(folder, tmp_path):
    """The page must open and say why when somebody presses Generate."""
    start = tmp_path / "broken"
    start.mkdir()
    warm = Synthesis(Settings(runtime(start), 2, tmp_path))
    warm.warm_up()
    warm._warming.join(timeout=60)
    assert isinstance(say(warm, make(warm, runtime=runtime(folder)))[-1], Finished)


# What cannot be


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(script=""), "empty"),
        (dict(script="[S1] " + "word " * 2000), "400"),
        (dict(script="[S1] a\0b"), "U\\+0000"),
        (dict(temperature=9.0), "temperature"),
        (dict(max_tokens=10_000), "max_tokens"),
        (dict(speed=3.0), "speed"),
        (dict(runtime=RuntimeConfig(model="no such model", threads=1)), "no such model"),
        (dict(voice=VoicePrompt(codes=np.zeros((4, 9), int))), r"\[frames, 3\]"),
        (dict(voice=VoicePrompt(codes=np.zeros((60, 3), int))), "cut the prompt"),
        (dict(voice=VoicePrompt(codes=np.full((4, 3), 64))), "0..63"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_loaded(
    folder, tmp_path, monkeypatch, changes, said
):
    monkeypatch.setattr(Engine, "load", lambda *_: pytest.fail("a model was loaded"))
    synthesis = Synthesis(Settings(runtime(folder), 2, tmp_path))
    with pytest.raises(InputError, match=said):
        say(synthesis, make(synthesis, **changes))


def test_a_script_as_long_as_the_model_reads_is_read(synthesis):
    script = "[S1] " + "a" * (SMALL.encoder.max_positions - 2)
    assert isinstance(say(synthesis, make(synthesis, script))[-1], Finished)
    assert "cut" in refusal(synthesis, make(synthesis, script + "a"))


# Voice prompts


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
    sound = say(synthesis, make(synthesis, voice=voice))
    samples, _ = soundfile.read(wav, dtype="float32")
    codes = synthesis._engine.codec.encode(samples)
    as_codes = VoicePrompt(codes=codes, transcript="[S1] Before.")
    expected = say(synthesis, make(synthesis, voice=as_codes))[-1].result
    np.testing.assert_array_equal(sound[-1].result.codes, expected.codes)
    assert len(codes) == 25 and len(expected.codes) == SMALL.frames_within(60, 25)
    without = say(synthesis, make(synthesis))[-1].result.codes
    assert (expected.codes != without[: len(expected.codes)]).any()


def test_the_transcript_is_read_before_the_script(synthesis):
    codes = random_codes(SMALL, 10)
    joined = VoicePrompt(codes=codes, transcript="[S1] Before.")
    plain = VoicePrompt(codes=codes)
    first = say(synthesis, make(synthesis, "[S2] After.", joined))[-1].result
    second = say(synthesis, make(synthesis, "[S1] Before.\n[S2] After.", plain))[-1].result
    np.testing.assert_array_equal(first.codes, second.codes)


def test_a_prompt_without_transcript_is_warned_of_and_one_with_is_not(synthesis):
    codes = random_codes(SMALL, 10)
    warned = started(say(synthesis, make(synthesis, voice=VoicePrompt(codes=codes))))
    assert any("no transcript" in note for note in warned.notes)
    voice = VoicePrompt(codes=codes, transcript="[S1] Before.")
    assert started(say(synthesis, make(synthesis, voice=voice))).notes == ()


def test_a_96_khz_stereo_float_prompt_is_resampled_and_mixed(synthesis, tmp_path):
    wav = write_wav(tmp_path / "voice.wav", 0.4, rate=96000, channels=2)
    events = say(synthesis, make(synthesis, voice=VoicePrompt(wav, transcript="[S1] Hm.")))
    notes = " ".join(started(events).notes)
    assert "96,000 to 16,000" in notes and "2 channels" in notes
    assert len(events[-1].result.codes) == SMALL.frames_within(60, 25)


def test_a_prompt_of_a_second_is_used_with_a_note(synthesis, tmp_path):
    wav = write_wav(tmp_path / "voice.wav", 1.0)
    events = say(synthesis, make(synthesis, voice=VoicePrompt(wav, transcript="."), max_tokens=200))
    assert "only 1.0 s" in " ".join(started(events).notes)
    assert isinstance(events[-1], Finished)


def test_a_prompt_as_long_as_there_is_room_fits_and_a_frame_more_does_not(synthesis, tmp_path):
    room = SMALL.frames_within(60) - 1
    fits = write_wav(tmp_path / "fits.wav", room * 256 / 16000)
    events = say(synthesis, make(synthesis, voice=VoicePrompt(fits, transcript=".")))
    assert len(events[-1].result.codes) == 1
    longer = write_wav(tmp_path / "longer.wav", (room + 1) * 256 / 16000)
    assert "fit" in refusal(synthesis, make(synthesis, voice=VoicePrompt(longer)))


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: write_wav(path, 2.0, level=0.0), "silent"),
        (lambda path: write_wav(path, 600.0, rate=8000, subtype="PCM_U8"), "600.0 s long"),
        (lambda path: write_wav(path, 0.0), "empty"),
        (lambda path: path.write_bytes(b"not audio at all" * 100), "cannot be read as audio"),
        (lambda path: path.write_bytes(b""), "cannot be read as audio"),
        (lambda path: None, "does not exist"),
    ],
)
def test_a_prompt_that_is_no_voice_is_refused_and_the_app_works_on(
    synthesis, tmp_path, write, said
):
    path = tmp_path / "voice.wav"
    write(path)
    request = make(synthesis, voice=VoicePrompt(path, transcript="."), max_tokens=600)
    assert said in refusal(synthesis, request)


# Takes


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_a_file_says_what_is_needed_to_make_the_take_again(synthesis, tmp_path, suffix):
    script = "[S1] Grüße (laughs), “you”. [S2] " + "Long. " * 40
    request = make(synthesis, script, seed=77, temperature=1.25)
    result = say(synthesis, request)[-1].result
    take = synthesis.take(request, result)
    found = read_metadata(take.save(tmp_path / f"take{suffix}"))
    again = Request(
        found["script"], GenerationParams(**found["settings"]), synthesis.settings.runtime
    )
    assert found["script"] == script and found["figures"]["model"] == request.runtime.model
    np.testing.assert_array_equal(say(synthesis, again)[-1].result.codes, result.codes)
    samples, rate = soundfile.read(tmp_path / f"take{suffix}", dtype="float32")
    assert rate == 16000
    np.testing.assert_allclose(samples, np.clip(take.samples, -1, 1), atol=1 / 32000)


def test_speed_changes_the_length_and_not_the_codes(synthesis):
    plain, fast = make(synthesis), make(synthesis, speed=2.0)
    first, second = (say(synthesis, request)[-1].result for request in (plain, fast))
    np.testing.assert_array_equal(first.codes, second.codes)
    lengths = [len(synthesis.take(*pair).samples) for pair in ((plain, first), (fast, second))]
    assert lengths[1] == pytest.approx(lengths[0] / 2, rel=0.02)


def test_a_take_without_a_sound_is_an_error_with_a_remedy(synthesis):
    result = say(synthesis, make(synthesis))[-1].result
    empty = replace(result, samples=np.zeros(0, np.float32), codes=result.codes[:0])
    with pytest.raises(RunError, match="another seed"):
        synthesis.take(make(synthesis), empty)


def test_random_seeds_are_seeds_and_differ():
    seeds = {random_seed() for _ in range(50)}
    assert len(seeds) > 45 and min(seeds) >= 0 and max(seeds) < 2**32


# Several takes in one batch


def test_takes_made_together_are_those_made_alone(synthesis):
    requests = [make(synthesis, seed=1), make(synthesis, "[S2] Other.", seed=2, cfg_scale=0.0)]
    alone = [say(synthesis, request)[-1].result for request in requests]
    told = {0: [], 1: []}
    for event in synthesis.stream_together(requests, threading.Event()):
        told[event.row].append(event)
    for row, expected in enumerate(alone):
        assert re.fullmatch("s[pa]+F", letters(told[row]))
        np.testing.assert_array_equal(told[row][-1].result.codes, expected.codes)


def test_takes_of_different_models_cannot_be_made_together(synthesis, folder):
    other = make(synthesis, runtime=runtime(folder, precision="bfloat16"))
    with pytest.raises(InputError, match="together"):
        drain(synthesis.stream_together([make(synthesis), other], threading.Event()))

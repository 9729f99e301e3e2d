"""A request from script to take: checks, models, events, files; and the app works on."""

import gc
import re
import threading
import weakref
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from dia_demo.audio import read_metadata
from dia_demo.codec import codec
from dia_demo.config import GenerationParams, RuntimeConfig, random_seed
from dia_demo.engine.batch import Batch
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Failed, Finished
from dia_demo.engine.loading import placement
from dia_demo.engine.time_left import NOTHING, TimeLeft
from dia_demo.errors import InputError, RunError
from dia_demo.services.loading.warm_up import WarmUp
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import SMALL, random_codes, write_small
from tests.helpers.synthesis_requests import letters, make_request, refusal, runtime, say

pytestmark = pytest.mark.usefixtures("talkative")


def test_only_the_first_take_loads_the_model(folder, tmp_path):
    synthesis = Synthesis(Settings(runtime(folder), 2, tmp_path))
    assert re.fullmatch("l+s[pa]+F", letters(say(synthesis, make_request(synthesis))))
    assert re.fullmatch("s[pa]+F", letters(say(synthesis, make_request(synthesis))))


def test_the_same_request_is_the_same_take(synthesis):
    first, again, other = (
        say(synthesis, make_request(synthesis, seed=seed))[-1].result for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.codes, again.codes)
    np.testing.assert_array_equal(first.samples, again.samples)
    assert (first.codes != other.codes).any()


def test_a_model_follows_the_cores_as_they_come_and_go(folder, tmp_path, monkeypatch):
    """A container's quota is changed while the app runs: threads without cores would wait for each
    other, and new cores would stay idle. The take is the same."""
    monkeypatch.setattr(placement, "CACHED_BYTES", 0)
    synthesis = Synthesis(Settings(RuntimeConfig(str(folder)), 2, tmp_path))
    codes = []
    for cores in (2, 1, 1, 2):
        monkeypatch.setattr(placement, "granted_cores", lambda cores=cores: cores)
        events = say(synthesis, make_request(synthesis))
        codes.append(events[-1].result.codes)
        assert synthesis._model.engine.placement.threads == cores
        assert ("l" in letters(events)) == (len(codes) != 3), "loaded again only after a change"
    for again in codes[1:]:
        np.testing.assert_array_equal(codes[0], again)


def test_a_take_without_audio_holds_the_same_codes(synthesis, monkeypatch):
    expected = say(synthesis, make_request(synthesis))[-1].result.codes
    monkeypatch.setattr(codec, "find_codec", lambda *_, **__: pytest.fail("a codec was loaded"))
    fresh = Synthesis(synthesis.settings)
    events = say(fresh, make_request(synthesis, with_audio=False))
    assert "a" not in letters(events) and events[-1].result.samples is None
    np.testing.assert_array_equal(events[-1].result.codes, expected)
    with pytest.raises(RunError):
        fresh.take(make_request(synthesis), events[-1].result)


def test_the_next_take_works_after_a_failed_run(synthesis, monkeypatch):
    def broken(*_):
        raise RunError("The decoder broke. Fetch it again.")

    with monkeypatch.context() as patch:
        patch.setattr(Batch, "step", broken)
        assert say(synthesis, make_request(synthesis))[-1] == Failed(
            "The decoder broke. Fetch it again."
        )
    assert isinstance(say(synthesis, make_request(synthesis))[-1], Finished)


def test_takes_made_together_are_those_made_alone(synthesis):
    requests = [
        make_request(synthesis, seed=1),
        make_request(synthesis, "[S2] Other.", seed=2, cfg_scale=0.0),
    ]
    alone = [say(synthesis, request)[-1].result for request in requests]
    told = {0: [], 1: []}
    for event in synthesis.stream_together(requests, threading.Event()):
        told[event.row].append(event)
    for row, expected in enumerate(alone):
        assert re.fullmatch("s[pa]+F", letters(told[row]))
        np.testing.assert_array_equal(told[row][-1].result.codes, expected.codes)


def test_takes_of_different_models_cannot_be_made_together(synthesis, folder):
    other = make_request(synthesis, runtime=runtime(folder, precision="bfloat16"))
    with pytest.raises(InputError, match="together"):
        result_of(synthesis.stream_together([make_request(synthesis), other], threading.Event()))


def test_another_model_replaces_the_first_which_goes_before_the_new_one_loads(
    synthesis, folder, tmp_path, monkeypatch
):
    """Two models side by side may not fit into memory."""
    say(synthesis, make_request(synthesis))
    old, load, seen = weakref.ref(synthesis._model.engine), Engine.load, []

    def watched(*request):
        # Earlier tests may have frozen what pytest keeps of errors, with the engine in its frames.
        gc.unfreeze()
        gc.collect()
        seen.append(old())
        return load(*request)

    monkeypatch.setattr(Engine, "load", watched)
    other = write_small(tmp_path / "other", seed=5, codec=True)
    result = say(synthesis, make_request(synthesis, runtime=runtime(other)))[-1].result
    assert seen == [None] and result.figures.model == str(other)
    result = say(synthesis, make_request(synthesis, runtime=runtime(other, precision="bfloat16")))[
        -1
    ].result
    assert result.figures.precision == "bfloat16" and result.codes.max() < SMALL.num_codes


def test_a_model_that_does_not_load_leaves_the_app_working(synthesis, folder, tmp_path):
    broken = write_small(tmp_path / "broken", codec=True)
    (weights,) = broken.glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "corrupted" in refusal(synthesis, make_request(synthesis, runtime=runtime(broken)))


def test_the_first_take_after_warm_up_needs_no_loading(synthesis, folder, tmp_path):
    warm = Synthesis(Settings(runtime(folder), 2, tmp_path))
    warm.warm_up()
    warm._warming.background.join(60)
    events = say(warm, make_request(warm))
    assert re.fullmatch("s[pa]+F", letters(events))
    expected = say(synthesis, make_request(synthesis))[-1].result.codes
    np.testing.assert_array_equal(events[-1].result.codes, expected)


def test_the_garbage_collector_skips_what_the_warm_up_loaded(folder, tmp_path):
    """Its full collections would stop every thread for a third of a second."""
    gc.unfreeze()
    warm = Synthesis(Settings(runtime(folder), 2, tmp_path))
    warm.warm_up()
    warm._warming.background.join(60)
    try:
        assert gc.get_freeze_count() > 10 * len(gc.get_objects())
    finally:
        gc.unfreeze()


def test_a_warm_up_that_fails_is_no_end(folder, tmp_path):
    """The page must open and say why when somebody presses Generate."""
    start = tmp_path / "broken"
    start.mkdir()
    warm = Synthesis(Settings(runtime(start), 2, tmp_path))
    warm.warm_up()
    warm._warming.background.join(60)
    assert isinstance(say(warm, make_request(warm, runtime=runtime(folder)))[-1], Finished)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(script=""), "empty"),
        (dict(script="[S1] " + "word " * 2000), "400"),
        (dict(script="[S1] a\0b"), "U\\+0000"),
        (dict(temperature=9.0), "temperature"),
        (dict(max_tokens=10_000), "max_tokens"),
        (dict(speed=5.0), "speed"),
        (dict(runtime=RuntimeConfig(model="no such model", threads=1)), "no such model"),
        (dict(voice=VoicePrompt(codes=np.zeros((4, 9), int))), r"\[frames, 3\]"),
        (dict(voice=VoicePrompt(codes=np.zeros((60, 3), int))), "shorten the prompt"),
        (dict(voice=VoicePrompt(codes=np.full((4, 3), 64))), "0 to 63"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_loaded(
    folder, tmp_path, monkeypatch, changes, said
):
    monkeypatch.setattr(Engine, "load", lambda *_: pytest.fail("a model was loaded"))
    synthesis = Synthesis(Settings(runtime(folder), 2, tmp_path))
    with pytest.raises(InputError, match=said):
        say(synthesis, make_request(synthesis, **changes))


def test_a_script_as_long_as_the_model_reads_is_read(synthesis):
    script = "[S1] " + "a" * (SMALL.encoder.max_positions - 2)
    assert isinstance(say(synthesis, make_request(synthesis, script))[-1], Finished)
    assert "cut" in refusal(synthesis, make_request(synthesis, script + "a"))


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_a_file_says_what_is_needed_to_make_the_take_again(synthesis, tmp_path, suffix):
    script = "[S1] Grüße (laughs), “you”. [S2] " + "Long. " * 40
    request = make_request(synthesis, script, seed=77, temperature=1.25)
    result = say(synthesis, request)[-1].result
    take = synthesis.take(request, result)
    found = read_metadata(take.save(tmp_path / f"take{suffix}"))
    params, info = GenerationParams(**found["settings"]), synthesis.models.first
    again = Request(found["script"], params, info, synthesis.settings.runtime)
    assert found["script"] == script and found["figures"]["model"] == request.runtime.model
    np.testing.assert_array_equal(say(synthesis, again)[-1].result.codes, result.codes)
    samples, rate = soundfile.read(tmp_path / f"take{suffix}", dtype="float32")
    assert rate == 16000
    np.testing.assert_allclose(samples, np.clip(take.samples, -1, 1), atol=1 / 32000)


def test_speed_changes_only_the_length_of_the_audio(synthesis):
    plain, fast = make_request(synthesis), make_request(synthesis, speed=2.0)
    first, second = (say(synthesis, request)[-1].result for request in (plain, fast))
    np.testing.assert_array_equal(first.codes, second.codes)
    lengths = [len(synthesis.take(*pair).samples) for pair in ((plain, first), (fast, second))]
    assert lengths[1] == pytest.approx(lengths[0] / 2, rel=0.02)


def test_a_take_without_a_sound_is_an_error_with_a_remedy(synthesis):
    result = say(synthesis, make_request(synthesis))[-1].result
    empty = replace(result, samples=np.zeros(0, np.float32), codes=result.codes[:0])
    with pytest.raises(RunError, match="another seed"):
        synthesis.take(make_request(synthesis), empty)
    silent = replace(empty, samples=np.full(5000, 1e-5, np.float32))
    voice = VoicePrompt(codes=random_codes(SMALL, 10))
    for of_take, advice in (
        (None, "another seed"),
        (voice, "the words spoken in the voice prompt"),
    ):
        with pytest.raises(RunError, match=f"only silence.*{advice}"):
            synthesis.take(make_request(synthesis, voice=of_take), silent)


def test_random_seeds_differ():
    seeds = {random_seed() for _ in range(50)}
    assert len(seeds) > 45 and min(seeds) >= 0 and max(seeds) < 2**32


def test_a_take_behind_another_loads_only_what_that_leaves_unloaded(folder, tmp_path, monkeypatch):
    """Its estimate includes that of the run before it, which waits for the warm-up."""
    synthesis = Synthesis(Settings(runtime(folder), 2, tmp_path))
    same, other = runtime(folder), replace(runtime(folder), precision="bfloat16")
    info = synthesis.models.first
    with synthesis._queue.enter() as ahead:
        ahead.runtime = same
        assert synthesis._queue.first is ahead
        assert (
            synthesis.loading(info, same).high
            > 0
            == synthesis.loading(info, same, behind=ahead).high
        )
        assert synthesis.loading(info, other, behind=ahead).high > 0
    say(synthesis, make_request(synthesis))
    ahead.runtime = other
    assert (
        synthesis.loading(info, same).high == 0 < synthesis.loading(info, same, behind=ahead).high
    )
    monkeypatch.setattr(WarmUp, "is_running", True)
    monkeypatch.setattr(WarmUp, "left", TimeLeft(5, 9))
    ahead.runtime = same
    assert synthesis.loading(info, same) == TimeLeft(5, 9)
    assert synthesis.loading(info, same, behind=ahead) == NOTHING

"""Making the pairs: progress, level-matched clips, shared batches, Stop, failures, going on."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pyloudnorm
import pytest

from dia_demo.engine.events import Failed, Finished
from dia_demo.engine.scheduler import PLACES
from dia_demo.errors import InputError
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.plan.rebuild import rebuild_plan
from dia_demo.services.listening.render import RenderEnded, RenderProgress
from dia_demo.services.take import VoicePrompt
from tests.helpers.comparisons import SCRIPTS, clips_of, make
from tests.helpers.voices import NO_VOICES


def test_progress_reports_every_finished_pair(finished):
    *progress, ended = finished.events
    assert all(isinstance(event, RenderProgress) for event in progress)
    assert isinstance(ended, RenderEnded) and not ended.stopped and not ended.failures
    assert ended.pairs_made == ended.pairs == 4
    fractions = [event.fraction for event in progress]
    assert all(0 <= one <= 1 for one in fractions)
    assert {event.pairs_made for event in progress} >= {0, 1, 2, 3}


def test_clips_are_level_matched_int16_of_one_length(finished):
    for pair in clips_of(finished).values():
        (first, rate), (second, _) = pair
        assert first.dtype == np.int16 and len(first) == len(second)
        loudness = [
            pyloudnorm.Meter(rate).integrated_loudness(clip / 32767) for clip in (first, second)
        ]
        assert abs(loudness[0] - loudness[1]) < 0.1
    assert all(gain <= 0 for secret in finished.plan.secrets.values() for gain in secret.gains_db)


def test_a_pairs_take_equals_the_take_made_alone(finished, synthesis, base):
    """The batch and the lone request draw the same numbers: the clip is that take, turned down."""
    trial = finished.plan.trials[0]
    secret = finished.plan.secrets[trial.id]
    for clip in (0, 1):
        setting = finished.plan.settings[secret.setting_of(trial, clip)]
        request = setting.request(
            synthesis.models[setting.runtime.model],
            finished.plan.scripts[trial.script],
            trial.seed,
            None,
            NO_VOICES,
        )
        request = replace(request, runtime=synthesis.settings.runtime)
        events = list(synthesis.stream(request, threading.Event()))
        alone = synthesis.take(request, events[-1].result).samples
        heard = clips_of(finished)[trial.id][clip][0][: len(alone)] / 32767
        gain = 10 ** (secret.gains_db[clip] / 20)
        assert np.abs(heard - alone * gain).max() < 3 / 32767


@pytest.mark.long
def test_takes_of_one_runtime_share_a_batch(two_settings, synthesis, tmp_path, monkeypatch):
    sizes = []
    together = synthesis.stream_together
    monkeypatch.setattr(
        synthesis,
        "stream_together",
        lambda requests, cancel: sizes.append(len(requests)) or together(requests, cancel),
    )
    plan = make_plan("preference", two_settings, SCRIPTS[:1], (1, 2))
    make(Comparison.create(tmp_path / "one", plan, synthesis), synthesis)
    assert sizes == [4]
    sizes.clear()
    other = [two_settings[0], two_settings[1].change({"precision": "bfloat16"})]
    plan = make_plan("preference", other, SCRIPTS[:1], (1, 2))
    comparison = Comparison.create(tmp_path / "two", plan, synthesis)
    make(comparison, synthesis)
    assert sizes == [2, 2] and all(trial.made for trial in comparison.plan.trials)
    facts = {comparison.plan.facts[slot.id]["precision"] for slot in comparison.plan.slots}
    assert facts == {"float32", "bfloat16"}


def test_the_same_plan_gives_the_same_clips(finished, synthesis, tmp_path):
    again = Comparison.create(tmp_path / "again", rebuild_plan(finished.plan), synthesis)
    assert not any(trial.made for trial in again.plan.trials)
    make(again, synthesis)
    for trial, pair in clips_of(finished).items():
        for one, other in zip(pair, clips_of(again)[trial], strict=True):
            assert np.array_equal(one[0], other[0])


def test_a_restart_after_stop_makes_only_the_missing_pairs(two_settings, synthesis, tmp_path):
    plan = make_plan("preference", two_settings, SCRIPTS, range(PLACES))
    comparison, cancel = Comparison.create(tmp_path / "dir", plan, synthesis), threading.Event()
    for event in comparison.run(synthesis, cancel):
        if isinstance(event, RenderProgress) and event.pairs_made == 2:
            cancel.set()
    stopped_at = event.pairs_made
    assert event.stopped and 2 <= stopped_at < len(plan.trials)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "dir" / "clips").iterdir()}
    reopened = Comparison.open(tmp_path / "dir")
    ended = make(reopened, synthesis)[-1]
    assert ended.pairs_made == len(plan.trials) > stopped_at and not ended.stopped
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert list((tmp_path / "dir" / "takes").iterdir()) == []


def test_a_failed_take_counts_as_a_failed_pair(two_settings, synthesis, tmp_path, monkeypatch):
    plan = make_plan("preference", two_settings, SCRIPTS, (1,))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    together = synthesis.stream_together

    def broken(requests, cancel):
        for event in together(requests, cancel):
            if isinstance(event, Finished) and event.row == 1 and requests[0].script == SCRIPTS[0]:
                event = Failed("The decoder returned a non-finite number.", 1)
            yield event

    with monkeypatch.context() as patch:
        patch.setattr(synthesis, "stream_together", broken)
        ended = make(comparison, synthesis)[-1]
    assert ended.pairs_made == 1 and ended.failures == (
        "The decoder returned a non-finite number.",
    )
    assert len(comparison.failed_takes()) == 1 and comparison.result().failed == 1
    assert "could not be generated" in " ".join(comparison.result().notes)
    assert len(comparison.plan.trials) == 2
    reopened = Comparison.open(tmp_path / "dir")
    assert make(reopened, synthesis)[-1].pairs_made == 2 and not reopened.failed_takes()


def test_lost_clips_are_made_again(voting, synthesis):
    trial = voting.plan.trials[0]
    before = clips_of(voting)[trial.id][0][0]
    (voting.folder / "clips" / trial.clips[0]).unlink()
    reopened = Comparison.open(voting.folder)
    assert [t.made for t in reopened.plan.trials] == [False, True, True, True]
    make(reopened, synthesis)
    assert np.array_equal(clips_of(reopened)[trial.id][0][0], before)


def test_a_voice_prompt_is_kept_beside_the_plan(two_settings, synthesis, tmp_path):
    codes = np.random.default_rng(0).integers(0, 64, (10, 3)).astype(np.int16)
    voice = VoicePrompt(codes=codes, transcript="[S1] Hm.")
    plan = make_plan("preference", two_settings, SCRIPTS[:1], (1,))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis, voice)
    make(comparison, synthesis)
    reopened = Comparison.open(tmp_path / "dir")
    assert reopened.plan.voice_transcript == "[S1] Hm." and reopened.plan.trials[0].made
    assert np.array_equal(np.load(tmp_path / "dir" / "voice.npy"), codes)


def test_voice_codes_whose_header_lies_are_refused(two_settings, synthesis, tmp_path):
    voice = VoicePrompt(codes=np.zeros((10, 3), np.int16), transcript="[S1] Hm.")
    plan = make_plan("preference", two_settings, SCRIPTS[:1], (1,))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis, voice)
    file = tmp_path / "dir" / "voice.npy"
    lying = file.read_bytes().replace(b"(10, 3), }       ", b"(9999999, 999), }")
    file.write_bytes(lying)
    with pytest.raises(InputError, match="voice.npy cannot be read"):
        make(comparison, synthesis)


def test_only_one_run_at_a_time(finished, synthesis):
    running = finished.run(synthesis, threading.Event())
    next(running)
    with pytest.raises(InputError, match="already"):
        next(finished.run(synthesis, threading.Event()))
    running.close()

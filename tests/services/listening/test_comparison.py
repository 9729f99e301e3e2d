"""A comparison's folder: what it refuses, and that nothing in it tells the sides."""

from __future__ import annotations

import base64
import json
from dataclasses import fields, replace

import numpy as np
import pytest
import soundfile

from dia_demo.errors import InputError
from dia_demo.services.listening.comparison import Comparison, rebuilt
from dia_demo.services.listening.plan import Secret, make_plan
from tests.helpers.comparisons import HEARD, SCRIPTS, make


def test_a_folder_in_use_is_refused(finished, synthesis, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(InputError, match="not empty"):
        Comparison.create(tmp_path, rebuilt(finished.plan), synthesis)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_what_can_never_run_is_refused_before_anything_is_written(base, synthesis, tmp_path):
    hot = base.changed({"temperature": 99})
    plan = make_plan("preference", [base, hot], SCRIPTS, (1,))
    with pytest.raises(InputError, match="temperature"):
        Comparison.create(tmp_path / "dir", plan, synthesis)
    assert not (tmp_path / "dir").exists()


def test_nothing_on_the_disk_tells_the_sides(finished):
    """Names are random, files say nothing of themselves, the plan's open part knows no mapping."""
    raw = json.loads((finished.folder / "plan.json").read_text())
    sealed = raw.pop("sealed")
    text = json.dumps(raw)
    for name in ("loudness_lufs", *(field.name for field in fields(Secret))):
        assert f'"{name}"' not in text
    assert b'"flip"' not in base64.b64decode(sealed)
    for trial in finished.plan.trials:
        sizes = {(finished.folder / "clips" / clip).stat().st_size for clip in trial.clips}
        assert len(sizes) == 1, "the length of a file must not tell"
        for clip in trial.clips:
            with soundfile.SoundFile(finished.folder / "clips" / clip) as file:
                assert file.subtype == "PCM_16" and not any(file.copy_metadata().values())
    assert not (finished.folder / "votes.csv").exists()


def test_the_order_of_names_does_not_tell(finished):
    """Names sorted, or taken as numbers, agree with the mapping about as often as a coin."""
    agree = []
    for _ in range(30):
        plan = make_plan("preference", finished.plan.settings, SCRIPTS[:1], tuple(range(10)))
        agree += [(t.clips[0] < t.clips[1]) == plan.secrets[t.id].flip for t in plan.trials]
    assert 105 < sum(agree) < 195


def test_the_sides_stay_hidden_until_the_end(finished):
    with pytest.raises(InputError, match="hidden"):
        finished.revealed()


def test_abx_clips_are_never_the_same_bytes(base, synthesis, tmp_path):
    plan = make_plan("abx", [base, base.changed({"top_k": 3})], SCRIPTS[:1], (1, 2))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    for trial in comparison.plan.trials:
        a, b, x = (comparison.clip(trial.id, letter) for letter in "ABX")
        assert len(a) == len(b) == len(x) and x not in (a, b)
        true = comparison.plan.secrets[trial.id].x
        pcm = [np.frombuffer(clip[44:], "<i2").astype(int) for clip in (a, b, x)]
        assert np.abs(pcm[2] - pcm[true]).max() <= 2


def test_noise_in_the_silence_does_not_tell_x_from_the_others(base, synthesis, tmp_path):
    """The last bit is drawn in A and B as well: once X alone had noise behind its end."""
    plan = make_plan("abx", [base, base.changed({"speed": 1.6})], SCRIPTS[:1], (1, 2))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    for trial in comparison.plan.trials:
        silent = 0
        for letter in "ABX":
            tail = np.frombuffer(comparison.clip(trial.id, letter)[44:], "<i2")[-200:]
            assert len(set(tail)) > 1, letter
            silent += np.abs(tail).max() <= 1
        assert silent, "the faster side is padded with silence"


def test_a_sighted_comparison_takes_no_votes(two_settings, synthesis, tmp_path):
    plan = make_plan("sighted", two_settings, SCRIPTS[:1], (1,))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    (one,) = comparison.revealed()
    assert one.heard == ("A", "B") and comparison.next_trial() is None
    assert one.facts[0]["loudness_lufs"] < 0 and one.facts[0]["words_per_minute"] > 0
    with pytest.raises(InputError, match="no longer accepted"):
        comparison.vote(one.trial.id, "A", HEARD)


def test_the_pair_on_show_stays_until_it_is_voted_on(two_settings, synthesis, tmp_path):
    """A pair that is made later and comes earlier in the shuffled order does not replace it."""
    plan = make_plan("preference", two_settings, SCRIPTS[:1], (1, 2, 3))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    first, second, third = comparison.plan.trials
    whole = comparison.plan
    comparison.plan = whole.with_trial(replace(first, made=False), whole.secrets[first.id])
    assert comparison.next_trial() == second
    comparison.plan = whole
    assert comparison.next_trial() == second, "the first of the order is made now"
    assert comparison.next_trial(third.id) == second, "a page does not choose"
    again = Comparison.open(tmp_path / "dir")
    assert again.next_trial(second.id) == second, "the program was started anew, the page was not"
    comparison.vote(second.id, "A", HEARD)
    assert comparison.next_trial() == first

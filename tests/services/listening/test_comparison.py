"""A comparison's folder: what it refuses, and that nothing in it tells the sides."""

from __future__ import annotations

import base64
import csv
import io
import json
import threading
from dataclasses import fields, replace

import numpy as np
import pytest
import soundfile

from dia_demo.errors import InputError
from dia_demo.services.listening.clips import add_x
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import Secret, make_plan
from dia_demo.services.listening.plan.rebuild import rebuild_plan
from dia_demo.services.listening.votes.votes import SIDES
from tests.helpers.comparisons import HEARD, SCRIPTS, make


def test_a_folder_in_use_is_refused(finished, synthesis, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(InputError, match="not empty"):
        Comparison.create(tmp_path, rebuild_plan(finished.plan), synthesis)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_what_can_never_run_is_refused_before_anything_is_written(base, synthesis, tmp_path):
    hot = base.change({"temperature": 99})
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
    marks = set()
    for trial in finished.plan.trials:
        sizes = {(finished.folder / "clips" / clip).stat().st_size for clip in trial.clips}
        assert len(sizes) == 1, "the length of a file must not tell"
        for clip in trial.clips:
            with soundfile.SoundFile(finished.folder / "clips" / clip) as file:
                assert file.subtype == "PCM_16"
                marks.add(tuple(sorted(file.copy_metadata().items())))
    # That it is synthetic speech, the same in every file.
    ((artist, software),) = marks
    assert artist == ("artist", "Synthetic speech (dia_demo)")
    assert software[1].startswith("dia_demo (libsndfile")
    assert not (finished.folder / "votes.csv").exists()


def test_a_vote_does_not_tell_the_sides_before_the_end(voting):
    """Not in votes.csv, nor in what follows from it and the open part of the plan."""
    first, *others = voting.plan.trials
    voting.vote(first.id, "A", HEARD)
    (row,) = read_rows(voting)
    hidden = [row[column] for column in SIDES]
    assert set(hidden) == {""} and row["vote"] == "A" and row["seed"] == str(first.seed)
    for trial in others:
        voting.vote(trial.id, "A", HEARD)
    rows = {row["trial"]: row for row in read_rows(voting)}
    for trial in voting.plan.trials:
        winner = "AB"[voting.plan.secrets[trial.id].flip]
        assert rows[trial.id]["winner"] == rows[trial.id]["heard_a"] == winner
        assert json.loads(rows[trial.id]["settings_a"])["temperature"] in (0.7, 1.9)
    assert Comparison.open(voting.folder).votes == voting.votes


def read_rows(comparison: Comparison) -> list[dict]:
    with open(comparison.folder / "votes.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_names_of_takes_do_not_tell_their_setting(two_settings, synthesis, tmp_path):
    """Takes of a round stay on the disk until all its pairs are made; the plan names the setting of
    each slot."""
    three = [*two_settings, two_settings[0].change({"temperature": 1.2})]
    plan = make_plan("preference", three, SCRIPTS[:1], (1,))
    files = {plan.take_file(slot) for slot in plan.slots}
    comparison, cancel = Comparison.create(tmp_path / "dir", plan, synthesis), threading.Event()
    open_part = json.loads((tmp_path / "dir" / "plan.json").read_text())
    del open_part["sealed"]
    assert len(files) == 3 and not any(name[:24] in json.dumps(open_part) for name in files)
    seen = set()
    for _ in comparison.run(synthesis, cancel):
        seen |= {path.name for path in (tmp_path / "dir" / "takes").glob("*.wav")}
    assert seen and seen <= files


def test_the_order_of_names_does_not_tell(finished):
    """Names sorted, or taken as numbers, agree with the mapping about as often as a coin."""
    agree = []
    for _ in range(30):
        plan = make_plan("preference", finished.plan.settings, SCRIPTS[:1], tuple(range(10)))
        agree += [(t.clips[0] < t.clips[1]) == plan.secrets[t.id].flip for t in plan.trials]
    assert 105 < sum(agree) < 195


def test_the_sides_stay_hidden_until_the_end(finished):
    with pytest.raises(InputError, match="hidden"):
        finished.revealed_pairs()


def test_abx_clips_are_never_the_same_bytes(base, synthesis, tmp_path):
    plan = make_plan("abx", [base, base.change({"top_k": 3})], SCRIPTS[:1], (1, 2))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    for trial in comparison.plan.trials:
        a, b, x = (comparison.clip(trial.id, letter) for letter in "ABX")
        assert len(a) == len(b) == len(x) and x not in (a, b)


def test_x_is_not_named_by_subtraction():
    """Of speech: a tone would be like itself after every period."""
    rate = 16_000
    speech = [spoken(seed, rate) for seed in (1, 2)]
    nearer = []
    for draw in range(100):
        x = draw % 2
        a, b, heard = add_x(speech, x, rate)
        left = [np.sum((heard.astype(float) - clip) ** 2) for clip in (a, b)]
        nearer.append((left[0] < left[1]) == (x == 0))
    assert 30 <= sum(nearer) <= 70
    for clip, original in ((a, speech[0]), (b, speech[1]), (heard, speech[x])):
        residue = min(
            np.abs(clip[at : at + len(original)].astype(int) - original).max()
            for at in range(len(clip) - len(original) + 1)
        )
        assert residue <= 4, "shifted, and with a few steps of dither, but otherwise itself"


def spoken(seed: int, rate: int) -> np.ndarray:
    """Int16 [n]: a voice of wandering pitch with syllables, for a second."""
    random = np.random.default_rng(seed)
    points = np.linspace(0, 1, rate)
    pitch = np.interp(points, np.linspace(0, 1, 12), random.uniform(90, 220, 12))
    level = np.interp(points, np.linspace(0, 1, 16), random.uniform(0, 1, 16))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    wave = level * sum(np.sin(n * phase + random.uniform(0, 6)) / n for n in range(1, 20))
    return (8000 * wave / np.abs(wave).max()).astype(np.int16)


def test_noise_in_the_silence_does_not_tell_x_from_the_others(base, synthesis, tmp_path):
    """The last bit is drawn in A and B as well: once X alone had noise behind its end."""
    plan = make_plan("abx", [base, base.change({"speed": 1.6})], SCRIPTS[:1], (1, 2))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    for trial in comparison.plan.trials:
        silent = 0
        for letter in "ABX":
            clip = io.BytesIO(comparison.clip(trial.id, letter))
            tail = soundfile.read(clip, dtype="int16")[0][-200:]
            assert len(set(tail)) > 1, letter
            silent += np.abs(tail).max() <= 4
        assert silent, "the faster side is padded with silence"


def test_a_sighted_comparison_takes_no_votes(two_settings, synthesis, tmp_path):
    plan = make_plan("sighted", two_settings, SCRIPTS[:1], (1,))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    (one,) = comparison.revealed_pairs()
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

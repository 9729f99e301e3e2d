"""Blind comparisons: plans, making, blindness on disk, votes that last, results, resuming."""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pyloudnorm
import pytest
import soundfile
from checkpoints import write_small

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Failed, Finished
from dia_demo.engine.loop import ROWS_AT_ONCE
from dia_demo.errors import InputError
from dia_demo.services import votes as votes_module
from dia_demo.services.compare import Comparison, rebuilt
from dia_demo.services.plan import (
    Setting,
    differences,
    draw_seeds,
    make_plan,
    split_scripts,
    what_it_can_show,
)
from dia_demo.services.plan_run import PlanEnded, PlanProgress
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis, VoicePrompt

SCRIPTS = ("[S1] Hello there. [S2] Yes.", "[S1] What now? [S2] Nothing.")
HEARD = {"A": 9.0, "B": 9.0, "X": 9.0}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_small(tmp_path_factory.mktemp("compare") / "small", codec=True))


@pytest.fixture(scope="module")
def synthesis(model, tmp_path_factory):
    runtime = RuntimeConfig(model=model, threads=1)
    return Synthesis(Settings(runtime, takes_folder=tmp_path_factory.mktemp("takes")))


@pytest.fixture(scope="module")
def base(model, synthesis):
    params = replace(synthesis.info(model).config.defaults, max_tokens=60)
    return Setting(params, RuntimeConfig(model=model))


@pytest.fixture
def sides(base):
    return [base.changed({"temperature": 0.7}), base.changed({"temperature": 1.9})]


def make(comparison, synthesis, cancel=None):
    return list(comparison.run(synthesis, cancel or threading.Event()))


@pytest.fixture(scope="module")
def made(base, synthesis, tmp_path_factory):
    """Four finished pairs nobody has voted on; tests must not vote on them."""
    sides = [base.changed({"temperature": 0.7}), base.changed({"temperature": 1.9})]
    plan = make_plan("preference", sides, SCRIPTS, (5, 6))
    comparison = Comparison.create(tmp_path_factory.mktemp("made") / "dir", plan, synthesis)
    comparison.events = make(comparison, synthesis)
    return comparison


def clips_of(comparison):
    folder = comparison.folder / "clips"
    return {
        trial.id: [soundfile.read(folder / clip, dtype="int16") for clip in trial.clips]
        for trial in comparison.plan.trials
    }


# Plans


def test_a_plan_is_every_script_with_every_seed(sides):
    plan = make_plan("preference", sides, SCRIPTS, (1, 2, 3))
    assert len(plan.trials) == 6 and len(plan.slots) == 12
    assert {(trial.script, trial.seed) for trial in plan.trials} == {
        (script, seed) for script in (0, 1) for seed in (1, 2, 3)
    }


def test_a_round_pairs_everyone_with_everyone(base):
    settings = [base.changed({"temperature": 0.5 + index / 4}) for index in range(6)]
    plan = make_plan("preference", settings, SCRIPTS[:1], (1, 2))
    assert len(plan.trials) == 30
    assert set(Counter(trial.settings for trial in plan.trials).values()) == {2}


def test_the_sides_are_drawn_anew_for_every_trial(sides):
    plan = make_plan("preference", sides, SCRIPTS[:1], tuple(range(200)))
    flipped = sum(secret.flip for secret in plan.secrets.values())
    assert 60 < flipped < 140
    again = make_plan("preference", sides, SCRIPTS[:1], tuple(range(200)))
    order = [plan.secrets[trial.id].flip for trial in plan.trials]
    assert order != [again.secrets[trial.id].flip for trial in again.trials]


def test_identical_sides_are_refused_and_abx_or_a_seed_offered(base):
    with pytest.raises(InputError, match="identical.*seed_shift.*ABX"):
        make_plan("preference", [base, base], SCRIPTS, (1,))
    make_plan("abx", [base, base], SCRIPTS, (1,))
    make_plan("preference", [base, base.changed({"seed_shift": 1})], SCRIPTS, (1,))


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(kind="other"), "one of preference, abx, sighted"),
        (dict(scripts=()), "script is empty"),
        (dict(scripts=("  ",)), "script is empty"),
        (dict(seeds=()), "seed"),
        (dict(seeds=(1, 1)), "none twice"),
        (dict(seeds=(-1,)), "seed must be"),
        (dict(seeds=tuple(range(201))), "200 allowed"),
        (dict(count=1), "from 2 to 6"),
        (dict(count=7), "from 2 to 6"),
        (dict(kind="abx", count=3), "from 2 to 2"),
    ],
)
def test_impossible_plans_are_refused(base, change, message):
    asked = dict(kind="preference", scripts=SCRIPTS, seeds=(1, 2), count=2) | change
    settings = [base.changed({"top_k": 9 + index}) for index in range(asked.pop("count"))]
    with pytest.raises(InputError, match=message):
        make_plan(settings=settings, **asked)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"warmth": 1}, "No setting is called 'warmth'"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"top_k": 2.5}, "top_k must be a whole number"),
        ({"precision": "int7"}, "precision must be one of"),
        ({"model": 3}, "model cannot be 3"),
    ],
)
def test_settings_say_what_is_wrong(base, change, message):
    with pytest.raises(InputError, match=message):
        base.changed(change)


def test_what_differs_is_named(base):
    other = base.changed({"cfg_scale": 2, "precision": "bfloat16"})
    found = differences([base, other])
    assert found == {"cfg_scale": (3.0, 2.0), "precision": ("auto", "bfloat16")}


def test_what_a_number_of_pairs_can_show():
    assert "only a clean sweep" in what_it_can_show("preference", 6)
    assert "9 of 10" in what_it_can_show("preference", 10)
    assert "can show nothing" in what_it_can_show("preference", 5)
    assert "9 right answers" in what_it_can_show("abx", 10)
    assert "can show nothing" in what_it_can_show("abx", 4)
    assert "proves nothing" in what_it_can_show("sighted", 40)


def test_scripts_are_split_at_dashes():
    assert split_scripts("[S1] One.\n---\n[S1] Two.\n -----\n\n") == ("[S1] One.", "[S1] Two.")
    assert split_scripts("[S1] Well - yes -- no.") == ("[S1] Well - yes -- no.",)


def test_seeds_are_distinct_and_repeatable():
    assert draw_seeds(3, 7) == (7, 8, 9)
    assert len(set(draw_seeds(100))) == 100


# Making


def test_progress_grows_and_ends(made):
    *progress, ended = made.events
    assert all(isinstance(event, PlanProgress) for event in progress)
    assert isinstance(ended, PlanEnded) and not ended.stopped and not ended.failures
    assert ended.pairs_made == ended.pairs == 4
    fractions = [event.fraction for event in progress]
    assert all(0 <= one <= 1 for one in fractions)
    assert {event.pairs_made for event in progress} >= {0, 1, 2, 3}


def test_clips_are_level_matched_int16_of_one_length(made):
    for pair in clips_of(made).values():
        (first, rate), (second, _) = pair
        assert first.dtype == np.int16 and len(first) == len(second)
        loudness = [
            pyloudnorm.Meter(rate).integrated_loudness(clip / 32767) for clip in (first, second)
        ]
        assert abs(loudness[0] - loudness[1]) < 0.1
    assert all(gain <= 0 for secret in made.plan.secrets.values() for gain in secret.gains_db)


def test_a_pairs_take_equals_the_take_made_alone(made, synthesis, base):
    """The batch and the lone request draw the same numbers: the clip is that take, turned down."""
    trial = made.plan.trials[0]
    secret = made.plan.secrets[trial.id]
    for clip in (0, 1):
        setting = made.plan.settings[secret.setting_of(trial, clip)]
        request = setting.request(made.plan.scripts[trial.script], trial.seed, None)
        request = replace(request, runtime=synthesis.settings.runtime)
        events = list(synthesis.stream(request, threading.Event()))
        alone = synthesis.take(request, events[-1].result).samples
        heard = clips_of(made)[trial.id][clip][0][: len(alone)] / 32767
        gain = 10 ** (secret.gains_db[clip] / 20)
        assert np.abs(heard - alone * gain).max() < 3 / 32767


def test_takes_of_one_runtime_share_a_batch(sides, synthesis, tmp_path, monkeypatch):
    sizes = []
    together = synthesis.stream_together
    monkeypatch.setattr(
        synthesis,
        "stream_together",
        lambda requests, cancel: sizes.append(len(requests)) or together(requests, cancel),
    )
    plan = make_plan("preference", sides, SCRIPTS[:1], (1, 2))
    make(Comparison.create(tmp_path / "one", plan, synthesis), synthesis)
    assert sizes == [4]
    sizes.clear()
    other = [sides[0], sides[1].changed({"precision": "bfloat16"})]
    plan = make_plan("preference", other, SCRIPTS[:1], (1, 2))
    comparison = Comparison.create(tmp_path / "two", plan, synthesis)
    make(comparison, synthesis)
    assert sizes == [2, 2] and all(trial.made for trial in comparison.plan.trials)
    facts = {comparison.plan.facts[slot.id]["precision"] for slot in comparison.plan.slots}
    assert facts == {"float32", "bfloat16"}


def test_the_same_plan_gives_the_same_clips(made, synthesis, tmp_path):
    again = Comparison.create(tmp_path / "again", rebuilt(made.plan), synthesis)
    assert not any(trial.made for trial in again.plan.trials)
    make(again, synthesis)
    for trial, pair in clips_of(made).items():
        for one, other in zip(pair, clips_of(again)[trial], strict=True):
            assert np.array_equal(one[0], other[0])


def test_stop_keeps_finished_pairs_and_a_restart_goes_on(sides, synthesis, tmp_path):
    plan = make_plan("preference", sides, SCRIPTS, range(ROWS_AT_ONCE))
    comparison, cancel = Comparison.create(tmp_path / "dir", plan, synthesis), threading.Event()
    for event in comparison.run(synthesis, cancel):
        if isinstance(event, PlanProgress) and event.pairs_made == 2:
            cancel.set()
    stopped_at = event.pairs_made
    assert event.stopped and 2 <= stopped_at < len(plan.trials)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "dir" / "clips").iterdir()}
    reopened = Comparison.open(tmp_path / "dir")
    ended = make(reopened, synthesis)[-1]
    assert ended.pairs_made == len(plan.trials) > stopped_at and not ended.stopped
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert list((tmp_path / "dir" / "takes").iterdir()) == []


def test_a_failed_take_is_marked_counted_and_retried(sides, synthesis, tmp_path, monkeypatch):
    plan = make_plan("preference", sides, SCRIPTS, (1,))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    together = synthesis.stream_together

    def broken(requests, cancel):
        for event in together(requests, cancel):
            if isinstance(event, Finished) and event.row == 1 and requests[0].script == SCRIPTS[0]:
                event = Failed("The decoder gave a non-finite number.", 1)
            yield event

    with monkeypatch.context() as patch:
        patch.setattr(synthesis, "stream_together", broken)
        ended = make(comparison, synthesis)[-1]
    assert ended.pairs_made == 1 and ended.failures == ("The decoder gave a non-finite number.",)
    assert len(comparison.failed()) == 1 and comparison.tally().failed == 1
    assert "could not be made" in " ".join(comparison.tally().notes)
    assert len(comparison.plan.trials) == 2
    reopened = Comparison.open(tmp_path / "dir")
    assert make(reopened, synthesis)[-1].pairs_made == 2 and not reopened.failed()


def test_a_voice_prompt_is_kept_beside_the_plan(sides, synthesis, tmp_path):
    codes = np.random.default_rng(0).integers(0, 64, (10, 3)).astype(np.int16)
    voice = VoicePrompt(codes=codes, transcript="[S1] Hm.")
    plan = make_plan("preference", sides, SCRIPTS[:1], (1,))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis, voice)
    make(comparison, synthesis)
    reopened = Comparison.open(tmp_path / "dir")
    assert reopened.plan.voice_transcript == "[S1] Hm." and reopened.plan.trials[0].made
    assert np.array_equal(np.load(tmp_path / "dir" / "voice.npy"), codes)


def test_only_one_run_at_a_time(made, synthesis):
    running = made.run(synthesis, threading.Event())
    next(running)
    with pytest.raises(InputError, match="already"):
        next(made.run(synthesis, threading.Event()))
    running.close()


def test_a_folder_in_use_is_refused(made, synthesis, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(InputError, match="not empty"):
        Comparison.create(tmp_path, rebuilt(made.plan), synthesis)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_what_can_never_run_is_refused_before_anything_is_written(base, synthesis, tmp_path):
    hot = base.changed({"temperature": 99})
    plan = make_plan("preference", [base, hot], SCRIPTS, (1,))
    with pytest.raises(InputError, match="temperature"):
        Comparison.create(tmp_path / "dir", plan, synthesis)
    assert not (tmp_path / "dir").exists()


# Blindness


def test_nothing_on_the_disk_tells_the_sides(made):
    """Names are random, files say nothing of themselves, the plan's open part knows no mapping."""
    raw = json.loads((made.folder / "plan.json").read_text())
    sealed = raw.pop("sealed")
    text = json.dumps(raw)
    assert "flip" not in text and "gains" not in text and "loudness" not in text
    assert "flip" not in sealed
    for trial in made.plan.trials:
        sizes = {(made.folder / "clips" / clip).stat().st_size for clip in trial.clips}
        assert len(sizes) == 1, "the length of a file must not tell"
        for clip in trial.clips:
            with soundfile.SoundFile(made.folder / "clips" / clip) as file:
                assert file.subtype == "PCM_16" and not any(file.copy_metadata().values())
    assert not (made.folder / "votes.csv").exists()


def test_the_order_of_names_does_not_tell(made):
    """Names sorted, or taken as numbers, agree with the mapping about as often as a coin."""
    agree = []
    for _ in range(30):
        plan = make_plan("preference", made.plan.settings, SCRIPTS[:1], tuple(range(10)))
        agree += [(t.clips[0] < t.clips[1]) == plan.secrets[t.id].flip for t in plan.trials]
    assert 105 < sum(agree) < 195


def test_the_sides_stay_hidden_until_the_end(made):
    with pytest.raises(InputError, match="hidden"):
        made.revealed()


def test_abx_clips_are_never_the_same_bytes(base, synthesis, tmp_path):
    plan = make_plan("abx", [base, base.changed({"top_k": 3})], SCRIPTS[:1], (1, 2))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    for trial in comparison.plan.trials:
        a, b, x = (comparison.clip(trial.id, letter) for letter in "ABX")
        assert len(a) == len(b) == len(x) and x not in (a, b)
        true = comparison.plan.secrets[trial.id].x
        pcm = [np.frombuffer(clip[44:], "<i2").astype(int) for clip in (a, b, x)]
        assert np.abs(pcm[2] - pcm[true]).max() <= 1


# Votes


@pytest.fixture
def voting(made, tmp_path):
    """A copy of the finished pairs to vote on."""
    shutil.copytree(made.folder, tmp_path / "voting")
    return Comparison.open(tmp_path / "voting")


def test_votes_count_for_the_side_behind_the_clip(voting):
    while trial := voting.next_trial():
        # Always the hotter side, wherever it is.
        secret = voting.plan.secrets[trial.id]
        voting.vote(trial.id, "A" if secret.flip else "B", HEARD, 3, "warmer")
    overall = voting.tally().overall
    assert (overall.first, overall.second, overall.ties) == (0, 4, 0)
    assert overall.p == pytest.approx(0.125)
    assert "too few" in voting.tally().sentence
    assert {one.heard["AB".index(one.vote.vote)] for one in voting.revealed()} == {"B"}


def test_ties_are_reported_apart(voting):
    for trial in voting.plan.trials:
        voting.vote(trial.id, "none", HEARD)
    overall = voting.tally().overall
    assert (overall.decided, overall.ties, overall.rate) == (0, 4, None)


def test_results_come_per_script_and_per_seed(voting):
    for trial in voting.plan.trials:
        voting.vote(trial.id, "A", HEARD)
    result = voting.tally()
    assert [one.label for one in result.by_script] == ["script 1", "script 2"]
    assert [one.label for one in result.by_seed] == ["seed 5", "seed 6"]
    for part in (result.by_script, result.by_seed):
        assert sum(one.first for one in part) == result.overall.first
    assert result.listening_seconds == 4 * 27


@pytest.mark.parametrize(
    "answer, heard, strength, message",
    [
        ("A", {"A": 9.0}, None, "Listen to each clip"),
        ("A", {}, None, "Listen to each clip"),
        ("A", {"A": 0.1, "B": 9.0}, None, "Listen to each clip"),
        ("C", HEARD, None, "A vote is one of"),
        ("X", HEARD, None, "A vote is one of"),
        ("A", HEARD, 4, "strength"),
    ],
)
def test_bad_votes_are_refused_and_not_written(voting, answer, heard, strength, message):
    with pytest.raises(InputError, match=message):
        voting.vote(voting.plan.trials[0].id, answer, heard, strength)
    assert not (voting.folder / "votes.csv").exists() and not voting.votes


def test_nobody_votes_twice_or_after_the_reveal(voting):
    first, second = voting.plan.trials[:2]
    voting.vote(first.id, "A", HEARD)
    with pytest.raises(InputError, match="already"):
        voting.vote(first.id, "B", HEARD)
    voting.reveal()
    with pytest.raises(InputError, match="no vote counts"):
        voting.vote(second.id, "A", HEARD)
    assert Comparison.open(voting.folder).plan.revealed and len(voting.revealed()) == 4


def test_votes_are_on_the_disk_before_they_count(voting, monkeypatch):
    synced = []
    real = votes_module.os.fsync
    monkeypatch.setattr(votes_module.os, "fsync", lambda fd: synced.append(fd) or real(fd))
    voting.vote(voting.plan.trials[0].id, "A", HEARD)
    assert len(synced) == 2, "the line, and the name of a new file"
    assert set(Comparison.open(voting.folder).votes) == {voting.plan.trials[0].id}


def test_a_crash_in_the_middle_of_a_line_loses_no_other_vote(voting):
    first, second, third, _ = voting.plan.trials
    voting.vote(first.id, "A", HEARD, 2, 'said "yes", twice\nthen =1+1')
    path = voting.folder / "votes.csv"
    path.write_bytes(path.read_bytes() + f"{second.id},2,pref".encode())
    reopened = Comparison.open(voting.folder)
    assert set(reopened.votes) == {first.id}
    reopened.vote(third.id, "B", HEARD, 1, "=2+2")
    last = Comparison.open(voting.folder)
    assert set(last.votes) == {first.id, third.id}
    assert last.votes[first.id].note == 'said "yes", twice then =1+1'
    assert last.votes[third.id].note == "=2+2" and "'=2+2" in path.read_text()


def test_a_vote_carries_all_that_rebuilds_its_trial(voting):
    trial = voting.plan.trials[0]
    vote = voting.vote(trial.id, "B", HEARD, 1)
    settings = [json.loads(vote.settings_a), json.loads(vote.settings_b)]
    assert sorted(one["temperature"] for one in settings) == [0.7, 1.9]
    assert (vote.seed, vote.order, vote.script) == (trial.seed, 1, trial.script + 1)
    assert len(vote.script_sha256) == 64 and vote.time and vote.seconds_b == 9.0


def test_abx_answers_are_scored_against_guessing(base, synthesis, tmp_path):
    plan = make_plan("abx", [base, base.changed({"top_k": 3})], SCRIPTS[:1], tuple(range(6)))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    with pytest.raises(InputError, match="A, B"):
        comparison.vote(comparison.plan.trials[0].id, "none", HEARD)
    for trial in comparison.plan.trials:
        comparison.vote(trial.id, "AB"[comparison.plan.secrets[trial.id].x], HEARD)
    result = comparison.tally()
    assert result.overall.first == 6 and result.overall.p == pytest.approx(1 / 64)
    assert "can be heard" in result.sentence
    assert Comparison.open(tmp_path / "dir").tally() == result


def test_a_round_ranks_its_settings(base, synthesis, tmp_path):
    settings = [base.changed({"top_k": k}) for k in (2, 20, 60)]
    plan = make_plan("preference", settings, SCRIPTS[:1], (1, 2, 3))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    assert comparison.tally().ranking == () and "Not every setting" in comparison.tally().sentence
    for trial in comparison.plan.trials:
        # The later letter wins always.
        secret = comparison.plan.secrets[trial.id]
        comparison.vote(trial.id, "A" if secret.flip else "B", HEARD)
    result = comparison.tally()
    assert [one.setting for one in result.ranking] == ["C", "B", "A"] and result.softened
    assert [count.label for count in result.by_pair] == [
        "A against B", "A against C", "B against C",
    ]  # fmt: skip
    assert all(count.second == 3 for count in result.by_pair)


def test_sighted_takes_no_votes_and_hides_nothing(sides, synthesis, tmp_path):
    plan = make_plan("sighted", sides, SCRIPTS[:1], (1,))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    (one,) = comparison.revealed()
    assert one.heard == ("A", "B") and comparison.next_trial() is None
    assert one.facts[0]["loudness_lufs"] < 0 and one.facts[0]["words_per_minute"] > 0
    with pytest.raises(InputError, match="known"):
        comparison.vote(one.trial.id, "A", HEARD)


# Damage


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda raw: raw.update(version=2), "version 2"),
        (lambda raw: raw.update(format="other"), "does not describe"),
        (lambda raw: raw.pop("trials"), "damaged"),
        (lambda raw: raw.update(trials=[]), "damaged"),
        (lambda raw: raw["trials"][0].update(clips=["../../x.wav", "y.wav"]), "damaged"),
        (lambda raw: raw["trials"][0].update(settings=[0, 9]), "damaged"),
        (lambda raw: raw["takes"][0].update(id="../../etc"), "damaged"),
        (lambda raw: raw["takes"].pop(), "damaged"),
        (lambda raw: raw.update(sealed="AAAA"), "damaged"),
        (lambda raw: raw.update(voice_file="/etc/passwd"), "damaged"),
        (lambda raw: raw["settings"][0]["params"].update(warmth=1), "damaged"),
        (lambda raw: raw["settings"][0]["params"].update(temperature="hot"), "damaged"),
        (lambda raw: raw["settings"][0]["runtime"].update(precision="int7"), "precision"),
    ],
)
def test_damaged_plans_get_one_message(voting, damage, message):
    path = voting.folder / "plan.json"
    raw = json.loads(path.read_text())
    damage(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(InputError, match=message):
        Comparison.open(voting.folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "null", "[" * 100_000, '{"a": 1e999}', " " * 8_000_001]
)
def test_what_is_no_plan_gets_one_message(voting, text):
    (voting.folder / "plan.json").write_text(text)
    with pytest.raises(InputError):
        Comparison.open(voting.folder)


def test_lost_clips_are_made_again(voting, synthesis):
    trial = voting.plan.trials[0]
    before = clips_of(voting)[trial.id][0][0]
    (voting.folder / "clips" / trial.clips[0]).unlink()
    reopened = Comparison.open(voting.folder)
    assert [t.made for t in reopened.plan.trials] == [False, True, True, True]
    make(reopened, synthesis)
    assert np.array_equal(clips_of(reopened)[trial.id][0][0], before)

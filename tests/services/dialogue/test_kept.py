"""A person's last dialogue on the disk: found again, resumed, its parts made again."""

import json
import threading
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from dia_demo.errors import InputError, RunError
from dia_demo.services.dialogue import kept as kept_module
from dia_demo.services.dialogue.events import ChunkFinished, DialogueFinished
from dia_demo.services.dialogue.kept import KeptDialogue
from dia_demo.services.dialogue.output import joined_samples
from dia_demo.services.dialogue.plan import make_plan
from dia_demo.services.dialogue.run import DialogueRun
from dia_demo.services.models import find_model
from dia_demo.services.people import folder_of, new_key
from dia_demo.services.take import VoicePrompt
from tests.helpers.dialogues import SCRIPT, judge_by_test
from tests.helpers.synthesis_requests import make_request
from tests.helpers.voices import speech_like


@pytest.fixture(autouse=True)
def judged(monkeypatch):
    """Every part is good."""
    return judge_by_test(monkeypatch)


@pytest.fixture
def key():
    return new_key()


@pytest.fixture
def plan_of(synthesis):
    def plan(script=SCRIPT, **changes):
        return make_plan(make_request(synthesis, script, **({"max_tokens": 500} | changes)))

    return plan


@pytest.fixture
def open_kept(tmp_path, key):
    """What a program that has just started finds."""
    return lambda: KeptDialogue(tmp_path, key).load(find_model)


def make(synthesis, kept, plan) -> tuple[DialogueRun, list]:
    run = DialogueRun(synthesis, plan, kept.store)
    return run, list(run.stream(threading.Event()))


def test_a_dialogue_is_found_again_and_goes_on(synthesis, open_kept, plan_of):
    kept = open_kept()
    assert kept.plan is None
    plan = kept.begin(plan_of())
    run, events = make(synthesis, kept, plan)
    assert isinstance(events[-1], DialogueFinished)
    expected = joined_samples(run)
    kept.note({"made": 3}, 2.5)
    (kept.store.folder / "chunk-0001-0.npz").unlink()
    again = open_kept()
    assert again.plan == plan
    assert again.wall_seconds == 2.5 and again.shown == {"made": 3}
    run, events = make(synthesis, again, again.plan)
    assert [event.chunk for event in events if isinstance(event, ChunkFinished)] == [1]
    np.testing.assert_array_equal(joined_samples(run), expected)


def test_a_part_is_made_again_and_the_others_stay(synthesis, open_kept, plan_of):
    kept = open_kept()
    run, _ = make(synthesis, kept, kept.begin(plan_of()))
    before = [run.take(chunk).codes for chunk in run.plan.chunks]
    for count in (1, 2):
        plan = kept.make_again(1, None)
        run, events = make(synthesis, kept, plan)
        made = [(e.chunk, e.attempt) for e in events if isinstance(e, ChunkFinished)]
        assert made == [(1, count)] and run.best(plan.chunks[1]).number == count
        after = [run.take(chunk).codes for chunk in plan.chunks]
        assert not np.array_equal(after[1], before[1]), "another seed"
        assert all(np.array_equal(after[i], before[i]) for i in (0, *range(2, len(after))))
    assert open_kept().plan == plan


def test_a_part_gets_other_words_which_stay_when_it_is_made_again(synthesis, open_kept, plan_of):
    kept = open_kept()
    make(synthesis, kept, kept.begin(plan_of()))
    plan = kept.make_again(0, "[S1] Other words. [S2] Yes, others.")
    make(synthesis, kept, plan)
    assert plan.chunks[0].script == "[S1] Other words. [S2] Yes, others."
    assert plan.text.startswith("[S1] Other words. [S2] Yes, others.\n(pause 0.5) [S1] Eight")
    assert plan.chunks[1:] == plan_of().chunks[1:]
    kept = open_kept()
    assert kept.make_again(0, None).chunks[0].script == plan.chunks[0].script
    assert open_kept().plan.text == plan.text


@pytest.mark.parametrize(
    "words", ["", "[S1]", "One. (pause 2) Two.", "[S1] " + "Far too many words. " * 40]
)
def test_words_that_are_no_part_are_refused_and_nothing_changes(open_kept, plan_of, words):
    kept = open_kept()
    plan = kept.begin(plan_of())
    with pytest.raises(InputError, match="words"):
        kept.make_again(0, words)
    assert kept.plan == plan == open_kept().plan


def test_the_same_dialogue_goes_on_and_another_replaces_it(synthesis, open_kept, plan_of):
    kept = open_kept()
    make(synthesis, kept, kept.begin(plan_of()))
    changed = kept.make_again(0, "[S1] Other words. [S2] Yes.")
    assert open_kept().begin(plan_of()) == changed
    other = open_kept()
    assert other.begin(plan_of(seed=2)).text == SCRIPT
    assert not list(other.store.folder.glob("*")), "the parts of before are gone"


@pytest.mark.parametrize("kind", ["codes", "recording"])
def test_a_voice_prompt_is_kept_with_it(tmp_path, open_kept, plan_of, kind):
    plan = plan_of()
    if kind == "codes":
        voice = VoicePrompt(codes=np.ones((40, 9), np.int16), transcript="[S1] Hi.", codec="abc")
    else:
        path = tmp_path / "upload.flac"
        soundfile.write(path, speech_like(2.0, 16000), 16000)
        voice = VoicePrompt(audio=path, transcript="[S1] Hi.")
    plan = make_plan(replace(plan.request, voice=voice))
    open_kept().begin(plan)
    if voice.audio is not None:
        voice.audio.unlink()
    found = open_kept().plan.request.voice
    assert found.transcript == "[S1] Hi." and found.codec == voice.codec
    if kind == "codes":
        np.testing.assert_array_equal(found.codes, voice.codes)
    else:
        assert soundfile.info(found.audio).frames == 32000


@pytest.mark.parametrize("damage", ["", "{}", "[1]", '{"model": "no such model"}', "\x00"])
def test_a_damaged_record_counts_as_nothing(open_kept, plan_of, tmp_path, key, damage):
    open_kept().begin(plan_of())
    (folder_of(tmp_path, key) / "dialogue" / "dialogue.json").write_text(damage)
    kept = open_kept()
    assert kept.plan is None
    assert kept.begin(plan_of()) == open_kept().plan


def test_a_record_names_no_file_outside_its_folder(open_kept, plan_of, tmp_path, key):
    voice = VoicePrompt(audio=tmp_path / "a.wav", transcript="[S1] Hi.")
    soundfile.write(voice.audio, speech_like(2.0, 16000), 16000)
    open_kept().begin(make_plan(replace(plan_of().request, voice=voice)))
    path = folder_of(tmp_path, key) / "dialogue" / "dialogue.json"
    about = json.loads(path.read_text())
    about["voice"]["recording"] = "../../../a.wav"
    path.write_text(json.dumps(about))
    assert open_kept().plan.request.voice.audio == path.with_name("a.wav")


def test_the_dialogue_that_was_not_used_for_longest_makes_room(
    synthesis, tmp_path, plan_of, monkeypatch
):
    people = [new_key() for _ in range(3)]
    for number, key in enumerate(people[:2]):
        kept = KeptDialogue(tmp_path, key).load(find_model)
        make(synthesis, kept, kept.begin(plan_of(seed=number)))
    monkeypatch.setattr(kept_module, "MOST_BYTES", 1)
    KeptDialogue(tmp_path, people[2]).load(find_model).begin(plan_of())
    found = [KeptDialogue(tmp_path, key).load(find_model).plan is not None for key in people]
    assert found == [False, False, True]


def test_a_folder_that_cannot_be_written_is_said(tmp_path, plan_of):
    (tmp_path / "kept").write_text("not a folder")
    kept = KeptDialogue(tmp_path / "kept", new_key())
    with pytest.raises(RunError, match="cannot be kept: .*DIA_KEPT"):
        kept.begin(plan_of())

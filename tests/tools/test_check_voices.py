"""The measurements of check_voices: they find what is planted; a run goes on where it stopped."""

from random import Random

import numpy as np
import pytest

from dia_demo.machine.processor import class_name
from dia_demo.text.script import encode_script
from tests.helpers.stand_ins.chunk_takes import RATE, SCRIPT, chunk_take
from tools import check_voices
from tools.voice_bars import dialogues, faults, lasting, times
from tools.voice_bars.bar import Bar, Line, share_line
from tools.voice_bars.hearing import cut_at_pauses, lines_said
from tools.voice_bars.results import Results
from tools.voice_bars.scripts import TURNS, turns
from tools.voice_bars.studio import Dialogue

LINES = (
    "Hello and welcome to the little talking machine.",
    "The weather is cold today, so please bring a warm coat.",
    "Would you mind if I sat near the window?",
    "My uncle keeps bees at the end of his garden.",
)


def heard(*order: int) -> str:
    return " ".join(LINES[number] for number in order).lower().replace(",", "").replace(".", "")


def test_every_line_is_heard_once_and_misheard_words_are_no_fault():
    assert lines_said(LINES, heard(0, 1, 2, 3)) == [1, 1, 1, 1]
    misheard = heard(0, 1, 2, 3).replace("weather", "whether").replace("bees at", "beats")
    assert lines_said(LINES, misheard.replace("little", "")) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "order, said",
    [
        ((0, 2, 3), [1, 0, 1, 1]),
        ((0, 1, 2), [1, 1, 1, 0]),
        ((0, 1, 1, 2, 3), [1, 2, 1, 1]),
        ((0, 1, 2, 3, 3), [1, 1, 1, 2]),
        ((), [0, 0, 0, 0]),
    ],
)
def test_a_lost_line_and_a_repeated_one_are_noticed(order, said):
    assert lines_said(LINES, heard(*order)) == said


def test_lines_in_another_order_are_noticed():
    assert lines_said(LINES, heard(0, 2, 1, 3)) != [1, 1, 1, 1]


def test_sound_is_cut_at_its_pauses():
    tone = 0.1 * np.sin(np.arange(RATE) / 5).astype(np.float32)
    pieces = cut_at_pauses(np.concatenate([tone, np.zeros(RATE // 2), tone]), RATE)
    assert [len(piece) / RATE for piece in pieces] == pytest.approx([1, 1], abs=0.02)
    assert cut_at_pauses(np.zeros(RATE), RATE) == []


def test_no_sentence_of_a_dialogue_is_in_it_twice():
    for number in range(20):
        sentences = [sentence for turn in turns(number) for sentence in turn]
        assert len(turns(number)) == TURNS and len(set(sentences)) == len(sentences)


def test_what_a_changed_script_read_is_put_on_the_whole_one():
    """A place in a line is the same place of that line, wherever the line is."""
    lines = [SCRIPT[5:28], SCRIPT[34:53], SCRIPT[59:]]
    whole = encode_script(SCRIPT)
    for order in ((0, 2), (1, 2), (0, 1, 1, 2)):
        speakers = (1, 2, 1)
        said = [lines[number] for number in order]
        script = " ".join(f"[S{speakers[k]}] {lines[k]}" for k in order)
        text = encode_script(script)
        starts = [text.index(said[0].encode())]
        starts += [text.index(line.encode(), starts[0] + 5) for line in said[1:]]
        places = np.array([-1, *starts, starts[-1] + 4])
        found = faults.move_places(places, text, said, whole, lines, order)
        assert found[0] == -1
        for place, number in zip(found[1:-1], order, strict=True):
            assert whole[place:].startswith(lines[number].encode()), (order, number)
        assert whole[found[-1] :].startswith(lines[order[-1]][4:].encode())


def test_planted_faults_change_sound_and_places_alike():
    take = chunk_take()
    for changed in (
        faults.cut_last_word(take), faults.with_noise(take, Random(1)), faults.too_fast(take)
    ):  # fmt: skip
        seconds = len(changed.samples) / RATE
        assert seconds == pytest.approx(len(changed.places) * 384 / RATE, abs=0.05)
        assert len(changed.codes) == len(changed.places)
    assert len(faults.too_fast(take).samples) * 1.6 == pytest.approx(len(take.samples), rel=0.02)


def test_the_phones_of_a_sentence_belong_to_its_words(monkeypatch):
    alone = {"the": ("dh", "iy"), "cat": ("k", "ae", "t"), "is": ("ih", "z")}
    monkeypatch.setattr(times, "_phones", alone.__getitem__)
    phones = ["pau", "dh", "ax", "k", "ae", "t", "pau", "ih", "z", "pau"]
    assert times.word_spans(["the", "cat", "is"], phones) == [(1, 2), (3, 6), (7, 9)]


def test_a_kept_voice_that_changes_is_missed_and_the_teacher_says_what_is_the_measures():
    def sounds(pitches, apart):
        return {"pitches": pitches, "apart": apart, "spreads": [0.3, 0.5, 0.4]}

    same, other = sounds([100.0, 104.0, 98.0], [0.5, 0.1]), sounds([100.0, 107.0, 99.0], [0.6, 0.1])
    kept = {"voice": "awb", "again": 0, "made": same, "taught": same}
    assert [line.is_met for line in lasting._lines([kept, kept])] == [True, True]
    pitch, spectrum = lasting._lines([kept, kept | {"made": other}])
    assert not pitch.is_met and pitch.result.startswith("83.3%") and "+7.0%" in pitch.result
    assert not spectrum.is_met and spectrum.result.startswith("75.0%")
    assert "teacher, whose voice cannot change: 100.0%" in pitch.result
    assert spectrum.result.endswith("of the teacher: 100.0%)")


def test_a_click_and_a_wrong_gap_are_missed_bars():
    trial = {"gaps": [0.5, 0.9], "steps": [0.0001, 0.03], "loudness": {"S1": [-20.0, -22.5, -20.1]}}
    assert [line.is_met for line in dialogues._lines_of_joins([trial])] == [False] * 3
    good = {"gaps": [0.5], "steps": [0.0001], "loudness": {"S1": [-20.0, -20.5]}}
    assert all(line.is_met for line in dialogues._lines_of_joins([good]))


@pytest.mark.parametrize("is_faded", [True, False])
def test_a_chunk_that_begins_or_ends_suddenly_clicks(is_faded):
    tone = 0.02 * np.sin(0.7 + np.arange(RATE) / 5).astype(np.float32)
    ramp = np.minimum(1.0, np.arange(RATE) / 160) if is_faded else np.ones(RATE)
    silence = np.zeros(RATE // 2)
    for before, after in ((tone * ramp[::-1], tone), (tone, tone * ramp), (tone, tone)):
        samples = np.concatenate([before * ramp[::-1], silence, after * ramp])
        made = Dialogue(samples, RATE, [0, RATE], [], [], [])
        assert (dialogues.step_at(made, RATE) <= dialogues.CLICK) == is_faded


def test_the_silence_of_a_join_is_found():
    tone = 0.1 * np.sin(np.arange(RATE) / 5).astype(np.float32)
    made = Dialogue(np.concatenate([tone, np.zeros(RATE // 2), tone]), RATE, [0, RATE], [], [], [])
    assert dialogues.silence_at(made, round(1.2 * RATE)) == pytest.approx(
        (RATE, 1.5 * RATE), abs=320
    )


def test_results_are_read_again_for_the_same_processor(tmp_path):
    path = tmp_path / "results.jsonl"
    results = Results(path, "avx2")
    results.add("lines", 1, {"a": 1})
    results.add("lines", 0, {"a": 0})
    results.add("joins", 0, {"b": 2})
    with open(path, "a") as file:
        file.write('{"bar": "lines", "tri')  # The power failed.
    again = Results(path, "avx2")
    assert again.trials_of("lines", 20) == [{"a": 0}, {"a": 1}] and again.trials_of("lines", 1) == [
        {"a": 0}
    ]
    assert not Results(path, "avx512").has("lines", 0)
    again.add("lines", 2, {"a": 2})
    again.forget("joins")
    last = Results(path, "avx2")
    assert last.has("lines", 2) and not last.has("joins", 0)


def test_a_share_is_met_or_missed():
    assert share_line("a", 0.95, [True] * 19 + [False]).is_met
    assert not share_line("a", 1, [True] * 19 + [False]).is_met


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run with these bars only; returns the exit code and what was printed."""

    def start(*bars: Bar, options=()) -> tuple[int, str]:
        monkeypatch.setattr(check_voices, "BARS", {bar.name: bar for bar in bars})
        code = check_voices.main(["--work", str(tmp_path), *options])
        return code, capsys.readouterr().out

    return start


def bar(name="a", met=True, trial=lambda studio, number: {"n": number}, **more) -> Bar:
    def lines(trials):
        return [Line("what", "≥ 1", len(trials), str(len(trials)), met)]

    return Bar(name, 3, more.pop("quick", 1), trial, lines, **more)


def test_the_table_says_what_was_met_on_which_processor(run):
    code, out = run(bar())
    assert code == 0 and f"Class of processor: {class_name()}" in out
    assert "| what | ≥ 1 | 3 | 3 | met |" in out
    code, out = run(bar(met=False))
    assert code == 1 and "**missed**" in out


def test_a_run_goes_on_where_it_stopped(run):
    tried = []

    def trial(studio, number):
        tried.append(number)
        if tried == [0, 1]:
            raise KeyboardInterrupt
        return {}

    with pytest.raises(KeyboardInterrupt):
        run(bar(trial=trial))
    assert run(bar(trial=trial))[0] == 0
    assert tried == [0, 1, 1, 2]
    run(bar(trial=trial))
    assert tried == [0, 1, 1, 2]
    run(bar(trial=trial), options=["--again"])
    assert tried[4:] == [0, 1, 2]


def test_a_trial_that_fails_is_a_bar_that_is_missed(run):
    def trial(studio, number):
        if number == 1:
            raise RuntimeError("no")
        return {}

    code, out = run(bar(trial=trial))
    assert code == 1 and "| a: trials that failed | 0 | 3 | 1 | **missed** |" in out


def test_what_is_not_measured_is_said(run):
    names = {"modules": ("no_such_module",), "programs": ("no-such-program",)}
    code, out = run(
        bar("a", **names), bar("b", on_request=True), bar("c", quick=0), options=["--quick"]
    )
    assert code == 0
    assert "| a | | 0 | not measured: no_such_module, no-such-program not installed | |" in out
    assert "| b | | 0 | not measured: needs an idle machine" in out
    assert "| c | | 0 | not measured: takes too long" in out
    assert "| b | | 0" not in run(bar("b", on_request=True), options=["--only", "b"])[1]


@pytest.mark.long
def test_a_quick_look_at_the_embedded_voice(tmp_path, capsys):
    bars = ("lines", "joins", "faults", "random")
    options = [word for name in bars for word in ("--only", name)]
    code = check_voices.main(["--quick", "--work", str(tmp_path), "--threads", "1", *options])
    out = capsys.readouterr().out
    assert code == 0, out
    assert out.count("| met |") == 1 + 3 + 6 + 2

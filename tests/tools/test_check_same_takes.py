"""The bars of check_voices on seeds and speakers: they find what is planted."""

import json
import subprocess
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dia_demo.files import cache_folder
from dia_demo.prompt.voice_traits import voice_traits
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import ComparisonKind, make_plan
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.listening.render import CLIPS
from dia_demo.services.settings import Settings
from dia_demo.services.take import TimedWord
from tools.voice_bars import faults, seeds, speakers
from tools.voice_bars.studio import Studio

RATE = 16_000
CODES = np.arange(40, dtype=np.int16).reshape(10, 4)
SAMPLES = (1000 * np.sin(np.arange(4000) / 9)).astype(np.int16)


def seed_trials(*takes: dict) -> list[dict]:
    """The reference, and a process that made these takes."""
    way = {"precision": "int8", "threads": 2, "rows": 8}
    reference = way | {"threads": 1, "rows": 1, "is_reference": True}
    return [
        reference | {"made": [seeds.describe(CODES, SAMPLES)]},
        way | {"is_reference": False, "made": list(takes)},
    ]


def line_of_int8(trials: list[dict]):
    return next(line for line in seeds._lines(trials) if line.measure.startswith("int8"))


def test_a_take_that_differs_in_one_sample_or_one_code_is_found():
    same = seeds.describe(CODES.copy(), SAMPLES.copy())
    assert line_of_int8(seed_trials(same, same)).is_met
    other_codes, other_samples = CODES.copy(), SAMPLES.copy()
    other_codes[2, 1] += 1
    other_samples[7] += 1
    for what, codes, samples in (
        ("codes", other_codes, SAMPLES),
        ("samples", CODES, other_samples),
    ):
        line = line_of_int8(seed_trials(same, seeds.describe(codes, samples)))
        assert not line.is_met and line.count == 2
        assert f"{what} differ with 2 threads, 8 rows" in line.result, line


def test_nothing_to_compare_is_a_bar_that_is_missed():
    trials = seed_trials(seeds.describe(CODES, SAMPLES))
    assert not line_of_int8(trials[:1]).is_met and not line_of_int8(trials[1:]).is_met


def test_forty_takes_of_each_precision_are_made_in_every_way():
    assert seeds.TAKES * len(seeds.WAYS) == 40
    assert set(seeds.WAYS) == {(1, 1), (2, 1), (1, 8), (2, 8)}


def test_a_process_finds_compiled_kernels_and_no_results_of_others(tmp_path, monkeypatch):
    found = []

    def run(command, env, **options):
        with_load = [process for process in started if process.poll() is None]
        found.append((json.loads(command[-1]), len(with_load)))
        folder = tmp_path / env["DIA_CACHE"]
        assert [path.name for path in folder.iterdir()] == ["kernels"]
        assert (folder / "kernels").resolve() == (cache_folder() / "kernels").resolve()
        return subprocess.CompletedProcess(command, 0, stdout="[]", stderr="")

    started, popen = [], subprocess.Popen

    def start(*arguments):
        started.append(popen(*arguments))
        return started[-1]

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(seeds, "granted_cores", lambda: 2)
    studio = Studio(tmp_path, "nano", None)
    assert seeds._trial(studio, 0)["is_reference"]
    assert not seeds._trial(studio, len(seeds.PRECISIONS))["is_reference"]
    (first, without), (second, with_load) = found
    assert (first["threads"], first["rows"], without) == (1, 1, 0)
    assert (second["threads"], second["rows"], with_load) == (*seeds.WAYS[0], 2)
    assert all(process.poll() is not None for process in started)


def test_a_process_that_fails_is_a_trial_that_fails(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="Traceback\nNo such model.\n")
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: failed)
    with pytest.raises(RuntimeError, match=r"^No such model\.$"):
        seeds._run_process(Studio(tmp_path, "nano", 1), {})


def test_busy_processes_end_with_the_one_that_started_them():
    spinning = subprocess.Popen([sys.executable, "-c", seeds.SPIN, "0"])  # The parent is another.
    assert spinning.wait(20) == 0


@pytest.mark.long
def test_the_seed_of_the_embedded_voice_is_found_wherever_it_is_in_a_batch():
    alone = list(seeds.make_takes("nano", "int8", 1, 1, 1))
    together = list(seeds.make_takes("nano", "int8", 1, 5, 3))
    assert together == 3 * alone


def voiced(hertz: float, bright: float, seconds: float = 1.5) -> np.ndarray:
    """A tone with overtones: the voice of somebody."""
    time = np.arange(round(seconds * RATE)) / RATE
    parts = [k**-bright * np.sin(2 * np.pi * k * hertz * time) for k in range(1, 30)]
    return (0.1 * np.sum(parts, 0)).astype(np.float32)


HIGH, LOW = voiced(210, 0.5), voiced(120, 2.0)
WORDS = [
    TimedWord(word, turn * 1.5 + at, turn * 1.5 + at + 0.75, f"S{1 + turn % 2}", turn)
    for turn in range(4)
    for at, word in ((0.0, "one"), (0.75, "two"))
]


def turns(*waves: np.ndarray) -> list[tuple[str, np.ndarray]]:
    return speakers.cut_turns(np.concatenate(waves), RATE, WORDS)


def test_turns_are_cut_at_their_words():
    found = turns(HIGH, LOW, HIGH, LOW)
    assert [speaker for speaker, _ in found] == ["S1", "S2", "S1", "S2"]
    for (_, sound), expected in zip(found, (HIGH, LOW, HIGH, LOW), strict=True):
        assert np.allclose(sound, expected)


def test_swapped_voices_and_one_turn_in_the_others_are_found():
    kept = turns(HIGH, LOW, HIGH, LOW)
    assert speakers.is_same_voice(speakers.turns_apart(kept, kept))
    for other in (turns(LOW, HIGH, LOW, HIGH), turns(HIGH, LOW, LOW, LOW)):
        assert not speakers.is_same_voice(speakers.turns_apart(kept, other))


def test_pairs_count_by_name_and_by_sound_unless_the_form_warned():
    good = {"seed": 1, "names": [["a", "b"], ["a", "b"]], "apart": [[0.5, 0.1]]}
    swapped = good | {"names": [["a", "b"], ["b", "a"]]}
    unlike = good | {"apart": [[0.5, 0.1], [4.5, 0.1]]}
    trial = {"question": "int8 against float32", "warning": None}

    def line(*pairs):
        return speakers._line_of_pairs(trial | {"pairs": list(pairs)})

    assert line(*28 * [good], swapped, unlike).is_met
    missed = line(*27 * [good], swapped, swapped, unlike)
    assert not missed.is_met and missed.result.startswith("27 (by name 28, by sound 29")
    warned = trial | {"warning": "Others speak.", "pairs": [unlike]}
    assert speakers._line_of_pairs(warned).is_met


@pytest.mark.long
def test_a_clip_of_other_voices_is_found_in_a_blind_pair(tmp_path):
    runtime = Studio(tmp_path, "nano", 1).runtime
    synthesis = speakers.RecordingSynthesis(replace(Settings.from_env(), runtime=runtime))
    defaults = synthesis.models["nano"].config.defaults
    sides = [Setting(replace(defaults, temperature=t), runtime) for t in (0.0, 0.1)]
    script = "[S1] The weather is cold today, isn't it? [S2] Please bring a warm coat to the park."
    plan = make_plan(ComparisonKind.PREFERENCE, sides, [script], [0, 1])
    comparison = Comparison.create(tmp_path / "pairs", plan, synthesis)
    list(comparison.run(synthesis, threading.Event()))

    def same() -> list[bool]:
        pairs = speakers.compare_sides(comparison, synthesis)
        assert all(one == other for one, other in (pair["names"] for pair in pairs))
        return [speakers.is_same_voice(pair["apart"]) for pair in pairs]

    assert same() == [True, True]
    one, other = (comparison.folder / CLIPS / t.clips[0] for t in comparison.plan.trials)
    other.write_bytes(one.read_bytes())
    assert same() == [True, False]
    synthesis.close()


@pytest.fixture
def measure(monkeypatch, tmp_path):
    """Measure a dialogue of these turns, which should be those of HIGH and LOW in turn; the pitch
    is the app's in place of WORLD's, which is not installed everywhere."""
    pytest.importorskip("librosa")

    def pitch_of(samples: np.ndarray) -> float:
        return 100 * 2 ** ((voice_traits(samples).semitones or -99) / 12)

    for module in (faults, speakers):
        monkeypatch.setattr(module, "pitch_of", pitch_of)
    taught = {"high": HIGH, "low": LOW}
    monkeypatch.setattr(faults, "teach", lambda studio, text, voice: (taught[voice], []))
    monkeypatch.setattr(speakers, "words_of_take", lambda request, result: WORDS)
    verdict = SimpleNamespace(verdict="good")
    monkeypatch.setattr(speakers, "report_of_take", lambda request, result: verdict)

    def start(*waves: np.ndarray) -> list[bool]:
        """Whether each of both bars is met."""
        result = SimpleNamespace(
            samples=np.concatenate(waves),
            voices=("high", "low"),
            figures=SimpleNamespace(sample_rate=RATE),
        )
        request = SimpleNamespace(params=SimpleNamespace(seed=1))
        lines = ["Hello."] * len(waves)
        found = speakers._measure_dialogue(Studio(tmp_path, "nano", 1), lines, request, result)
        trials = [{"dialogues": [json.loads(json.dumps(found))]}]
        return [line.is_met for line in speakers._lines_of_speakers(trials)]

    return start


# These are long: the first import of librosa compiles its functions for half a minute.


@pytest.mark.long
def test_a_dialogue_in_its_voices_is_met(measure):
    assert measure(HIGH, LOW, HIGH, LOW) == [True, True]


@pytest.mark.long
def test_a_turn_in_another_voice_is_found(measure):
    assert measure(HIGH, LOW, LOW, LOW) == [True, False]
    assert measure(HIGH, LOW, HIGH, 0 * LOW) == [True, False]
    assert measure(LOW, HIGH, LOW, HIGH) == [True, False]


@pytest.mark.long
def test_two_speakers_with_one_voice_are_found(measure):
    assert measure(HIGH, HIGH, HIGH, HIGH) == [False, False]

"""How long a take is: at another speed, and where its length is odd."""

import re
import threading
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from dia_demo.engine.events import AudioChunk, Figures, Finished, FinishReason, Loading, Progress
from dia_demo.engine.time_left import TimeLeft
from dia_demo.services.loading.warm_up import WarmUp
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request
from dia_demo.services.wording import length_remark
from tests.helpers.long import long_after
from tests.helpers.models.known import NANO
from tests.helpers.synthesis_requests import make_request, runtime, say

pytestmark = pytest.mark.usefixtures("talkative")
TOO_MUCH = re.compile("continued after the end|turns? more than the script")
MISSING = re.compile("words are probably missing|turns? before the end of the script")


@pytest.mark.parametrize("speed", [0.5, 2.0])
def test_every_figure_is_that_of_the_file_at_its_speed(synthesis, speed):
    whole = say(synthesis, make_request(synthesis))[-1].result
    request = make_request(synthesis, speed=speed)
    events = say(synthesis, request)
    take = synthesis.take(request, events[-1].result)
    seconds = len(take.samples) / take.sample_rate
    assert seconds == pytest.approx(whole.figures.audio_seconds / speed, rel=0.1)
    assert take.figures.audio_seconds == seconds
    assert take.figures.realtime_factor == pytest.approx(seconds / take.figures.wall_seconds)
    assert take.figures.expected_seconds == whole.figures.expected_seconds / speed
    last = [event for event in events if isinstance(event, Progress)][-1]
    assert last.audio_seconds == pytest.approx(seconds, rel=0.15)


def test_what_is_heard_meanwhile_has_the_speed_of_the_take(synthesis):
    request = make_request(synthesis, speed=0.5)
    events = say(synthesis, request)
    heard = [event.samples for event in events if isinstance(event, AudioChunk)]
    assert len(heard) > 2, "and it does not come at the end alone"
    take = synthesis.take(request, events[-1].result)
    np.testing.assert_array_equal(np.concatenate(heard), take.samples)


def test_the_same_seed_sounds_the_same_at_another_speed(synthesis):
    one, two = (say(synthesis, make_request(synthesis, speed=1.3))[-1].result for _ in range(2))
    np.testing.assert_array_equal(one.samples, two.samples)


def test_a_wait_without_a_known_end_has_no_percentage(folder, tmp_path):
    synthesis, ready = Synthesis(Settings(runtime(folder), 2, tmp_path)), threading.Event()
    synthesis._warming = WarmUp(lambda: iter([Loading("Compiling", None)] * ready.wait(20)))
    synthesis._warming.start()
    events = synthesis.stream(make_request(synthesis), threading.Event())
    event = next(event for event in events if isinstance(event, Loading))
    ready.set()
    assert event.fraction is None and event.text == "Getting the voice ready"
    events.close()


def test_a_warm_up_is_expected_to_take_long_only_while_it_compiles(folder, tmp_path):
    settings, loading, left = Settings(runtime(folder), 2, tmp_path), TimeLeft(1, 2), {}
    for compiles in (False, True):
        synthesis, ready = Synthesis(settings), threading.Event()
        info = synthesis.models.first
        loaded = synthesis.loading(info, runtime(folder))
        synthesis._warming = WarmUp(lambda ready=ready: iter([ready.wait(20)] * 0))
        synthesis._warming.start(loading, compiles)
        left[compiles] = synthesis.loading(info, runtime(folder))
        other = runtime(folder, precision="float32")
        alone, until = synthesis._model.time_to_load(info, other).high, synthesis._warming.left.high
        another = synthesis.loading(info, other).high
        assert synthesis._warming.left.high < another - alone < until, "it is loaded after it"
        assert synthesis.loading(info, runtime(folder)).low < left[compiles].low, "time passes"
        ready.set()
        synthesis._warming.background.join(20)
        assert synthesis.loading(info, runtime(folder)) == loaded, "nothing is left of it"
    assert loading.high < left[False].high < 10 < left[True].high


@pytest.fixture(scope="module")
def lengths(tmp_path_factory):
    """The figures of a script's take by the embedded voice at speed 1, and the remark on its
    length."""
    synthesis = Synthesis(Settings(takes_folder=tmp_path_factory.mktemp("nano")))
    params = synthesis.models["nano"].config.defaults

    def remark(script: str, seed: int = 1, **changed) -> tuple[Figures, str | None]:
        request = Request(script, replace(params, seed=seed, **changed), NANO, with_audio=False)
        events = list(synthesis.stream(request, threading.Event()))
        assert isinstance(events[-1], Finished)
        figures = events[-1].result.figures
        return figures, length_remark(figures)

    yield remark
    synthesis.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", ["Hello", "5", "[S1] Thank you very much.", "[S1] Where are the keys? [S2] Here."]
)
def test_the_embedded_voice_says_a_short_script_and_ends(lengths, script):
    """Without [S1], a word became 24 s."""
    figures, remark = lengths(script)
    assert 0.3 < figures.audio_seconds < 4 and remark is None


@pytest.mark.slow
def test_letters_that_become_babble_are_remarked(lengths):
    # It may begin turns as well: that depends on the precision, which is that of this machine.
    assert TOO_MUCH.search(lengths("[S1] aaaaaaaaaa")[1] or "")


@pytest.mark.slow
@pytest.mark.parametrize("count", long_after(1, (1, 6)))
def test_missing_words_are_remarked(lengths, count):
    """Of 120 equal turns a take at a high temperature says a few and ends, or goes on to the limit,
    where it is not the voice that left the rest out: which of the two depends on the seed and the
    processor. The remark counts the turns, or compares the lengths."""
    takes = (lengths(60 * "[S1] Oh. [S2] Ah. ", seed, temperature=1.5) for seed in range(6))
    ended = (remark for figures, remark in takes if figures.finish_reason == FinishReason.END)
    remarks = list(islice(ended, count))
    assert remarks and all(MISSING.search(remark or "") for remark in remarks)

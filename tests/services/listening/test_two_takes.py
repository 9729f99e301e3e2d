"""Two earlier takes as one pair: their own sound, blind or side by side, nothing generated."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import soundfile
import soxr

from dia_demo.errors import InputError
from dia_demo.prompt.voice_file import VoiceFile
from dia_demo.services.earlier.formats import read_samples
from dia_demo.services.earlier.history import History
from dia_demo.services.listening.two_takes import compare_takes
from dia_demo.services.people import new_key
from dia_demo.services.voices.kept import KeptVoices
from tests.helpers.comparisons import HEARD, SCRIPTS, clips_of
from tests.helpers.voices import NO_VOICES

KEY = new_key()


@pytest.fixture(scope="module")
def earlier(base, synthesis, tmp_path_factory):
    """A function that makes an earlier take."""
    history = History(tmp_path_factory.mktemp("kept"))

    def make(seed: int, script: str = SCRIPTS[0], **changes):
        request = base.change(changes).request(
            synthesis.models.first, script, seed, None, NO_VOICES
        )
        request = replace(request, runtime=synthesis.settings.runtime)
        *_, finished = synthesis.stream(request, threading.Event())
        take = synthesis.take(request, finished.result)
        return history.get(KEY, history.add(KEY, take))

    return make


def test_two_takes_are_heard_as_they_are(earlier, synthesis, tmp_path, monkeypatch):
    takes = earlier(41), earlier(42, temperature=1.9)
    monkeypatch.setattr(synthesis, "stream_together", None)
    comparison = compare_takes(tmp_path / "dir", "preference", takes, synthesis, NO_VOICES)
    (trial,) = comparison.plan.trials
    assert not comparison.is_unblinded and not list((tmp_path / "dir" / "takes").iterdir())
    comparison.vote(trial.id, "A", HEARD)
    result = comparison.result()
    assert result.sentence.startswith("Too few scripts to tell")
    assert {"seed shift 41", "seed shift 42"} <= set(", ".join(result.names).split(", "))
    (pair,) = comparison.revealed_pairs()
    for clip, side in enumerate(pair.heard):
        samples, rate = read_samples(takes["AB".index(side)].path)
        heard = clips_of(comparison)[trial.id][clip][0][: len(samples)].astype(float)
        assert np.corrcoef(heard, samples)[0, 1] > 0.999
        assert pair.facts[clip]["seconds"] == pytest.approx(len(samples) / rate, abs=0.01)


def test_takes_of_two_sample_rates_are_heard_at_the_higher(earlier, synthesis, tmp_path):
    """Takes of Dia and of Dia2, for example. The rate alone would give a side away."""
    takes = earlier(41), earlier(42)
    samples, rate = read_samples(takes[1].path)
    path = tmp_path / "higher.wav"
    soundfile.write(path, soxr.resample(samples, rate, 2 * rate), 2 * rate)
    higher = takes[0], replace(takes[1], path=path)
    comparison = compare_takes(tmp_path / "dir", "sighted", higher, synthesis, NO_VOICES)
    (clips,) = clips_of(comparison).values()
    assert {clip_rate for _, clip_rate in clips} == {2 * rate}
    assert len(clips[0][0]) == len(clips[1][0])
    for (clip, _), take in zip(clips, takes, strict=True):
        samples, _ = read_samples(take.path)
        assert np.corrcoef(clip[::2][: len(samples)], samples)[0, 1] > 0.99


def test_side_by_side_nothing_is_asked(earlier, synthesis, tmp_path):
    comparison = compare_takes(
        tmp_path / "dir", "sighted", (earlier(1), earlier(2)), synthesis, NO_VOICES
    )
    assert comparison.is_unblinded and comparison.next_trial() is None
    assert [pair.heard for pair in comparison.revealed_pairs()] == [("A", "B")]


def test_takes_that_cannot_be_compared_are_refused(earlier, synthesis, tmp_path):
    one = earlier(1)
    for other, why in (
        (earlier(2, SCRIPTS[1]), "say different things"),
        (earlier(1), "voices and seed"),
    ):
        with pytest.raises(InputError, match=why):
            compare_takes(tmp_path / "dir", "preference", (one, other), synthesis, NO_VOICES)
        assert not (tmp_path / "dir").exists()


def test_takes_may_differ_in_their_pronunciations(earlier, synthesis, tmp_path):
    one = earlier(1)
    other = replace(one, pronunciations="Hello = Hallo")
    comparison = compare_takes(tmp_path / "dir", "sighted", (one, other), synthesis, NO_VOICES)
    assert comparison.result().names == ("pronunciations none", "pronunciations Hello = Hallo")


def test_takes_may_differ_in_their_voices(earlier, synthesis, tmp_path):
    one = earlier(1)
    other = replace(one, voices=("rms deep", ""))
    comparison = compare_takes(tmp_path / "dir", "preference", (one, other), synthesis, NO_VOICES)
    names = comparison.result().names
    assert names == ("voice of S1 by the seed", "voice of S1 rms deep")


def test_takes_may_differ_in_their_kept_voices(earlier, synthesis, tmp_path):
    """One that is among the person's voices has its name, one that has gone is told apart."""
    kept = KeptVoices(tmp_path / "voices")
    codes = np.zeros((20, 2), np.int16)
    anna = kept.add(VoiceFile("Anna", codes, "[S1] I am Anna.", "", 16000, 40.0, "small"))
    one = earlier(1)
    takes = [replace(one, kept_voices=(voice, "")) for voice in (anna.identity, "b" * 16)]
    comparison = compare_takes(tmp_path / "dir", "sighted", takes, synthesis, kept)
    assert comparison.result().names == ("voice of S1 Anna", "voice of S1 kept voice bbbbbb")

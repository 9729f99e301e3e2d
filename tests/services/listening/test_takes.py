"""The takes of a comparison as audio files, after the reveal."""

from __future__ import annotations

import threading
import zipfile

import pytest
import soundfile

from dia_demo import audio
from dia_demo.errors import InputError
from dia_demo.services.earlier.take_metadata import read_take
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import new_key

SCRIPT = "[S1] Hello there. [S2] Yes."
TEMPERATURES = {"A": 1.0, "B": 1.9}


@pytest.fixture(scope="module")
def kept(synthesis, base, tmp_path_factory):
    """A store, a person's key, and their comparison with two pairs."""
    store, key = ComparisonStore(tmp_path_factory.mktemp("kept"), synthesis), new_key()
    sides = [base.change({"temperature": value}) for value in TEMPERATURES.values()]
    identity = store.create(key, make_plan("preference", sides, (SCRIPT,), (1, 2)))
    unmade = store.create(key, make_plan("sighted", sides, (SCRIPT,), (1,)))
    with pytest.raises(InputError, match="no audio yet"):
        store.export_takes(key, unmade, audio.STORED_SUFFIX)
    list(store.run(key, identity, threading.Event()))
    with pytest.raises(InputError, match="contain the answers"):
        store.export_takes(key, identity, audio.STORED_SUFFIX)
    store.get(key, identity).reveal()
    return store, key, identity


@pytest.mark.parametrize("suffix", audio.FORMATS)
def test_takes_come_in_every_format_with_the_settings_of_their_side(kept, tmp_path, suffix):
    store, key, identity = kept
    comparison = store.get(key, identity)
    model = comparison.plan.settings[0].runtime.model
    with zipfile.ZipFile(store.export_takes(key, identity, suffix)) as archive:
        archive.extractall(tmp_path)
        assert len(archive.namelist()) == 4
    for pair in comparison.revealed_pairs():
        for letter, side in zip("AB", pair.heard, strict=True):
            temperature = TEMPERATURES[side]
            name = f"pair-{pair.order}_temperature-{str(temperature).replace('.', '-')}{suffix}"
            take = read_take(tmp_path / name)
            assert take["script"] == SCRIPT and take["figures"]["model"] == model
            assert take["settings"]["seed"] == pair.trial.seed
            assert take["settings"]["temperature"] == temperature
            samples, rate = soundfile.read(tmp_path / name)
            heard, own_rate = comparison.samples(pair.trial.id, letter)
            assert len(samples) / rate == pytest.approx(len(heard) / own_rate, abs=0.01)

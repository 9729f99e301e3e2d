"""Comparisons of voices: of a model's own, and of kept ones."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.errors import InputError
from dia_demo.prompt.voice_file import VoiceFile
from dia_demo.services.listening.archive import export_zip, import_zip
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.plan.rebuild import rebuild_plan
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.listening.render import check_plan
from dia_demo.services.listening.verdict.claims import holds_voices, voices_warning
from dia_demo.services.listening.voice import VOICES
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import VoicePrompt
from dia_demo.services.voices.kept import KeptVoices
from tests.helpers.models.known import NANO

SETTING = Setting(NANO.config.defaults, RuntimeConfig(model="nano"))
SCRIPT = "[S1] Hello there. [S2] Hi."


@pytest.fixture
def service():
    made = Synthesis(Settings())
    yield made
    made.close()


@pytest.fixture
def kept(tmp_path):
    """Anna and Ben, for the small model."""
    voices = KeptVoices(tmp_path / "kept")
    for number, name in enumerate(("Anna", "Ben")):
        codes = np.full((12, 3), 1 + number, np.int16)
        voices.add(VoiceFile(name, codes, f"[S1] I am {name}.", "", 16000, 40.0, "small"))
    return voices


def plan_of(*voices):
    settings = [SETTING.change({"voice_s1": voice}) for voice in voices]
    return make_plan("preference", settings, (SCRIPT,), (1,))


def test_each_side_speaks_in_its_voice(service, kept):
    plan = plan_of("rms deep", "awb high")
    check_plan(plan, service, None, kept)
    requests = [setting.request(NANO, SCRIPT, 1, None, kept) for setting in plan.settings]
    assert [request.voices for request in requests] == [("rms deep", None), ("awb high", None)]


def test_an_unknown_voice_and_one_beside_a_prompt_are_refused(service, kept):
    with pytest.raises(InputError, match="no voice 'nobody'"):
        check_plan(plan_of("rms deep", "nobody"), service, None, kept)
    prompt = VoicePrompt(codes=None, transcript="[S1] Hello.")
    with pytest.raises(InputError, match="not with both"):
        check_plan(plan_of("rms deep", ""), service, prompt, kept)


def test_there_is_no_warning_that_the_speakers_differ():
    settings, models = plan_of("rms deep", "awb high").settings, {"nano": NANO}
    assert not holds_voices(settings, models)
    assert voices_warning(settings, models) is None
    shifted = [SETTING, replace(SETTING, seed_shift=1)]
    assert "different seeds" in voices_warning(shifted, models)


def test_kept_voices_are_copied_beside_the_plan_and_heard(two_settings, synthesis, kept, tmp_path):
    sides = [two_settings[0].change({"voice_s1": name}) for name in ("Anna", "ben")]
    plan = make_plan("preference", sides, (SCRIPT,), (1,))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis, None, kept)
    kept.remove("Anna")
    kept.rename("Ben", "Benjamin")
    list(comparison.run(synthesis, threading.Event()))
    assert comparison.plan.trials[0].made
    shas = {fact["codes_sha256"] for fact in comparison.plan.facts.values()}
    assert len(shas) == 2, "each side continues its own voice"
    names = {voice.name for voice in KeptVoices(tmp_path / "dir" / VOICES).list()}
    assert names == {"Anna", "Ben"}
    packed = export_zip(tmp_path / "dir", tmp_path / "out.zip")
    assert import_zip(packed, tmp_path / "home" / "in") == comparison.plan
    copies = KeptVoices(tmp_path / "home" / "in" / VOICES)
    again = Comparison.create(tmp_path / "again", rebuild_plan(plan), synthesis, None, copies)
    list(again.run(synthesis, threading.Event()))
    assert {fact["codes_sha256"] for fact in again.plan.facts.values()} == shas


def test_a_kept_voice_that_does_not_exist_is_refused_before_there_is_a_folder(
    two_settings, synthesis, kept, tmp_path
):
    sides = [two_settings[0].change({"voice_s1": name}) for name in ("Anna", "Carl")]
    plan = make_plan("preference", sides, (SCRIPT,), (1,))
    with pytest.raises(InputError, match="no voice 'Carl'.*Anna, Ben"):
        Comparison.create(tmp_path / "dir", plan, synthesis, None, kept)
    assert not (tmp_path / "dir").exists()


def test_the_same_chosen_voices_on_both_sides_are_the_same(two_settings, synthesis):
    info = synthesis.models[two_settings[0].runtime.model]
    both = [side.change({"voice_s1": "Anna", "voice_s2": "Ben"}) for side in two_settings]
    models = {info.name: info}
    assert holds_voices(both, models) and not holds_voices(two_settings, models)
    one = [side.change({"voice_s1": "Anna"}) for side in two_settings]
    assert not holds_voices(one, models) and voices_warning(one, models) is None

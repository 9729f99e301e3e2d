"""What is known of this machine's speed: from where, for how long, and what it says of a take."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.families.resolve import random_model, resolve
from dia_demo.machine import system
from dia_demo.services.speed import machine_speed as speed_module
from dia_demo.services.speed.estimate import work
from dia_demo.services.speed.machine_speed import FEWEST_STEPS, LAST_TAKES, MachineSpeed
from dia_demo.services.take import Request, VoicePrompt
from tests.helpers.models.known import DIA_NAME
from tests.helpers.page.page_stubs import FIGURES
from tests.helpers.stand_ins.bench_stubs import QUICK, run_result
from tests.helpers.stand_ins.disks import fill, mount_disk

DIA, NANO = (resolve(name) for name in (DIA_NAME, "nano"))
ON_NANO, ON_DIA = RuntimeConfig(), RuntimeConfig(DIA_NAME, "int8")
SCRIPT = "[S1] Good morning. Did you sleep well? [S2] Yes, thank you. And you? [S1]"
# A take of nano: 1,000 steps of 2 ms, and a tenth of its 10 s for the codec.
TAKE = replace(
    FIGURES,
    model="nano",
    precision=place_on_cpu(ON_NANO, NANO).precision,
    steps=1000,
    token_seconds=2.0,
    audio_seconds=10.0,
    codec_seconds=1.0,
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(system, "available_bytes", lambda: 10**11)
    return tmp_path / "cache"


@pytest.fixture
def known():
    """What an app knows: it keeps what it learns."""
    machine = MachineSpeed()
    machine.keeps = True
    return machine


def request(info=NANO, runtime=ON_NANO, max_tokens=None, voice=None, speed=1.0) -> Request:
    """A take of SCRIPT."""
    params = info.config.defaults
    if max_tokens is not None:
        params = replace(params, max_tokens=max_tokens)
    return Request(SCRIPT, params, info, runtime, voice, speed)


def seconds(machine: MachineSpeed, asked: Request | None = None, **changes):
    left = machine.expect(asked or request(), **changes).left
    return None if left is None else left.middle


OF_DIA = request(DIA, ON_DIA)


def test_nothing_is_said_before_anything_was_measured(known):
    assert seconds(known) is None and seconds(known, OF_DIA) is None
    assert known.seconds_per_second(DIA, ON_DIA) is None


def test_the_quick_measurement_is_enough_for_both_models(known):
    known.learn_quick(QUICK)
    assert 0 < seconds(known) < 1 < seconds(known, OF_DIA)


def test_a_longer_script_is_expected_to_take_longer(known):
    known.learn_quick(QUICK)
    assert seconds(known, replace(request(), script=2 * SCRIPT)) > 1.5 * seconds(known)


def test_several_takes_at_once_share_what_dia_reads_from_memory(known):
    known.learn_quick(QUICK)
    assert seconds(known, takes=8) > 6 * seconds(known)
    assert 2 < seconds(known, OF_DIA, takes=8) / seconds(known, OF_DIA) < 4


def test_takes_beyond_the_places_wait_for_one(known):
    known.learn_quick(QUICK)
    few, many = (seconds(known, takes=8, places=places) for places in (1, 8))
    assert few > 7 * seconds(known) and few >= many


def test_a_voice_prompt_costs_time_by_its_length_and_the_models_size(known):
    assert known.prompt_seconds(DIA, 300) is None
    known.learn_quick(QUICK)
    assert known.prompt_seconds(DIA, 600) == 2 * known.prompt_seconds(DIA, 300)
    assert known.prompt_seconds(DIA, 300) > 10 * known.prompt_seconds(NANO, 300) > 0


def test_max_tokens_end_the_take_that_is_expected(known):
    known.learn_quick(QUICK)
    cut = known.expect(request(DIA, ON_DIA, 200))
    assert cut.audio_seconds == DIA.seconds_of(200)
    assert cut.left.middle < seconds(known, OF_DIA)


def test_fewer_bits_are_expected_to_be_faster(known):
    known.learn_quick(QUICK)
    by_precision = [
        seconds(known, request(DIA, replace(ON_DIA, precision=precision)))
        for precision in ("float32", "bfloat16", "int8", "int4")
    ]
    assert by_precision == sorted(by_precision, reverse=True)


def test_a_take_counts_more_than_an_estimate(known):
    known.learn_quick(QUICK)
    known.learn_take(NANO, TAKE, 1, 80)
    pace = known.pace(NANO, replace(ON_NANO, threads=1), 10.0)
    assert pace.measured
    assert pace.per_frame == pytest.approx(0.002, rel=0.02)
    assert pace.per_codec_second == pytest.approx(0.1)


def test_light_steps_do_not_make_a_take_of_dia2_look_fast(known):
    """17 of 100 steps, at 0.45 of the time of the others."""
    info = random_model("dia2-1b")
    steps = replace(TAKE, steps=100, token_seconds=9.065)
    known.learn_take(info, steps, 1, 80)
    runtime = RuntimeConfig(info.name, TAKE.precision, threads=1)
    pace = known.pace(info, runtime, 10.0)
    assert pace.per_frame == pytest.approx(0.1)
    frames = 10.0 * 12.5 + 18 - 17 * 0.55
    assert pace.take_seconds(info, 10.0, 0) == pytest.approx(frames * 0.1 + 10 * 0.1)


def test_a_long_voice_prompt_leaves_no_light_steps():
    """Its last frame is read again, and the first step after it draws column 18."""
    config = random_model("dia2-1b").config
    assert work(config, 40, prompt_frames=18) == 40
    assert work(config, 40, prompt_frames=11) == pytest.approx(40 - 7 * 0.55)


def test_what_is_decoded_beside_the_steps_is_not_waited_for(known):
    for wall, waited in ((2.4, 0.4), (5.0, 1.0), (1.9, 0.01)):
        known.learn_take(NANO, replace(TAKE, wall_seconds=wall), 1, 80)
        pace = known.pace(NANO, replace(ON_NANO, threads=1), 10.0)
        assert pace.per_codec_second == pytest.approx(waited / 10.0)
        known._rates.takes.clear()


def test_one_disturbed_take_among_others_changes_nothing(known):
    for _ in range(LAST_TAKES - 1):
        known.learn_take(NANO, TAKE, 1, 80)
    calm = seconds(known)
    known.learn_take(NANO, replace(TAKE, token_seconds=40.0), 1, 80)
    assert seconds(known) == calm


def test_the_last_takes_count(known):
    for _ in range(LAST_TAKES):
        known.learn_take(NANO, TAKE, 1, 80)
    for _ in range(LAST_TAKES):
        known.learn_take(NANO, replace(TAKE, token_seconds=4.0), 1, 80)
    assert known.pace(NANO, ON_NANO, 10.0).per_frame == pytest.approx(0.004)


def test_a_very_short_take_says_nothing(known):
    known.learn_take(NANO, replace(TAKE, steps=FEWEST_STEPS - 1), 1, 80)
    assert seconds(known) is None


def test_a_benchmark_counts_as_a_take(known):
    run = run_result(rows=1, precision="int8", threads=2, ms_per_step=30.0, realtime_codec=5.0)
    known.learn_run(DIA_NAME, run)
    pace = known.pace(DIA, replace(ON_DIA, threads=2), 10.0)
    assert (pace.per_frame, pace.per_codec_second) == (0.03, 0.2)
    assert known.seconds_per_second(DIA, replace(ON_DIA, threads=2)) > 86 * 0.03


def test_several_takes_at_once_are_not_one_take(known):
    known.learn_run(DIA_NAME, run_result(rows=8, precision="int8"))
    assert seconds(known, OF_DIA) is None


def learn_stretch(known) -> None:
    """A take of 10 s, and one of 20 s at half speed that took 5 s longer to decode."""
    known.learn_take(NANO, TAKE, 1, 80)
    slow = replace(TAKE, audio_seconds=20.0, codec_seconds=TAKE.codec_seconds + 5.0)
    known.learn_take(NANO, slow, 1, 80, speed=0.5)


def test_a_change_of_speed_takes_time(known):
    learn_stretch(known)
    audio = known.expect(request()).audio_seconds
    assert seconds(known, request(speed=0.5)) - seconds(known) == pytest.approx(
        2 * audio * 0.25, rel=0.15
    )


def test_a_take_at_another_speed_leaves_the_pace_as_it_was(known):
    known.learn_take(NANO, TAKE, 1, 80)
    before = seconds(known)
    learn_stretch(known)
    assert seconds(known) == before


def test_a_kept_voice_is_read_first_and_takes_of_the_max_tokens(known):
    known.learn_quick(QUICK)
    voice = VoicePrompt(codes=np.zeros((600, 9), np.int16), transcript="[S1] These are its words.")
    plain, voiced = (request(DIA, ON_DIA, 800, voice=one) for one in (None, voice))
    reading = known.prompt_seconds(DIA, 600)
    long = replace(voiced, params=DIA.config.defaults)
    assert seconds(known, long) > seconds(known, OF_DIA) + reading
    rest = DIA.config.frames_within(800, prompt_frames=600) / DIA.frames_per_second
    assert known.expect(voiced).audio_seconds == rest < known.expect(plain).audio_seconds
    full = request(DIA, ON_DIA, 600, voice=voice)
    assert known.expect(full).audio_seconds == 0


def test_the_time_with_a_recording_is_not_known(known):
    known.learn_quick(QUICK)
    assert seconds(known, has_recording=True) is None


def test_the_time_on_another_device_is_not_known(known):
    known.learn_quick(QUICK)
    assert seconds(known, request(runtime=RuntimeConfig(device="xpu"))) is None


def test_a_model_that_does_not_fit_has_a_reason_in_place_of_a_time(known, monkeypatch):
    known.learn_quick(QUICK)
    monkeypatch.setattr(system, "memory_bytes", lambda: 10**9)
    expected = known.expect(request(DIA, RuntimeConfig(DIA_NAME)))
    assert expected.left is None and "this machine has 1.0 GB" in expected.shortage
    assert known.seconds_per_second(DIA, RuntimeConfig(DIA_NAME)) is None


def test_a_model_with_its_weights_here_needs_no_download(known):
    assert known.expect(OF_DIA).download
    assert not known.expect(request()).download


# The file


def test_what_was_learnt_is_known_after_a_restart(known):
    known.learn_quick(QUICK)
    known.learn_take(NANO, TAKE, 1, 80)
    learn_stretch(known)
    again = MachineSpeed()
    assert again.quick == QUICK
    assert seconds(again, request(speed=0.5)) == seconds(known, request(speed=0.5))


def test_a_process_that_only_reads_writes_nothing(cache):
    MachineSpeed().learn_quick(QUICK)
    assert not cache.exists()


def spoilt(text: str) -> dict[str, str]:
    """Files that cannot be right, by what is wrong with them."""
    raw = json.loads(text)
    quick = raw["quick"]
    return {
        "empty": "",
        "cut": text[: len(text) // 2],
        "a list": "[]",
        "a number of text": text.replace("45.0", '"45"'),
        "zero": text.replace("45.0", "0.0"),
        "not a number": text.replace("45.0", "NaN"),
        "a key too many": json.dumps(raw | {"quick": quick | {"more": 1}}),
        "a key too few": json.dumps({name: raw[name] for name in raw if name != "takes"}),
        "takes of something else": json.dumps(raw | {"takes": {"nano|float32|1": [1, 2]}}),
        "another version": json.dumps(raw | {"version": 0}),
        "another processor": json.dumps(raw | {"machine": raw["machine"] | {"cpu": "another"}}),
        "another torch": json.dumps(raw | {"machine": raw["machine"] | {"torch": "1.0"}}),
    }


def test_a_file_that_cannot_be_right_counts_for_nothing(known, cache):
    known.learn_quick(QUICK)
    known.learn_take(NANO, TAKE, 1, 80)
    file = cache / "speed.json"
    for fault, text in spoilt(file.read_text()).items():
        file.write_text(text)
        again = MachineSpeed()
        assert again.quick is None and seconds(again) is None, fault


def test_a_full_disk_only_means_that_nothing_is_kept(known, cache):
    with mount_disk(cache, "64k"):
        filler = fill(cache)
        known.learn_quick(QUICK)
        assert seconds(known) is not None
        assert MachineSpeed().quick is None
        assert list(cache.iterdir()) == [filler]


def test_a_folder_that_cannot_be_made_only_means_that_nothing_is_kept(known, cache):
    cache.write_text("a file in the folder's place")
    known.learn_quick(QUICK)
    assert seconds(known) is not None


def test_the_models_used_longest_ago_are_forgotten(known):
    for number in range(speed_module.MOST_MODELS + 1):
        known.learn_take(replace(NANO, name=f"model {number}"), TAKE, 1, 80)
    assert known.pace(replace(NANO, name="model 0"), ON_NANO, 10.0) is None
    assert known.pace(replace(NANO, name="model 1"), ON_NANO, 10.0) is not None


def test_the_quick_measurement_keeps_the_better_rates():
    worse = replace(QUICK, read_gb_s=9.0, nano_ms_per_step=0.2, undisturbed=False)
    assert asdict(worse.merge_best(QUICK)) == asdict(replace(QUICK, nano_ms_per_step=0.2))

"""The hybrid run: the CPU's take to the last code, placement, and failures told and survived."""

import json
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from checkpoints import SMALL, drain, load, say, write_small
from faults import CARD, MIB, FaultyBackend, ThreadProcess
from test_selfcheck import PLAN
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.overrides import TorchFunctionMode

from dia_demo import audio, cli, cli_device
from dia_demo.config import GenerationParams, ModelConfig, RuntimeConfig
from dia_demo.engine import events, remote, watch
from dia_demo.engine.accelerator import Accelerator
from dia_demo.engine.backend import Backend
from dia_demo.engine.devices import XpuStatus
from dia_demo.engine.events import AudioChunk, Failed, Finished, Progress, Started, Waiting
from dia_demo.engine.hybrid import Hybrid
from dia_demo.engine.loop import run_to_end
from dia_demo.engine.process import Stopped
from dia_demo.engine.rows import Row
from dia_demo.engine.selfcheck import child
from dia_demo.engine.selfcheck.report import STAGES, Race, Report, StageReport
from dia_demo.engine.selfcheck.verdicts import VerdictStore
from dia_demo.engine.watch import Limits, Usual, check_waveform
from dia_demo.errors import InputError, RunError
from dia_demo.model import cache as cache_module
from dia_demo.model.dia import Dia
from dia_demo.services.device_check import check_device, last_report
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Request, Synthesis

ANYTHING = Usual(high_band=2.0, clipped=2.0, dc=9.0, crest_db=-1.0)
LIMITS = Limits(step_seconds=3.0, drift_every=4, memory_slack=64 * MIB)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("hybrid") / "small", codec=True)


@pytest.fixture
def in_threads(monkeypatch):
    for module in (child, remote):
        monkeypatch.setattr(module, "DeviceProcess", ThreadProcess)
    monkeypatch.setattr(events, "REPORT_SECONDS", 0.0)


def stand_in(fault="healthy", late=10, usual=ANYTHING, limits=LIMITS, store=None) -> Accelerator:
    """A device with a fault, behind the very interface of a real one."""
    return Accelerator(
        device="xpu",
        store=store or VerdictStore(None),
        open=partial(FaultyBackend, fault, late),
        status=lambda: XpuStatus(True, "", CARD),
        plan=PLAN,
        usual=usual,
        limits=limits,
    )


FASTER = Race(2.0, 1.0, "float32")


def trusted(accelerator: Accelerator, folder, race=FASTER, failure="") -> Accelerator:
    """With a verdict in the store, as after a passed check."""
    stages = tuple(StageReport(n, title, "pass", 1e-4, "L2", 0.0) for n, title in STAGES.items())
    key = accelerator.key(folder, "float32")
    accelerator.store.keep(Report(key, CARD, "small", "now", stages, race, 1.0, failure))
    return accelerator


def service(accelerator: Accelerator) -> Synthesis:
    return Synthesis(Settings(), lambda device: accelerator)


def request(folder, device="xpu", seed=5, sound=False, **runtime) -> Request:
    params = GenerationParams(temperature=1.0, max_tokens=60, top_k=20, seed=seed)
    runtime = RuntimeConfig(model=str(folder), device=device, threads=1, **runtime)
    script = "[S1] Hello there. [S2] Hi."
    return Request(script, params, runtime, with_audio=sound)


def events_of(synthesis, asked) -> list:
    return list(synthesis.stream(asked, threading.Event()))


# The same take


def test_a_seed_gives_the_take_of_the_cpu_and_sound_comes_once_it_is_checked(folder, in_threads):
    synthesis = service(trusted(stand_in(), folder))
    on_cpu = events_of(synthesis, request(folder, "cpu", sound=True))
    on_device = events_of(synthesis, request(folder, sound=True))
    ours, theirs = on_cpu[-1].result, on_device[-1].result
    np.testing.assert_array_equal(ours.codes, theirs.codes)
    np.testing.assert_allclose(ours.samples, theirs.samples, atol=1e-6)
    assert (ours.figures.device, theirs.figures.device) == ("cpu", "xpu")
    # While it runs there are figures, but no sound: all of it comes at the end, in one piece.
    kinds = [type(event) for event in on_device]
    assert kinds.count(AudioChunk) == 1 and kinds[-2:] == [AudioChunk, Finished]
    assert kinds.count(Progress) > 10
    assert [type(event) for event in on_cpu].count(AudioChunk) > 1


def test_rows_of_any_kind_share_the_device(folder, in_threads):
    """Rows with and without guidance, of other lengths, that end one after the other."""
    both = [request(folder, seed=1), request(folder, seed=2)]
    params = replace(both[1].params, cfg_scale=0.0, max_tokens=30)
    both[1] = replace(both[1], params=params)
    results = {}
    for device in ("cpu", "xpu"):
        synthesis = service(trusted(stand_in(), folder))
        asked = [replace(one, runtime=replace(one.runtime, device=device)) for one in both]
        told = synthesis.stream_together(asked, threading.Event())
        results[device] = {e.row: e.result.codes for e in told if isinstance(e, Finished)}
    for row in (0, 1):
        np.testing.assert_array_equal(results["cpu"][row], results["xpu"][row])


def test_caches_are_freed_on_the_device(folder):
    hybrid = Hybrid.copy_of(load(folder), FaultyBackend("healthy"), torch.float32)
    server = remote._Server(hybrid, LIMITS)
    numbers = [server.answer(remote.Encode(b"x", True, 20, ())).number for _ in range(3)]
    server.forget(numbers[:2])
    assert list(server._caches) == numbers[2:]


# Placement


class FakeXpu(Backend):
    """An XPU without one: fake tensors that raise when they meet the CPU's."""

    def __init__(self, config=SMALL) -> None:
        super().__init__("xpu")
        self.mode = FakeTensorMode()
        self.config = config
        self.fetched = 0

    def put(self, tensor):
        with self.mode:
            return torch.empty(tensor.shape, dtype=tensor.dtype, device=self.device)

    def active(self):
        return _Nested(super().active(), _ByOperators(), self.mode)

    def fetch(self, tensor):
        """Real numbers in the place of fake ones, so that sampling can go on. Never an end."""
        assert isinstance(tensor, FakeTensor) and tensor.device.type == "xpu"
        self.fetched += 1
        with unset_fake_temporarily():
            generator = torch.Generator().manual_seed(self.fetched)
            logits = torch.randn(tensor.shape, generator=generator)
            logits.select(-1, self.config.decoder.eos).fill_(-9)
            return logits


class _Nested:
    def __init__(self, *contexts) -> None:
        self.contexts = contexts

    def __enter__(self):
        for context in self.contexts:
            context.__enter__()

    def __exit__(self, *error):
        for context in reversed(self.contexts):
            context.__exit__(*error)


class _ByOperators(TorchFunctionMode):
    """Python's indexing asks for the XPU's runtime, which a CPU build has not; operators do not.
    Nor has it the XPU's choice among forms of attention: the plain one, pinned, is called."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.scaled_dot_product_attention:
            assert not torch.backends.cuda.flash_sdp_enabled()
            return torch.ops.aten._scaled_dot_product_attention_math(*args, **kwargs)[0]
        if func is torch.tensor and "device" in (kwargs or {}):
            dtype = kwargs.get("dtype", torch.int64)
            return torch.empty(np.shape(args[0]), dtype=dtype, device=kwargs["device"])
        if func is torch.Tensor.contiguous:
            return torch.ops.aten.clone(args[0], memory_format=torch.contiguous_format)
        if func is torch.Tensor.__getitem__:
            return _index(args[0], args[1])
        if func is torch.Tensor.copy_:
            return torch.ops.aten.copy_.default(*args)
        if func is torch.Tensor.__setitem__:
            torch.ops.aten.copy_.default(_index(args[0], args[1]), args[2])
            return None
        return func(*args, **(kwargs or {}))


def _index(tensor, index):
    index = index if isinstance(index, tuple) else (index,)
    if Ellipsis in [one for one in index if not isinstance(one, torch.Tensor)]:
        at = index.index(Ellipsis)
        index = (*index[:at], *[slice(None)] * (tensor.dim() - len(index) + 1), *index[at + 1 :])
    dim = 0
    for one in index:
        if isinstance(one, torch.Tensor):
            tensor = torch.ops.aten.index.Tensor(tensor, [None] * dim + [one])
            dim += one.dim()
        elif isinstance(one, int):
            tensor = tensor.select(dim, one)
        elif one is None:
            tensor, dim = tensor.unsqueeze(dim), dim + 1
        else:
            tensor = torch.ops.aten.slice.Tensor(tensor, dim, one.start, one.stop, one.step or 1)
            dim += 1
    return tensor


@pytest.fixture
def fake(folder):
    backend = FakeXpu()
    return Hybrid.copy_of(load(folder), backend, torch.float32)


def test_a_whole_generation_mixes_no_devices(fake, monkeypatch):
    """Encoder, prompt, every step past the cache's growths, the end: all on the fake XPU."""
    monkeypatch.setattr(cache_module, "FIRST_POSITIONS", 12)
    prompt = np.zeros((9, 3), np.int64)
    row = say(fake, prompt=prompt, max_tokens=40, temperature=1.0, seed=3)
    assert row.done and len(row.codes()) == SMALL.frames_within(40, 9)
    assert fake.backend.fetched == row.steps + 1


FULL_SIZE = ModelConfig()


def at_full_size(backend) -> Hybrid:
    """Dia-1.6B on the fake XPU: shapes without numbers take no memory."""
    with torch.device("meta"):
        model = Dia(FULL_SIZE)
    return Hybrid.copy_of(model.requires_grad_(False), backend, torch.float32)


def test_steps_of_the_full_size_mix_no_devices():
    """Every layer of Dia-1.6B, with guidance and a prompt: 18 decoder layers, 9 channels."""
    hybrid = at_full_size(FakeXpu(FULL_SIZE))
    prompt = np.zeros((5, 9), np.int64)
    row = say(hybrid, prompt=prompt, max_tokens=30, temperature=1.2, cfg_scale=3.0, seed=3)
    assert row.done and len(row.codes()) == FULL_SIZE.frames_within(30, 5)
    assert hybrid.backend.fetched == row.steps + 1


def test_rows_with_and_without_guidance_mix_no_devices(fake):
    """Several rows of other lengths share the steps, and end one after the other."""
    rows = [
        Row(fake.config, b"\x01 Hello.", replace(fake.config.defaults, **given, seed=seed))
        for seed, given in enumerate(
            (dict(max_tokens=30), dict(max_tokens=20, cfg_scale=1.0), dict(max_tokens=40))
        )
    ]
    run_to_end(fake, rows)
    assert all(row.done for row in rows)


def test_an_op_that_mixes_devices_is_found(fake):
    """The walk can fail: one weight left on the CPU is enough."""
    with fake.backend.mode:
        left = torch.empty_like(fake.model.decoder.norm.weight, device="cpu")
    fake.model.decoder.norm.weight = torch.nn.Parameter(left, requires_grad=False)
    with pytest.raises(RuntimeError, match="[Dd]evice"):
        say(fake, max_tokens=20)


def test_weights_on_the_wrong_device_are_refused(folder):
    with pytest.raises(RunError, match="was sent to cpu and lies on xpu:1"):
        Hybrid.copy_of(load(folder), FaultyBackend("wrong device index"), torch.float32)


def test_nothing_keeps_a_gradient_and_attention_is_plain(folder):
    seen = []

    class Watching(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.nn.functional.scaled_dot_product_attention:
                flags = torch.backends.cuda
                seen.append((torch.is_inference_mode_enabled(), flags.flash_sdp_enabled()))
            return func(*args, **(kwargs or {}))

    with Watching():
        hybrid = Hybrid.copy_of(load(folder), Backend("cpu"), torch.float32)
        hybrid.encode(b"x", True, 20)
    assert seen and set(seen) == {(True, False)}


# Failures mid-take

MID_TAKE = {
    "NaN mid-take": "step 11: NaN or infinity among the logits",
    "device lost mid-take": "the driver lost the device",
    "hang": "step 11: no answer for 1 s, the device hangs",
    "growth of memory": "memory grew by",
    "drift that starts after 1,000 steps": "the device drifts",
}


@pytest.mark.parametrize("fault", MID_TAKE)
def test_a_failure_mid_take_drops_it_whole_and_the_cpu_works_at_once(folder, in_threads, fault):
    limits = replace(LIMITS, step_seconds=1.0 if fault == "hang" else 5.0)
    # Of the device's first 13 steps three are the sentinel's: one at first, two repeats.
    accelerator = trusted(stand_in(fault, late=13, limits=limits), folder)
    synthesis = service(accelerator)
    told = events_of(synthesis, request(folder, sound=fault == "NaN mid-take"))
    assert isinstance(told[-1], Failed) and told[-1].device == "xpu"
    said = told[-1].message
    assert MID_TAKE[fault].split(":")[-1] in said
    for words in ("The XPU failed", "step ", "dropped whole", "Turn the XPU off", "same seed"):
        assert words in said
    assert not [event for event in told if isinstance(event, AudioChunk | Finished)]
    # It is not trusted again before it has been checked again; the CPU is there at once.
    with pytest.raises(InputError, match="a run failed after the check"):
        events_of(synthesis, request(folder))
    on_cpu = events_of(synthesis, request(folder, "cpu"))
    assert isinstance(on_cpu[-1], Finished)


def test_a_driver_that_aborts_takes_only_its_own_process_and_the_queue_moves_on(folder):
    """The real thing: a process that dies by SIGABRT while another person waits for the CPU."""
    synthesis = service(trusted(stand_in("abort of the process", late=8), folder))
    waiting: list = []
    other = threading.Thread(
        target=lambda: waiting.extend(events_of(synthesis, request(folder, "cpu")))
    )
    told = []
    for event in synthesis.stream(request(folder), threading.Event()):
        told.append(event)
        if isinstance(event, Started):
            other.start()
    other.join(60)
    assert isinstance(told[-1], Failed) and "SIGABRT" in told[-1].message
    assert isinstance(waiting[0], Waiting) and isinstance(waiting[-1], Finished)


def test_stop_keeps_what_was_made_on_the_device(folder, in_threads):
    synthesis, cancel = service(trusted(stand_in(), folder)), threading.Event()
    for event in synthesis.stream(request(folder), cancel):
        if isinstance(event, Progress) and event.step == 30:
            cancel.set()
    assert len(event.result.codes) == 27 and event.result.figures.finish_reason == "cancelled"


def test_distorted_sound_is_not_handed_over(folder, in_threads):
    """Random weights hiss: to the waveform check that is what a broken device sounds like."""
    usual = replace(ANYTHING, high_band=1e-6)
    synthesis = service(trusted(stand_in(usual=usual), folder))
    told = events_of(synthesis, request(folder, sound=True))
    assert isinstance(told[-1], Failed) and "a hiss" in told[-1].message
    assert not [event for event in told if isinstance(event, AudioChunk)]


# The waveform


def speech(seconds=2.0, rate=44100) -> np.ndarray:
    """A voice-like wave: harmonics of 120 Hz falling off, in syllables."""
    t = np.arange(int(seconds * rate)) / rate
    wave = sum(np.sin(2 * np.pi * 120 * k * t) / k**1.5 for k in range(1, 30))
    return (0.1 * wave * (0.2 + np.sin(2 * np.pi * 2 * t) ** 2)).astype(np.float32)


def test_speech_passes_the_waveform_check():
    check_waveform(speech(), 44100)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda x: np.where(np.arange(len(x)) == 9, np.nan, x), "not numbers"),
        (lambda x: 0 * x, "silent"),
        (lambda x: np.clip(40 * x, -1, 1), "clipped"),
        (lambda x: x + 0.2, "offset"),
        (lambda x: 0.5 * np.sign(np.sin(np.arange(len(x)) / 40)), "crest factor"),
        (lambda x: x + 0.2 * np.random.default_rng(0).standard_normal(len(x)), "hiss"),
    ],
)
def test_what_is_no_speech_is_named(spoil, words):
    with pytest.raises(RunError, match=words):
        check_waveform(spoil(speech()).astype(np.float32), 44100)


def test_high_band_is_a_share_of_power():
    noise = np.random.default_rng(0).standard_normal(44100)
    assert watch.high_band_share(noise) == pytest.approx(0.5, abs=0.02)
    assert watch.high_band_share(np.zeros(10)) == 0 == watch.high_band_share(np.zeros(0))
    assert watch.high_band_share(speech()) < 0.01 and audio.health(speech(), 44100).crest_db > 6


# Who may run


def test_without_a_check_it_refuses_and_says_how_to_run_one(folder):
    with pytest.raises(InputError, match="not passed its self-check.*doctor --device xpu"):
        events_of(service(stand_in()), request(folder))


def test_what_failed_the_check_is_refused_with_its_reason(folder):
    accelerator = trusted(stand_in(), folder, failure="stage 2: zeros")
    with pytest.raises(InputError, match="stage 2: zeros"):
        events_of(service(accelerator), request(folder))


def test_slower_than_the_cpu_needs_insisting(folder, in_threads):
    accelerator = trusted(stand_in(), folder, race=Race(1.0, 4.0, "int8"))
    synthesis = service(accelerator)
    with pytest.raises(InputError, match=r"1.0 steps/s here, 4.0 on the CPU \(int8\)"):
        events_of(synthesis, request(folder))
    assert isinstance(events_of(synthesis, request(folder, insist=True))[-1], Finished)


def test_bfloat16_needs_a_check_of_its_own(folder):
    accelerator = trusted(stand_in(), folder)
    with pytest.raises(InputError, match="in bfloat16 .precision changed since the last one"):
        events_of(service(accelerator), request(folder, precision="bfloat16"))


def test_a_verdict_on_another_checkpoint_does_not_count(folder, tmp_path):
    accelerator = trusted(stand_in(), folder)
    other = write_small(tmp_path / "other", seed=9)
    with pytest.raises(InputError, match="checkpoint changed"):
        events_of(service(accelerator), request(other))


def test_the_check_is_a_service_and_its_verdict_opens_the_door(folder, in_threads):
    synthesis, asked = service(stand_in(late=10**9)), request(folder, insist=True)
    assert last_report(synthesis, asked.runtime) is None
    report = drain(check_device(synthesis, asked.runtime, threading.Event()))
    assert report.passed, report.as_text()
    assert last_report(synthesis, asked.runtime) == report
    assert isinstance(events_of(synthesis, asked)[-1], Finished)


def doctor(synthesis, folder, capsys, *more) -> tuple[int, str]:
    asked = ["doctor", "--device", "xpu", "--model", str(folder), "--threads", "1", *more]
    code = cli_device.check(cli._parser().parse_args(asked), synthesis)
    return code, capsys.readouterr().out


def test_the_doctor_runs_the_check_and_keeps_its_report(folder, in_threads, capsys, tmp_path):
    file = tmp_path / "report.json"
    fault = "one head's values wrong by 1%"
    more = ("--json", "--report", str(file))
    code, out = doctor(service(stand_in(fault)), folder, capsys, *more)
    told = json.loads(out)
    assert code == 1 and told["usable"] and told["passed"] is False
    assert "stage 3" in told["problems"][0] and json.loads(file.read_text())["stages"]
    code, out = doctor(service(stand_in(late=10**9)), folder, capsys)
    assert code == 0 and "PASSED" in out and "Race: " in out
    assert all(title in out for title in STAGES.values())


def test_the_doctor_says_why_there_is_nothing_to_check(folder, capsys):
    real = Synthesis(Settings())
    code, out = doctor(real, folder, capsys, "--json")
    told = json.loads(out)
    assert code == 1 and told["usable"] is False and "no XPU support" in told["reason"]


def test_a_check_that_is_stopped_leaves_no_verdict(folder, in_threads):
    synthesis, cancel = service(stand_in("slow device")), threading.Event()
    asked = request(folder)
    with pytest.raises(Stopped):
        for _ in check_device(synthesis, asked.runtime, cancel):
            cancel.set()
    assert last_report(synthesis, asked.runtime) is None

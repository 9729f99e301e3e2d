"""The Python API: what a program gets, and what it is told."""

import inspect
import json
import os
import re
import subprocess
import sys
import tomllib

import numpy as np
import pytest
import soundfile

import dia_demo
from dia_demo import api
from dia_demo.api.model import Options
from dia_demo.audio import read_metadata
from dia_demo.config import PARAMS
from dia_demo.files import ROOT
from dia_demo.services.synthesis import Synthesis

SCRIPT = "[S1] Hello. [S2] Hi there. [S1]"


@pytest.fixture(scope="module")
def model():
    with dia_demo.load("nano", threads=1) as loaded:
        yield loaded


def test_a_take_is_that_of_the_command_line(model, tmp_path):
    from dia_demo.cli.main import main

    ours = model.generate(SCRIPT, seed=7).save(tmp_path / "ours.flac")
    theirs = tmp_path / "theirs.flac"
    assert main(["say", SCRIPT, "--seed", "7", "--threads", "1", "-o", str(theirs)]) == 0
    assert np.array_equal(soundfile.read(ours)[0], soundfile.read(theirs)[0])
    metadata = read_metadata(ours)
    assert metadata["script"] == SCRIPT and metadata["settings"]["seed"] == 7


def test_chunks_of_a_stream_join_to_the_take(model):
    stream = model.stream(SCRIPT, seed=7)
    with pytest.raises(api.RunError, match="no take yet"):
        _ = stream.take
    chunks = list(stream)
    assert {chunk.sample_rate for chunk in chunks} == {model.info.sample_rate}
    assert np.array_equal(np.concatenate([chunk.samples for chunk in chunks]), stream.take.samples)
    assert np.array_equal(stream.take.codes, model.generate(SCRIPT, seed=7).codes)
    assert list(stream) == []


def test_text_that_comes_in_pieces_is_spoken(model):
    chunks = list(model.speak(iter(["[S1] Ye", "s. [S2] No."]), seed=7))
    assert {chunk.sample_rate for chunk in chunks} == {model.info.sample_rate}
    assert sum(len(chunk.samples) for chunk in chunks) > model.info.sample_rate / 2
    with pytest.raises(api.InputError, match="speed"):
        next(model.speak(["Yes. "], speed=9))


def test_streams_and_files_begin_with_the_notice_of_the_setting(model, monkeypatch, tmp_path):
    monkeypatch.setenv("DIA_NOTICE", "tone")
    with dia_demo.load("nano", threads=1) as loaded:
        first, *rest = stream = loaded.stream(SCRIPT, seed=7)
        chunks, take = [first, *rest], stream.take
    assert np.array_equal(take.samples, model.generate(SCRIPT, seed=7).samples)
    assert np.array_equal(first.samples, take.notice) and len(take.notice) > 0
    assert rest[0].start_seconds == pytest.approx(take.notice_seconds)
    assert np.array_equal(np.concatenate([chunk.samples for chunk in chunks]), take.in_file)
    assert len(soundfile.read(take.save(tmp_path / "take.wav"))[0]) == len(take.in_file)


def test_a_notice_that_does_not_exist_is_refused(monkeypatch):
    monkeypatch.setenv("DIA_NOTICE", "loud")
    with pytest.raises(api.InputError, match="DIA_NOTICE"):
        dia_demo.load("nano")


def test_stop_keeps_what_was_said(model, talkative, slow_steps):
    stream = model.stream("[S1] " + "We walk along the river and talk. " * 8, seed=1)
    heard = 0
    for chunk in stream:
        heard += len(chunk.samples)
        if heard > 2 * chunk.sample_rate:
            stream.stop()
    assert stream.take.figures.finish_reason == "cancelled" and len(stream.take.samples) == heard
    early = model.stream(SCRIPT, seed=1)
    early.stop()
    with pytest.raises(api.RunError, match="stopped before there was any speech"):
        next(early)
    assert model.generate(SCRIPT, seed=1).figures.finish_reason == "end"


def test_a_take_is_made_beside_a_stream_that_is_not_read_to_its_end(model):
    with model.stream(SCRIPT, seed=7) as stream:
        next(stream)
        assert len(model.generate(SCRIPT, seed=7).samples)
    assert len(model.generate(SCRIPT, seed=7).samples) and list(stream) == []


def test_a_batch_gives_the_takes_of_single_calls(model):
    scripts = [SCRIPT, "[S1] Good morning. [S2] Good evening. [S1]"]
    takes = model.batch(scripts, seeds=[3, 4], temperature=0.2)
    singles = [model.generate(scripts[i], seed=3 + i, temperature=0.2) for i in range(2)]
    for take, single in zip(takes, singles, strict=True):
        assert np.array_equal(take.samples, single.samples)
        assert take.request.params == single.request.params
    assert model.batch([]) == []
    alike = model.batch([SCRIPT, SCRIPT], seed=3)
    assert np.array_equal(alike[0].codes, alike[1].codes)
    drawn = model.batch([SCRIPT, SCRIPT])
    assert drawn[0].figures.seed != drawn[1].figures.seed


def test_a_take_that_fails_leaves_the_others_of_its_batch(model, monkeypatch):
    take_of = Synthesis.take

    def fail_second(self, request, result):
        if request.script == "[S1] Two.":
            raise api.RunError("The take contains no speech.")
        return take_of(self, request, result)

    monkeypatch.setattr(Synthesis, "take", fail_second)
    with pytest.raises(api.BatchError, match="^1 of 3 takes failed. Script 2: .* no speech") as got:
        model.batch(["[S1] One.", "[S1] Two.", "[S1] Three."], seed=1)
    made = [take and take.request.script for take in got.value.takes]
    assert made == ["[S1] One.", None, "[S1] Three."]


def test_options_reach_the_take(model, tmp_path):
    words = "[S1] Hello, how are you today? [S2] I am very well, thank you. [S1]"
    prompt = model.generate(words, seed=7).save(tmp_path / "prompt.wav")
    take = model.generate(
        "[S1] Hi, I am Nguyen and I have 3 cats.",
        seed=1,
        speed=1.25,
        voice_prompt=prompt,
        pronunciations={"Nguyen": "win"},
        max_tokens=300,
    )
    request = take.request
    assert request.voice.transcript == words and request.speed == 1.25
    assert request.pronunciations.entries == (("Nguyen", "win"),)
    assert request.params.max_tokens == 300
    report = model.check("John: It's $3.50!")
    assert "three dollars" in report.reading.text
    inspected = inspect.signature(model._request).parameters
    assert set(Options.__annotations__) == (set(inspected) - {"script", "params"}) | set(PARAMS)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda model: model.generate(""), api.InputError, "The script is empty"),
        (lambda model: model.stream(""), api.InputError, "The script is empty"),
        (lambda model: model.generate(3), api.InputError, "script must be text"),
        (lambda model: model.generate(SCRIPT, temperature=99), api.InputError, "from 0 to 5"),
        (lambda model: model.generate(SCRIPT, seed="a"), api.InputError, "seed must be"),
        (lambda model: model.generate(SCRIPT, heat=1), TypeError, "unknown option 'heat'"),
        (lambda model: model.batch(SCRIPT), api.InputError, "a list of scripts"),
        (lambda model: model.batch([SCRIPT], seeds=[1, 2]), api.InputError, "1 scripts and 2"),
        (lambda model: model.batch([SCRIPT, ""]), api.InputError, "The script is empty"),
        (lambda model: model.generate(SCRIPT, voice_prompt="no.wav"), api.InputError, "no.wav"),
        (lambda model: model.generate(SCRIPT, voice_transcript="Hi"), api.InputError, "needs"),
        (lambda model: model.generate(SCRIPT, pronunciations="x"), api.InputError, "write {"),
        (lambda _: dia_demo.load("no such model"), api.InputError, "no such model"),
        (lambda _: dia_demo.load(precision="int3"), api.InputError, "precision must be one of"),
        (lambda _: dia_demo.load(device="xpu"), api.InputError, "XPU cannot be used here"),
    ],
)
def test_what_cannot_be_used_is_said(model, call, error, message):
    with pytest.raises(error, match=message):
        call(model)


def test_progress_of_the_loading_is_told():
    told = []
    dia_demo.load(progress=lambda what, fraction: told.append((what, fraction))).close()
    assert ("Loading nano", 0.0) in told and told[-1][0] == "Loading the codec"
    with pytest.raises(ZeroDivisionError):
        dia_demo.load(progress=lambda *_: 1 / 0)


IMPORT = """
import json, os, sys
before = dict(os.environ)
import dia_demo
loaded = {name.partition(".")[0] for name in sys.modules}
assert set(dia_demo.__all__) <= set(dir(dia_demo)), "dir lists the API"
print(json.dumps([dict(os.environ) == before, sorted(loaded & {"torch", "numpy", "numba"})]))
"""


def test_importing_changes_nothing_and_loads_little():
    env = {name: value for name, value in os.environ.items() if name != "DIA_CPU"}
    out = subprocess.run(
        [sys.executable, "-c", IMPORT], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert json.loads(out.stdout) == [True, []], out.stderr


def test_the_names_of_the_package_are_those_of_the_api():
    stub = (ROOT / "dia_demo" / "__init__.pyi").read_text("utf-8")
    assert dia_demo.__all__ == api.__all__ == re.findall(r" as (\w+)$", stub, re.MULTILINE)
    assert all(getattr(dia_demo, name) is getattr(api, name) for name in api.__all__)
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = dia_demo.lode


def test_the_python_examples_of_the_documents_run(tmp_path):
    """Those that need no running app; the tests of its routes run the others."""
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    blocks = [
        block
        for document in documents
        for block in re.findall(r"^```python\n(.*?)^```", document.read_text("utf-8"), re.M | re.S)
        if "127.0.0.1" not in block
    ]
    assert blocks
    run_all = "import json, sys\nfor block in json.load(sys.stdin): exec(block, {})"
    out = subprocess.run(
        [sys.executable, "-c", run_all],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "DIA_KEPT": str(tmp_path / "kept")},
        input=json.dumps(blocks),
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr
    assert soundfile.info(tmp_path / "hello.wav").duration > 1


# pip install .


def test_an_installed_package_has_all_assets_but_the_screenshots():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assets = {f"assets/{path.name}" for path in (ROOT / "assets").iterdir()}
    assert included.keys() == (assets - {"assets/screenshots"}) | {"LICENSE", "NOTICE"}
    assert all(target == f"dia_demo/{source}" for source, target in included.items())


@pytest.mark.long
def test_the_installed_package_speaks(tmp_path):
    pip = [sys.executable, "-m", "pip", "-q"]
    target, take = tmp_path / "packages", tmp_path / "hello.wav"
    subprocess.run([*pip, "install", "--no-deps", "--target", target, ROOT], check=True)
    env = os.environ | {"PYTHONPATH": str(target)}
    command = [sys.executable, target / "bin" / "dia", "say", SCRIPT, "-o", take]
    subprocess.run(command, check=True, cwd=tmp_path, env=env)
    assert soundfile.info(take).duration > 1

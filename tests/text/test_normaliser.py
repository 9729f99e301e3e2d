"""Plain characters: what becomes of typographic ones, for whom, and what the person is shown."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.cli.main import main
from dia_demo.config import RuntimeConfig
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.text.checks.script_check import check_script
from dia_demo.text.normaliser import plain_characters
from dia_demo.text.script import encode_script
from dia_demo.ui import html
from tests.helpers.comparisons import make
from tests.helpers.models.checkpoints import write_small
from tests.helpers.models.known import DIA, NANO

CURLY = "[S1] I’m sure you’ll like it — “really”… [S2] Don’t\u00a0be\u200b late."
PLAIN = "[S1] I'm sure you'll like it, \"really\"... [S2] Don't be late."


@pytest.mark.parametrize(
    "written, read",
    [
        (CURLY, PLAIN),
        ("don´t ‘you’ ‚say‛ ′", "don't 'you' 'say' '"),
        ("„Ja“ «oui» ″", '"Ja" "oui" "'),
        ("one—two — three – four", "one, two, three, four"),
        ("London–Paris, 3–5 or 3−5, well‑known", "London-Paris, 3-5 or 3-5, well-known"),
        ("But I— [S2] What?", "But I... [S2] What?"),
        ("But I —\n[S2] “Wait—”", 'But I...\n[S2] "Wait..."'),
        ("[S1] — Hello. [S2] –Hi.", "[S1] Hello. [S2] Hi."),
        ("Wait! — No, — yes — . “—And”", 'Wait! No, yes. "And"'),
        ("he said—“no”", 'he said, "no"'),
        ("[S1] — [S2]—", "[S1] [S2]"),
        ("a\u2009b\u202fc\ufeff\u00add\u2028e", "a b cd\ne"),
        ("-- a - b... 'c' \"d\" (laughs) é\t", "-- a - b... 'c' \"d\" (laughs) é\t"),
        ("", ""),
    ],
)
def test_typographic_characters_become_plain_ones(written, read):
    assert plain_characters(written) == read


def test_plain_characters_leave_nothing_typographic():
    pieces = ["[S1]", "[S2]", *" \n.,)(\"'a3", *"—–―’“”…\u200b\u00a0"]
    draw = random.Random(7)
    for _ in range(5000):
        script = "".join(draw.choices(pieces, k=draw.randint(1, 12)))
        once = plain_characters(script)
        assert plain_characters(once) == once and not set(once) & set("—–―’“”…\u200b\u00a0"), script


def test_the_offered_repair_removes_typographic_characters():
    found = [one for one in check_script(f"[S1] Plain.\n{CURLY}").findings]
    (tip,) = [one for one in found if one.code == "typographic"]
    assert (
        tip.level == "tip" and tip.line == 2 and tip.repair_label == "Use plain quotes and dashes"
    )
    assert tip.repaired == f"[S1] Plain.\n{PLAIN}"
    assert "typographic" not in {one.code for one in check_script(tip.repaired).findings}


@pytest.fixture(scope="module")
def nano():
    return Synthesis(Settings())


def test_the_embedded_voice_always_reads_plain_characters(nano):
    report = NANO.check(CURLY, 400)
    assert report.reading.text == PLAIN and report.num_bytes == len(encode_script(PLAIN))
    assert "typographic" not in {one.code for one in report.findings}
    shown = html.script_report(report, 1024)
    marked = "[S1] <mark>I&#x27;m</mark> sure <mark>you&#x27;ll</mark> like"
    assert f"<strong>Read as</strong> {marked}" in shown
    plain = NANO.check(PLAIN, 400)
    assert plain.reading is None and "Read as" not in html.script_report(plain, 1024)


@pytest.mark.parametrize(
    ("script", "repaired"),
    [
        ("[S1] It’s an SUV. [S2] Hi.", "[S1] It’s an SUV. [S2] Hi. [S1]"),
        # There is no tag yet: the words that would be read, but without the names of letters.
        ("It’s an SUV.", "[S1] It's an S U V. [S2]"),
    ],
)
def test_a_repair_changes_only_what_it_says(script, repaired):
    findings = DIA.check(script, 400, normalise=True).findings
    (tip,) = [finding for finding in findings if finding.code == "no_last_tag"]
    assert tip.repaired == repaired


def test_the_embedded_voice_needs_no_last_tag():
    assert NANO.check("[S1] It’s an SUV. [S2] Hi.", 400).findings == ()


def test_a_script_that_the_embedded_voice_reads_shorter_is_counted_as_it_is_read(nano):
    """1,020 curly quotes are 3 bytes each, and one byte each as they are read."""
    script = "[S1] " + "’" * 1000
    assert NANO.check(script, 400).num_bytes == 1002
    assert "too_many_bytes" not in {one.code for one in NANO.check(script, 400).findings}


@pytest.fixture
def say(capsys, monkeypatch, tmp_path):
    """Run `say` for two tokens' worth of codes; returns them."""
    monkeypatch.setenv("DIA_THREADS", "1")

    def run(script: str, model: str) -> np.ndarray:
        path = tmp_path / "codes.npy"
        words = ["--model", model, "--seed", "3", "--max-tokens", "40", "--codes", str(path)]
        assert main(["say", script, *words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["steps"] > 0
        return np.load(path)

    return run


def test_a_take_of_the_embedded_voice_is_that_of_the_plain_script(say):
    assert np.array_equal(say(CURLY, "nano"), say(PLAIN, "nano"))


def test_dia_reads_what_was_written_byte_for_byte(say, tmp_path):
    model = str(write_small(tmp_path / "small"))
    assert not np.array_equal(say(CURLY, model), say(PLAIN, model))
    info = Synthesis(Settings()).models[model]
    assert info.reading(CURLY).text == CURLY and info.reading(CURLY).changes == ()


def test_a_voice_prompts_words_are_read_plain_too(nano):
    info = nano.models["nano"]
    voice = VoicePrompt(codes=np.zeros((3, 4), np.int16), transcript="[S1] It’s me.")
    request = Request(CURLY, info.config.defaults, info, voice=voice)
    assert request.encode() == encode_script(PLAIN, "[S1] It's me.")


def test_a_comparison_reads_plain_characters(nano, tmp_path):
    settings = [
        Setting(
            replace(nano.models["nano"].config.defaults, max_tokens=60, top_k=k), RuntimeConfig()
        )
        for k in (20, 30)
    ]
    plan = make_plan("sighted", settings, (CURLY, PLAIN), (1,))
    comparison = Comparison.create(tmp_path / "dir", plan, nano)
    make(comparison, nano)
    codes = {
        (slot.setting, slot.script): comparison.plan.facts[slot.id]["codes_sha256"]
        for slot in comparison.plan.slots
    }
    assert codes[0, 0] == codes[0, 1] and codes[1, 0] == codes[1, 1]

"""Dia2's rows against the reference, alone and beside one another; checkpoints that are refused.

The whole, with prompts of upstream's kind, is compared with upstream's own code by
tools/compare_dia2.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from dia_demo.engine.events import FinishReason, SpokenWord
from dia_demo.engine.scheduler import Scheduler, run_to_end
from dia_demo.errors import InputError
from dia_demo.families.dia2.row import Dia2Row
from dia_demo.families.dia2.script import parse_script
from dia_demo.families.dia2.tokenizer import tokenizer_of
from dia_demo.families.resolve import resolve
from dia_demo.model.dia2.checkpoint import check_tensors, load
from dia_demo.model.dia2.torch_model import TorchDia2
from dia_demo.services.dialogue.plan import needs_chunks
from dia_demo.services.take import Request
from dia_demo.task import result_of
from dia_demo.text.script import encode_script
from tests.helpers.models.dia2_reference import Reference
from tools.compare_dia2.make_random_dia2 import write_checkpoint

SCRIPT = '[S1] Hello there. <break time="0.4s"/> [S2] Hi: who?'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("dia2"))


@pytest.fixture(scope="module")
def config(folder):
    return resolve(str(folder)).config


@pytest.fixture(scope="module")
def model(folder, config):
    return TorchDia2(result_of(load(folder, config)), 1)


def row_of(config, script=SCRIPT, **params) -> Dia2Row:
    options = {name: params.pop(name) for name in ("prompt", "prompt_words") if name in params}
    params = replace(config.defaults, **params)
    return Dia2Row(config, encode_script(script), params, **options)


def made_alone(model, config, **params) -> Dia2Row:
    row = row_of(config, **params)
    run_to_end(model, [row])
    return row


class FollowingReference(Dia2Row):
    """A row whose every step is compared with the reference."""

    def __init__(self, reference, *arguments) -> None:
        super().__init__(*arguments)
        self.reference, self.texts, self.columns, self.differences = reference, [], [], []

    def draw_uniforms(self, out) -> None:
        super().draw_uniforms(out)
        self.texts.append(self.next_text)
        self.columns.append(self.next_codes)
        steps = [self.texts, self.columns, list(range(len(self.texts)))]
        self.expected = self.reference.step(*steps, self.params, out.tolist())

    def accept_action(self, action) -> None:
        super().accept_action(action)
        self.differences += [self.steps] if action != self.expected[0] else []

    def accept(self, codes) -> None:
        super().accept(codes)
        is_read = self.position >= np.array(self.config.delay_pattern)
        is_same = codes == self.expected[1]
        self.differences += [] if is_same[is_read].all() else [self.steps]


@pytest.mark.parametrize(
    "settings", [{"temperature": 0.0, "text_temperature": 0.0}, {"seed": 3}, {"cfg_scale": 1.0}]
)
def test_every_action_and_code_is_the_references(folder, config, model, settings):
    params = replace(config.defaults, max_tokens=24, **settings)
    text = encode_script(SCRIPT)
    row = FollowingReference(Reference(folder, config), config, text, params)
    run_to_end(model, [row])
    assert row.steps == 24 and row.differences == []


def test_the_depth_part_is_left_out_where_nobody_reads_its_codes(config, model, monkeypatch):
    """Columns 1 to 3 of the channels that are delayed by four frames."""
    rows = [row_of(config, seed=seed, max_tokens=9) for seed in range(2)]
    drawn = []

    def depth(first, uniforms, drawing, caches):
        drawn.append([row.position for row in rows if row.cache in caches])
        return TorchDia2.depth(model, first, uniforms, drawing, caches)

    monkeypatch.setattr(model, "depth", depth)
    # Without the scheduler, so that nothing depends on when a thread has read the second row.
    for row in rows:
        row.cache = row.read(model)
    for together, steps in ((rows[:1], 3), (rows, 6), (rows[1:], 3)):
        batch = rows[0].make_batch(model, together)
        for _ in range(steps):
            batch.step()
    assert [row.done for row in rows] == [True, True]
    assert drawn == [[3], [4], [5], [6, 3], [7, 4], [8, 5], [6], [7], [8]]
    assert config.light_steps == 3


def test_a_row_is_the_same_alone_and_beside_others_that_join_later(config, model):
    settings = [{"seed": 1}, {"seed": 2, "cfg_scale": 1.0}, {"seed": 3, "temperature": 0.0}]
    settings = [each | {"max_tokens": 20} for each in settings]
    alone = [made_alone(model, config, **each) for each in settings]
    scheduler, rows = Scheduler(model, 3), [row_of(config, **each) for each in settings]
    steps = 0
    while not all(row.done for row in rows):
        if steps in (0, 4, 9):
            scheduler.add([rows[(0, 4, 9).index(steps)]])
        scheduler.schedule()
        scheduler.step()
        steps += 1
    for row, expected in zip(rows, alone, strict=True):
        np.testing.assert_array_equal(row.codes(), expected.codes())
        assert row.words == expected.words


def test_words_have_the_times_of_their_steps_and_the_end_follows_the_last(config, model):
    row = made_alone(model, config, seed=4)
    assert row.finish_reason == FinishReason.END
    assert [word.word for word in row.words] == ["Hello", "there.", "Hi", "who?"]
    assert [word.speaker for word in row.words] == [1, 1, 2, 2]
    times = [word.seconds for word in row.words]
    assert times == sorted(times) and times[0] == 2 / 12.5
    # The break lasts 5 steps, beside the padding of the word before it.
    assert times[2] - times[1] >= 5 / 12.5
    assert times[-1] < len(row.codes()) / 12.5


def test_codes_come_once_their_delays_are_over_and_never_change(config, model):
    row, parts = row_of(config, seed=5), []
    scheduler = Scheduler(model)
    scheduler.add([row])
    while not row.done:
        scheduler.schedule()
        scheduler.step()
        parts.append(row.codes(sum(map(len, parts))))
    np.testing.assert_array_equal(np.concatenate(parts), row.codes())
    assert max(map(len, parts)) == 1


def test_a_take_as_the_voice_is_replayed_with_its_own_text(config, model):
    """The state after the prompt is that of a row that has said it."""
    first = made_alone(model, config, script="[S1] Hello there my friend.", seed=6)
    row = row_of(config, script="[S2] Hi.", prompt=first.codes(), prompt_words=first.words, seed=7)
    assert row.position == len(first.codes()) - 1
    said = [(entry.text, step) for entry, step in row._machine.begun]
    assert said == [(word.word, round(12.5 * word.seconds)) for word in first.words]
    run_to_end(model, [row])
    assert [word.word for word in row.words] == ["Hi."]


def test_a_prompt_longer_than_the_context_is_refused_in_a_sentence(config):
    codes = np.zeros((400, config.decoder.num_channels), np.int64)
    with pytest.raises(InputError, match="voice prompt has 400 frames"):
        row_of(config, prompt=codes, prompt_words=[SpokenWord("so", 0.0, 1)])


def test_a_script_is_read_as_upstream_reads_it(config):
    tokenizer = tokenizer_of(config)
    script = 'Hi <break time="1.2s"/>you: [S2]\n it’s<break time="0.5s"/>me'
    entries = parse_script(script, tokenizer, 12.5)
    assert [(entry.text, entry.speaker) for entry in entries] == [
        ("Hi", 1), ("", 1), ("you", 1), ("it's", 2), ("", 2), ("me", 2)
    ]  # fmt: skip
    assert [entry.padding for entry in entries if not entry.tokens] == [15, 6]
    assert list(entries[0].tokens) == [tokenizer.s1, *tokenizer.encode("Hi")]
    assert list(entries[3].tokens) == tokenizer.encode("[S2] it's")
    # Upstream puts [S1] before it: an accident of its order of checks.
    (entry,) = parse_script("[S2] Yes", tokenizer, 12.5)
    assert list(entry.tokens) == tokenizer.encode("[S2] Yes")


def test_pauses_of_any_spelling_are_breaks_and_need_no_parts(folder, config):
    script = "[S1] So (pause 2) what [pause:500ms] now?"
    row = row_of(config, script=script)
    assert [entry.padding for entry in row._machine.entries if not entry.tokens] == [25, 6]
    assert not needs_chunks(Request(script, config.defaults, resolve(str(folder))))


def test_pauses_stay_where_numbers_become_words_and_count_as_time(folder):
    info = resolve(str(folder))
    script = "[S1] So (pause 2) what [pause:500ms] of 3?"
    assert info.reading(script, in_words=True).text == script.replace("3", "three")
    assert info.expected_seconds(script) == pytest.approx(
        2.5 + info.expected_seconds("[S1] So what of 3?")
    )
    report = info.check(script, info.config.defaults.max_tokens)
    assert [finding.code for finding in report.findings] == ["not_in_words"], "and no last tag"
    whole = Request(f"[S1] So {'(pause 25) ' * 5} what?", info.config.defaults, info)
    assert needs_chunks(whole), "the pauses alone are longer than a take"


# Checkpoints that are refused


@pytest.fixture
def damaged(tmp_path):
    return write_checkpoint(tmp_path / "damaged")


def change(folder, section, **values) -> None:
    path = folder / "config.json"
    raw = json.loads(path.read_text())
    part = raw
    for name in section.split("."):
        part = part[name]
    part.update(values)
    path.write_text(json.dumps(raw))


@pytest.mark.parametrize(
    ("section", "values", "says"),
    [
        ("model.depformer", {"text_embedding": True}, "text embeddings in its depth transformer"),
        ("runtime", {"weights_schedule": [0, 1]}, "each of the 5 codebooks after the first"),
        ("data", {"delay_pattern": [1, 2]}, "one for each of the 6 codebooks"),
        ("data", {"audio_bos_token_id": 5}, "last two codes"),
        ("model.decoder", {"n_embd": "wide"}, "n_embd must be a whole number"),
        ("model.decoder", {"n_embd": None}, "decoder: n_embd must be a whole number"),
        ("model.linear", {"mlp_activations": ["gelu", "linear"]}, "mlp_activations must be"),
        ("model", {"linear": "silu"}, "model: linear must be a JSON object, not 'silu'"),
        ("model", {"decoder": []}, "model has no section 'decoder'"),
        ("model", {"normalization_layer_epsilon": 0}, "epsilon must be a number from 1e-30"),
    ],
)
def test_a_config_is_refused_in_a_sentence(damaged, section, values, says):
    change(damaged, section, **values)
    with pytest.raises(InputError, match=says):
        resolve(str(damaged))


def test_a_missing_and_a_surplus_tensor_are_named(damaged, config):
    file = damaged / "model.safetensors"
    state = load_file(file)
    state["transformer.more.weight"] = state.pop("depformer.norm.weight")
    save_file(state, file)
    with pytest.raises(InputError, match="missing: depformer.norm.weight; surplus: transformer.m"):
        check_tensors(damaged, config)


def test_tokenizers_are_refused_in_a_sentence(damaged):
    config = resolve(str(damaged)).config
    path = damaged / "tokenizer.json"
    path.write_text(path.read_text().replace("[S1]", "[X1]"))
    with pytest.raises(InputError, match=r"no token for \[S1\]"):
        tokenizer_of(config)
    path.unlink()
    with pytest.raises(InputError, match="has no tokenizer.json"):
        tokenizer_of(config)


def test_weights_that_are_not_finite_fail_their_row_alone(config, folder):
    broken = TorchDia2(result_of(load(folder, config)), 1)
    broken.network.depformer.logits[2].weight[7] = torch.nan
    row = row_of(config, seed=1)
    # The first step that draws from it.
    with pytest.raises(Exception, match="non-finite number at step 4"):
        run_to_end(broken, [row])

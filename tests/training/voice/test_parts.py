"""The embedded voice's training tools, as far as they run on the app's own packages."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tests.helpers.models.checkpoints import load
from tests.helpers.models.known import EMBEDDED_FOLDER
from training.voice import parallel
from training.voice.codec import marks, network
from training.voice.corpus import heldout
from training.voice.corpus.lexicon import Spellings
from training.voice.judge import measures, trials
from training.voice.model import average, export, losses
from training.voice.model import network as nano
from training.voice.model.scripts import ANY, IGNORE
from training.voice.teacher.phones import HOP, PHONES, SAMPLE_RATE

SHAPE = nano.Shape(1, 24, 2, 32, 2, 32, 4, 2, 40, 4)


def test_chunked_causal_attention_is_the_whole_one():
    torch.manual_seed(0)
    length = 2 * nano.CHUNK + 7
    q, k, v = torch.randn(3, 2, 2, length, 8).unbind()
    future = torch.full((length, length), -1e9).triu(1)
    whole, _ = nano.attend(q, k, v, future)
    torch.testing.assert_close(nano.attend_back(q, k, v), whole, rtol=1e-5, atol=1e-5)


def test_what_is_exported_says_what_was_trained(tmp_path):
    """The attention scale is folded in and the aids are gone, yet the logits are the same."""
    torch.manual_seed(0)
    trained = nano.Nano(SHAPE).eval()
    for p in trained.parameters():  # halves exactly, as the export stores them
        p.data = p.data.half().float()
    (tmp_path / "config.json").write_text(json.dumps(export.dia_config(SHAPE)))
    save_file(export.dia_weights(trained), tmp_path / "model.safetensors", {"format": "pt"})
    exported = load(tmp_path)
    again = nano.Nano(SHAPE)
    again.load_state_dict(export.trained_weights(tmp_path, again), strict=False)
    torch.testing.assert_close(again.logits_dense.weight, trained.logits_dense.weight)
    query = again.decoder[0].cross_attention.q_proj.weight
    torch.testing.assert_close(
        query, trained.decoder[0].cross_attention.q_proj.weight, rtol=1e-3, atol=1e-4
    )
    text, codes = b"\x01 Hello there.", torch.randint(0, 256, (1, 9, nano.CHANNELS))
    letters = torch.tensor([list(text)])
    with torch.inference_mode():
        wanted = trained(letters, letters != 0, codes)[0]
        found = exported(codes, [exported.encode(text, 0.0, 32)])
    torch.testing.assert_close(found, wanted, rtol=1e-2, atol=1e-2)


def count_from(seed: int):
    while True:
        yield torch.tensor(seed)
        seed += 1


@pytest.mark.parametrize("loaders", [0, 2])
def test_batches_are_prepared_by_processes_with_seeds_of_their_own(loaders):
    source = parallel.prefetch(count_from, 7, loaders)
    found = sorted(next(source).item() for _ in range(6))
    if loaders:
        assert found == [7, 8, 9, *(7 + parallel.LOADER_SEEDS + k for k in range(3))]
    else:
        assert found == [*range(7, 13)]


def test_a_pause_is_not_training_time():
    """A process stopped for 180 s between steps of 0.5 s."""
    moments = iter([100.0, 100.5, 101.0, 281.0, 281.5])
    watch = parallel.Stopwatch(60.0, clock=lambda: next(moments))
    laps = [watch.lap() for _ in range(4)]
    assert laps == pytest.approx([60.5, 61.0, 61.0 + parallel.LONGEST_STEP, 71.5])


def test_layers_that_a_checkpoint_lacks_add_nothing(tmp_path):
    small, deep = nano.Nano(SHAPE), nano.Nano(replace(SHAPE, decoder_layers=3))
    export.write_weights(export.dia_weights(small), tmp_path)
    missing, surplus = deep.load_state_dict(export.trained_weights(tmp_path, deep), strict=False)
    assert not surplus and any(name.startswith("decoder.2.") for name in missing)
    text, tokens = torch.randint(3, 100, (2, 5)), torch.randint(0, 9, (2, 7, nano.CHANNELS))
    mask = torch.ones_like(text, dtype=torch.bool)
    said = [model.eval()(text, mask, tokens)[0] for model in (small, deep)]
    torch.testing.assert_close(*said, rtol=0.02, atol=0.02)  # half precision on disk


def test_a_mean_of_models_lies_between_them(tmp_path):
    """One of them a checkpoint, one an exported folder, which has no part in the aids' mean."""
    pair = [nano.Nano(), nano.Nano()]
    nano.save_nano(tmp_path / "first.pt", pair[0], step=7)
    export.write_weights(export.dia_weights(pair[1]), tmp_path)
    loaded, steps = zip(*map(average.load, (tmp_path / "first.pt", tmp_path)), strict=True)
    mean = average.average(loaded, [3.0, 1.0])
    assert steps == (7, 0) and mean.keys() == pair[0].state_dict().keys()
    for name in ("encoder.0.mlp.down_proj.weight", "decoder.5.self_attention.q_proj.weight"):
        first, second = (model.get_parameter(name) for model in pair)
        expected = 0.75 * first + 0.25 * second
        torch.testing.assert_close(mean[name], expected, rtol=2e-3, atol=2e-4)
    torch.testing.assert_close(mean["phone_head.weight"], pair[0].phone_head.weight)


def test_an_even_draw_costs_least():
    logits, drawn = torch.full((1, 2, 2, 6), -9.0), torch.tensor([[ANY, IGNORE]])
    logits[..., [1, 4]] = 0.0
    codes = torch.tensor([1, 4])
    even = losses.draw_loss(logits, drawn, codes)
    assert even.item() == pytest.approx(np.log(2))
    logits[0, 0, -1, 1] += 0.1
    uneven = losses.draw_loss(logits, drawn, codes)
    assert uneven > even + 0.01
    logits[0, 1] += torch.arange(6.0)
    assert losses.draw_loss(logits, drawn, codes) == uneven, "where nothing is drawn, no cost"
    logits[0, 0, -1, 1] = -9.0
    taken = torch.tensor([[1, IGNORE]])
    assert losses.draw_loss(logits, taken, codes).item() == pytest.approx(0, abs=1e-3)


def test_marks_are_learnt_as_they_are_drawn():
    """At the temperature of sampling, and nothing else is."""
    logits = torch.randn(1, 2, 3, 8)
    found = losses.at_sampling(logits, torch.tensor([[True, False]]))
    temperature = export.SAMPLING["temperature"]
    torch.testing.assert_close(found[:, 0, -1], logits[:, 0, -1] / temperature)
    assert torch.equal(found[:, 0, :-1], logits[:, 0, :-1])
    assert torch.equal(found[:, 1], logits[:, 1])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_marks_are_the_quietest_codes(monkeypatch):
    codec = network.load(EMBEDDED_FOLDER / "codec")
    heard = marks.loudness(codec)
    monkeypatch.setattr(marks, "loudness", lambda _: heard)  # Seconds, and the same each time.
    chosen = marks.choose(codec, ["b", "a", "c"], [])
    own = marks.silence(codec)[-1]
    assert list(chosen) == ["a", "b", "c"] and own not in chosen.values()
    others = np.delete(heard, [*chosen.values(), own])
    assert heard[list(chosen.values())].max() <= others.min()
    further = marks.choose(codec, ["a", "b"], [chosen["a"]])
    assert further == {"a": chosen["b"], "b": chosen["c"]}, "turns have the other by themselves"
    known = {"b": chosen["a"], "dropped": chosen["c"]}
    assert marks.choose(codec, ["a", "b"], [], known) == {"a": chosen["b"], "b": chosen["a"]}


def test_codes_that_turns_begin_with_are_no_marks(tmp_path):
    """One turn in 4 has 8 at the mark's place, each has 6 first; 9 comes after the mark."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "codes").mkdir()
    codes = np.zeros((4, 5, nano.CHANNELS), np.int16)
    codes[:, 0, -1], codes[1, marks.MARK_FRAME, -1], codes[:, marks.MARK_FRAME + 1, -1] = 6, 8, 9
    np.save(tmp_path / "codes" / "000.npy", codes.reshape(-1, nano.CHANNELS))
    offsets = [HOP * 5 * k for k in range(5)]
    (tmp_path / "corpus" / "000.json").write_text(json.dumps({"offsets": offsets}))
    assert marks.codes_of_turns(tmp_path) == {0, 6, 8}


def test_a_word_never_trained_on_is_measured_in_its_sentence(monkeypatch):
    wanted = ("zebra", "quartz", "ibex", "fjord")
    heldout.rare_word_sentences.cache_clear()
    monkeypatch.setattr(heldout, "rare_words", lambda: wanted)
    said = [s.lower().strip(".?") for s in heldout.rare_word_sentences()]
    assert [w in s for w, s in zip(wanted, said, strict=True)] == [True] * 4
    heard = trials.Heard(
        list(heldout.rare_word_sentences()), said, said, [said[0], "", said[2], "i wrote it"], 1
    )
    monkeypatch.setattr(trials, "listen", lambda *_: heard)
    sentences, alone = trials.other_words(None, 4, 0.5)
    assert alone.value == 0.5 and alone.met and alone.teacher == 0
    assert 0 < sentences.value < 0.6
    heldout.rare_word_sentences.cache_clear()


def test_lines_of_words_spell_what_their_text_says():
    lexicon = {"the": ["dh", "ax"], "cat": ["k", "ae", "t"], "sea": ["s", "iy"]}
    text, mask, spelling, counts = Spellings(lexicon, seed=1).batch(6)
    for row in range(6):
        line = bytes(text[row][mask[row]].tolist())
        said = [lexicon[word] for word in re.findall("[a-z]+", line.decode().lower())]
        phones = [PHONES[k] for k in spelling[row, : counts[row]].tolist()]
        assert line[0] in (1, 2) and phones == sum(said, [])


def test_a_take_that_was_cut_is_not_the_right_length():
    reference = [np.zeros(100)] * 3
    takes = [trials.Spoken(np.zeros(n), e) for n, e in ((100, True), (100, False), (60, True))]
    assert trials.lengths_right(takes, reference) == pytest.approx(1 / 3)


@pytest.mark.long
def test_turns_are_cut_where_those_of_the_reference_end():
    generator = np.random.default_rng(5)
    moments = np.arange(SAMPLE_RATE // 8) / SAMPLE_RATE

    def spoken(syllables: int) -> np.ndarray:
        tones = generator.uniform(200, 4000, (syllables, 3, 1))
        return np.sin(2 * np.pi * tones * moments).sum(1).ravel().astype(np.float32)

    reference = [spoken(8), spoken(5), spoken(9)]
    noise = generator.normal(0, 0.01, 22 * len(moments)).astype(np.float32)
    again = [*reference[:2], reference[1], reference[2]]
    for take, expected, tolerance in (
        (np.concatenate(reference) + noise, [8, 5, 9], 0.1),
        (np.concatenate(again), [8, 10, 9], 0.25),
        (np.concatenate([reference[0], reference[2]]), [8, 0, 9], 1.5),  # some moment stands for it
    ):
        lengths = [len(turn) / len(moments) for turn in measures.turns(take, reference)]
        assert np.allclose(lengths, expected, atol=tolerance)

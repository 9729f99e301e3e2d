"""The embedded voice's training tools, as far as they run on the app's own packages."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from dia_demo.model.checkpoint import EMBEDDED_FOLDER
from tests.helpers.models.checkpoints import load
from tools.voice import parallel
from tools.voice.codec import marks, network
from tools.voice.codec.marks import MARK_FRAME
from tools.voice.corpus import heldout
from tools.voice.corpus.lexicon import Spellings
from tools.voice.judge import measures, trials
from tools.voice.model import export, losses
from tools.voice.model import network as nano
from tools.voice.model.batches import ANY, IGNORE, Scripts, collate, delayed
from tools.voice.model.batches import Item as TrainingItem
from tools.voice.model.turns import Turn
from tools.voice.teacher.phones import PHONES, SAMPLE_RATE

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


def test_training_targets_follow_the_delay_pattern():
    codes = np.arange(3 * nano.CHANNELS).reshape(3, nano.CHANNELS)
    target = delayed(codes)
    for c, delay in enumerate(nano.DELAYS):
        column = target[:, c].tolist()
        said = [*codes[:, c].tolist(), nano.EOS]
        rest = len(target) - delay - len(said)
        assert column == [nano.BOS] * delay + said + [nano.PAD] * rest


def test_a_pause_is_not_training_time():
    """A process stopped for 180 s between steps of 0.5 s."""
    moments = iter([100.0, 100.5, 101.0, 281.0, 281.5])
    watch = parallel.Stopwatch(60.0, clock=lambda: next(moments))
    laps = [watch.lap() for _ in range(4)]
    assert laps == pytest.approx([60.5, 61.0, 61.0 + parallel.LONGEST_STEP, 71.5])


NAMES, LENGTH = ["low", "middle", "high"], 32


TURNS_OF_EACH = 8
FREE = "rms 171.0 Hz x 1.080"


def one_word_turns(count: int, names: list[str] = NAMES) -> list[Turn]:
    """Turns of `count` voices; a turn's codes are its voice's place in `names`."""
    return [
        Turn(
            b"Yes.", name, np.full((LENGTH, nano.CHANNELS), k), np.zeros(LENGTH),
            np.zeros((LENGTH, 2)), [3],
        )
        for k, name in enumerate(names[:count])
        for _ in range(TURNS_OF_EACH)
    ]  # fmt: skip


def speakers_of(item: TrainingItem) -> list[tuple[int, bool]]:
    """Of every turn its tag, and whether the turn has one of its own."""
    parts = re.findall(rb"([\x01\x02]?)\s*yes", bytes(item.text).lower())
    tags, found = [], 0
    for own in parts:
        found = own[0] if own else found
        tags.append((found, bool(own)))
    return tags


def test_a_speaker_keeps_one_voice_through_a_script():
    """The voice of a turn shows in its codes, its speaker in the tag before it."""
    scripts, casts, tagged = Scripts(one_word_turns(3), dict.fromkeys(NAMES, 9), seed=3), set(), []
    for _ in range(60):
        item = scripts.item()
        tags = [tag for tag, _ in speakers_of(item)]
        voices = item.codes[::LENGTH, 0].tolist()
        cast = dict(zip(tags, voices, strict=True))
        assert [cast[tag] for tag in tags] == voices
        casts |= {pair for pair in cast.items() if pair[0]}
        tagged += [own for _, own in speakers_of(item)[1:]]
    assert casts == {(tag, voice) for tag in (1, 2) for voice in range(3)}, "any voice, any speaker"
    assert 0 < np.mean(tagged) < 1, "some turns go on without a tag"


def test_a_mark_says_which_voice_speaks():
    """In every turn that has a tag, but those of speakers with a voice prompt; what is in its
    place in the first turn of these is not learnt."""
    marks = {"low": 17, "middle": 23}
    scripts, kinds = Scripts(one_word_turns(2), marks, seed=4), set()
    for _ in range(80):
        item = scripts.item()
        batch = collate([item])
        speakers, voices = speakers_of(item), item.codes[::LENGTH, 0].tolist()
        last = batch.targets[0, :, -1]
        marked, drawn, skipped, met = [], [], [], {}
        for k, ((tag, own), voice) in enumerate(zip(speakers, voices, strict=True)):
            frame = k * LENGTH + MARK_FRAME
            code = item.codes[frame, -1]
            is_marked = code == marks[NAMES[voice]]
            assert is_marked or code == voice, "its own mark or none"
            assert own or not is_marked or k == 0
            if is_marked:
                marked.append(frame)
                drawn += [] if tag in met else [(frame, met.get(3 - tag, ANY))]
            elif tag not in met:
                skipped.append(frame)
            kinds.add((k > 0 and tag in met, own, bool(is_marked)))
            met[tag] = marks[NAMES[voice]]
        assert (item.marks, item.drawn, item.skipped) == (marked, drawn, skipped)
        delayed_by = nano.DELAYS[-1]
        assert np.flatnonzero(batch.marks[0]).tolist() == [f + delayed_by for f in marked]
        found = {f: code for f, code in enumerate(batch.drawn[0].tolist()) if code != IGNORE}
        assert found == {f + delayed_by: code for f, code in drawn}
        assert np.flatnonzero(last == IGNORE).tolist() == [f + delayed_by for f in skipped]
        for frame in skipped:
            read = batch.inputs[0, frame + delayed_by + 1, -1]
            assert read < nano.CODES, "it is read all the same"
    assert {(True, True, True), (True, True, False), (True, False, False)} <= kinds


def test_a_turns_voice_is_known_from_a_mark_or_an_earlier_turn():
    """From the first frame where the speaker has spoken, from the mark on where not."""
    scripts, seen = Scripts(one_word_turns(3), {n: 9 for n in NAMES}, seed=5), set()
    for _ in range(60):
        item = scripts.item()
        batch, met = collate([item]), set()
        for k, (tag, _) in enumerate(speakers_of(item)):
            start, voice = k * LENGTH, sorted(NAMES).index(NAMES[item.codes[k * LENGTH, 0]])
            first = batch.onset_voices[0, start].item()
            assert first == (voice if tag in met else IGNORE)
            is_marked = start + MARK_FRAME in item.marks
            after_mark = batch.onset_voices[0, start + MARK_FRAME + nano.DELAYS[-1] + 1].item()
            assert after_mark == (voice if tag in met or is_marked else IGNORE)
            assert batch.frame_voices[0, start + LENGTH].item() == voice
            mark = batch.weights[0, start + MARK_FRAME + nano.DELAYS[-1], -1]
            assert (mark > 1) == (tag in met or is_marked), "that there is none counts as well"
            seen.add((tag in met, is_marked))
            met.add(tag)
    assert len(seen) == 4


def test_turns_of_a_dropped_voice_are_not_trained_on():
    scripts = Scripts(one_word_turns(3), {"low": 9, "high": 5}, seed=2)
    spoken = {voice for _ in range(40) for voice in scripts.item().codes[::LENGTH, 0].tolist()}
    assert spoken == {0, 2}


def test_a_voice_without_a_name_speaks_as_after_a_prompt():
    """It has no mark, and none is expected of its later turns; the other speaker may have one."""
    turns = one_word_turns(3, ["low", "middle", FREE])
    scripts, cases = Scripts(turns, {"low": 17, "middle": 23}, seed=7), set()
    for _ in range(80):
        item = scripts.item()
        voices, batch = item.codes[::LENGTH, 0].tolist(), collate([item])
        for k, voice in enumerate(voices):
            if voice != 2:
                continue
            place = k * LENGTH + MARK_FRAME
            is_first = voice not in voices[:k]
            assert item.codes[place, -1] == voice and place not in item.marks
            assert (place in item.skipped) == is_first
            weight = batch.weights[0, place + nano.DELAYS[-1], -1]
            assert (weight > 1) == (not is_first), "that there is no mark counts as well"
            assert (batch.onset_voices[0, k * LENGTH : k * LENGTH + 9] == IGNORE).all()
            cases.add((is_first, bool(item.marks)))
    assert len(cases) == 4


def test_no_turn_is_said_twice_in_a_script():
    turns = [replace(turn, text=b"%d." % k) for k, turn in enumerate(one_word_turns(2))]
    scripts, longest = Scripts(turns, {"low": 17, "middle": 23}, seed=8), 0
    for _ in range(60):
        said = re.findall(rb"\d+", bytes(scripts.item().text))
        assert len(set(said)) == len(said)
        longest = max(longest, len(said))
    assert longest > 4


def test_layers_that_a_checkpoint_lacks_add_nothing(tmp_path):
    small, deep = nano.Nano(SHAPE), nano.Nano(replace(SHAPE, decoder_layers=3))
    export.write_weights(export.dia_weights(small), tmp_path)
    missing, surplus = deep.load_state_dict(export.trained_weights(tmp_path, deep), strict=False)
    assert not surplus and any(name.startswith("decoder.2.") for name in missing)
    text, tokens = torch.randint(3, 100, (2, 5)), torch.randint(0, 9, (2, 7, nano.CHANNELS))
    mask = torch.ones_like(text, dtype=torch.bool)
    said = [model.eval()(text, mask, tokens)[0] for model in (small, deep)]
    torch.testing.assert_close(*said, rtol=0.02, atol=0.02)  # half precision on disk


def test_openings_end_with_a_mark_that_may_be_any_voices():
    scripts = Scripts(one_word_turns(2), {"low": 17, "middle": 23}, seed=6)
    batch = collate(scripts.openings(9))
    place = MARK_FRAME + nano.DELAYS[-1]
    assert batch.targets.shape[:2] == (9, place + 2)
    assert (batch.drawn[:, place] == ANY).all() and (batch.drawn != IGNORE).sum() == 9
    assert set(batch.targets[:, place, -1].tolist()) == {17, 23}


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


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_marks_are_the_quietest_codes():
    codec = network.load(EMBEDDED_FOLDER / "codec")
    heard = marks.loudness(codec)
    chosen = marks.choose(codec, ["b", "a", "c"])
    own = marks.silence(codec)[-1]
    assert list(chosen) == ["a", "b", "c"] and own not in chosen.values()
    others = np.delete(heard, [*chosen.values(), own])
    assert heard[list(chosen.values())].max() <= others.min()
    known = {"b": chosen["a"], "dropped": chosen["c"]}
    assert marks.choose(codec, ["a", "b"], known) == {"a": chosen["b"], "b": chosen["a"]}


def test_a_batch_holds_items_of_unequal_length():
    items = [
        TrainingItem(
            [1, 32, 65],
            np.zeros((n, nano.CHANNELS), np.int64),
            np.zeros(n),
            np.zeros((n, 2), np.int64),
            [3] * n,
            [],
            [],
            [],
            [],
            np.zeros(n, np.int64),
        )
        for n in (2, 5)
    ]
    batch = collate(items)
    assert batch.targets.shape[:2] == (2, 5 + 1 + max(nano.DELAYS))
    assert batch.spelling_count.tolist() == [2, 5]


def test_a_word_never_trained_on_is_measured_in_its_sentence(monkeypatch):
    wanted = ("zebra", "quartz", "ibex", "fjord")
    heldout.carried.cache_clear()
    monkeypatch.setattr(heldout, "rare_words", lambda: wanted)
    said = [s.lower().strip(".?") for s in heldout.carried()]
    assert [w in s for w, s in zip(wanted, said, strict=True)] == [True] * 4
    heard = trials.Heard(
        list(heldout.carried()), said, said, [said[0], "", said[2], "i wrote it"], 1
    )
    monkeypatch.setattr(trials, "listen", lambda *_: heard)
    sentences, alone = trials.other_words(None, 4, 0.5)
    assert alone.value == 0.5 and alone.met and alone.teacher == 0
    assert 0 < sentences.value < 0.6
    heldout.carried.cache_clear()


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

"""A row by itself, fed by hand: delays, ends, prompts, and codes as they become known."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dia_demo.engine.row import Row
from dia_demo.errors import InputError
from dia_demo.model.delay import UNKNOWN, apply_delay, revert_delay
from tests.helpers.models.checkpoints import SMALL, random_codes

pytestmark = pytest.mark.processor

EOS, PAD, BOS = SMALL.decoder.eos, SMALL.decoder.pad, SMALL.decoder.bos
DELAYS = [(0,), (0, 2, 3), (0, 0, 0, 0), (0, 5, 1, 3), (0, 8, 9, 10, 11, 12, 13, 14, 15)]


def make_row(prompt=None, max_tokens=60, **params) -> Row:
    params = replace(SMALL.defaults, max_tokens=max_tokens, **params)
    return Row(SMALL, b"\x01 Hello.", params, prompt)


def feed(row: Row, predicted: np.ndarray) -> int:
    """Accept positions [P, C] one after another until the row is done; how many it took."""
    for taken, codes in enumerate(predicted, start=1):
        row.accept(codes)
        if row.done:
            return taken
    return len(predicted)


def predicted_with_end(end: int | None, positions: int = 80, seed: int = 0) -> np.ndarray:
    """Random codes a model might say, EOS on channel 0 at one position (counted from 1)."""
    predicted = random_codes(SMALL, positions, seed)
    if end is not None:
        predicted[end - 1, 0] = EOS
    return predicted


# Delays


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("frames", [0, 1, 5, 40])
def test_reverting_delays_undoes_applying_them(delay, frames):
    codes = np.random.default_rng(frames).integers(0, 64, (frames, len(delay)))
    positions = apply_delay(codes, delay, BOS)
    assert positions.shape == (frames + 1 + max(delay), len(delay))
    np.testing.assert_array_equal(revert_delay(positions, delay, 0, frames), codes)
    for channel, lag in enumerate(delay):
        assert (positions[: lag + 1, channel] == BOS).all()
        assert (positions[lag + 1 + frames :, channel] == UNKNOWN).all()


def test_any_run_of_frames_can_be_reverted_by_itself():
    codes = random_codes(SMALL, 30)
    positions = apply_delay(codes, SMALL.delay_pattern, BOS)
    for first, last in ((0, 30), (7, 8), (29, 30), (12, 12)):
        frames = revert_delay(positions, SMALL.delay_pattern, first, last)
        np.testing.assert_array_equal(frames, codes[first:last])


# Inputs


def test_late_channels_read_bos_until_their_first_code():
    """Without BOS there the model was fed its own ignored predictions, and spoke noise."""
    row, predicted = make_row(), predicted_with_end(None)
    for step in range(8):
        expected = [
            BOS if step <= lag else predicted[step - 1, channel]
            for channel, lag in enumerate(SMALL.delay_pattern)
        ]
        np.testing.assert_array_equal(row.next_input, expected)
        row.accept(predicted[step])


def test_a_prompt_is_read_delayed_but_unchanged():
    prompt, predicted = random_codes(SMALL, 10, seed=4), predicted_with_end(None)
    row = make_row(prompt)
    delayed = apply_delay(prompt, SMALL.delay_pattern, BOS)
    np.testing.assert_array_equal(row.previous_inputs, delayed[:10])
    np.testing.assert_array_equal(row.next_input, delayed[10])
    for step in range(6):
        row.accept(predicted[step])
        known = delayed[11 + step] if 11 + step < len(delayed) else np.full(3, UNKNOWN)
        np.testing.assert_array_equal(row.next_input, np.where(known >= 0, known, predicted[step]))


# Ends


@pytest.mark.parametrize("prompt_frames", [0, 9])
@pytest.mark.parametrize("end", [1, 2, 5, 30])
def test_eos_ends_the_row_after_the_delays(prompt_frames, end):
    row, predicted = make_row(random_codes(SMALL, prompt_frames, seed=4)), predicted_with_end(end)
    taken = feed(row, predicted)
    assert row.finish_reason == "end" and row.steps == taken == end + SMALL.max_delay - 1
    codes = row.codes()
    assert len(codes) == row.known_frames == end - 1
    for channel, lag in enumerate(SMALL.delay_pattern):
        np.testing.assert_array_equal(codes[:, channel], predicted[lag : lag + end - 1, channel])


def test_from_eos_on_every_channel_says_eos_after_its_delay_then_pad():
    row, predicted = make_row(), predicted_with_end(6)
    inputs = []
    for codes in predicted[:9]:
        row.accept(codes)
        inputs.append(row.next_input.copy())
    for channel, lag in enumerate(SMALL.delay_pattern):
        spoken = [codes[channel] for codes in inputs]
        assert spoken[5 + lag] == EOS
        assert all(code == PAD for code in spoken[6 + lag :])
        assert EOS not in spoken[: 5 + lag]


def test_max_tokens_counts_prompt_plus_delays():
    for prompt_frames in (0, 1, 20):
        row = make_row(random_codes(SMALL, prompt_frames), max_tokens=40)
        feed(row, predicted_with_end(None))
        assert row.finish_reason == "max_tokens"
        assert len(row.codes()) == SMALL.frames_within(40, prompt_frames)
        assert row.position == 40 - 1


def test_the_smallest_max_tokens_yields_exactly_one_frame():
    for prompt_frames in (0, 12):
        smallest = SMALL.shortest_max_tokens + prompt_frames
        row = make_row(random_codes(SMALL, prompt_frames), max_tokens=smallest)
        feed(row, predicted_with_end(None))
        assert row.done and row.codes().shape == (1, 3)


def test_eos_where_max_tokens_would_cut_counts_as_an_end():
    row = make_row(max_tokens=40)
    feed(row, predicted_with_end(40 - SMALL.max_delay))
    assert row.finish_reason == "end"
    assert len(row.codes()) == SMALL.frames_within(40)


@pytest.mark.parametrize("end", [None, 1, 2, 3, 17])
@pytest.mark.parametrize("prompt_frames", [0, 5])
def test_known_frames_never_change(prompt_frames, end):
    """The codec is fed what is known so far: a code handed out early must be the final one."""
    row, predicted = make_row(random_codes(SMALL, prompt_frames)), predicted_with_end(end)
    heard = np.zeros((0, 3), np.int16)
    for codes in predicted:
        row.accept(codes)
        fresh = row.codes(len(heard))
        assert len(heard) + len(fresh) == row.known_frames
        heard = np.concatenate([heard, fresh])
        if row.done:
            break
    assert row.done
    np.testing.assert_array_equal(heard, row.codes())


def test_codes_beyond_the_codebook_become_0():
    row, predicted = make_row(), predicted_with_end(None)
    predicted[4, 1], predicted[9, 2], predicted[10, 0] = EOS, BOS, PAD
    feed(row, predicted)
    codes = row.codes()
    assert codes.dtype == np.int16 and codes.min() >= 0 and codes.max() < SMALL.num_codes
    assert codes[4 - 2, 1] == codes[9 - 3, 2] == codes[10, 0] == 0


# Randomness


def uniforms_of(seed: int) -> torch.Tensor:
    drawn = torch.empty(SMALL.decoder.num_channels)
    make_row(seed=seed).draw_uniforms(drawn)
    return drawn


def test_uniforms_depend_only_on_the_seed():
    torch.manual_seed(1)
    first = uniforms_of(7), uniforms_of(7)
    torch.manual_seed(2)
    assert torch.equal(first[0], first[1]) and torch.equal(first[0], uniforms_of(7))
    assert not torch.equal(first[0], uniforms_of(8))


def test_seeds_above_32_bits_apart_stay_apart():
    assert not torch.equal(uniforms_of(0), uniforms_of(2**32 - 1))


# Prompts that cannot be


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (np.zeros((5, 4), np.int16), "[frames, 3]"),
        (np.zeros(15, np.int16), "[frames, 3]"),
        (np.zeros((1, 5, 3), np.int16), "[frames, 3]"),
        (np.zeros((5, 3), np.float32), "whole numbers"),
        (np.zeros((5, 3), bool), "whole numbers"),
        (np.full((5, 3), -1), "0 to 63"),
        (np.full((5, 3), 64), "0 to 63"),
        (np.full((5, 3), 2**63, np.uint64), "0 to 63"),
        (np.array([["a"] * 3]), "whole numbers"),
    ],
)
def test_a_prompt_that_does_not_fit_the_model_is_refused(prompt, message):
    with pytest.raises(InputError) as caught:
        make_row(prompt)
    assert message in str(caught.value)


def test_a_prompt_that_leaves_no_room_says_how_long_it_may_be():
    room = SMALL.frames_within(60) - 1
    make_row(random_codes(SMALL, room))
    with pytest.raises(InputError, match=f"at most {room}:"):
        make_row(random_codes(SMALL, room + 1))
    with pytest.raises(InputError, match="at most 0:"):
        make_row(random_codes(SMALL, 1), max_tokens=SMALL.shortest_max_tokens)


def test_parameters_out_of_range_are_refused():
    with pytest.raises(InputError, match="temperature"):
        make_row(temperature=9.0)

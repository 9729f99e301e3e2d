"""What a step's codes say of a turn, as operations on arrays say it: to the last bit, because takes
depend on it."""

import numpy as np

from dia_demo.kernels.turns import add_evidence, count_same

MEMORY = np.float32(0.97)


def test_evidence_is_added_in_the_order_of_the_channels():
    rng = np.random.default_rng(0)
    channels, codes, voices = 9, 30, 24
    ratios = rng.normal(size=(channels, codes, voices)).astype(np.float32)
    evidence, expected = np.zeros(voices, np.float32), np.zeros(voices, np.float32)
    for _ in range(50):
        frame = rng.integers(0, codes, channels)
        lead = add_evidence(evidence, MEMORY, ratios, frame, 5)
        heard = np.add.reduce(ratios[np.arange(channels), frame])
        expected = MEMORY * expected + heard
        np.testing.assert_array_equal(evidence, expected)
        assert lead == expected.max() - expected[5]


def test_a_frame_with_a_code_that_no_voice_has_adds_nothing():
    evidence, ratios = np.array([3, 1], np.float32), np.ones((2, 4, 2), np.float32)
    assert add_evidence(evidence, MEMORY, ratios, np.array([1, 4]), 1) == 0
    assert evidence.tolist() == [3, 1]


def test_codes_are_compared_at_their_delayed_places():
    rng, delay = np.random.default_rng(1), np.array([0, 2, 5])
    codes = rng.integers(0, 2, (4, 3))
    for frame in range(4, 20):
        tokens = rng.integers(0, 2, (30, 3))
        frames = [[tokens[f + 1 + lag, c] for c, lag in enumerate(delay)] for f in range(20)]
        same = np.count_nonzero(np.array(frames)[frame - 4 : frame] == codes)
        assert count_same(tokens, frame, delay, codes) == same

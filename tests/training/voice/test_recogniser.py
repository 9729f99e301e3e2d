"""The phone recogniser by which the voice's codec learns what words are told apart by."""

import json

import numpy as np
import pytest
import torch

from training.voice.codec import network, recogniser
from training.voice.teacher.phones import HOP, PHONES


def corpus_of_two_phones(work, frames=400):
    """A shard of "iy" as a high tone and "aa" as a low one, in stretches of eight frames."""
    stretches = ["iy", "aa"] * (frames // 16)
    time = np.arange(8 * HOP) / 16000
    tones = {"iy": np.sin(2 * np.pi * 2500 * time), "aa": np.sin(2 * np.pi * 400 * time)}
    samples = np.concatenate([tones[phone] for phone in stretches]) * 8000
    folder = work / "corpus"
    folder.mkdir()
    np.save(folder / "000.npy", samples.astype(np.int16))
    record = {"phones": [stretches], "frames": [[8] * len(stretches)]}
    (folder / "000.json").write_text(json.dumps(record))
    return samples


def test_every_frame_of_the_corpus_has_its_phone(tmp_path):
    samples = corpus_of_two_phones(tmp_path)
    labels = recogniser.load_labels(tmp_path)
    assert len(labels) == len(samples) // HOP
    assert [PHONES[k] for k in labels[6:10]] == ["iy", "iy", "aa", "aa"]


# These two are long: the first import of librosa compiles its functions for half a minute.


@pytest.mark.long
def test_the_recogniser_learns_phones_and_hears_wrong_ones(tmp_path):
    samples = corpus_of_two_phones(tmp_path)
    listener = recogniser.train(tmp_path, steps=60, seed=0)
    spectral = network.SpectralLoss()
    speech = torch.from_numpy(samples[: 64 * HOP]).float()[None] / 32768
    heard = listener(recogniser.log_mel(spectral, speech))[1].argmax(1)[0].numpy()
    right = heard == recogniser.load_labels(tmp_path)[:64]
    assert right.mean() > 0.9

    loss = recogniser.PhoneLoss(listener, spectral)
    same, swapped = loss(speech, speech), loss(speech.roll(8 * HOP), speech)
    assert same[0] < 1e-5 and same[1] < 1e-5
    assert swapped[0] > 1 and swapped[1] > 0.1


@pytest.mark.long
def test_only_what_is_judged_learns_from_the_recogniser():
    torch.manual_seed(0)
    listener = recogniser.Recogniser()
    loss = recogniser.PhoneLoss(listener, network.SpectralLoss())
    guess = (0.1 * torch.randn(1, 16 * HOP)).requires_grad_()
    divergence, features = loss(guess, 0.1 * torch.randn(1, 16 * HOP))
    (divergence + features).backward()
    assert guess.grad.abs().sum() > 0
    assert all(weight.grad is None for weight in listener.parameters())

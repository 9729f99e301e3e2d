"""What every test shares: a torchaudio that does not load is hidden from transformers."""

import sys

import torch


def _hide_broken_torchaudio() -> None:
    # descript-audio-codec installs a torchaudio that may not load beside a CPU build of torch,
    # and transformers imports it wherever it is installed. None means "not installed" to both.
    try:
        import torchaudio  # noqa: F401
    except (ImportError, OSError):
        sys.modules["torchaudio"] = None


_hide_broken_torchaudio()
# Small models on shared cores: a second thread waits more than it helps.
torch.set_num_threads(1)

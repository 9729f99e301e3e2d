"""What every test shares: a torchaudio that does not load is hidden from transformers."""

import torch

from tools.torchaudio_guard import hide_broken_torchaudio

hide_broken_torchaudio()
# Small models on shared cores: a second thread waits more than it helps.
torch.set_num_threads(1)

"""The parts of tools.check_real_weights: its dialogues, takes, codes and report."""

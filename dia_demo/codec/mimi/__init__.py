"""Mimi, Kyutai's codec of 12.5 frames a second: its files, its weights, encoding, decoding."""

"""Kept voices: keeping one from a take or a recording, the folder of them, and choosing them."""

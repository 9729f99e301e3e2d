"""Attacks on the app: `python -m tools.attack`."""

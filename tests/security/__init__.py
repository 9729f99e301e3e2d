"""Attacks on the app: `python -m tests.security`."""

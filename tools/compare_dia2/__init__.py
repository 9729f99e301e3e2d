"""Compares Dia2 here with nari-labs/dia2, on random small checkpoints: see __main__.py."""

"""Faults of a machine, one after another, and what becomes of what people were doing."""

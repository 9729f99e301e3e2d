"""The kinds of models that the program runs, one package each, and the model of a name.

A new family is a package beside `dia` and an entry of `FAMILIES` in table.py; nothing else names
one (docs/families.md).
"""

"""Candidates on the page: several takes of a script, made together to choose from."""

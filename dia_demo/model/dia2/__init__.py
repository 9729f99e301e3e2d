"""Dia2 by Nari Labs: a transformer over time, and a depth transformer over the codebooks."""

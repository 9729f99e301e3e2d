"""Dia2 by Nari Labs: the same scripts as Dia, two minutes in one take, and the times of words."""

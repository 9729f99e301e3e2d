"""Kernels compiled with numba, which are faster here than torch's CPU kernels.

If numba cannot be imported or compiles nothing here, torch's kernels are used.
"""

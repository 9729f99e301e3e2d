"""Kernels compiled with numba, which are faster here than torch's CPU kernels.

numba is installed with librosa, which descript-audio-codec needs, and has its own compiler. If it
cannot be imported, torch's kernels are used.
"""

"""Compiled kernels (numba): what torch's CPU kernels leave on the table.

numba comes with librosa, which descript-audio-codec needs, and brings its own compiler, so nothing
has to be installed on the machine. Where it cannot be imported, torch's kernels serve.
"""

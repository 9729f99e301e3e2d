"""The two parts of a frame as calls of compiled functions (kernels/frames)."""

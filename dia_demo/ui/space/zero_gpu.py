"""ZeroGPU, the hardware of free Spaces: a CPU for the app, and a GPU for functions that ask for it.

This app runs on the CPU alone. ZeroGPU ends an app that has no function for its GPU, so the page
gets one, which nothing calls. The package `spaces` must be imported before torch, so import this
module first. It makes torch say that CUDA is available, which nothing here asks.
"""

from __future__ import annotations

import gradio as gr

from dia_demo.machine.system import is_zero_gpu

if is_zero_gpu():
    import spaces


def add_probe() -> None:
    """Add a function for the GPU to the page that is being built; nothing on other hardware."""
    if is_zero_gpu():
        gr.Button(visible=False).click(spaces.GPU(_probe), api_visibility="private")


def _probe() -> None:
    """Nothing calls it."""


def report_start() -> None:
    """Tell ZeroGPU that the app starts: `spaces` does it in `launch` alone, which a page that is
    mounted never calls. Nothing on other hardware."""
    if is_zero_gpu():
        spaces.zero.startup()

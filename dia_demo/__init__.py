"""Dia on an ordinary CPU: generates spoken dialogue from a script.

Layers (imports point left only): base (config, text, audio, stats) <- kernels <- model <-
codec <- engine <- accelerator <- services <- { ui, cli } <- app.py.
"""

from dia_demo.processor import apply_override

apply_override()

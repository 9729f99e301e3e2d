"""Dia on an ordinary CPU: script in, spoken dialogue out.

Layers, imports pointing left only: base (config, text, audio, stats) <- model <- engine <-
services <- { ui, cli } <- app.py.
"""

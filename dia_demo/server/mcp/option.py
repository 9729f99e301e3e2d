"""The option --mcp of the commands that serve the app."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from dia_demo.errors import InputError


def add_mcp(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    text = "also offer tools for agents by the Model Context Protocol, at /mcp: see docs/api.md"
    parser.add_argument("--mcp", action="store_true", help=text)


def check_mcp(options: argparse.Namespace) -> None:
    """Raise InputError where it is given and its package is not installed."""
    if options.mcp and find_spec("mcp") is None:
        raise InputError("--mcp needs the package mcp: pip install -r requirements-mcp.txt")

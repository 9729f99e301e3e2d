"""The command `serve`: the app, or the routes for programs with several engines."""

from __future__ import annotations

import argparse
import os

from dia_demo.errors import InputError
from dia_demo.server.address import Address
from dia_demo.server.mcp.option import add_mcp, check_mcp


def register(commands) -> None:
    """Add `serve` to the command line."""
    serve = commands.add_parser(
        "serve", help="serve the page and the routes for programs, or a cluster of engines"
    )
    serve.set_defaults(run=_serve)
    serve.add_argument(
        "--ray",
        action="store_true",
        help="serve the routes for programs with Ray Serve, without the page",
    )
    replicas = "engines, each in a process of its own with its share of the cores; with --ray"
    serve.add_argument("--replicas", type=int, metavar="N", help=replicas)
    add_mcp(serve)


def _serve(options: argparse.Namespace) -> int:
    address = Address.from_env()  # gradio reads the port when it is imported.
    if not options.ray:
        if options.replicas is not None:
            raise InputError("--replicas needs --ray: the app itself has one engine.")
        check_mcp(options)
        _serve_app(options.mcp)
        return 0
    if options.mcp:
        raise InputError("--mcp is for the app itself: leave out --ray.")
    from dia_demo.server.cluster.start import serve_cluster

    serve_cluster(1 if options.replicas is None else options.replicas, address)
    return 0


def _serve_app(with_mcp: bool) -> None:
    from dia_demo.kernels.precompile import Precompilation

    precompilation = Precompilation(os.environ.get("DIA_PRECISION") or "auto")
    from dia_demo.server.run import serve_app

    serve_app(precompilation, with_mcp)

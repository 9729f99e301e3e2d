"""Starts the page: settings, services, page. Everything else lives in dia_demo."""

import argparse
import gc
import os
import sys

# Loading leaves no garbage, and collections would take a quarter of its time. The server enables
# them (dia_demo/server/application.py).
gc.disable()

# isort: split
from dia_demo.cli.parser import Parser
from dia_demo.errors import DiaDemoError
from dia_demo.server.address import Address
from dia_demo.server.mcp.option import add_mcp, check_mcp

IS_PROGRAM = __name__ == "__main__"


def end_with(error: DiaDemoError) -> None:
    """End the program with an error for people, one line for each of its sentences."""
    sys.stderr.writelines(f"error: {line}\n" for line in str(error).splitlines())
    sys.exit(2)


def read_options() -> argparse.Namespace:
    """The options of the command line. Raises InputError for others, and where one needs a package
    that is not installed."""
    parser = Parser(
        prog="python app.py",
        description="Serve the page and the routes for programs. Everything else is set by "
        "environment variables: see docs/settings.md.",
    )
    add_mcp(parser)
    options = parser.parse_args()
    check_mcp(options)
    return options


if IS_PROGRAM:
    try:
        OPTIONS = read_options()
        Address.from_env()  # gradio reads the port when it is imported.
    except DiaDemoError as error:
        end_with(error)

# isort: split
# Kernels that are not in the cache are compiled beside the imports below, which take as long.
from dia_demo.kernels.precompile import Precompilation

PRECOMPILATION = Precompilation(os.environ.get("DIA_PRECISION") or "auto") if IS_PROGRAM else None

# isort: split
from dia_demo.ui.space import zero_gpu  # noqa: F401 - on ZeroGPU, before torch

# isort: split
from dia_demo.server.run import serve_app


def main(with_mcp: bool = False) -> None:
    """Serve the page where GRADIO_SERVER_NAME and GRADIO_SERVER_PORT say. with_mcp: see `serve`."""
    serve_app(PRECOMPILATION, with_mcp)


if __name__ == "__main__":
    try:
        main(OPTIONS.mcp)
    except DiaDemoError as error:
        end_with(error)
    except KeyboardInterrupt:
        sys.exit(130)

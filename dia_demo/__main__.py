"""`python -m dia_demo`, or `dia`: the command line, and `serve`, which stands above it."""

import sys

from dia_demo.cli import main as cli
from dia_demo.server.cluster import command as serve


def main() -> int:
    """Run one command; returns its exit code."""
    return cli.main(more=[serve.register])


if __name__ == "__main__":
    sys.exit(main())

"""The command line, on the same services as the page: `say`, `audition`, `compare`, `bench`,
`doctor`, `export`, `voices`.

Exit code 0 on success, 2 for a usage or input error (one line on stderr), 1 for a failure while
running. Progress goes to stderr where that is a terminal; stdout carries results alone.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from dia_demo.cli.commands import audition, bench, compare, doctor, export, say, voices
from dia_demo.cli.parser import Parser
from dia_demo.errors import DiaDemoError, InputError, RunError

# A message may quote a value from a file, which can have any length.
LONGEST_ERROR = 2000


def main(argv: Sequence[str] | None = None, more: Sequence[Callable[[Any], None]] = ()) -> int:
    """Run one command; returns its exit code. more: each adds a command of a higher layer."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    try:
        options = _parser(more).parse_args(argv)
        code = options.run(options)
        if sys.stdout is not None:  # None if it was closed before the program started.
            sys.stdout.flush()
        return code
    except InputError as error:
        return _print_error(error, 2)
    except DiaDemoError as error:
        return _print_error(error, 1)
    except BrokenPipeError:  # The reader of the output is gone, as after `| head`.
        _drop_output()
        return 1
    except OSError as error:
        _drop_output()
        what = error.filename or "The output could not be written"
        return _print_error(RunError(f"{what}: {error.strerror or error}."), 1)
    except KeyboardInterrupt:
        return _print_error(RunError("Stopped."), 130)


def _print_error(error: DiaDemoError, code: int) -> int:
    """One line on stderr; returns the exit code."""
    print("error: " + " ".join(str(error).split())[:LONGEST_ERROR], file=sys.stderr)
    return code


def _drop_output() -> None:
    """Discard what is still buffered: writing it at exit would fail again."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(more: Sequence[Callable[[Any], None]] = ()) -> argparse.ArgumentParser:
    parser = Parser(prog="python -m dia_demo", description="Dia text-to-dialogue on a CPU.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    say.register(commands)
    audition.register(commands)
    compare.register(commands)
    bench.register(commands)
    doctor.register(commands)
    export.register(commands)
    voices.register(commands)
    for register in more:
        register(commands)
    return parser

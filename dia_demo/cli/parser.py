"""The parser of a command line whose mistakes are told in one sentence."""

from __future__ import annotations

import argparse
from typing import NoReturn

from dia_demo.errors import InputError


class Parser(argparse.ArgumentParser):
    """One line on stderr instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}. See: {self.prog} --help")

"""The text vocabulary of a checkpoint: words as token ids."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Protocol

from dia_demo.errors import InputError
from dia_demo.files import Stamp, file_stamp
from dia_demo.model.dia2.config import Dia2Config
from dia_demo.untrusted import read_json

FILE, SETTINGS = "tokenizer.json", "tokenizer_config.json"
FETCH_AGAIN = "fetch the checkpoint again, with all of its files."


class Tokenizer(Protocol):
    """bos: the token before everything. s1: the one of the speaker mark [S1]."""

    bos: int
    s1: int

    def encode(self, text: str) -> list[int]:
        """Token ids of some text, without any that are added around it."""


class FileTokenizer:
    """A checkpoint's own tokenizer, in the layout of the library `tokenizers`.

    Raises InputError where its files are missing or damaged, have no speaker marks, or more tokens
    than the model.
    """

    def __init__(self, folder: Path, config: Dia2Config) -> None:
        # It is needed by this family alone, and takes a tenth of a second to import.
        from tokenizers import Tokenizer as LibraryTokenizer

        path = folder / FILE
        if not path.is_file():
            raise InputError(f"{folder} has no {FILE}, without which no text can be read: "
                             f"{FETCH_AGAIN}")  # fmt: skip
        try:
            self._tokenizer = LibraryTokenizer.from_file(str(path))
        except Exception as error:  # The library raises nothing more exact.
            reason = (str(error).splitlines() or [""])[0][:200]
            raise InputError(f"{path} is no tokenizer ({reason}): {FETCH_AGAIN}") from error
        s1, s2 = (self._tokenizer.token_to_id(mark) for mark in ("[S1]", "[S2]"))
        if s1 is None or s2 is None:
            raise InputError(
                f"The tokenizer in {folder} has no token for [S1] or [S2], so the model could not "
                f"tell its speakers apart: {FETCH_AGAIN}"
            )
        size = self._tokenizer.get_vocab_size()
        if size > config.text_vocab:
            raise InputError(
                f"{path} has {size:,} tokens and the model {config.text_vocab:,}: {FETCH_AGAIN}"
            )
        self.s1 = s1
        self.bos = self._find_bos(folder, config)

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def _find_bos(self, folder: Path, config: Dia2Config) -> int:
        """As upstream does: the tokenizer's own, or else 1."""
        settings = folder / SETTINGS
        if not settings.is_file():
            return config.text_ids.bos
        token = read_json(settings).get("bos_token")
        token = token.get("content") if isinstance(token, dict) else token
        found = self._tokenizer.token_to_id(token) if isinstance(token, str) else None
        return found or config.text_ids.bos


class ByteTokenizer:
    """Bytes as tokens, for random weights, which have no files."""

    bos, s1, s2 = 1, 264, 265

    def encode(self, text: str) -> list[int]:
        raw = text.encode("utf-8", errors="replace")
        for mark, token in (("[S1]", self.s1), ("[S2]", self.s2)):
            if text.startswith(mark):
                return [token, *(8 + byte for byte in raw[len(mark) :])]
        return [8 + byte for byte in raw]


def tokenizer_of(config: Dia2Config) -> Tokenizer:
    """A checkpoint's tokenizer, read again only when its file changes."""
    if config.folder is None:
        return ByteTokenizer()
    return _read(config.folder, config, file_stamp(config.folder / FILE))


@lru_cache(maxsize=8)
def _read(folder: Path, config: Dia2Config, _stamp: Stamp | None) -> FileTokenizer:
    return FileTokenizer(folder, config)

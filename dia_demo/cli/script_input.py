"""Where the script of a command comes from: the argument itself, a file, or stdin."""

from __future__ import annotations

import codecs
import re
import sys
from pathlib import Path

from dia_demo.errors import InputError
from dia_demo.text.script import MAX_DIALOGUE_CHARACTERS

# More than the longest script in any encoding, so that a wrong file is not read to its end.
MOST_BYTES = 16 * MAX_DIALOGUE_CHARACTERS
_STDIN = "-"
_NUL = (
    "it contains NUL bytes, as UTF-16 without a byte order mark and audio do. Save the script as "
    "UTF-8."
)
_FILE_NAME = re.compile(r"[\w./\\~-]{1,200}\.(?:txt|md|srt|vtt|json|jsonl|csv|tsv|docx|rtf|script)")
# Byte order marks, the longest first: that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def script_of(argument: str | None, file: Path | None) -> str:
    """The script of the argument or of a file; an argument that names a file is read, and said.

    Raises InputError for neither or both, and for what cannot be read or is not text.
    """
    if (argument is None) == (file is None):
        raise InputError('Give the script, "[S1] Hello.", a file with --file FILE, or - for stdin.')
    if argument == _STDIN:
        return decode_script(_read_stdin(), "stdin")
    if file is None:
        assert argument is not None
        file = _named_file(argument)
        if file is None:
            if _FILE_NAME.fullmatch(argument):
                print(f"note: there is no file {argument}: its name is spoken", file=sys.stderr)
            return _decode_argument(argument)
        print(f"note: reading the script from the file {file}", file=sys.stderr)
    try:
        with open(file, "rb") as opened:
            raw = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
    return decode_script(raw, str(file))


def decode_script(raw: bytes, source: str) -> str:
    """Text in UTF-8, or in the encoding of its byte order mark.

    Raises InputError for other bytes, with the encoding that they probably have.
    """
    if len(raw) > MOST_BYTES:
        raise InputError(
            f"{source} is longer than any script: 1 to {MAX_DIALOGUE_CHARACTERS:,} characters are "
            "allowed."
        )
    encoding = next((name for mark, name in _MARKS if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(_encoding_message(raw, source, encoding, error)) from error
    if "\0" in text:
        raise InputError(f"{source} is not text in UTF-8: {_NUL}")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _encoding_message(raw: bytes, source: str, encoding: str, error: UnicodeDecodeError) -> str:
    if b"\0" in raw and encoding == "utf-8":
        return f"{source} is not text in UTF-8: {_NUL}"
    at = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
    likely = " It is probably in Windows-1252 or Latin-1." if encoding == "utf-8" else ""
    return f"{source} is not text in {encoding.upper()} ({at}).{likely} Save the script as UTF-8."


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise InputError("stdin is closed: give the script as an argument or with --file.")
    buffer = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read().encode() if buffer is None else buffer.read(MOST_BYTES + 1)


def _named_file(argument: str) -> Path | None:
    """The file that an argument names; None if it names none."""
    if "\n" in argument or len(argument) > 1000:
        return None
    try:
        path = Path(argument)
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None


def _decode_argument(argument: str) -> str:
    """The argument as text. Under a locale without UTF-8 its bytes come as surrogates."""
    if not any("\udc80" <= letter <= "\udcff" for letter in argument):
        return argument
    return decode_script(argument.encode("utf-8", errors="surrogateescape"), "The script")

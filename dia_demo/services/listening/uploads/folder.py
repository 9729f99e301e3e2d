"""The clips of a folder: which systems and sentences there are, and whether they can be compared.

A clip's path is system/sentence, with a suffix. Nothing is decoded here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dia_demo.audio import FORMATS, LOSSLESS_SUFFIXES, STORED_SUFFIX
from dia_demo.errors import InputError
from dia_demo.services.listening.plan.plan import MAX_TRIALS, NAMES
from dia_demo.services.wording import plural
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS

_EXAMPLE = f"bigvoice/001{STORED_SUFFIX}"
LAYOUT = f"Use one folder per system and the same file names in each, such as {_EXAMPLE}."
# The folder of the words of each sentence, as 001.txt. They are shown to listeners.
TEXTS, TEXT_SUFFIX = "text", ".txt"
MAX_TEXT_BYTES = 4 * MAX_SCRIPT_CHARACTERS
_ALLOWED = " or ".join(FORMATS[suffix].label for suffix in LOSSLESS_SUFFIXES)
# What systems leave in folders and zips.
_STRAY = ("__MACOSX", "Thumbs.db", "desktop.ini")
_NAME = re.compile(r"[^\x00-\x1f\x7f/\\:*?\"<>|]{1,60}")
_MOST_LISTED = 3


@dataclass(frozen=True)
class ClipFolder:
    """Clips by system and sentence, every pair of them once. texts: the words of each sentence, or
    its name."""

    systems: tuple[str, ...]
    sentences: tuple[str, ...]
    texts: tuple[str, ...]
    files: Mapping[tuple[str, str], Path]


def read_folder(folder: Path) -> ClipFolder:
    """The clips of a folder. Raises InputError, saying how to arrange them, if they cannot be
    compared."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    by_name = {path.relative_to(folder).as_posix(): path for path in paths}
    names = clip_names(by_name)
    files: dict[tuple[str, str], Path] = {}
    words: dict[str, Path] = {}
    for name, place in names.items():
        system, sentence = place.parent.name, place.stem
        if system == TEXTS:
            words[sentence] = by_name[name]
        elif (system, sentence) in files:
            raise InputError(f"{system} has two files called {sentence!r}: remove one of them.")
        else:
            files[system, sentence] = by_name[name]
    systems, sentences = _complete(files)
    return ClipFolder(systems, sentences, _texts(sentences, words), files)


def clip_names(names: Iterable[str]) -> dict[str, PurePosixPath]:
    """The names that are clips or words, each as system/file; hidden files are left out.

    One folder around all of them is left out too. Raises InputError for anything else.
    """
    wanted = {name: PurePosixPath(name) for name in names}
    wanted = {name: path for name, path in wanted.items() if not _is_stray(path)}
    if not wanted:
        raise InputError(f"There are no clips. {LAYOUT}")
    if all(len(path.parts) == 3 for path in wanted.values()):
        if len({path.parts[0] for path in wanted.values()}) == 1:
            wanted = {name: PurePosixPath(*path.parts[1:]) for name, path in wanted.items()}
    for name, path in wanted.items():
        _check_name(name, path)
    return wanted


def _is_stray(path: PurePosixPath) -> bool:
    # A part of two dots leads out of the folder, and is not hidden but wrong.
    return any(part in _STRAY or (part[:1] == "." and part != "..") for part in path.parts)


def _check_name(name: str, path: PurePosixPath) -> None:
    shown = repr(name[:80])
    if len(path.parts) != 2 or path.is_absolute() or ".." in path.parts:
        raise InputError(f"{shown} is not a clip of a system. {LAYOUT}")
    if not all(_NAME.fullmatch(part) for part in path.parts):
        raise InputError(
            f"{shown} has a name that cannot be used: names have up to 60 characters, without "
            'any of \\ : * ? " < > |.'
        )
    allowed = (TEXT_SUFFIX,) if path.parent.name == TEXTS else LOSSLESS_SUFFIXES
    if path.suffix.lower() not in allowed:
        raise InputError(f"{shown} is not a {_ALLOWED} file: convert it, or remove it.")


def _complete(files: Mapping[tuple[str, str], Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The systems and the sentences, if every system has every sentence."""
    of_system: dict[str, set[str]] = defaultdict(set)
    for system, sentence in files:
        of_system[system].add(sentence)
    systems = tuple(sorted(of_system))
    if not 2 <= len(systems) <= len(NAMES):
        raise InputError(f"Compare from 2 to {len(NAMES)} systems, not {len(systems)}. {LAYOUT}")
    sentences = tuple(sorted(set().union(*of_system.values())))
    for system in systems:
        if missing := [name for name in sentences if name not in of_system[system]]:
            listed = ", ".join(missing[:_MOST_LISTED])
            more = f" and {len(missing) - _MOST_LISTED} more" if len(missing) > _MOST_LISTED else ""
            raise InputError(
                f"{system} has no clip of {listed}{more}: every system needs every sentence. Add "
                "them, or remove these sentences everywhere."
            )
    pairs = len(systems) * (len(systems) - 1) // 2
    if len(sentences) * pairs > MAX_TRIALS:
        raise InputError(
            f"{plural(len(sentences), 'sentence')} of {len(systems)} systems are "
            f"{len(sentences) * pairs} pairs, and {MAX_TRIALS} are allowed: use at most "
            f"{MAX_TRIALS // pairs} sentences."
        )
    return systems, sentences


def _texts(sentences: tuple[str, ...], words: Mapping[str, Path]) -> tuple[str, ...]:
    """The words of each sentence; its name where it has none."""
    texts = [_read_text(words[name]) if name in words else name for name in sentences]
    texts = [text or name for text, name in zip(texts, sentences, strict=True)]
    # The same words twice are two scripts here.
    return tuple(
        text if texts.count(text) == 1 else f"{name}: {text}"
        for text, name in zip(texts, sentences, strict=True)
    )


def _read_text(path: Path) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            text = " ".join(file.read(MAX_TEXT_BYTES).split())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name} cannot be read as text: {error}.") from error
    if len(text) > MAX_SCRIPT_CHARACTERS:
        raise InputError(
            f"{path.name} has {len(text):,} characters; {MAX_SCRIPT_CHARACTERS:,} are allowed."
        )
    return text

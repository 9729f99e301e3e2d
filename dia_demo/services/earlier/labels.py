"""What people call their takes: names of files after the words, names and stars of their own."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dia_demo.errors import InputError
from dia_demo.files import write_atomic

MAX_NAME = 60
_SLUG_WORDS, _SLUG_CHARACTERS = 6, 40
_TAGS_AND_SOUNDS = re.compile(r"\[[^\]]*\]|\([^)]*\)")


@dataclass(frozen=True)
class Label:
    """name: a person's own for a take, or empty. starred takes are removed last."""

    name: str = ""
    starred: bool = False


def read_labels(file: Path) -> dict[str, Label]:
    """The labels by the takes' ids; none where the file is missing or damaged."""
    labels: dict[str, Label] = {}
    with suppress(OSError, ValueError, AttributeError):
        for identity, saved in json.loads(file.read_text(encoding="utf-8")).items():
            name = saved.get("name")
            name = name[:MAX_NAME] if isinstance(name, str) else ""
            labels[identity] = Label(name, saved.get("starred") is True)
    return labels


def write_labels(file: Path, labels: Mapping[str, Label], ids: Iterable[str]) -> None:
    """Save the labels of the takes that still exist, those with these ids."""
    kept = {identity: asdict(labels[identity]) for identity in ids if identity in labels}
    with write_atomic(file) as part:
        part.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")


def checked_name(name: object) -> str:
    """A name without line breaks and control characters. Raises InputError if it is too long."""
    words = " ".join(str(name).split())
    words = "".join(letter for letter in words if letter.isprintable())
    if len(words) > MAX_NAME:
        raise InputError(f"A name may have at most {MAX_NAME} characters, not {len(words)}.")
    return words


def file_stem(script: str, figures: Mapping[str, Any], name: str = "") -> str:
    """The name of a take's files, without their suffix: its name or the script's first words, the
    model and the seed, in letters that every file system takes.

    "hello-there-how-are-you_nano_seed7"
    """
    words = slug(name) or slug(_TAGS_AND_SOUNDS.sub(" ", script)) or "take"
    model = re.sub(r"[^\w.-]", "", Path(str(figures.get("model"))).name, flags=re.ASCII)
    seed = re.sub(r"\D", "", str(figures.get("seed")))
    return f"{words}_{model[:40]}_seed{seed[:20]}"


def make_distinct(names: Iterable[str]) -> list[str]:
    """The names, with a number where those before have the same."""
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(f"{name}_{seen[name]}" if seen[name] > 1 else name)
    return result


def slug(text: str) -> str:
    """The first words of a text in small ASCII letters and digits, joined by hyphens."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.lower().replace("'", ""))[:_SLUG_WORDS]
    while len(words) > 1 and len("-".join(words)) > _SLUG_CHARACTERS:
        words.pop()
    return "-".join(words)[:_SLUG_CHARACTERS]

"""A person's list of words and how to say them, applied before a script is normalised.

As text, one entry a line: `word = how to say it`; what follows # at the start of a line or behind
a space is a comment. A file may also be CSV (word, how to say it) or JSON ({"word": "how"}).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dia_demo.errors import InputError
from dia_demo.text.edits import EditedText
from dia_demo.text.script import NONVERBALS

MAX_ENTRIES = 200
MAX_WORD = 60
MAX_SPOKEN = 120
# The longest text that can hold that many entries, with some room for comments.
MAX_CHARACTERS = 40_000
_FORM = "word = how to say it"
_SEPARATOR = re.compile(r"(?<!\s)\s*(?:=>|->|→|=|\t)\s*")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$")
_APOSTROPHES = "['’‘ʼ]"
# Speaker tags and sounds are not words of the script.
_NO_WORDS = rf"\[S\d{{1,3}}\]|\((?:{'|'.join(NONVERBALS)})\)"
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")


@dataclass(frozen=True)
class Pronunciations:
    """Words and how to say them, in the order of the list."""

    entries: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Pronunciations:
        """From lines `word = how to say it`. Raises InputError with the number of a bad line."""
        if len(text) > MAX_CHARACTERS:
            raise InputError(
                f"The list of pronunciations has {len(text):,} characters, and at most "
                f"{MAX_CHARACTERS:,} are allowed: shorten it."
            )
        rows = []
        for number, line in enumerate(text.splitlines(), 1):
            written = _COMMENT.sub("", line).strip()
            if not written:
                continue
            parts = _SEPARATOR.split(written, maxsplit=1)
            if len(parts) != 2:
                raise InputError(f"Pronunciations, line {number}: write “{_FORM}”.")
            rows.append((f"line {number}", parts[0], parts[1]))
        return cls(_check_rows(rows))

    @classmethod
    def from_mapping(cls, listed: Mapping[str, str]) -> Pronunciations:
        """From words and how to say them. Raises InputError for one that cannot be used."""
        return cls(_check_rows(_rows(listed)))

    @classmethod
    def read(cls, path: Path) -> Pronunciations:
        """From a file: .csv, .json, otherwise lines. Raises InputError if it is no such list."""
        try:
            raw = path.read_bytes()
            text = raw.decode("utf-8-sig")
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 text: save it as UTF-8.") from error
        try:
            if path.suffix.lower() == ".json":
                return cls(_check_rows(_json_rows(text)))
            if path.suffix.lower() == ".csv":
                return cls(_check_rows(_csv_rows(text)))
            return cls.parse(text)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    @property
    def text(self) -> str:
        """The list as lines, which `parse` reads again."""
        return "\n".join(f"{word} = {spoken}" for word, spoken in self.entries)

    def entries_in(self, script: str) -> tuple[tuple[str, str], ...]:
        """The entries whose words are in a script."""
        if not self.entries:
            return ()
        groups = {match.lastgroup for match in _pattern(self)[0].finditer(script)}
        return tuple(entry for number, entry in enumerate(self.entries) if f"w{number}" in groups)

    def apply(self, text: EditedText, is_normalised: bool) -> None:
        """Write each word of the list as it is said.

        Whole words count, in small letters or capitals, unless the entry has capitals after its
        first letter. is_normalised: initialisms will be spelled, so capitals become small ones.
        """
        if self.entries:
            pattern, spoken = _pattern(self)
            text.sub(pattern, lambda match: _spoken_words(match, spoken, is_normalised))


NONE = Pronunciations()


def merge_lists(own: str, listed: Pronunciations, script: str) -> tuple[str, list[str], list[str]]:
    """A person's list, as text, changed so that a script is said as with another list.

    own: the person's list. listed: the other. Lines of `own` that change the script and are not in
    `listed` become comments; what they lack is added. Also returns the words that were added, and
    those that became comments.
    """
    lines, kept, set_aside = [], set(), []
    for line in own.splitlines():
        try:
            entries = Pronunciations.parse(line).entries
        except InputError:  # Said where the list is.
            entries = ()
        alien = [entry for entry in entries if entry not in listed.entries]
        if Pronunciations(tuple(alien)).entries_in(script):
            set_aside += [word for word, _ in alien]
            line = f"# {line}"
        else:
            kept |= set(entries)
        lines.append(line)
    added = [entry for entry in listed.entries_in(script) if entry not in kept]
    if not (added or set_aside):
        return own, [], []
    lines += Pronunciations(tuple(added)).text.splitlines()
    return "\n".join(lines), [word for word, _ in added], set_aside


def _spoken_words(match: re.Match, spoken: dict[str, str], is_normalised: bool) -> str:
    name = match.lastgroup
    if name is None:
        return match[0]
    words = spoken[name]
    return _CAPITALS.sub(lambda run: run[0].lower(), words) if is_normalised else words


@lru_cache(maxsize=8)
def _pattern(listed: Pronunciations) -> tuple[re.Pattern, dict[str, str]]:
    """One pattern for all words, the longest first, and what is said for each of its groups."""
    order = sorted(range(len(listed.entries)), key=lambda n: -len(listed.entries[n][0]))
    parts, spoken = [_NO_WORDS], {}
    for number in order:
        word, said = listed.entries[number]
        spoken[f"w{number}"] = said
        exact = re.escape(word).replace("'", _APOSTROPHES).replace(r"\ ", r"\s{1,3}")
        flag = "" if _is_exact(word) else "i"
        start = r"(?<!\w)" if re.match(r"\w", word) else ""
        end = r"(?!\w)" if re.search(r"\w$", word) else ""
        parts.append(f"{start}(?P<w{number}>(?{flag}:{exact})){end}")
    return re.compile("|".join(parts)), spoken


def _is_exact(word: str) -> bool:
    """Whether an entry holds only as it is written: it has capitals after its first letter."""
    return word[1:] != word[1:].lower()


def _check_rows(rows: Iterable[tuple[str, str, str]]) -> tuple[tuple[str, str], ...]:
    """The entries, each with a word and how to say it. rows: the place of each, and both."""
    entries: list[tuple[str, str]] = []
    seen: dict[str, str] = {}
    for place, word, spoken in rows:
        lead = f"Pronunciations, {place}:"
        word, spoken = (" ".join(part.split()).replace("’", "'") for part in (word, spoken))
        if not re.search(r"\w", word) or not re.search(r"\w", spoken):
            raise InputError(f"{lead} write “{_FORM}”, both in letters.")
        for part, longest in ((word, MAX_WORD), (spoken, MAX_SPOKEN)):
            if len(part) > longest:
                raise InputError(
                    f"{lead} “{part[:20]}…” has {len(part)} characters, and at most {longest} are "
                    "allowed."
                )
            if bad := re.search(r"[\[\]<>{}\x00-\x1f\ud800-\udfff]", part):
                raise InputError(f"{lead} “{bad[0]}” is not allowed: write words only, no tags.")
        key = word if _is_exact(word) else word.lower()
        if key in seen:
            raise InputError(f"{lead} “{word}” is already listed, in {seen[key]}: remove one.")
        seen[key] = place
        entries.append((word, spoken))
        if len(entries) > MAX_ENTRIES:
            raise InputError(f"{lead} at most {MAX_ENTRIES} words are allowed: remove some.")
    return tuple(entries)


def _csv_rows(text: str) -> Iterable[tuple[str, str, str]]:
    reader = csv.reader(io.StringIO(text))
    try:
        for row in reader:
            filled = [cell for cell in row if cell.strip()]
            if not filled or filled[0].lstrip().startswith("#"):
                continue
            if len(filled) != 2:
                raise InputError(
                    f"Pronunciations, line {reader.line_num}: write two columns, the word and how "
                    "to say it."
                )
            yield f"line {reader.line_num}", filled[0], filled[1]
    except csv.Error as error:
        raise InputError(f"Pronunciations, line {reader.line_num}: {error}.") from error


def _json_rows(text: str) -> Iterable[tuple[str, str, str]]:
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"Pronunciations{line}: this is not valid JSON.") from error
    return _rows(listed)


def _rows(listed: Any) -> Iterable[tuple[str, str, str]]:
    if not isinstance(listed, Mapping) or not all(
        isinstance(part, str) for entry in listed.items() for part in entry
    ):
        raise InputError('Pronunciations: write {"word": "how to say it"}.')
    for number, (word, spoken) in enumerate(listed.items(), 1):
        yield f"entry {number}", word, spoken

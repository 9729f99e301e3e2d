"""Audio formats are one table, in dia_demo/audio.py, and have their streams in
dia_demo/server/encoders.py: no other file of the program names one."""

import ast
import re
from pathlib import Path

from dia_demo import audio
from dia_demo.files import PAGE_FILES, ROOT
from tests.repository.test_architecture import tree_of

PACKAGE = ROOT / "dia_demo"
FORMAT = re.compile(rf"(?<![^\W_])({'|'.join(audio.FORMAT_NAMES)}|ogg)(?![^\W_])", re.IGNORECASE)
# How words of scripts are read: there these are words as well.
WORDS = PACKAGE / "text" / "reading"
NAMING = (PACKAGE / "audio.py", PACKAGE / "server" / "encoders.py")
SOURCES = [
    path
    for path in [*PACKAGE.rglob("*.py"), *PAGE_FILES.rglob("*.js"), *PAGE_FILES.rglob("*.html")]
    if path not in NAMING and not path.is_relative_to(WORDS)
]


def words_of(path: Path) -> list[str]:
    """Names and texts in a file, without its comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return [re.sub(r"^\s*//.*|\s// .*", "", line) for line in text.splitlines()]
    found = []
    for node in ast.walk(tree_of(path)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and is_text(body[0]):
            body[0].value.value = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        found += [getattr(node, name, None) for name in ("id", "attr", "arg", "name")]
    return [word for word in found if isinstance(word, str)]


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_no_file_names_a_format():
    found = {
        str(path.relative_to(ROOT)): [word for word in words_of(path) if FORMAT.search(word)]
        for path in SOURCES
    }
    assert {name: words for name, words in found.items() if words} == {}

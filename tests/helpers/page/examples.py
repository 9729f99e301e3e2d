"""The examples of the documents, for the app that runs in tests."""

from __future__ import annotations

import re

from dia_demo.files import ROOT

HOME = "http://127.0.0.1:7860"


def example(language: str, home: str, containing: str, document: str = "api.md") -> str:
    """The only example of a document in this language that contains these words and calls the app,
    for the app at `home`."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if containing in block and HOME in block)
    assert block.count(HOME) == 1
    return block.replace(HOME, home)

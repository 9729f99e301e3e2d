"""The page of invited listeners: the same three files at a link and in a folder."""

from __future__ import annotations

from functools import cache

from dia_demo.files import LISTEN_FILES, module_url

INDEX, SCRIPT, STYLE, DATA = "index.html", "listen.js", "listen.css", "data.js"
_START = (
    'import("{url}").then((module) => new module.ListeningPage('
    'document.getElementById("listen")).start());\n'
)
_OWN_SCRIPT = f'<script src="{SCRIPT}"></script>'


@cache
def page_files() -> dict[str, bytes]:
    """The contents of INDEX, SCRIPT and STYLE.

    The modules are in one classic script, because a browser loads none from a page that was opened
    from the disk.
    """
    script = _START.replace("{url}", module_url(LISTEN_FILES / "main.js"))
    files = {name: (LISTEN_FILES / name).read_bytes() for name in (INDEX, STYLE)}
    return files | {SCRIPT: script.encode()}


def index_with_data() -> bytes:
    """INDEX for a folder: with DATA before its script."""
    text = page_files()[INDEX].decode()
    assert _OWN_SCRIPT in text, "the page's script"
    return text.replace(_OWN_SCRIPT, f'<script src="{DATA}"></script>\n{_OWN_SCRIPT}').encode()

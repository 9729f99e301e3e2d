"""The head of the page as the server sends it: title, description, icon, link preview, a script.

gradio sets the title only in the browser, and its template previews links as "Gradio". Crawlers and
messengers read the HTML and run no script.
"""

from __future__ import annotations

import re
from html import escape

from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dia_demo.files import PAGE_FILES
from dia_demo.ui.html import TITLE

STILL = PAGE_FILES / "still.js"
DESCRIPTION = (
    "Write a dialogue and listen to it: Nari Labs' Dia generates two voices with laughter and "
    "other sounds, on an ordinary CPU."
)
_PREVIEW = re.compile(rb'\s*<meta\s[^>]*(?:property="og:|name="twitter:)[^>]*>')
_START = re.compile(rb"<head>\s*<meta charset=[^>]*>")


def head_tags() -> str:
    """What the head of the page contains for those who do not run its script."""
    title, description = escape(TITLE), escape(DESCRIPTION)
    # gradio serves the icon at favicon.ico, whatever its format.
    return (
        f"<title>{title}</title>"
        f'<meta name="description" content="{description}">'
        f'<meta property="og:title" content="{title}">'
        f'<meta property="og:description" content="{description}">'
        '<meta property="og:type" content="website">'
        '<meta name="twitter:card" content="summary">'
        '<link rel="icon" type="image/png" href="favicon.ico">'
        '<link rel="apple-touch-icon" href="favicon.ico">'
        # gradio's `head` is inserted by its own script, and this has to come before it.
        f"<script>{STILL.read_text('utf-8')}</script>"
    )


def insert_head(page: bytes) -> bytes:
    """gradio's HTML with our head, without its link preview."""
    head, separator, rest = page.partition(b"</head>")
    tags = head_tags().encode()
    head = _START.sub(lambda start: start[0] + tags, _PREVIEW.sub(b"", head), count=1)
    return head + separator + rest


class PageHead:
    """ASGI middleware: the page with our head, and compressed.

    gradio compresses only paths that end like the name of a text file, not the page itself.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.page = GZipMiddleware(self._send_page, compresslevel=6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and scope["path"] == f"{scope.get('root_path', '')}/"
        await (self.page if is_page else self.app)(scope, receive, send)

    async def _send_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        start: Message = {}
        body = b""

        async def send_whole(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            page = insert_head(body)
            MutableHeaders(raw=start["headers"])["Content-Length"] = str(len(page))
            await send(start)
            await send({"type": "http.response.body", "body": page})

        await self.app(scope, receive, send_whole)

"""The head of the page as it is served, for readers that run no script."""

from __future__ import annotations

import re

import httpx
import pytest

from dia_demo.server.head import DESCRIPTION
from dia_demo.ui.html import TITLE


@pytest.fixture(scope="module")
def html(home) -> str:
    return httpx.get(home).text


def contents(html: str, name: str) -> list[str]:
    return re.findall(rf'<meta (?:property|name)="{name}" content="([^"]*)"', html)


def test_the_title_is_in_the_html(html):
    assert re.findall("<title>(.*?)</title>", html) == [TITLE]


def test_the_language_is_in_the_html(html):
    assert re.search(r'<html\s+lang="en"', html)


@pytest.mark.parametrize("name", ["description", "og:description"])
def test_the_description_is_given_once(html, name):
    (description,) = contents(html.replace("&#x27;", "'"), name)
    assert description == DESCRIPTION


def test_a_link_preview_is_about_this_page(html):
    assert contents(html, "og:title") == [TITLE]
    assert contents(html, "og:url") == contents(html, "og:image") == []
    assert contents(html, "twitter:title") == contents(html, "twitter:image") == []
    assert "Gradio" not in html.partition("<script")[0]


def test_the_page_is_compressed_for_those_who_accept_it(home):
    plain = httpx.get(home, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert int(plain.headers["content-length"]) == len(plain.content)
    packed = httpx.get(home, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 4
    assert packed.content == plain.content

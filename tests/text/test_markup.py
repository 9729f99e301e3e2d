"""Markup and notes in a turn: what is said stays, and nothing is taken for markup that is none."""

import pytest

from dia_demo.text.normaliser import normalise


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("It holds if a<b here.", "It holds if a is less than b here."),
        ("A fact.[1] Another.[2][3]", "A fact. Another."),
        ("A fact^1 and more.^2", "A fact and more."),
        ("A fact[^1] here.\n\n[^1]: The source.", "A fact here.\n\n"),
        ("A fact^[as she said] here.", "A fact here."),
        ("See [[Wiki Link]] and [[page|this]].", "See Wiki Link and this."),
        ("See [this][ref].\n[ref]: https://example.com", "See this.\n"),
        ("A claim[citation needed] and a word [sic].", "A claim and a word."),
        (
            "This is ==very== ++good++ and ~~bad~~ ~old~ ||news||.",
            "This is very good and bad old news.",
        ),
        ("A drop of H~2~O.", "A drop of H two O."),
        ("%%not yet%% Hello.", "Hello."),
        ("A note.{#id} More.{.small}", "A note. More."),
        ("Hello ]there[ you.", "Hello there you."),
        ("Dear {{name}}, hello <your name>.", "Dear name, hello your name."),
        ("One -> two => three.", "One, two, three."),
        ("Wash it.\n- [x] Dry it.", "Wash it.\nDry it."),
    ],
)
def test_words_stay_and_marks_go(written, read):
    assert normalise(f"[S1] {written}").text == f"[S1] {read}"


@pytest.mark.parametrize(
    "script", ["[S1] Hi. [S3] Ho.", "[S1] We write C++ and B.", "[S1]: Hi.\n[S2]: Ho."]
)
def test_tags_and_names_are_no_marks(script):
    assert "[S1]" in normalise(script).text
    assert normalise(script).text.count("[") == script.count("[")

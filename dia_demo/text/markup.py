"""Markup that is not speech: Markdown, tags of HTML and SSML, emoji.

Words stay, marks go. `*sighs*` and `<laughs>` are sounds that people write as markup.
"""

from __future__ import annotations

import html
import re

from dia_demo.text.edits import EditedText
from dia_demo.text.repairs import nearest_sound
from dia_demo.text.sounds import is_action

EMOJI = re.compile("[ \t]?[\U0001f000-\U0001faff\u2600-\u27ff\u2b00-\u2bff\ufe0f\u200d]+")
_SOUND_LIKENESS = 0.8

_FENCE = re.compile(r"^[ \t]{0,3}(?:```|~~~)[^\n]{0,40}\n?", re.MULTILINE)
_RULE = re.compile(
    r"^[ \t]{0,3}(?:-{3,80}|\*{3,80}|_{3,80}|={3,80})[ \t]{0,9}(?:\n|\Z)", re.MULTILINE
)
_COMMENT = re.compile(r"<!--.{0,400}?-->", re.DOTALL)
# Attributes have values: "a<b and c>d" compares.
_ATTRIBUTE = (
    r"\s{1,3}[\w:.-]{1,40}\s?=\s?(?:\"[^\"<>\n]{0,200}\"|'[^'<>\n]{0,200}'|[^\s\"'<>=]{1,80})"
)
_ELEMENT = re.compile(rf"</?([A-Za-z][\w:-]{{0,30}})(?:{_ATTRIBUTE}){{0,9}}\s{{0,3}}/?>")
_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}|#\d{1,6}|#x[0-9A-Fa-f]{1,5});")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,200})\]\((?:[^()\s]{1,300})(?:\s\"[^\"\n]{0,100}\")?\)")
_LINE_MARK = re.compile(r"^[ \t]{0,9}(?:#{1,6}[ \t]+|>(?!\d)[ \t]?|[-*+•‣▪][ \t]+)+", re.MULTILINE)
_STRONG = re.compile(r"(\*\*|__|~~|==)(?=\S)([^\n]{1,400}?)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,300})(?<=[^\s*])\*(?![\w*])")
_UNDERSCORES = re.compile(r"(?<!\w)_(?=[^\s_])([^_\n]{1,300})(?<=[^\s_])_(?!\w)")
LATEX_STYLE = re.compile(r"\\(?:textbf|textit|emph|textsc|texttt|underline)\{([^{}\n]{1,300})\}")
_CODE = re.compile(r"(`{1,3})([^`\n]{1,300})\1")


# What belongs to a page and not to what is said: notes, where links lead, attributes, task boxes.
_ASIDE = re.compile(
    r"^[ \t]{0,3}(?:\[\^[\w-]{1,30}\]:|\[[\w -]{1,40}\]:[ \t]{1,9}<?(?:https?:|www\.|\.?/|#))"
    r"[^\n]{0,500}(?:\n|\Z)"
    r"|^[ \t]{0,3}:{3,9}[^\n]{0,60}(?:\n|\Z)|^[ \t]{0,9}(?:[-*+][ \t])?\[[ xX]\][ \t]"
    r"|%%[^%\n]{1,200}%%|\[\^[\w-]{1,30}\]|\^\[[^\[\]\n]{1,200}\]"
    r"|[ \t]?\[(?:sic|edit|citation needed|note \d{1,2}|who\?)\]|\{[#.][\w.# =\"-]{1,80}\}",
    re.MULTILINE | re.IGNORECASE,
)
# "as shown^1", and not "mc^2", "cm^2" or "sin^2".
_NOTE_MARK = re.compile(
    r"(?:(?<=[a-z]{3})(?<!\bsin)(?<!\bcos)(?<!\btan)(?<!\blog)|(?<=[.,;!?\"']))\^\d{1,2}\b"
)
_WIKI_LINK = re.compile(r"!?\[\[(?!S\d)(?:[^\[\]|\n]{1,200}\|)?([^\[\]|\n]{1,200})\]\]")
_REFERENCE = re.compile(
    r"(?<!\])\[(?!S\d{1,3}\])(?=[\W\d]{0,20}[A-Za-z])([^\[\]\n]{1,200})\]"
    r"\[(?!S\d)(?=[a-zA-Z\d])[\w -]{1,40}\](?!\()"
)
_PAIRED = re.compile(
    r"(?<![\w+|~])(\+\+|\|\||~)(?=[^\s+|~])([^\n]{1,300}?)(?<=[^\s+|~])\1(?![\w+|~])"
)
_LOWERED = re.compile(r"(?<=\w)~(\w{1,9})~|(?<=\w)\^(\w{1,9})\^")
_ARROW = re.compile(r"[ \t]{0,9}(?:<-{1,2}>?|<=>|-{1,2}>|=>)[ \t]{0,9}")
_PLACEHOLDER = re.compile(r"(?<!\w)<([A-Za-z][A-Za-z']{0,20}(?:[ ][A-Za-z']{1,20}){1,4})>(?!\w)")
_LINE_BREAK = re.compile(r"(?<=[a-z.!?…,;\"'’”])[ ]?\\n[ ]?(?=[^a-z]|\Z)")
# Brackets whose other half is missing; [S1] and its kind are tags.
_LONELY = re.compile(r"\[S\d{1,3}\]|(\[)(?![^\[\]\n]{0,200}\])|\[[^\[\]\n]{0,200}\]|(\])")


def remove_markup(text: EditedText) -> None:
    """Remove marks and keep the words between them."""
    text.sub(_FENCE, _drop_mark)
    text.sub(_RULE, _drop_mark)
    text.sub(_COMMENT, _drop_mark)
    text.sub(LATEX_STYLE, lambda match: match[1])
    text.sub(_LINE_BREAK, lambda match: "\n")
    text.sub(_ASIDE, _drop_mark)
    text.sub(_NOTE_MARK, _drop_mark)
    text.sub(_WIKI_LINK, lambda match: match[1])
    text.sub(_REFERENCE, lambda match: match[1])
    text.sub(_LOWERED, lambda match: match[1] or f"^{match[2]}")
    text.sub(_PAIRED, lambda match: match[2])
    text.sub(_ELEMENT, _element)
    text.sub(_PLACEHOLDER, lambda match: match[1])
    text.sub(_ARROW, _arrow)
    text.sub(_ENTITY, lambda match: html.unescape(match[0]))
    text.sub(_LINK, lambda match: match[1])
    text.sub(_LINE_MARK, _drop_mark)
    # Twice: bold within italics and the reverse.
    for pattern in (_STRONG, _EMPHASIS, _UNDERSCORES, _STRONG, _CODE):
        text.sub(pattern, _text_between_marks)
    text.sub(_LONELY, _drop_lone_mark)
    text.sub(EMOJI, _drop_mark)


def _arrow(match: re.Match) -> str:
    """A pause between words; nothing at the start or end of a line."""
    before = match.string[max(0, match.start() - 1) : match.start()]
    after = match.string[match.end() : match.end() + 1]
    return ", " if before.strip("]\n") and after.strip() else ""


def _drop_lone_mark(match: re.Match) -> str:
    return "" if match[1] or match[2] else match[0]


def _drop_mark(_: re.Match) -> str:
    return ""


def _element(match: re.Match) -> str:
    """A sound where the name is one; a pause for <break/>; nothing for any other tag."""
    name = match[1].lower()
    if name in ("break", "pause"):
        return " ... "
    if name in ("br", "p") and not match[0].startswith("</"):
        return "\n"
    return _sound(name) or ""


def _text_between_marks(match: re.Match) -> str:
    """The text between two marks, or the sound that it names."""
    words = match[match.re.groups]
    if match.re is _EMPHASIS and is_action(words):
        words = f"({words})"
    return _sound(words.strip("() ").lower()) or words


def _sound(words: str) -> str | None:
    return nearest_sound(words, _SOUND_LIKENESS) if len(words) <= 20 else None

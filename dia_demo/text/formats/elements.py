"""Speakers as elements, <S1> or <Person1>…</Person1>, and tags that were escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from dia_demo.text.formats.frame import remove_frame
from dia_demo.text.formats.parts.lines import Format, Found, Line
from dia_demo.text.formats.parts.names import Likeness, likeness, number_of
from dia_demo.text.markup import LATEX_STYLE
from dia_demo.text.script import TAG

_ESCAPED = re.compile(r"\\\[(?P<square>[^\[\]\\\n]{1,40})\\?\]|\\<(?P<angle>/?[^<>\\\n]{1,40})\\?>")
_ENTITY = re.compile(r"&(?:lt|gt|quot|apos|amp|nbsp|#\d{1,6}|#x[0-9A-Fa-f]{1,5});")
_ELEMENT = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z][\w.-]{0,24}(?:[ ]\d{1,2}(?=>))?)"
    r"(?P<rest>[ ][^<>\n]{0,120})?/?>"
)
# The special tokens of chat models: <|im_start|>user, <|assistant|>, <|im_end|>.
_SPECIAL = re.compile(
    r"<\|(?:im_start|start_header_id)\|>[ ]?(\w{1,20})(?:<\|end_header_id\|>)?"
    r"|<\|(?:im_end|eot_id|end|endoftext|eos|begin_of_text)\|>|<\|(\w{1,24})\|>"
)
_STYLE = (
    r"(?:[ ](?:class|style|dir|lang|href|align|target|title)="
    r"(?:\"[^\"<>\n]{0,200}\"|'[^'<>\n]{0,200}'))"
)
_BLOCK = re.compile(
    rf"</?(?:p|div|dl|dd|li|ul|ol|tr|h[1-6]|br|hr|section|article|blockquote)"
    rf"{_STYLE}{{0,4}}[ ]?/?>",
    re.IGNORECASE,
)
_TERM = re.compile(r"<dt>\s{0,9}([^<>\n:]{1,40}):?\s{0,9}</dt>\s{0,9}<dd>", re.IGNORECASE)
_INLINE = re.compile(
    rf"</?(?:b|i|u|em|strong|span|font|a|td|small|mark|html|body){_STYLE}{{0,4}}>", re.IGNORECASE
)
_LATEX_BLOCK = re.compile(r"^[ \t]{0,9}\\(?:begin|end)\{[^{}\n]{1,40}\}[ \t]{0,9}$", re.MULTILINE)
_LATEX_SPEAKER = re.compile(
    r"^[ \t]{0,9}\\(?:speak|says|speaker|character)\{([^{}:\n]{1,40}):?\}[ \t]{0,9}", re.MULTILINE
)
# Characters of labels and words; those of tags are `plain_tags`' matter.
_CHARACTER = re.compile(r"&(?:nbsp|quot|apos|amp|rsquo|lsquo|rdquo|ldquo|#58|#39|#34|#x3[Aa]);")
_ATTRIBUTE = re.compile(
    r"\b(?:speaker|name|voice|who|id|character|role|actor|person|by)[ ]?=[ ]?"
    r"[\"'](?P<value>[^\"'<>\n]{1,40})[\"']",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"<(speaker|name|character|who|role)>\s{0,20}(?P<name>[^<>\n]{1,40}?)\s{0,20}</\1>",
    re.IGNORECASE,
)
_CARRIERS = frozenset(
    "speaker voice line turn utterance speech said sp dialogue dialog msg message p say u person "
    "character segment host guest actor role".split()
)
_TAGGED = re.compile(rf"[\s>*_+-]{{0,40}}{TAG.pattern}")
_ZERO_FIRST = re.compile(r"\s{0,99}\[S0\]")
_HTML = frozenset("b i u p a s q em br hr div span li ul ol td tr th sub sup del ins".split())


def plain_html(script: str) -> str:
    """The script without the elements of a web page: their ends are ends of lines, or nothing."""
    script = _TERM.sub(r"\n\1: ", script)
    script = _BLOCK.sub("\n", script)
    script = _INLINE.sub("", script)
    return _CHARACTER.sub(lambda match: html.unescape(match[0]).replace("\xa0", " "), script)


def plain_latex(script: str) -> str:
    """The script without LaTeX's commands for type, and with its speakers before colons."""
    if "\\" not in script:
        return script
    script = _LATEX_SPEAKER.sub(r"\1: ", _LATEX_BLOCK.sub("", script))
    return LATEX_STYLE.sub(r"\1", script).replace("\\\\\n", "\n")


def plain_tags(script: str) -> str:
    """The script without backslashes before brackets, and with the characters of its entities."""
    script = _ESCAPED.sub(
        lambda match: f"[{match['square']}]" if match["square"] else f"<{match['angle']}>", script
    )
    script = _ENTITY.sub(lambda match: html.unescape(match[0]), script)
    return _SPECIAL.sub(_keep_role, script)


def _keep_role(match: re.Match) -> str:
    role = match[1] or match[2]
    return f"<{role}>" if role else ""


def find(script: str) -> Found | None:
    """The lines of speakers who are marked by elements; tags of Dia's that were escaped."""
    plain = plain_tags(script)
    body, left_out = remove_frame(
        _NAMED.sub(lambda match: f'<speaker name="{match["name"]}">', plain)
    )
    if body.strip() != script.strip() and _TAGGED.match(body):
        return Found((Line(None, body.strip()),), True, left_out)
    if _ZERO_FIRST.match(body) and "[S2]" not in body:
        return Found(tuple(_lines_numbered_from_zero(body)), True, left_out)
    openings = [
        (match, speaker)
        for match in _ELEMENT.finditer(body)
        if not match["close"] and (speaker := _speaker(match))
    ]
    if not openings or _ELEMENT.sub("", body[: openings[0][0].start()]).strip():
        return None
    ends = [match.start() for match, _ in openings[1:]] + [len(body)]
    lines = []
    for (match, speaker), end in zip(openings, ends, strict=True):
        words = _ELEMENT.sub(_keep_inner_element, body[match.end() : end])
        lines += [Line(speaker, text.strip()) for text in words.split("\n") if text.strip()]
    return Found(tuple(lines), True, left_out) if lines else None


def _lines_numbered_from_zero(body: str) -> Iterator[Line]:
    """The lines of a script whose speakers are [S0] and [S1]."""
    parts = re.split(r"\[S([01])\]", body)
    for number, words in zip(parts[1::2], parts[2::2], strict=True):
        yield Line(f"Speaker {number}", words.strip())


def _keep_inner_element(match: re.Match) -> str:
    """An element among the words: sounds and pauses stay for the rules of markup."""
    is_structure = match["name"].lower() in _CARRIERS or _is_name(match["name"])
    return "" if is_structure or match["close"] else match[0]


def _speaker(match: re.Match) -> str | None:
    """Who speaks from this element on; None if it marks no speaker."""
    name, rest = match["name"], (match["rest"] or "").strip()
    if name.lower().split(".")[0] == "v" and rest:
        return rest
    value = _ATTRIBUTE.search(rest)
    if value is not None and name.lower() in _CARRIERS:
        return f"Speaker {value['value']}" if value["value"].isdigit() else value["value"]
    return name if not rest and _is_name(name) else None


def _is_name(name: str) -> bool:
    if name.lower() in _HTML:
        return False
    return number_of(name) is not None or likeness(name) == Likeness.SPEAKER


FORMAT = Format(
    "tags of speakers",
    find,
    examples=(
        ("<S1> Are you there? <S2> Yes, I am.", "[S1] Are you there? [S2] Yes, I am."),
        (
            "<Person1>Are you there?</Person1>\n<Person2>Yes, I am.</Person2>",
            "[S1] Are you there?\n[S2] Yes, I am.",
        ),
        (
            "<speaker_1> Are you there? </speaker_1> <speaker_2> Yes, I am. </speaker_2>",
            "[S1] Are you there? [S2] Yes, I am.",
        ),
        ("\\[S1\\] Are you there? \\[S2\\] Yes.", "[S1] Are you there? [S2] Yes."),
        ("\\[S1] Are you there?\n\\[S2] Yes.", "[S1] Are you there?\n[S2] Yes."),
        ("&lt;S1&gt; Are you there?\n&lt;S2&gt; Yes.", "[S1] Are you there?\n[S2] Yes."),
        ("&#91;S1&#93; Hi there.\n&#91;S2&#93; Ho.", "[S1] Hi there.\n[S2] Ho."),
        (
            '<dialogue>\n<line speaker="Ann">Hi there.</line>\n<line speaker="Ben">Ho.</line>\n'
            "</dialogue>",
            "[S1] Hi there.\n[S2] Ho.",
        ),
        (
            '<speak><voice name="en-US-Jenny">Hi there.</voice> <voice name="en-US-Guy">Ho.</voice>'
            "</speak>",
            "[S1] Hi there. [S2] Ho.",
        ),
        (
            "<sp><speaker>Ann</speaker><p>Hi there.</p></sp>\n"
            "<sp><speaker>Ben</speaker><p>Ho.</p></sp>",
            "[S1] Hi there.\n[S2] Ho.",
        ),
        (
            "<host>Welcome back.</host>\n<guest>Thank you.</guest>",
            "[S1] Welcome back.\n[S2] Thank you.",
        ),
        ("<|user|>Hi there.<|assistant|>Ho.", "[S1] Hi there. [S2] Ho."),
        (
            "<|im_start|>user\nHi there.<|im_end|>\n<|im_start|>assistant\nHo.<|im_end|>",
            "[S1] Hi there.\n[S2] Ho.",
        ),
        ("<Ann>Hi there.\n<Ben>Ho.", "[S1] Hi there.\n[S2] Ho."),
        (
            "Sure! Here is the script:\n\n[S1] Hi there.\n[S2] Ho.\n\nLet me know what you think!",
            "[S1] Hi there.\n[S2] Ho.",
        ),
        ("# Scene\n\n- [S1] Hi there.\n> [S2] Ho.", "- [S1] Hi there.\n> [S2] Ho."),
        ("[S0] Hi there. [S1] Ho.", "[S1] Hi there. [S2] Ho."),
        ("```\n[S1] Hi there.\n[S2] Ho.\n```", "[S1] Hi there.\n[S2] Ho."),
    ),
    left_alone=(
        "It holds if a<b and c>d here.",
        "<p>A <b>bold</b> word.</p>",
        "Write <code>x</code> and press Enter.",
        "A &lt; B &amp; C",
        "[S1] Write <S2> here.",
    ),
)

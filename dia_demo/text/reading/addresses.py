"""Web and e-mail addresses, file names, hashtags, and names of programs with signs in them."""

from __future__ import annotations

import re

from dia_demo.text.reading.numbers import cardinal, digits
from dia_demo.text.reading.rules import Reader, Rule, any_of, rule, word

_DOMAIN = (
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?\.){1,4}"
    r"(?:com|org|net|edu|gov|mil|int|info|biz|io|ai|dev|app|co|uk|de|fr|eu|us|ca|au|nz|ie|za|ch|nl"
    r"|jp|cn|ru|br|es|pl|se|me|tv|gg|ly|xyz|blog|page|shop|store|tech|online|site|cloud|design"
    r"|news|wiki)"
)
_LETTERS_IN_ADDRESSES = "io|ai|uk|tv|us|eu|de|fr|ca|nz|ie|za|ch|nl|jp|cn|ru|br|es|pl|gg|au"
# Endings of file names: spelled, or how they are said.
_SPELLED_ENDINGS = (
    "pdf html htm css js ts tsx jsx py cpp cc hpp csv xml php sql sh rs rb md txt png svg exe dll "
    "psd srt vtt pptx ppt xls xlsx rtf iso apk dmg mp iso gz ini cfg log jl kt "
    "vb cs npy pth pt ogg "
    "webm avi mov mkv mpg aac flac epub ico tex bib toml lua yml ps ods odt"
).split()
_SPOKEN_ENDINGS = {
    "json": "Jason", "jpg": "jay peg", "jpeg": "jay peg", "gif": "gif", "zip": "zip",
    "doc": "doc", "docx": "doc X", "wav": "wave", "java": "java", "go": "go", "bat": "bat",
    "yaml": "yammel", "toml": "toml", "log": "log", "flac": "flack", "tar": "tar", "swift": "swift",
    "ogg": "ogg", "lua": "lua", "webp": "web P", "webm": "web M", "ipynb": "I python notebook",
    "safetensors": "safe tensors", "lock": "lock", "bin": "bin", "env": "env", "conf": "conf",
    "mp3": "M P three", "mp4": "M P four", "m4a": "M four A", "7z": "seven Z", "yml": "yammel",
}  # fmt: skip
_ENDINGS = any_of({*_SPELLED_ENDINGS, *_SPOKEN_ENDINGS})
_SYMBOLS = {
    ".": " dot ", "@": " at ", "-": " dash ", "_": " underscore ", "/": " slash ", "+": " plus ",
    "\\": " backslash ", "~": " tilde ",
}  # fmt: skip
_PROGRAMS = {
    "C++": "C plus plus", "c++": "C plus plus", "C#": "C sharp", "F#": "F sharp",
    "J#": "J sharp", "g++": "G plus plus", "Notepad++": "Notepad plus plus",
    ".NET": "dot net", ".Net": "dot net", "Node.js": "Node J S", "node.js": "Node J S",
    "Vue.js": "Vue J S", "Next.js": "Next J S", "Nuxt.js": "Nuxt J S", "D3.js": "D three J S",
    "Three.js": "Three J S", "React.js": "React J S", "Express.js": "Express J S",
}  # fmt: skip


def _speak(address: str, reader: Reader) -> str:
    """An address with its signs in words."""
    text = "".join(_SYMBOLS.get(sign, sign) for sign in address)
    text = re.sub(r"\d+", lambda m: f" {_number(m[0])} ", text)
    return re.sub(
        rf"(?<=dot )(?:{_LETTERS_IN_ADDRESSES})\b",
        lambda m: reader.letters(m[0]),
        " ".join(text.split()),
    )


def _number(run: str) -> str:
    return cardinal(run) if len(run) <= 2 else digits(run)


def _email(match: re.Match, reader: Reader) -> str:
    return _speak(match[0], reader)


def _url(match: re.Match, reader: Reader) -> str:
    """The host, and a path of words; what follows "?" or "#" nobody would say."""
    path = match["path"] or ""
    if not re.fullmatch(r"(?:/[A-Za-z_-]{1,30}){1,3}/?", path):
        path = ""
    host = match["host"].lower() if match["host"].isupper() else match["host"]
    return _speak(host + path.rstrip("/"), reader)


def _file_name(match: re.Match, reader: Reader) -> str:
    """report_v2.pdf: the signs in words, the ending spelled or said."""
    ending = match[2]
    spoken = _SPOKEN_ENDINGS.get(ending.lower())
    if spoken is None:
        spoken = reader.letters(ending)
    elif reader.letter_names:
        spoken = re.sub(r"\b[A-Z]\b", lambda m: reader.letters(m[0]), spoken)
    return f"{_speak(match[1], reader)} dot {spoken}"


def _path(match: re.Match, reader: Reader) -> str:
    drive, colon, rest = match[0].rpartition(":")
    return (
        f"{reader.letters(drive)} colon {_speak(rest, reader)}" if colon else _speak(rest, reader)
    )


def _program(match: re.Match, reader: Reader) -> str:
    words = _PROGRAMS[match[0]]
    if match[0].lower() == ".net" and match.string[: match.start()][-1:].isalnum():
        return f" {words}"
    return re.sub(r"\b[A-Z]\b", lambda m: reader.letters(m[0]), words)


def _hashtag(match: re.Match, _: Reader) -> str:
    """The words of a hashtag apart: MeToo, BlackLivesMatter."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z0-9])|_", " ", match[1])
    return f"hashtag {' '.join(words.split())}"


def _handle(match: re.Match, reader: Reader) -> str:
    return f"at {_speak(match[1], reader)}"


RULES: tuple[Rule, ...] = (
    rule(
        r"(?<![\w.])[A-Za-z0-9][\w.+-]{0,40}@(?:[A-Za-z0-9-]{1,40}\.){1,4}[A-Za-z]{2,10}\b", _email
    ),
    rule(
        r"\b(?:(?:https?|ftp)://(?:www\.)?(?P<host>[A-Za-z0-9][\w.-]{1,80}[A-Za-z0-9])"
        r"(?::\d{1,5})?(?P<path>/[^\s<>\"')\]]{0,200}(?<![.,!?;:]))?(?:[?#][^\s]{0,200})?)",
        _url,
        re.IGNORECASE,
    ),
    rule(
        rf"(?<![\w@.-])(?:www\.)?(?P<host>{_DOMAIN})\b(?![\w@-])(?P<path>/[^\s<>\"')\]]{{0,200}}"
        r"(?<![.,!?;:]))?(?:[?#][^\s]{0,200})?",
        _url,
    ),
    rule(rf"(?<![\w.])(?:{any_of(_PROGRAMS)})(?![\w+#])|(?<=ASP)\.NET\b", _program),
    rule(
        rf"(?<![\w.@/\\])(?=[\w./\\-]{{0,240}}[A-Za-z])([\w-]{{1,40}}"
        rf"(?:[/\\.][\w-]{{1,40}}){{0,4}})\.({_ENDINGS}|{_ENDINGS.upper()})\b(?![\w@])",
        _file_name,
    ),
    rule(r"\b[A-Z]:(?:\\[\w.-]{1,30}(?<!\.)){1,6}\\?", _path),
    rule(r"(?<![\w./])~?(?:/[a-z_][\w.-]{0,30}(?<!\.)){2,6}(?![\w/])", _path),
    rule(r"(?<!\w)#(?=[A-Z]{1,3}-?\d+\b)", word("number ")),
    rule(r"(?<!\w)#([A-Za-z]\w{0,50})", _hashtag),
    rule(r"(?<![\w.])@([A-Za-z_]\w{0,40})", _handle),
    rule(r"\b[vV]\.?[ \t]?(?=\d{1,9}\.\d)|\bv(?=\d{1,2}\b)", word("version ")),
    rule(r"#[ \t]?(?=\d)", word("number ")),
)

"""A panel test as a zip: a page and its clips, which run from the disk or any static web server.

Nothing in it says which clip is of which system; that follows from the key of the plan, which stays
with the owner. Answers stay in the listener's browser and come back as a results file (see
`panel/offline.py`).
"""

from __future__ import annotations

import base64
import json
import zipfile
from pathlib import Path

from dia_demo.errors import RunError
from dia_demo.files import write_atomic
from dia_demo.services.listening.link.guest import about
from dia_demo.services.listening.link.page import (
    DATA,
    INDEX,
    SCRIPT,
    STYLE,
    index_with_data,
    page_files,
)
from dia_demo.services.listening.panel.offline import offline_bundle, offline_clips
from dia_demo.services.listening.panel.panel import Panel

README = """A listening test.

Unpack the whole zip, then open index.html in a browser, or put the folder on any web server. The
answers stay in the browser; at the end the page saves them as a file, which goes back to whoever
sent you the test.
"""
# One for all files: those of the clips would say in which order they were made.
_TIME = (2026, 1, 1, 0, 0, 0)


def write_offline_test(panel: Panel, path: Path) -> Path:
    """Write the test to a zip, completely or not at all. Raises RunError if that fails."""
    data = offline_bundle(panel) | {"about": about(panel) | {"closed": False}}
    start = f"globalThis.diaListening = {{ data: {json.dumps(data)}, clips: {{}} }};\n"
    page = page_files()
    files = {INDEX: index_with_data(), DATA: start.encode(), "README.txt": README.encode()}
    files |= {name: page[name] for name in (SCRIPT, STYLE)}
    try:
        with write_atomic(path) as part, zipfile.ZipFile(part, "w") as archive:
            for name, content in files.items():
                _add(archive, name, content)
            for clip in offline_clips(panel):
                _add(archive, f"clips/{clip.stem}.js", _clip_script(clip))
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"{path.name} could not be written: {reason}. Free some space.") from error
    return path


def _clip_script(clip: Path) -> bytes:
    """A clip as a script, the only kind of file that a page from the disk can load."""
    encoded = base64.b64encode(clip.read_bytes()).decode("ascii")
    return f"diaListening.clips[{json.dumps(clip.name)}] = {json.dumps(encoded)};\n".encode()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    member = zipfile.ZipInfo(name, _TIME)
    member.external_attr = 0o644 << 16
    archive.writestr(member, content, zipfile.ZIP_DEFLATED)

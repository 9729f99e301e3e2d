"""The test in a folder: what is in its zip, and what is not."""

from __future__ import annotations

import base64
import re
import zipfile

import pytest

from dia_demo.services.listening.link.offline import write_offline_test
from dia_demo.services.listening.link.qr import qr_svg
from tests.services.listening.link.panels import SYSTEMS, data_of, make_panel, mirrored

CLIP = re.compile(rb'clips\["([0-9a-f]{24}\.wav)"\] = "([A-Za-z0-9+/=]+)"')


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    return make_panel(tmp_path_factory.mktemp("panels"), consent="A study.")[1]


def unpacked(panel, path) -> dict[str, bytes]:
    with zipfile.ZipFile(write_offline_test(panel, path)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_zip_has_the_page_its_sessions_and_their_clips(panel, tmp_path):
    files = unpacked(panel, tmp_path / "test.zip")
    data = data_of(files["data.js"])
    assert data["about"] | {"title": "Which voice?", "trials": 4} == data["about"]
    named = {
        clip for one in data["sessions"] for each in one["presentations"] for clip in each["clips"]
    }
    clips = dict(CLIP.search(files[name]).groups() for name in files if name.startswith("clips/"))
    assert {name.decode() for name in clips} == named
    for name, content in clips.items():
        original = panel.folder / "clips" / name.decode()
        assert base64.b64decode(content) == original.read_bytes()
    index = files["index.html"].decode()
    assert index.index("data.js") < index.index("listen.js"), "the page finds its data"
    assert set(re.findall(r'(?:src|href)="([^"]+)"', index)) <= files.keys() | {"data:,"}


def test_no_byte_of_a_zip_depends_on_the_sides(panel, tmp_path):
    """Beside the audio it is that of the mirror image; and it has no name and no key."""
    files = unpacked(panel, tmp_path / "one.zip")
    others = unpacked(mirrored(panel, tmp_path / "mirror"), tmp_path / "other.zip")
    assert list(files) == list(others)
    differing = {name for name in files if files[name] != others[name]}
    assert differing and all(name.startswith("clips/") for name in differing)
    assert {len(files[name]) for name in differing} == {len(others[name]) for name in differing}
    text = b"".join(files.values()).decode()
    for secret in (*SYSTEMS, panel.plan.key, panel.plan.invitation.token):
        assert secret not in text
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        members = archive.infolist()
    assert len({member.date_time for member in members}) == 1, "when a clip was made says nothing"
    assert not any(member.extra or member.comment for member in members)


def test_a_link_is_a_code_that_phones_read():
    assert qr_svg("") == ""
    code = qr_svg("https://example.org/listen/" + "0" * 56)
    assert code.startswith("<svg") and "<title>https://example.org/listen/0" in code
    assert qr_svg("https://example.org/<b>&").count("<b>") == 0

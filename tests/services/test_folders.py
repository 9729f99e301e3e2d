"""What an app leaves on the disk: nothing temporary, nothing half written, one app at a time."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dia_demo.errors import InputError
from dia_demo.files import ROOT
from dia_demo.services.folders import app_folders
from dia_demo.services.scratch import DAY_SECONDS, IN_USE_SECONDS, Scratch, work_folder
from dia_demo.services.settings import Settings, default_takes
from tests.helpers.page.browser import running_app

POSIX = pytest.mark.skipif(not hasattr(os, "getuid"), reason="each user has a temporary folder")
HOLD = """
import sys
from pathlib import Path
from dia_demo.services.folders import app_folders
from dia_demo.services.settings import Settings
home = Path(sys.argv[1])
with app_folders(Settings(takes_folder=home / "takes", kept_folder=home / "kept")) as settings:
    (settings.takes_folder / "gradio").mkdir()
    (settings.takes_folder / "gradio" / "upload.part").write_bytes(b"x")
    print(settings.takes_folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other_app(tmp_path):
    """Another app that holds the folders below `tmp_path`; and its temporary folder."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    app = subprocess.Popen(command, cwd=ROOT, **pipes)
    yield app, Path(app.stdout.readline().strip())
    app.kill()
    app.communicate()


def settings_in(home: Path, **changes) -> Settings:
    return Settings(**{"takes_folder": home / "takes", "kept_folder": home / "kept"} | changes)


def test_an_app_removes_its_own_temporary_folder_when_it_ends(tmp_path):
    with app_folders(settings_in(tmp_path)) as settings:
        assert settings.takes_folder.parent == tmp_path / "takes"
        (settings.takes_folder / "upload").write_bytes(b"x")
    assert [path.name for path in (tmp_path / "takes").iterdir()] == [".dia-demo.lock"]


def test_what_a_killed_app_left_goes_at_the_next_start(tmp_path, other_app):
    app, folder = other_app
    app.kill()
    app.wait()
    assert (folder / "gradio" / "upload.part").exists()
    person = tmp_path / "kept" / ("a" * 40)
    importing = person / "comparisons" / ".import-x" / "clips"
    unplanned = person / "comparisons" / ("b" * 24)
    voted = person / "comparisons" / ("c" * 24)
    for one in (importing, unplanned, voted, person / "takes"):
        one.mkdir(parents=True)
    for one in (importing / "1.wav", unplanned / "voice.wav", voted / "votes.csv"):
        one.write_bytes(b"x")
    take, part = (person / "takes" / f"{'1' * 16}-{'d' * 12}.{end}" for end in ("wav", "part"))
    take.write_bytes(b"x")
    part.write_bytes(b"x")
    (voted / ".dia-1-2.part").write_bytes(b"x")
    with app_folders(settings_in(tmp_path)):
        assert not folder.exists()
        left = {path for path in person.rglob("*") if path.is_file()}
        assert left == {take, voted / "votes.csv"}
        assert not importing.parent.exists() and not unplanned.exists()


def test_a_second_app_on_the_same_kept_folder_says_so(tmp_path, other_app):
    with pytest.raises(InputError, match="in use by another running app.*DIA_KEPT"):
        with app_folders(settings_in(tmp_path, takes_folder=tmp_path / "more")):
            pass
    (tmp_path / "shared").mkdir()
    changes = {"kept_folder": tmp_path / "mine", "shared_comparison": tmp_path / "shared"}
    with app_folders(settings_in(tmp_path, **changes)):
        changes["kept_folder"] = tmp_path / "yours"
        with pytest.raises(InputError, match="in use by another running app.*DIA_COMPARE"):
            with app_folders(settings_in(tmp_path, **changes)):
                pass


def test_two_apps_may_share_the_folder_of_takes(tmp_path, other_app):
    _, folder = other_app
    with app_folders(settings_in(tmp_path, kept_folder=tmp_path / "mine")) as settings:
        assert folder.exists() and settings.takes_folder != folder


def test_a_folder_of_takes_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "takes").write_text("not a folder")
    with pytest.raises(InputError, match="DIA_TAKES"):
        with app_folders(settings_in(tmp_path)):
            pass


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """An empty folder as the system's folder for temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def become(monkeypatch, user: int) -> None:
    """Every file belongs to another user from here on."""
    monkeypatch.setattr(os, "getuid", lambda: user)


@POSIX
def test_every_user_has_a_folder_for_takes(temporary, tmp_path, monkeypatch):
    """The first user's, of an earlier version, stays; once it ended the app of any other."""
    (temporary / "dia-demo-takes").mkdir()
    assert default_takes() == temporary / "dia-demo-takes"
    become(monkeypatch, 12345)
    assert default_takes() == temporary / "dia-demo-takes-12345"


@POSIX
def test_the_default_folder_for_takes_is_private(temporary, tmp_path):
    with app_folders(Settings(kept_folder=tmp_path / "kept")) as settings:
        home = settings.takes_folder.parent
        assert home == temporary / f"dia-demo-takes-{os.getuid()}"
        assert home.stat().st_mode & 0o777 == 0o700


@POSIX
def test_what_an_earlier_version_left_is_found(temporary, tmp_path):
    left = temporary / "dia-demo-takes" / "dia-run-1" / "take.wav"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"x")
    with app_folders(Settings(kept_folder=tmp_path / "kept")) as settings:
        assert settings.takes_folder.parent == temporary / "dia-demo-takes"
        assert not left.exists(), "its app has ended"


@POSIX
@pytest.mark.parametrize("is_link", [False, True], ids=["folder", "link"])
def test_a_default_folder_of_another_user_is_refused(temporary, tmp_path, monkeypatch, is_link):
    become(monkeypatch, 12345)
    if is_link:
        default_takes().symlink_to(tmp_path)
    else:
        default_takes().mkdir()
    with pytest.raises(InputError, match="belongs to another user.*DIA_TAKES"):
        with app_folders(Settings(kept_folder=tmp_path / "kept")):
            pass


@POSIX
def test_a_folder_that_was_chosen_may_belong_to_anybody(tmp_path, monkeypatch):
    """Such as the volume of a container."""
    (tmp_path / "takes").mkdir(mode=0o755)
    become(monkeypatch, 12345)
    with app_folders(settings_in(tmp_path)):
        assert (tmp_path / "takes").stat().st_mode & 0o777 == 0o755


def test_nothing_but_our_own_folder_is_served(tmp_path):
    from dia_demo.server.application import mount_options

    (served,) = mount_options(Settings(takes_folder=Path("/")))["allowed_paths"]
    assert Path(served).parent == Path("/") and not Path("/etc").is_relative_to(served)


# The bound on temporary files


def file_of(folder: Path, name: str, size: int, age: float) -> Path:
    path = folder / name / "file"
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(size))
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_trimming_removes_the_oldest_temporary_files(tmp_path):
    files = [file_of(tmp_path, str(age), 100, age) for age in (900, 600, 300, 10, 5)]
    Scratch(tmp_path, 250).trim()
    assert [path.exists() for path in files] == [False, False, False, True, True]
    Scratch(tmp_path, 50).trim()
    assert files[3].exists() and files[4].exists(), "somebody is about to use them"


def test_what_is_older_than_a_day_goes_in_any_case(tmp_path):
    old = file_of(tmp_path, "old", 1, DAY_SECONDS + 60)
    new = file_of(tmp_path, "new", 1, IN_USE_SECONDS + 60)
    Scratch(tmp_path, 10**9).trim()
    assert not old.exists() and new.exists()


def test_files_of_work_that_goes_on_stay_however_old_they_are(tmp_path):
    with work_folder(tmp_path, "parts-") as folder:
        old = file_of(folder, "old", 100, DAY_SECONDS + 60)
        other = file_of(tmp_path, "other", 100, DAY_SECONDS + 60)
        Scratch(tmp_path, 50).trim()
        assert old.exists() and not other.exists()
    assert not folder.exists()


def test_room_is_reserved_before_anything_is_written(tmp_path):
    scratch = Scratch(tmp_path, 1000)
    used = file_of(tmp_path, "used", 300, 10)
    scratch.reserve(600)
    with pytest.raises(InputError, match="no room for.*DIA_TEMP_GB"):
        scratch.reserve(200)
    scratch.release(600)
    scratch.reserve(200)
    scratch.release(200)
    os.utime(used, (0, 0))
    scratch.reserve(1000)
    assert not used.exists()


@pytest.mark.slow
def test_an_app_ended_by_sigterm_leaves_no_temporary_files(tmp_path):
    """An upload, one that breaks off, and a take handed out."""
    with running_app(tmp_path) as url:
        address = urlsplit(url)
        head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.wav"\r\n\r\n'
        for sent, size in ((5000, 5000), (5000, 9000)):
            body = head + bytes(sent) + b"\r\n--x--\r\n" * (sent == size)
            length = len(head) + size + len(b"\r\n--x--\r\n")
            with socket.create_connection((address.hostname, address.port)) as connection:
                connection.sendall(
                    f"POST /gradio_api/upload HTTP/1.1\r\nHost: {address.netloc}\r\n"
                    "Content-Type: multipart/form-data; boundary=x\r\n"
                    f"Content-Length: {length}\r\nConnection: close\r\n\r\n".encode()
                    + body
                )
                if sent == size:
                    assert b" 200 " in connection.recv(100)
        take = api_take(url, "[S1] Hello. [S2]")
        (run,) = (tmp_path / "takes").glob("dia-run-*")
        assert Path(take["path"]).is_relative_to(run)
        assert len([path for path in run.rglob("*") if path.is_file()]) >= 3
    assert [path.name for path in (tmp_path / "takes").iterdir()] == [".dia-demo.lock"]
    assert "Traceback" not in (tmp_path / "app.log").read_text()


def api_take(url: str, script: str) -> dict:
    """A take by the endpoint for programs: its file as gradio names it."""
    call = f"{url}/gradio_api/call/generate"
    values = [script, 0.8, 1.0, 60, 0.95, 45, 1, 1.0, None, "", "nano", "auto", False]
    data = json.dumps({"data": values}).encode()
    asked = urllib.request.Request(call, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=180) as answer:
        event = json.load(answer)["event_id"]
    with urllib.request.urlopen(f"{call}/{event}", timeout=300) as answer:
        *_, last = (line for line in answer.read().decode().splitlines() if "data: " in line)
    return json.loads(last.removeprefix("data: "))[0]

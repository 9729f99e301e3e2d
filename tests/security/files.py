"""Attacks by files: what is uploaded, kept, left behind, or lies where it should not be read."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import soundfile

from dia_demo import audio
from dia_demo.config import RuntimeConfig
from dia_demo.files import ROOT
from dia_demo.services.earlier.history import History
from dia_demo.services.listening import archive
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.people import folder_of, new_key
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from tests.security.client import HOST, App, attack, bytes_below

SECRET = "the owner's own"


def leave_behind(home: Path) -> None:
    """What a `kill -9` leaves while a zip opens, and a private file in the folder of takes."""
    half = home / "kept" / ("a" * 40) / "comparisons" / ".import-left"
    half.mkdir(parents=True)
    (half / "plan.json").write_bytes(b"0" * 100_000)
    (home / "takes").mkdir()
    (home / "takes" / "private.txt").write_text(SECRET)


def make_comparison(folder: Path) -> Path:
    """Two pairs of the embedded voice, finished, nobody has voted on."""
    synthesis = Synthesis(Settings(RuntimeConfig(threads=1)))
    params = replace(synthesis.models["nano"].config.defaults, max_tokens=120)
    cold = Setting(params, RuntimeConfig())
    sides = [cold, cold.change({"temperature": 0.5})]
    plan = make_plan("preference", sides, ("[S1] Hello there. [S2] Yes.",), (1, 2))
    comparison = Comparison.create(folder, plan, synthesis)
    for _ in comparison.run(synthesis, threading.Event()):
        pass
    return folder


@attack(
    "3 zips with 60 MB of zeros that no plan names",
    expected="nothing is kept that cannot be freed",
)
def unneeded_zip_files(app: App) -> tuple[bool, str]:
    before, key = bytes_below(app.folder / "kept"), new_key()
    archive.export_zip(app.folder / "shared", app.folder / "good.zip")
    data = io.BytesIO((app.folder / "good.zip").read_bytes())
    with zipfile.ZipFile(data, "a", zipfile.ZIP_DEFLATED) as hostile:
        hostile.writestr("voice.flac", bytes(60_000_000))
    for number in range(3):
        _, path = app.upload(f"{number}.zip", data.getvalue())
        app.press("load", [key, {"path": path, "meta": {"_type": "gradio.FileData"}}], f"z{number}")
        for update in app.updates(f"z{number}"):
            if update.get("msg") == "process_completed":
                break
    kept = (bytes_below(app.folder / "kept") - before) / 1e6
    return kept < 30, f"{kept:.1f} MB kept of {len(data.getvalue()) * 3 / 1e6:.1f} MB sent"


@attack("addresses, paths and data as the file of every event", expected="refused, nothing kept")
def files_from_elsewhere(app: App) -> tuple[bool, str]:
    mark = {"meta": {"_type": "gradio.FileData"}}
    with listen_for_visits() as (address, visits):
        sent = [mark | {"path": one} for one in (address, "/etc/passwd", "data:audio/wav;base64,")]
        sent += [{"path": address}, [mark | {"path": address, "is_stream": True}]]
        before, silent = bytes_below(app.folder / "gradio"), 0
        for event in app.config["dependencies"]:
            for file in sent:
                body = {"fn_index": event["id"], "data": [file] * len(event["inputs"])}
                if event["inputs"] and event["backend_fn"]:
                    _, said = app.post("/gradio_api/run/predict", body | {"session_hash": "f"})
                    silent += b"uploaded to this app" not in said
        for route in ("file=", "file/", "proxy="):
            silent += app.get(f"/gradio_api/{route}{address}")[0] != 403
        ended, said = app.wait(app.call("[S1] Hi.", *[None] * 7, sent[0]))
        silent += (ended, "uploaded" in str(said)) != ("error", True)
        kept = bytes_below(app.folder / "gradio") - before
    held = not (silent or visits or kept)
    return held, f"{silent} not refused, {len(visits)} fetched, {kept:,} bytes kept"


@attack("a data: address of 200 MB in a call", expected="413 in a sentence, no memory, no file")
def large_data_address(app: App) -> tuple[bool, str]:
    before, memory = bytes_below(app.folder), app.memory_bytes()
    body = b'{"data": ["data:audio/wav;base64,' + b"A" * 200_000_000 + b'"]}'
    status, said = app.post("/gradio_api/call/generate", body)
    grown = (app.memory_bytes() - memory) / 1e6
    kept = (bytes_below(app.folder) - before) / 1e6
    held = status == 413 and b"/gradio_api/upload" in said and max(grown, kept) < 20
    return held, f"status {status}, {grown:+.0f} MB of memory, {kept:.0f} MB kept"


@contextlib.contextmanager
def listen_for_visits() -> Iterator[tuple[str, list]]:
    """The address of a server of our own, and the visits that it had."""
    visits: list = []
    with socket.create_server((HOST, 0)) as server:

        def note() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, visitor = server.accept()
                    visits.append(visitor)
                    connection.close()

        threading.Thread(target=note, daemon=True).start()
        yield f"http://{HOST}:{server.getsockname()[1]}/voice.wav", visits


@attack("an earlier take is asked for", expected="its address, not all of it as text")
def earlier_take_as_text(app: App) -> tuple[bool, str]:
    key = new_key()
    app.press_generate("[S1] " + "Hello there, my friend. " * 12, "keeper", key)
    _, body = app.serve("earlier", {"do": "list", "key": key})
    takes = json.loads(body)["takes"]
    if not takes:
        return False, "the take was not kept"
    _, body = app.serve("earlier", {"do": "hear", "key": key, "id": takes[0]["id"]})
    return len(body) < 2000, f"{len(body):,} bytes"


@attack("one visitor of the shared comparison reveals it", expected="the other's test goes on")
def reveal_of_shared_comparison(app: App) -> tuple[bool, str]:
    plan = json.loads((app.folder / "shared" / "plan.json").read_text())
    ann, ben = ({"key": new_key(), "id": plan["id"]} for _ in "ab")
    app.serve("ask", {"do": "look"} | ann)
    app.serve("ask", {"do": "reveal"} | ben)
    _, body = app.serve("ask", {"do": "look"} | ann)
    state = json.loads(body)
    held = state.get("open") is False and state.get("trial") is not None
    return held, "it goes on" if held else f"open: {state.get('open')}"


@attack("a private file in the folder that DIA_TAKES names", expected="it is not served")
def private_file_among_takes(app: App) -> tuple[bool, str]:
    status, body = app.get(f"/gradio_api/file={app.folder / 'takes' / 'private.txt'}")
    return SECRET.encode() not in body, f"status {status}"


@attack("a second app on the same kept folder", expected="it says so and ends with exit code 2")
def second_app_on_folder(app: App) -> tuple[bool, str]:
    env = app.env | {"GRADIO_SERVER_PORT": "0", "DIA_TAKES": str(app.folder / "other")}
    command = [sys.executable, "app.py"]
    try:
        out = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        return False, "it runs"
    lines = out.stderr.strip().splitlines()
    return (out.returncode, len(lines)) == (2, 1), f"exit code {out.returncode}"


@attack("what a killed app left of a zip half opened", expected="it is gone after the start")
def interrupted_import(app: App) -> tuple[bool, str]:
    left = list((app.folder / "kept").glob("*/comparisons/.import-*"))
    return not left, f"{len(left)} left"


@attack("what is no question, to each of the page's functions", expected="no status 500")
def malformed_questions(app: App) -> tuple[bool, str]:
    found = {app.serve(name, one)[0] for name in ("hear", "ask", "earlier") for one in (3, [], "x")}
    return found == {200}, f"statuses {sorted(found)}"


@attack("a press of Repair without its event's data", expected="no traceback")
def repair_without_data(app: App) -> tuple[bool, str]:
    before = app.log.read_text().count("Traceback")
    status, _ = app.run("repair", "[S1] Hello.", "nano", 300, None, "", False)
    traces = app.log.read_text().count("Traceback") - before
    return traces == 0, f"status {status}, {traces} tracebacks"


@attack("an upload and a call from another website", expected="403")
def cross_site_requests(app: App) -> tuple[bool, str]:
    found = {
        app.upload("a.wav", b"RIFF", Origin=one)[0] for one in ("https://evil.example", "null")
    }
    other = {"Origin": f"http://127.0.0.1:{app.port + 1}"}
    body = {"data": ["[S1] Hi.", *[None] * 12]}
    found.add(app.post("/gradio_api/call/generate", body, **other)[0])
    own, _ = app.upload("a.wav", b"RIFF", Origin=f"http://127.0.0.1:{app.port}")
    return found == {403} and own == 200, f"statuses {sorted(found)}, its own {own}"


@attack("uploads, broken-off uploads and takes, then SIGTERM", expected="no temporary file is left")
def temporary_files(app: App) -> tuple[bool, str]:
    app.upload("large.wav", bytes(5_000_000))
    head = b"--e\r\nContent-Disposition: form-data; name=files; filename=a.wav\r\n\r\n" + bytes(
        10**6
    )
    with contextlib.suppress(OSError), app.connection() as connection:
        connection.putrequest("POST", "/gradio_api/upload")
        connection.putheader("Content-Type", "multipart/form-data; boundary=e")
        connection.putheader("Content-Length", str(10**7))
        connection.endheaders(head)
        time.sleep(0.5)
    app.call("[S1] " + "Hello there, my friend. " * 20)
    app.end()
    # Beside the owner's own file.
    left = bytes_below(app.folder / "takes") + bytes_below(app.folder / "gradio") - len(SECRET)
    return left < 10_000, f"{left / 1e6:.1f} MB left"


# -- without the page --------------------------------------------------------------------------


@attack("the clock is set 3 hours back with 30 takes kept", expected="the new take is the latest")
def clock_set_back(home: Path) -> tuple[bool, str]:
    history, key = History(home / "kept"), new_key()
    folder = folder_of(home / "kept", key) / "takes"
    folder.mkdir(parents=True)
    settings = {"script": "x", "settings": {}, "figures": {}}
    later = int((datetime.now(UTC).timestamp() + 3 * 3600) * 1e6)
    for number in range(30):
        wave = np.full(100 + number, 0.1, np.float32)
        name = f"{later + number:013d}-{number:012x}.wav"
        audio.write_audio(folder / name, wave, 16000, settings)
    new = SimpleNamespace(in_file=np.zeros(999, np.float32))
    new.save = lambda path: audio.write_audio(path, new.in_file, 16000, settings)
    identity = history.add(key, new)
    first = history.list(key)[0].id
    return first == identity, "kept" if first == identity else "gone"


def said_by(*arguments: str, env: dict | None = None, **options) -> tuple[int, list[bytes]]:
    """Exit code and lines on stderr of a command."""
    out = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | (env or {}),
        stderr=subprocess.PIPE,
        timeout=120,
        **({"stdout": subprocess.DEVNULL} | options),
    )
    return out.returncode, out.stderr.strip().splitlines()


def judge_answers(codes: set[int], *answers: tuple[int, list[bytes]]) -> tuple[bool, str]:
    """Held where each is one line, or none, with one of these exit codes."""
    held = all(code in codes and len(lines) <= 1 for code, lines in answers)
    return held, "; ".join(f"exit code {code}, {len(lines)} lines" for code, lines in answers)


@attack("voice codes whose header claims gigabytes", expected="exit code 2, one line")
def lying_voice_codes(home: Path) -> tuple[bool, str]:
    home.mkdir()
    file = io.BytesIO()
    np.save(file, np.zeros((10, 4), np.int16))
    claim = file.getvalue().replace(b"(10, 4), }         ", b"(999999999, 999), }")
    (home / "voice.npy").write_bytes(claim)
    say = ("-m", "dia_demo", "say", "[S1] Hi.", "-o", str(home / "a.wav"))
    return judge_answers({2}, said_by(*say, "--voice-codes", str(home / "voice.npy")))


@attack("a WAV whose comment is nested 50,000 deep", expected="it has no settings")
def nested_wav_comment(home: Path) -> tuple[bool, str]:
    home.mkdir()
    note = b'{"a":' * 50_000
    info = b"INFOICMT" + struct.pack("<I", len(note)) + note
    sound = io.BytesIO()
    soundfile.write(sound, np.zeros(100), 16000, format="WAV", subtype="PCM_16")
    body = b"WAVELIST" + struct.pack("<I", len(info)) + info + sound.getvalue()[12:]
    (home / "a.wav").write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)
    try:
        return audio.read_metadata(home / "a.wav") is None, "none"
    except RecursionError:
        return False, "RecursionError"


@attack("a name of 300 letters; a reader that is gone; DIA_QUEUE=x", expected="one line each")
def awkward_arguments(home: Path) -> tuple[bool, str]:
    home.mkdir()
    long = said_by("-m", "dia_demo", "say", "[S1] Hi.", "-o", str(home / ("a" * 296 + ".wav")))
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        gone = said_by("-m", "dia_demo", "doctor", stdout=pipe)
    wrong = said_by("app.py", env={"DIA_QUEUE": "x", "DIA_KEPT": str(home / "kept")})
    return judge_answers({1, 2}, long, gone, wrong)


QUICK = (
    interrupted_import,
    unneeded_zip_files,
    files_from_elsewhere,
    large_data_address,
    earlier_take_as_text,
    reveal_of_shared_comparison,
    private_file_among_takes,
    second_app_on_folder,
    malformed_questions,
    repair_without_data,
    cross_site_requests,
)
ALONE = (clock_set_back, lying_voice_codes, nested_wav_comment, awkward_arguments)

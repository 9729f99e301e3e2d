"""One file from the hub: continued after a cut, checked, and never fetched twice."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from huggingface_hub import constants
from huggingface_hub.utils import close_session

from dia_demo.checkpoint_files import SAFETENSORS
from dia_demo.errors import InputError
from dia_demo.hub import transfer
from dia_demo.hub.cache import cached_file
from dia_demo.hub.fetch import fetch_file
from dia_demo.task import Task, result_of
from tests.helpers.stand_ins.stand_in_hub import CONTENT, NAME, point_at


def fetch(file: str = SAFETENSORS) -> Path:
    return result_of(fetch_file(NAME, file, 0.0, 1.0))


def refusal(file: str = SAFETENSORS) -> str:
    with pytest.raises(InputError) as caught:
        fetch(file)
    return str(caught.value)


def part(server) -> Path | None:
    """What is kept of a file that did not arrive whole."""
    return next(Path(constants.HF_HUB_CACHE).rglob("*.incomplete"), None)


def half_of(fetching) -> None:
    """Follow a fetch until all that a server with `hold` sends has arrived."""
    next(fraction for fraction in fetching if fraction >= 0.5)


def stop_half_way(server) -> None:
    """Close the generator of a fetch after half of the file, and wait for its thread."""
    server.hold = threading.Event()
    fetching = fetch_file(NAME, SAFETENSORS, 0.0, 1.0)
    half_of(fetching)
    fetching.close()
    server.hold.set()
    server.hold = None
    until(lambda: not fetching_threads())


def fetching_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("fetch ")]


def until(condition) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


@pytest.mark.parametrize("cut", [0, 1, 4096, 123_457, len(CONTENT) - 76, len(CONTENT) - 1])
def test_a_cut_connection_is_continued_at_the_byte_where_it_was_cut(server, cut):
    server.cuts = {SAFETENSORS: [cut]}
    assert fetch().read_bytes() == CONTENT
    assert server.starts(SAFETENSORS) == [0, cut]


def test_every_new_byte_renews_the_patience(server):
    """A bad line cuts often: it is no reason to give up as long as something arrives."""
    server.cuts = {SAFETENSORS: [10_000] * (2 * transfer.TRIES)}
    assert fetch().read_bytes() == CONTENT
    assert server.starts(SAFETENSORS) == [10_000 * number for number in range(11)]


def test_a_connection_that_stays_cut_keeps_what_arrived(server):
    server.cuts = {SAFETENSORS: [50_000, *[0] * 20]}
    message = refusal()
    assert "connection" in message and "continues" in message and "try again" in message.lower()
    assert part(server).stat().st_size == 50_000
    server.cuts, server.ranges = {}, []
    assert fetch().read_bytes() == CONTENT
    assert server.starts(SAFETENSORS) == [50_000] and part(server) is None


def test_a_fetch_that_was_closed_stops_and_is_continued(server):
    stop_half_way(server)
    arrived = part(server).stat().st_size
    assert arrived >= len(CONTENT) // 2 and cached_file(NAME, SAFETENSORS) is None
    server.ranges.clear()
    assert fetch().read_bytes() == CONTENT
    assert server.starts(SAFETENSORS) == ([] if arrived == len(CONTENT) else [arrived])


def test_a_server_that_sends_everything_again_is_no_harm(server):
    """It ignores the range: the part is replaced."""
    server.cuts = {SAFETENSORS: [70_000, *[0] * 20]}
    refusal()
    server.cuts, server.ignores_ranges = {}, True
    assert fetch().read_bytes() == CONTENT


def test_two_at_once_share_one_transfer(server):
    """Two programs, or a take beside a download: the second waits and finds the file."""
    server.hold = threading.Event()
    paths = []
    threads = [threading.Thread(target=lambda: paths.append(fetch())) for _ in range(2)]
    for thread in threads:
        thread.start()
    until(lambda: part(server) is not None and part(server).stat().st_size > 0)
    server.hold.set()
    for thread in threads:
        thread.join(30)
    assert len(paths) == 2 and paths[0] == paths[1]
    assert server.starts(SAFETENSORS) == [0]


def test_who_waits_sees_the_progress_and_takes_over(server):
    server.hold = threading.Event()
    first, second = (fetch_file(NAME, SAFETENSORS, 0.0, 1.0) for _ in range(2))
    for fetching in (first, second):
        half_of(fetching)
    first.close()
    server.hold.set()
    assert result_of(second).read_bytes() == CONTENT
    starts = server.starts(SAFETENSORS)
    assert starts[0] == 0 and all(start >= len(CONTENT) // 2 for start in starts[1:])


@pytest.mark.parametrize("file", [SAFETENSORS, "config.json"])
def test_a_wrong_checksum_is_refused(server, file):
    """huggingface_hub itself compares sizes alone."""
    content = server.files[file]
    server.damaged = {file: bytes([content[0] ^ 1]) + content[1:]}
    message = refusal(file)
    assert (
        f"{file} of {NAME} arrived corrupted and was removed" in message and "try again" in message
    )
    assert cached_file(NAME, file) is None and part(server) is None
    server.damaged = {}
    assert fetch(file).read_bytes() == content


def test_a_damaged_part_is_not_completed(server):
    """Whatever changed it on the disk, the whole has the wrong checksum."""
    server.cuts = {SAFETENSORS: [70_000, *[0] * 20]}
    refusal()
    with open(part(server), "r+b") as file:
        file.write(b"\xff\xff\xff")
    server.cuts = {}
    assert "corrupted" in refusal()
    assert fetch().read_bytes() == CONTENT


class Waits(threading.Event):
    """A cancel flag that notes how long somebody would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        return False


def test_too_many_requests_are_repeated_when_the_hub_says(server):
    waits = Waits()
    remote = transfer.locate(NAME, SAFETENSORS, "main", waits)
    server.status, server.times, server.retry_after = {SAFETENSORS: (429, "")}, {SAFETENSORS: 2}, 7
    transfer.transfer(remote, waits)
    assert waits.seconds == [7, 7] and remote.blob.read_bytes() == CONTENT


def test_the_question_for_the_size_is_repeated_as_well(server):
    waits = Waits()
    server.status, server.times, server.retry_after = {SAFETENSORS: (429, "")}, {SAFETENSORS: 1}, 9
    assert transfer.locate(NAME, SAFETENSORS, "main", waits).size == len(CONTENT)
    assert waits.seconds == [9]


def test_a_long_wait_is_left_to_the_person(server):
    server.status, server.retry_after = {SAFETENSORS: (429, "")}, 3600
    message = refusal()
    assert "429" in message and "in 3,600 s" in message and "HF_TOKEN" in message


def test_a_failure_of_the_hub_is_told_apart_from_a_missing_network(server):
    server.status = {SAFETENSORS: (503, "")}
    message = refusal()
    assert "503" in message and "later" in message and "internet" not in message


def test_a_disk_that_is_too_small_is_refused_before_the_transfer(server, monkeypatch):
    monkeypatch.setattr(transfer, "free_disk", lambda: transfer.DISK_RESERVE + 1000)
    message = refusal()
    assert "disk space" in message and "HF_HOME" in message
    assert server.starts(SAFETENSORS) == []


def test_a_disk_that_fills_up_keeps_what_arrived(server, monkeypatch):
    """The message names the cause, and the next try continues."""
    write, full = transfer._Transfer._write, OSError(28, "No space left on device")

    def limited(self, piece):
        if self._position + len(piece) > 100_000:
            raise full
        write(self, piece)

    monkeypatch.setattr(transfer._Transfer, "_write", limited)
    message = refusal()
    assert "disk is full" in message and "kept" in message
    monkeypatch.setattr(transfer._Transfer, "_write", write)
    arrived = part(server).stat().st_size
    assert 0 < arrived <= 100_000
    assert fetch().read_bytes() == CONTENT and server.starts(SAFETENSORS)[-1] == arrived


def test_the_token_goes_to_the_hub_alone(server, monkeypatch):
    """Large files are redirected to a storage, which must not get it."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    server.storage = server.url.replace("127.0.0.1", "localhost")
    assert fetch().read_bytes() == CONTENT
    stored = {token for path, token in server.tokens if path.startswith("/storage")}
    asked = {token for path, token in server.tokens if path.startswith(f"/{NAME}")}
    assert stored == {None} and asked == {"Bearer hf_secret"}


@pytest.fixture
def proxied(server, monkeypatch):
    """The stand-in is the proxy to a hub that does not exist."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, server.url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    close_session()
    yield server
    close_session()


def test_a_proxy_is_used(proxied, monkeypatch):
    point_at(monkeypatch, "http://hub.invalid")
    assert fetch().read_bytes() == CONTENT


def test_a_proxy_that_refuses_is_named(proxied, monkeypatch):
    point_at(monkeypatch, "https://hub.invalid")
    message = refusal()
    assert "proxy" in message and "HTTPS_PROXY" in message


def test_offline_nothing_is_asked(server, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE" in refusal() and server.asked == []


def test_result_of_a_task_is_the_path(server):
    task = Task(fetch_file(NAME, SAFETENSORS, 0.0, 1.0))
    fractions = list(task)
    assert fractions[-1] == 1 and task.result.read_bytes() == CONTENT


def test_without_links_a_file_is_stored_once(server, monkeypatch):
    """Windows may allow no links: gigabytes are not kept twice."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_SYMLINKS", True)
    path = fetch()
    assert path.read_bytes() == CONTENT and not path.is_symlink()
    copies = [file for file in Path(constants.HF_HUB_CACHE).rglob("*") if file.is_file()]
    assert [file.stat().st_size for file in copies].count(len(CONTENT)) == 1

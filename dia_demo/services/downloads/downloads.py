"""Downloads of hub models in the background: one for each model, shared by all who asked for it.

A download goes on without its page, and ends with the program or when everybody who asked for it
has cancelled. What arrived is kept, and the next download continues it. A take that fetches its
model by itself (endpoints, command line) waits for the same files: see hub/transfer.py.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum

from dia_demo.engine.family import ModelInfo
from dia_demo.errors import DiaDemoError, InputError
from dia_demo.hub.transfer import check_disk, free_disk
from dia_demo.machine.background import Background, stop_all
from dia_demo.services.downloads.plan import (
    DownloadPlan,
    bytes_on_disk,
    fetch_all,
    is_here,
    plan_download,
    remove_download,
)
from dia_demo.services.wording import about_duration
from dia_demo.task import Task

# Who asked for the model that the app was started with.
PROGRAM = "program"
# The speed is that of this many latest seconds.
SPEED_SECONDS = 10.0
# Without a new byte for this long, the download waits for the hub.
STALLED_SECONDS = 5.0
MOST_ASKERS = 1000
SECONDS_TO_END = 5.0

log = logging.getLogger(__name__)

Steps = Generator[object, None, None]


class DownloadState(StrEnum):
    """What a page shows of a model's download."""

    HERE = "here"
    LOOKING = "looking"
    NEEDED = "needed"
    RUNNING = "running"
    FAILED = "failed"


STOPPED = (DownloadState.NEEDED, DownloadState.FAILED)


@dataclass(frozen=True)
class DownloadStatus:
    """A model's download as one person sees it.

    here, total: bytes of its files, and of a codec that is not here. on_disk: what a download that
    is not complete, or failed, takes on the disk. speed: bytes a second, None until it is known.
    waiting: seconds without a new byte, if they are many. mine: whether this person
    asked for it; others: how many others did. problem: why it failed. can_retry: whether trying
    again can help.
    """

    model: str
    state: DownloadState
    here: int = 0
    total: int = 0
    on_disk: int = 0
    speed: float | None = None
    waiting: float | None = None
    mine: bool = False
    others: int = 0
    problem: str = ""
    can_retry: bool = True
    free_disk: int | None = None

    @property
    def missing(self) -> int:
        return self.total - self.here

    @property
    def seconds_left(self) -> float | None:
        return self.missing / self.speed if self.speed else None


class _ModelDownload:
    """One model: what the hub said of it, and the work that asks or fetches, if there is any."""

    def __init__(self, model: str, models: Mapping[str, ModelInfo]) -> None:
        self.model, self._models = model, models
        self.plan: DownloadPlan | None = None
        self.problem = ""
        self.askers: set[str] = set()
        self.finished_for: set[str] = set()
        self.work: Background | None = None
        self.samples: deque[tuple[float, int]] = deque()
        self.grew_at = 0.0

    @property
    def info(self) -> ModelInfo:
        """The model as it is now."""
        return self._models[self.model]

    @property
    def state(self) -> DownloadState:
        if self.is_working:
            return DownloadState.RUNNING if self.askers else DownloadState.LOOKING
        if self.problem:
            return DownloadState.FAILED
        if is_here(self.info):
            return DownloadState.HERE
        return DownloadState.LOOKING if self.plan is None else DownloadState.NEEDED

    @property
    def is_working(self) -> bool:
        """Whether it asks or fetches, and was not cancelled."""
        work = self.work
        return work is not None and work.is_running and not work.cancel.is_set()

    def missing_bytes(self) -> int:
        """What a running download has not fetched yet."""
        if self.plan is None or self.state is not DownloadState.RUNNING:
            return 0
        return self.plan.total_bytes - self.plan.bytes_here()

    def sample(self) -> None:
        """Note how much has arrived, for the speed."""
        if self.plan is None:
            return
        now, here = time.monotonic(), self.plan.bytes_here()
        if not self.samples or here != self.samples[-1][1]:
            self.grew_at = now
        self.samples.append((now, here))
        while now - self.samples[0][0] > SPEED_SECONDS:
            self.samples.popleft()

    def speed(self) -> float | None:
        """Bytes a second, None where it is not known yet."""
        samples = list(self.samples)
        if len(samples) < 2 or samples[-1][0] - samples[0][0] < 1:
            return None
        (first, before), (last, here) = samples[0], samples[-1]
        return max(0, here - before) / (last - first)


class Downloads:
    """The downloads of this program. models: by name, as they are now."""

    def __init__(self, models: Mapping[str, ModelInfo]) -> None:
        self._models = models
        self._downloads: dict[str, _ModelDownload] = {}
        self._lock = threading.Lock()
        self._closed = False

    @property
    def running(self) -> list[str]:
        """The models that are being downloaded."""
        downloads = list(self._downloads.values())
        return [each.model for each in downloads if each.state is DownloadState.RUNNING]

    def status(self, model: str, person: str = "") -> DownloadStatus:
        """A model's download as `person` sees it. If the hub was not asked for the sizes of its
        files yet, it is now, in the background."""
        with self._lock:
            download = self._get(model)
            if download.state is DownloadState.LOOKING and not download.is_working:
                self._begin(download, _look)
            return _status_of(download, person)

    def start(self, model: str, person: str) -> None:
        """Download a model for `person`; if that is in progress, join it."""
        with self._lock:
            download = self._get(model)
            if download.state is DownloadState.HERE:  # The page has not noticed yet.
                download.finished_for.add(person)
                return
            is_fetching = download.is_working and bool(download.askers)
            if len(download.askers) < MOST_ASKERS:
                download.askers.add(person)
            if not is_fetching:
                self._begin(download, self._fetch)

    def look_again(self, model: str) -> None:
        """Forget what the hub said of a model, so that it is asked again."""
        with self._lock:
            if self._get(model).state is DownloadState.FAILED:
                del self._downloads[model]

    def remove(self, model: str) -> None:
        """Remove what has arrived of a model whose download is neither running nor complete."""
        with self._lock:
            download = self._get(model)
            if download.state in STOPPED:
                self._begin(download, _remove)

    def cancel(self, model: str, person: str) -> None:
        """`person` no longer wants the model; if nobody else does, its download stops."""
        with self._lock:
            download = self._get(model)
            download.askers.discard(person)
            if not download.askers and download.work is not None:
                download.work.cancel.set()

    def check_here(self, info: ModelInfo) -> None:
        """Raise InputError, which says what to do, if a take would have to download the model."""
        if is_here(self._models[info.name]):  # It may have arrived since `info` was made.
            return
        status = self.status(info.name)
        if status.state is DownloadState.RUNNING:
            so_far = f"{status.here / max(1, status.total):.0%}"
            if status.seconds_left is not None:
                so_far += f", {about_duration(status.seconds_left)} left"
            raise InputError(
                f"{info.title} is being downloaded ({so_far}). "
                "You can generate once it has downloaded; use the nano voice until then."
            )
        raise InputError(f"{info.title} is not on this machine. {_remedy(status)}")

    def close(self) -> None:
        """Stop all downloads, and wait for their threads. What arrived is kept."""
        with self._lock:
            self._closed = True
            works = [each.work for each in self._downloads.values() if each.work is not None]
        stop_all(works, SECONDS_TO_END)

    def _get(self, model: str) -> _ModelDownload:
        return self._downloads.setdefault(model, _ModelDownload(model, self._models))

    def _begin(
        self,
        download: _ModelDownload,
        work: Callable[[_ModelDownload], Steps],
    ) -> None:
        """Run `work` in the background, after what may still be ending."""
        if self._closed:
            return
        before, cancel = download.work, threading.Event()
        download.problem = ""
        download.samples.clear()

        def run() -> None:
            if before is not None:
                before.join()
            problem = _problem_of(work(download), download, cancel)
            if not cancel.is_set():
                download.problem = problem

        download.work = Background("download", run, cancel).start()

    def _fetch(self, download: _ModelDownload) -> Steps:
        if download.plan is None:
            yield from _look(download)
        assert download.plan is not None, "it was just made"
        reserved = sum(
            other.missing_bytes()
            for other in list(self._downloads.values())
            if other is not download
        )
        check_disk(list(download.plan.files), reserved)
        yield from fetch_all(download.info)
        download.finished_for, download.askers = download.askers, set()


def _look(download: _ModelDownload) -> Steps:
    plan = Task(plan_download(download.info))
    yield from plan
    download.plan = plan.result


def _remove(download: _ModelDownload) -> Steps:
    download.plan = None  # The hub is asked again: the files that it has may be others now.
    remove_download(download.model)
    yield None


def _problem_of(work: Steps, download: _ModelDownload, cancel: threading.Event) -> str:
    """Why `work` failed; "" if it did not, or was cancelled."""
    try:
        with closing(work):
            for _ in work:
                download.sample()
                if cancel.is_set():
                    break
    except DiaDemoError as error:
        download.askers = set()
        return str(error)
    except Exception:
        log.exception("a download failed")
        download.askers = set()
        return "The download failed unexpectedly. The details are in the program's log. Try again."
    return ""


def _remedy(status: DownloadStatus) -> str:
    """What to do about a model that is not here, by the button that its card has."""
    nano = "or use the nano voice"
    if status.problem and not status.can_retry:
        return f"{status.problem} Choose another model, {nano}."
    if status.problem and not (status.on_disk and status.total):
        return f"{status.problem} In the Generate tab, press Try again."
    press = "Resume" if status.on_disk else "Download (the card shows its size)"
    return f"Choose it in the Generate tab and press {press}, {nano}."


def _status_of(download: _ModelDownload, person: str) -> DownloadStatus:
    plan, state = download.plan, download.state
    here, total = (plan.bytes_here(), plan.total_bytes) if plan else (0, 0)
    quiet = time.monotonic() - download.grew_at if download.samples else 0.0
    return DownloadStatus(
        download.model,
        state,
        here,
        total,
        on_disk=bytes_on_disk(download.model) if state in STOPPED else 0,
        speed=download.speed() if state is DownloadState.RUNNING else None,
        waiting=quiet if quiet > STALLED_SECONDS else None,
        mine=person in (download.askers or download.finished_for),
        others=len(download.askers - {person}),
        problem=download.problem,
        can_retry=not is_here(download.info),
        free_disk=free_disk(),
    )

"""All that relies on the internals of gradio; requirements.txt pins its version.

Only what must come before its import is elsewhere, in dia_demo/ui/__init__.py.

- `Page` overrides how a call's arguments are checked and described.
- `SharedSession` and `SessionStore` replace its sessions, which cost 0.3 MB each.
- `WakingQueue` replaces its queue, which looks for events a thousand times a second.
- `configure_gradio` sets what it reads only from the environment, and switches plots off.
- `mount` and `end_streams` set what `mount_gradio_app` has no argument for.
- `replace_handlers`, `element_number` and `upload_folder` read what its components know.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import ChainMap, OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
from fastapi import FastAPI
from gradio import utils as gradio_utils
from gradio.blocks import BlocksConfig
from gradio.components.api_component import Api as Api
from gradio.data_classes import FileData as FileData
from gradio.queueing import Queue
from gradio.state_holder import SessionState, StateHolder
from gradio.utils import get_upload_folder
from starlette.requests import Request
from starlette.responses import JSONResponse

from dia_demo.services.settings import Settings

ONLY_UPLOADS = "Only files that were uploaded to this app, at /gradio_api/upload, are accepted."
_SHOWN_CHARACTERS = 80
# How often gradio's queue looks again for a free place, and without events for its own end.
BUSY_SECONDS, IDLE_SECONDS = 0.02, 60.0

log = logging.getLogger(__name__)


def configure_gradio(settings: Settings) -> None:
    """Settings that gradio reads only from the environment. Call before building the page."""
    # Uploads and copies are stored with the takes, under the same limit.
    os.environ["GRADIO_TEMP_DIR"] = str(settings.takes_folder / "gradio")
    # Otherwise it computes statistics of the last 10,000 calls, which nobody reads, at every call.
    os.environ["GRADIO_ANALYTICS_MAX_EVENTS"] = "1"
    os.environ["GRADIO_ANALYTICS_CACHE_FREQUENCY"] = str(10**9)
    # Otherwise every event sets a backend of matplotlib, which the first one imports. The page has
    # no plots.
    vars(gradio_utils)["MatplotlibBackendMananger"] = nullcontext


class Page(gr.Blocks):
    """The page. Its calls may name uploaded files only, and leave out their last arguments.

    stop_run: is called with the session of a client that disconnects before its last event.
    """

    stop_run: Callable[[str], None] | None = None

    def stop_session(self, session: str) -> None:
        """Stop what a client waits for that has disconnected."""
        if self.stop_run is not None:
            self.stop_run(session)

    def validate_inputs(self, block_fn: Any, inputs: list[Any]) -> None:
        """Append the defaults of the arguments that are missing at the end."""
        if block_fn.api_visibility == "public":
            inputs += [component.value for component in block_fn.inputs[len(inputs) :]]
        super().validate_inputs(block_fn, inputs)

    async def preprocess_data(self, block_fn: Any, inputs: list[Any], *given: Any) -> Any:
        """Refuse any file that was not uploaded here: gradio would fetch or copy it.

        Every route of a call ends here, whatever the form of its body.
        """
        refuse_foreign_files(inputs)
        try:
            return await super().preprocess_data(block_fn, inputs, *given)
        except gr.Error:
            raise
        except Exception as error:
            log.info("A call's arguments cannot be read", exc_info=error)
            raise _refusal("The arguments of this call are malformed.") from error

    def get_api_info(self, all_endpoints: bool = False, page: str | None = None) -> Any:
        """The endpoints; where an argument has an example of its own, gradio's snippets use it."""
        info: Any = super().get_api_info(all_endpoints, page)
        for endpoint in info["named_endpoints"].values():
            for parameter in endpoint["parameters"]:
                if examples := parameter["type"].get("examples"):
                    parameter["example_input"] = examples[0]
        return info


def refuse_foreign_files(values: Any) -> None:
    """Raise gr.Error for a file among a call's arguments that is not in the folder of uploads."""
    folder = upload_folder()
    left = [values]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += value.values()
            if "path" in value or "meta" in value:
                _check_uploaded(value, folder)
        elif isinstance(value, list | tuple):
            left += value


def _check_uploaded(file: dict, folder: Path) -> None:
    path = file.get("path")
    if not isinstance(path, str) or not isinstance(file.get("meta", {}), dict):
        raise _refusal(f"{ONLY_UPLOADS} An argument has no path.")
    try:
        inside = Path(path).resolve().is_relative_to(folder)
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside:
        shown = path if len(path) <= _SHOWN_CHARACTERS else f"{path[:_SHOWN_CHARACTERS]}…"
        raise _refusal(f"{ONLY_UPLOADS} {shown!r} is not one of them.")


def _refusal(message: str) -> gr.Error:
    return gr.Error(message, title="Request failed", print_exception=False)


def mount(
    page: Page, application: FastAPI, max_sessions: int, max_threads: int, **options: Any
) -> None:
    """Mount the page on an application, at its root. options: those of `mount_gradio_app`."""
    page.state_session_capacity = max_sessions
    page.max_threads = page._queue.max_thread_count = max_threads

    @asynccontextmanager
    async def lifespan(served: Any) -> AsyncIterator[None]:
        page.app = served
        served.state_holder = SessionStore(page)
        page._queue.__class__ = WakingQueue
        yield

    gr.mount_gradio_app(
        application,
        page,
        path="/",
        show_error=False,
        # Its tools would take files from addresses.
        mcp_server=False,
        app_kwargs={
            "lifespan": lifespan,
            "exception_handlers": {TypeError: _refuse_arguments},
        },
        **options,
    )


def end_streams(page: Page) -> None:
    """End the answers that last as long as their page is open."""
    page.is_running = False
    page.app.stop_event.set()


class SharedSession(SessionState):
    """A session that shares the page's components until it changes one of them.

    gradio's own session copies the configuration of all components, which takes 0.3 MB and blocks
    the server for 20 ms, and stores every value for deep links, which this page does not offer.
    """

    def __init__(self, page: gr.Blocks) -> None:
        empty: Any = SimpleNamespace(default_config=SimpleNamespace(blocks={}), blocks={})
        super().__init__(empty)
        self.changed: dict[int, Any] = {}
        components: Any = ChainMap(self.changed, page.default_config.blocks)
        self.blocks_config = BlocksConfig(page)
        self.blocks_config.blocks = components
        self.blocks_config.fns = page.default_config.fns

    def _update_config(self, key: int) -> None:
        """Values are not stored."""

    def _update_value_in_config(self, key: int, value: object) -> None:
        """Values are not stored."""

    @property
    def is_spare(self) -> bool:
        """Whether it can be dropped: its page is closed, or it never changed a component."""
        return self.is_closed or not (self.state_data or self.changed)


class SessionStore(StateHolder):
    """The latest sessions. Above the limit, spare sessions are dropped first."""

    session_data: OrderedDict[str, Any]

    def __init__(self, page: gr.Blocks) -> None:
        super().__init__()
        self.set_blocks(page)

    def __getitem__(self, session_id: str) -> SharedSession:
        if session_id not in self.session_data:
            self.session_data[session_id] = SharedSession(self.blocks)
        super().__getitem__(session_id)
        return self.session_data[session_id]

    def update(self, session_id: str) -> None:
        """Record that a session was used, and drop another one above the limit."""
        with self.lock:
            self.session_data.move_to_end(session_id)
            if len(self.session_data) <= self.capacity:
                return
            older = list(self.session_data)[:-1]
            spare = (name for name in older if self.session_data[name].is_spare)
            name = next(spare, older[0])
            del self.session_data[name]
            self.time_last_used.pop(name, None)


class WakingQueue(Queue):
    """gradio's queue, woken by an event that arrives.

    gradio's own looks for one every millisecond, which takes 5% of a core for as long as the app
    runs, and interrupts the threads of a take.
    """

    _sleep: asyncio.Future | None = None
    # Nothing here sends gr.Progress, which it would look for every 10 ms.
    progress_update_sleep_when_free = property(lambda self: IDLE_SECONDS)
    sleep_when_free = property(lambda self: BUSY_SECONDS if len(self) else IDLE_SECONDS)

    async def push(self, *args: Any, **options: Any) -> Any:
        """Add an event, as gradio's; then wake up."""
        answer = await super().push(*args, **options)
        if self._sleep is not None and not self._sleep.done():
            self._sleep.set_result(None)
        return answer

    async def start_processing(self) -> None:
        """gradio's loop. Without an event, all it waits for is the end of a sleep."""
        await _Observed(super().start_processing(), self._note)

    def _note(self, waiting: asyncio.Future | None) -> None:
        self._sleep = None if len(self) else waiting


class _Observed:
    """Awaits a coroutine and passes on every future that it waits for."""

    def __init__(self, work: Coroutine, note: Callable[[asyncio.Future | None], None]) -> None:
        self._work, self._note = work, note

    def __await__(self) -> Generator[asyncio.Future | None, None, None]:
        with closing(self._work):
            for waiting in self._work.__await__():
                self._note(waiting)
                yield waiting


async def _refuse_arguments(request: Request, error: Exception) -> JSONResponse:
    """The answer to a call by names whose arguments are incomplete or unknown: gradio raises
    TypeError with the name."""
    if "/call/v2/" not in request.url.path:
        raise error
    return JSONResponse({"error": str(error)}, 422)


def replace_handlers(page: gr.Blocks, replace: Callable[[Callable], Callable]) -> None:
    """Replace the handler of every event registered so far."""
    for event in page.fns.values():
        if event.fn is not None:
            event.fn = replace(event.fn)


def element_number(component: gr.blocks.Block) -> int:
    """The number of a component among those of the page."""
    return component._id


def upload_folder() -> Path:
    """The folder of uploads and of gradio's copies of files."""
    return Path(get_upload_folder()).resolve()

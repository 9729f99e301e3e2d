"""A run that one button starts and another stops: its buttons, its cancel flags, its events.

And how other events are connected.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import gradio as gr

from dia_demo.engine.events import Progress
from dia_demo.services.people import Caller, Visitor, network_of
from dia_demo.ui.gradio_internals import element_number

Updates = dict[Any, Any]

# Arguments of events that are neither shown by gradio's own spinner nor offered to programs.
PRIVATE: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
# The same for events that are fast enough to bypass gradio's queue.
IMMEDIATE: dict[str, Any] = {"queue": False, **PRIVATE}

# Seconds between two updates of a run: more of them would take processor time from the model.
SECONDS_BETWEEN_UPDATES = 0.2
# The same of a take that is slower than playback: a browser on the same machine needs up to 0.1 s
# of a core for each.
SECONDS_BETWEEN_SLOW_UPDATES = 1.0
# The path of calls from programs that hold no session: gradio creates a new one for every call.
_CALLS = "/gradio_api/call/"
# The session of such a call is the ID of its event; a page's session is shorter.
_CALL = re.compile(r"[0-9a-f]{32}")
MAX_DISCONNECTED_CALLS = 1000


def connect_change(
    changes: Sequence[Callable],
    handler: Callable,
    inputs: Sequence[gr.blocks.Block],
    outputs: Sequence[gr.blocks.Block],
    **options: Any,
) -> None:
    """Call the handler after any of these events; of those that come meanwhile, after the last.

    gradio's page repeats a postponed event with all its handlers (gradio 6.31, "always_last"): two
    handlers of one event that postpone each other never end. As a `then`, each repeats alone.
    """
    changed = gr.on(changes, None, None, None, js="() => {}", show_progress="hidden")
    changed.then(handler, inputs, outputs, trigger_mode="always_last", **IMMEDIATE, **options)


def choice_event(menu: gr.blocks.Block) -> Callable:
    """The event of a person's choice of another value from a menu.

    gradio (6.31) also reports the `input` of a menu that is left as it was, and reports one choice
    with the mouse twice; `select` it leaves out for the keyboard. `change` includes the values that
    come from the server.
    """
    assert isinstance(menu, gr.Dropdown)
    known = f"(window.diaMenus ??= {{}})[{element_number(menu)}]"
    # Changes with every choice.
    chosen = gr.Number(visible="hidden", elem_id=f"{menu.elem_id}-chosen")
    menu.focus(None, menu, None, js=f"(value) => {{ {known} = value; }}", show_progress="hidden")
    menu.input(
        None,
        menu,
        chosen,
        js=f"""(value) => {{
          if ({known} === value) return {{ __type__: "update" }};
          {known} = value;
          return performance.now();
        }}""",
        show_progress="hidden",
    )
    return chosen.change


class UpdateTimes:
    """When a page that watches a take is to be updated."""

    def __init__(self) -> None:
        self._shown_at = -math.inf
        self._first: tuple[float, float] | None = None  # The first sound: when, and its seconds.

    def is_due(self, progress: Progress) -> bool:
        """Whether this progress is to be shown: the first sound at once."""
        now, seconds = time.monotonic(), progress.audio_seconds
        is_first = seconds > 0 and self._first is None
        if is_first:
            self._first = now, seconds
        pause = SECONDS_BETWEEN_UPDATES
        if self._first is not None:
            passed = now - self._first[0]
            if passed >= SECONDS_BETWEEN_SLOW_UPDATES and seconds - self._first[1] < passed:
                pause = SECONDS_BETWEEN_SLOW_UPDATES
        if not is_first and now - self._shown_at < pause:
            return False
        self._shown_at = now
        return True


def event_value(event: gr.EventData, name: str) -> Any:
    """What the page sent with an event; None if a program sent something else."""
    try:
        return getattr(event, name, None)
    except TypeError:
        return None


class RunButtons:
    """The buttons of one kind of run. `start`: those that begin it."""

    def __init__(self, start: Sequence[gr.Button], stop: gr.Button) -> None:
        self.start_buttons = tuple(start)
        self.stop_button = stop

    @property
    def buttons(self) -> list[gr.Button]:
        """All of them."""
        return [*self.start_buttons, self.stop_button]

    def busy(self, stopping: bool = False) -> Updates:
        """The buttons while the run is in progress; stopping: Stop was pressed already.

        Every update of a run contains them. gradio's page (6.31) may receive the first messages of
        an event in one go, and each changes the objects of the one before it: a `gr.update` that
        the next message does not repeat is lost, and the run could not be stopped.
        """
        start = {button: gr.update(interactive=False) for button in self.start_buttons}
        return start | {self.stop_button: gr.update(interactive=not stopping)}

    def idle(self) -> Updates:
        """The buttons when nothing runs."""
        start = {button: gr.update(interactive=True) for button in self.start_buttons}
        return start | {self.stop_button: gr.update(interactive=False)}


class LongRun(RunButtons):
    """The buttons and sessions of one kind of run, which ends with its page."""

    def __init__(self, start: Sequence[gr.Button], stop: gr.Button) -> None:
        super().__init__(start, stop)
        self.sessions = Sessions()

    def updates(
        self,
        request: gr.Request,
        first: Updates,
        work: Callable[[Caller], Iterator[Updates]],
        error_update: Callable[[Exception], Updates],
    ) -> Iterator[Updates]:
        """All updates of one run: `first`, those of `work`, and `error_update` if it raises.

        Each has the buttons of a run in progress, and what `first` has and it does not replace (see
        `busy`). `work` receives the cancel flag, which is also set when the page goes away: gradio
        then closes this generator. Its last update must contain everything that has to arrive.
        """
        with self.sessions.run(request) as cancel:
            yield first | self.busy()
            try:
                for update in work(cancel):
                    yield first | self.busy(cancel.is_set()) | update
            except Exception as error:
                yield first | self.busy(cancel.is_set()) | error_update(error)

    def stop(self, request: gr.Request) -> dict[str, Any]:
        """Ask this page's run to stop; its own updates say how it ended."""
        self.sessions.stop(request.session_hash)
        return gr.update(interactive=False)

    def page_closed(self, request: gr.Request) -> None:
        """The page was closed or reloaded, which counts as Stop."""
        self.sessions.stop(request.session_hash)


@dataclass(frozen=True)
class Trigger:
    """A button that starts a run, its handler, and the handler's inputs."""

    button: gr.Button
    handler: Callable[..., Iterator[Updates]]
    inputs: Sequence[gr.blocks.Block]


class Stoppable(Protocol):
    """What `connect_run` connects: LongRun, or runs that outlive their page."""

    start_buttons: tuple[gr.Button, ...]
    stop_button: gr.Button

    def idle(self) -> Updates:
        """See `RunButtons`."""

    def stop(self, request: gr.Request) -> dict[str, Any]:
        """See `LongRun`."""

    def page_closed(self, request: gr.Request) -> None:
        """See `LongRun`."""


def connect_run(
    page: gr.Blocks,
    run: Stoppable,
    triggers: Sequence[Trigger],
    outputs: Sequence[gr.blocks.Block],
    idle: Callable[..., Updates] | None = None,
    idle_inputs: Sequence[gr.blocks.Block] | None = None,
    stop_inputs: Sequence[gr.blocks.Block] | None = None,
    result: str = "",
) -> None:
    """Connect the buttons of a run. `idle` replaces `run.idle` where more depends on the end.

    result: the selector of what has the focus at the end of a run that had it on a button, if there
    is a result; otherwise that is the button that starts it (assets/page/focus.js).

    `idle` is not part of the run's own last update: gradio's page ignores a click that comes before
    the run it follows is over. It is connected to `then` and to `failure`, because `then` is
    skipped after an error.
    """
    buttons = [*run.start_buttons, run.stop_button]
    for trigger in triggers:
        # The prefix keeps the name "generate" free for the endpoint that programs use.
        event = trigger.button.click(
            trigger.handler,
            trigger.inputs,
            outputs,
            api_name=f"press_{trigger.handler.__name__}",
            **PRIVATE,
        )
        for after in (event.then, event.failure):
            after(idle or run.idle, idle_inputs, buttons, **IMMEDIATE)
    run.stop_button.click(run.stop, stop_inputs, run.stop_button, **IMMEDIATE)
    page.unload(run.page_closed)
    focus = {
        "start": [f"#{button.elem_id}" for button in run.start_buttons],
        "stop": f"#{run.stop_button.elem_id}",
        "result": result,
    }
    page.load(None, None, None, js=f"() => {{ diaRuns.push({json.dumps(focus)}); }}")


class Sessions:
    """The cancel flags of the runs of every page."""

    def __init__(self) -> None:
        self._flags: dict[str | None, set[Caller]] = defaultdict(set)
        self._disconnected: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def run(self, request: gr.Request) -> Iterator[Caller]:
        """The cancel flag of one run; it is set when the block is left, also by an exception."""
        flag, session = Caller(visitor_of(request)), request.session_hash
        with self._lock:
            self._flags[session].add(flag)
            if session in self._disconnected:
                flag.set()
        try:
            yield flag
        finally:
            flag.set()
            with self._lock:
                self._flags[session].discard(flag)
                if not self._flags[session]:
                    del self._flags[session]

    def stop(self, session: str | None) -> None:
        """Ask every run of this page to stop."""
        with self._lock:
            flags = list(self._flags.get(session, ()))
        for flag in flags:
            flag.set()

    def stop_disconnected(self, session: str) -> None:
        """Stop the runs of a client that no longer reads its events.

        A program may disconnect before its run begins, so its session is remembered: no other run
        ever has it. A page keeps its session and may start another run.
        """
        if _CALL.fullmatch(session):
            with self._lock:
                self._disconnected[session] = None
                while len(self._disconnected) > MAX_DISCONNECTED_CALLS:
                    self._disconnected.popitem(last=False)
        self.stop(session)


def visitor_of(request: gr.Request) -> Visitor:
    """The visitor in whose turn the queue serves a request.

    The address is the client's as the server sees it; behind a proxy on this machine, it is the one
    the proxy forwards.
    """
    client, url = getattr(request, "client", None), getattr(request, "url", None)
    address = getattr(client, "host", None) or ""
    program = _CALLS in getattr(url, "path", "")
    return Visitor(network_of(address), "" if program else request.session_hash or "")

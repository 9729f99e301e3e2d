"""Background: work in a thread of its own, which can be cancelled and waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from dia_demo.errors import RunError


class Background:
    """Runs `work` once, in a thread that ends with the program at the latest.

    name: of the thread. cancel: `work` ends soon after it is set.
    """

    def __init__(
        self, name: str, work: Callable[[], None], cancel: threading.Event | None = None
    ) -> None:
        self.cancel = threading.Event() if cancel is None else cancel
        self._thread = threading.Thread(target=work, name=name, daemon=True)

    @property
    def is_running(self) -> bool:
        """Whether it has begun and is not done."""
        return self._thread.is_alive()

    @property
    def is_current(self) -> bool:
        """Whether the caller is in its thread."""
        return threading.current_thread() is self._thread

    def start(self) -> Background:
        """Begin; returns itself. Raises RunError if the machine cannot start another thread."""
        try:
            self._thread.start()
        except RuntimeError as error:
            raise RunError(
                "This machine cannot start another thread, because too many runs are active. Try "
                "again in a moment."
            ) from error
        return self

    def join(self, seconds: float | None = None) -> None:
        """Wait until it is done, so many seconds at most."""
        if self._thread.is_alive():
            self._thread.join(seconds)


def stop_all(backgrounds: Sequence[Background], seconds: float) -> None:
    """Cancel all, and wait until they are done, together so many seconds at most."""
    for background in backgrounds:
        background.cancel.set()
    latest = time.monotonic() + seconds
    for background in backgrounds:
        background.join(max(0.0, latest - time.monotonic()))

"""Windows that tests take turns with.

A page opens with two thirds of the work in a browser context that has opened one before: the
program's scripts are cached and compiled. What a person would leave in it is removed after a test.
"""

from __future__ import annotations

import json

from tests.helpers.page.browser import Watch


class Windows:
    """Browser contexts by what they were made with, free for the next test."""

    def __init__(self, chromium) -> None:
        self._chromium = chromium
        self._free: dict[str, list] = {}

    def open(self, home: str, is_new: bool = False, **options) -> Watch:
        """A window in which nothing is remembered from other tests.

        is_new: never used before, and not used again: for scripts that run before the page's own.
        options: of playwright's new_context.
        """
        key = json.dumps([home, options], sort_keys=True)
        free = [] if is_new else self._free.setdefault(key, [])
        context = free.pop() if free else self._chromium.new_context(**options)
        watch = Watch(context, home)
        watch.key = None if is_new else key
        return watch

    def give_back(self, watch: Watch, is_reusable: bool) -> None:
        """After a test: close the window's pages, and forget what they stored."""
        context = watch.context
        if watch.key is None or not is_reusable or not context.pages:
            context.close()
            return
        for page in context.pages[1:]:
            page.close()
        (page,) = context.pages
        page.goto("about:blank")  # Its last requests end as they do when a person leaves.
        session = context.new_cdp_session(page)
        stored = "local_storage,session_storage,cookies,indexeddb,service_workers"
        wanted = {"origin": watch.home, "storageTypes": stored}
        session.send("Storage.clearDataForOrigin", wanted)
        context.unroute_all(behavior="ignoreErrors")
        page.close()
        watch.stop()
        self._free[watch.key].append(context)

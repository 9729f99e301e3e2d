"""Simulate a Hugging Face Space on this machine.

    python -m tools.rehearse_space            # a Space, from its build on: some minutes
    python -m tools.rehearse_space --short    # with what this interpreter has installed

A new user on a copy of this machine's files, with two cores, 16 GB and a read-only home, installs
the requirements, gets the repository, and starts the app behind a proxy that serves it under a
path; a browser makes takes and measures their sound. The app is killed, started again, started
without a hub, without the package `spaces`, and as on ZeroGPU. Prints a table; the exit code is 1
where a step fails. Needs Linux, root, requirements-dev.txt and a chromium. Changes nothing here.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

from dia_demo.families.dia.profiles import DIA_NAME
from tools.app_process import HOST, free_port
from tools.rehearsal import visitor
from tools.rehearsal.isolation import FOLDER, Root, cut_network, in_namespaces, why_impossible
from tools.rehearsal.proxy import running_proxy
from tools.rehearsal.space import CACHE, CARD, PREFIX, RunningApp, Space, find_python, peak_bytes
from tools.rehearsal.table import Mismatch, Table
from tools.rehearsal.zero_gpu import running_device_api


class Visits:
    """The app behind the proxy, and a browser in front of it."""

    def __init__(self, space: Space, chromium: Browser, home: str) -> None:
        self.space, self.chromium, self.home = space, chromium, home

    @contextmanager
    def page(self, app: RunningApp, errors_expected: bool = False) -> Iterator[Page]:
        """A page that can be used. Raises Mismatch at the end if something went wrong in it."""
        app.wait_until_up()
        watched = visitor.Visitor(self.chromium, self.home)
        try:
            yield watched.open()
            if (problems := watched.problems()) and not errors_expected:
                raise Mismatch("; ".join(problems)[:600])
        finally:
            watched.close()

    def take(self, **others: str) -> str:
        """Start the app, and make a take."""
        with self.space.run_app(**others) as app, self.page(app) as page:
            return f"page after {app.seconds:.1f} s; {heard(page)}"

    def take_after_kill(self) -> str:
        """Kill the app while a take is made, start it again, and make another."""
        with self.space.run_app() as app, self.page(app, errors_expected=True) as page:
            visitor.begin_take(page)
            app.kill()
            with self.space.run_app() as again:
                again.wait_until_up()
                visitor.reload(page)
                visitor.wait_until_usable(page)
                return f"page after {again.seconds:.1f} s; {heard(page)}"

    def take_without_hub(self) -> str:
        """Start with a model that cannot be fetched."""
        with self.space.run_app(DIA_MODEL=DIA_NAME) as app, self.page(app) as page:
            reason = page.get_by_text("the hub cannot be reached from this machine")
            reason.first.wait_for()
            return f'"{reason.first.inner_text()[:60]}…"; {heard(page)}'

    def take_on_zero_gpu(self) -> str:
        """Start as on ZeroGPU, whose service is told that the app has a function for the GPU."""
        with running_device_api() as api:
            take = self.take(SPACES_ZERO_GPU="true", SPACES_ZERO_DEVICE_API_URL=api.address)
        if "/startup-report" not in api.posts:
            raise Mismatch(f"the app did not report a function for the GPU: {api.posts}")
        return f"reported a function; {take}"


def heard(page: Page) -> str:
    """Make a take, and say what it is. Raises Mismatch unless that is speech."""
    take = visitor.make_take(page)
    if not take.is_speech or not take.reports:
        raise Mismatch(str(take))
    return str(take)


def build(table: Table, space: Space, short: bool) -> bool:
    """From nothing to an app that can be started; whether that worked."""
    table.step("limits", "2 cores and 16 GB", space.limit)
    steps = [("user", "a new one", space.add_user)]
    if not short:
        steps += [
            ("environment", "a fresh one", space.make_environment),
            ("requirements", "can be installed alone", space.install),
            ("pip check", "nothing", space.check_packages),
            ("platform", "installs its own, changes none", space.install_platform),
        ]
    steps += [
        ("repository", "is added after the requirements", space.add_repository),
        ("home", f"is read-only, but for {CACHE}", space.lock_home),
    ]
    return all(table.step(*step) for step in steps)


def live(table: Table, space: Space, visits: Visits) -> None:
    """The app and its visitors."""
    sound = "speech of 2 to 15 s"
    table.step("doctor", "2 cores, 16.0 GB, ready", space.examine)
    table.step("spaces installed", "the package itself", space.has_spaces)
    table.step("first start", sound, visits.take)
    table.step("killed and restarted", sound, visits.take_after_kill)
    table.step("warm caches", sound, visits.take)
    table.step("hub out of reach", "the page says why; " + sound, visits.take_without_hub)
    if space.has_cuda_build():
        table.step("ZeroGPU", "a function for the GPU; " + sound, visits.take_on_zero_gpu)
    else:
        table.step("ZeroGPU", "", lambda: "not tried: spaces needs torch's CUDA build there")
    table.step("spaces not installed", "uninstalled", space.remove_spaces)
    table.step("start without spaces", sound, visits.take)
    table.step("memory", "less than 16 GB at its peak", lambda: peak(space))


def peak(space: Space) -> str:
    assert space.root.limits is not None
    return f"{peak_bytes(space.root.limits) / 2**30:.1f} GB, files in memory included"


def rehearse_space(table: Table, folder: Path, python: str, short: bool) -> None:
    """All of it, in namespaces of its own."""
    space = Space(Root(folder), sys.executable if short else python, free_port())
    if not build(table, space, short):
        return
    cut_network()
    with ExitStack() as stack:
        target = f"http://{HOST}:{space.port}"
        home = stack.enter_context(running_proxy(target, free_port(), PREFIX))
        chromium = stack.enter_context(visitor.running_chromium())
        live(table, space, Visits(space, chromium, home))


def main(arguments: list[str]) -> int:
    """Print the table; 1 where a step fails, 2 where nothing can be rehearsed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--short", action="store_true", help="install nothing")
    parser.add_argument("--python", help="the interpreter; default: that of the card, or this one")
    options = parser.parse_args(arguments)
    if FOLDER not in os.environ:
        if reason := why_impossible():
            parser.error(f"nothing can be rehearsed here: {reason}")
        return in_namespaces("tools.rehearse_space", arguments)
    table, folder = Table(), Path(os.environ[FOLDER])
    python = options.python or find_python(CARD["python_version"])
    rehearse_space(table, folder, python, options.short)
    print(f"{table.failed} steps fail." if table.failed else "No step fails.")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

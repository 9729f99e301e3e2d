"""The events of tests with many listeners: thin functions between the page and the services."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from dia_demo.errors import DiaDemoError, InputError, RunError
from dia_demo.files import bytes_in
from dia_demo.services.listening.link.offline import write_offline_test
from dia_demo.services.listening.link.qr import qr_svg
from dia_demo.services.listening.owner.tests import OwnTests, items_of
from dia_demo.services.listening.panel.analysis.ending import reveal_panel
from dia_demo.services.listening.panel.analysis.planning import panel_power
from dia_demo.services.listening.panel.offline import MAX_BYTES, merge_results
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.plan import GoalKind, LookKind
from dia_demo.services.listening.plan.names import setting_names
from dia_demo.services.listening.report.files import write_json, write_long_table, write_report
from dia_demo.services.people import is_key
from dia_demo.services.scratch import Scratch
from dia_demo.ui.compare.html import press_problem, problem_note
from dia_demo.ui.panels import html
from dia_demo.ui.panels.fields import FIELDS, options_of
from dia_demo.ui.panels.layout import PanelParts
from dia_demo.ui.runs import Updates
from dia_demo.ui.status import explain

NO_COMPARISON = (
    "Open the comparison whose pairs your listeners should judge first, or use a zip of clips."
)


class PanelHandlers:
    """The events of the card, over the tests of all people."""

    def __init__(self, own: OwnTests, parts: PanelParts) -> None:
        self.own, self.parts = own, parts

    # -- a new test ----------------------------------------------------------------------------

    def describe(self, key: object, comparison: str, *values: Any) -> Updates:
        """What a test of the open comparison asks of its listeners, and what it can show. A margin
        and a number of looks are asked for where they have a meaning."""
        given, fields = dict(zip(FIELDS, values, strict=True)), self.parts.fields
        return {
            self.parts.note: self._note(key, comparison, values),
            fields["margin"]: gr.update(visible=given["goal"] != GoalKind.SUPERIORITY),
            fields["looks"]: gr.update(visible=given["look_kind"] == LookKind.OBRIEN_FLEMING),
        }

    def _note(self, key: object, comparison: str, values: Sequence[Any]) -> str:
        try:
            options = options_of(values)
            if not comparison or not is_key(key):
                return html.note([NO_COMPARISON])
            source = self.own.comparisons.get(str(key), comparison).plan
            plan = options.plan(setting_names(source.settings), items_of(source))
        except DiaDemoError as error:
            return problem_note(explain(error))
        return html.note([html.size(plan), panel_power(plan).sentence])

    def create(self, key: str, comparison: str, address: str, *values: Any) -> Updates:
        """A test of the takes of the open comparison."""

        def make() -> Panel:
            if not comparison:
                raise InputError(NO_COMPARISON)
            return self.own.from_comparison(key, comparison, options_of(values))

        return self._create(key, address, make)

    def create_of_clips(self, key: str, path: str, address: str, *values: Any) -> Updates:
        """A test of uploaded clips; the uploaded file is removed."""
        try:
            options = lambda: options_of(values)  # noqa: E731
            return self._create(
                key, address, lambda: self.own.from_clips(key, Path(path), options())
            )
        finally:
            Path(path).unlink(missing_ok=True)

    def _create(self, key: str, address: str, make: Callable[[], Panel]) -> Updates:
        def work() -> Updates:
            panel = make()
            return self._show(key, panel.plan.id, address) | {self.parts.create_problem: ""}

        return self._or_problem(work, self.parts.create_problem)

    # -- the tests that exist ------------------------------------------------------------------

    def fill(self, key: object) -> Any:
        """The person's tests in the list."""
        return gr.update(choices=self._choices(key) if is_key(key) else [])

    def _choices(self, key: Any) -> list[tuple[str, str]]:
        return [(html.title(panel), panel.plan.id) for panel in self.own.panels.list(key)]

    def show(self, key: str, identity: str, address: str) -> Updates:
        """A test: its link, its listeners, its result."""
        return self._or_problem(lambda: self._show(key, identity, address))

    def toggle(self, key: str, identity: str, address: str) -> Updates:
        """Close an open test, or open a closed one again."""

        def toggle(panel: Panel) -> None:
            panel.reopen() if panel.state.closed else panel.close()

        return self._change(key, identity, address, toggle)

    def reveal(self, key: str, identity: str, address: str) -> Updates:
        """End a test for everybody and show what was heard."""
        # The page asks again before, and the result says if it was early.
        return self._change(key, identity, address, lambda panel: reveal_panel(panel, early=True))

    def exclude(self, key: str, identity: str, address: str, rater: str, reason: str) -> Updates:
        """Leave a listener out, with the reason, or count them again without one."""

        def change(panel: Panel) -> None:
            if not rater:
                raise InputError("Choose a listener first.")
            panel.exclude(rater, reason) if reason.strip() else panel.include(rater)

        return self._change(key, identity, address, change)

    def add_results(self, key: str, identity: str, address: str, path: str) -> Updates:
        """Add the answers of a results file; the uploaded file is removed."""
        try:
            return self._or_problem(lambda: self._merge_file(key, identity, address, Path(path)))
        finally:
            Path(path).unlink(missing_ok=True)

    def _merge_file(self, key: str, identity: str, address: str, path: Path) -> Updates:
        panel = self.own.panels.get(key, identity)
        with open(path, "rb") as file:
            report = merge_results(panel, file.read(MAX_BYTES + 1))
        return self._show(key, identity, address) | {
            self.parts.problem: html.message(report.sentence)
        }

    def delete(self, key: str, identity: str) -> Updates:
        """Delete a test with its votes permanently."""

        def delete() -> Updates:
            self.own.panels.delete(key, identity)
            parts = self.parts
            tests = gr.update(choices=self._choices(key), value=None)
            return {parts.tests: tests, parts.state: "", parts.problem: ""}

        return self._or_problem(delete)

    def _change(
        self, key: str, identity: str, address: str, change: Callable[[Panel], object]
    ) -> Updates:
        def work() -> Updates:
            change(self.own.panels.get(key, identity))
            return self._show(key, identity, address)

        return self._or_problem(work)

    def _show(self, key: str, identity: str, address: str) -> Updates:
        parts, panel = self.parts, self.own.panels.get(key, identity)
        url = f"{address}{panel.plan.link}" if str(address).startswith("http") else ""
        raters = [
            (html.rater_name(number, one), one.rater.id)
            for number, one in enumerate(panel.progress(), start=1)
        ]
        return {
            parts.tests: gr.update(choices=self._choices(key), value=identity),
            parts.state: html.state(panel, url, qr_svg(url)),
            parts.rater: gr.update(choices=raters, value=None),
            parts.reason: "",
            parts.problem: "",
        }

    # -- downloads -----------------------------------------------------------------------------

    def offline(self, key: str, identity: str) -> Updates:
        """The test as a zip for a web server or a disk."""
        return self._download(key, identity, "listening-test", ".zip", write_offline_test)

    def report(self, key: str, identity: str) -> Updates:
        """The result as one HTML file that can be printed."""
        return self._download(key, identity, "listening-report", ".html", write_report)

    def table(self, key: str, identity: str) -> Updates:
        """The votes as a CSV file, one row each."""
        return self._download(key, identity, "listening-votes", ".csv", write_long_table)

    def plan(self, key: str, identity: str) -> Updates:
        """The plan and the result as a JSON file."""
        return self._download(key, identity, "listening-test", ".json", write_json)

    def _download(
        self,
        key: str,
        identity: str,
        name: str,
        suffix: str,
        write: Callable[[Panel, Path], object],
    ) -> Updates:
        def work() -> Updates:
            panel = self.own.panels.get(key, identity)
            path = self._new_file(panel, f"{name}-{identity[:8]}{suffix}")
            write(panel, path)
            return {self.parts.file: {"file": str(path)}, self.parts.problem: ""}

        return {self.parts.file: {}} | self._or_problem(work)

    def _new_file(self, panel: Panel, name: str) -> Path:
        """A file that the page may download, in a folder whose name cannot be guessed."""
        settings = self.own.comparisons.synthesis.settings
        Scratch(settings.takes_folder, settings.temp_bytes).reserve(2 * bytes_in(panel.folder))
        folder = settings.served_folder / f"panel-{panel.plan.draw('downloads')[:40]}"
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"{name} could not be written: {reason}. Free some space.") from error
        return folder / name

    def _or_problem(self, work: Callable[[], Updates], place: gr.HTML | None = None) -> Updates:
        """What `work` returns; its error beside what was pressed."""
        try:
            return work()
        except DiaDemoError as error:
            return {place or self.parts.problem: press_problem(explain(error))}

"""The routes where programs order listening tests with many listeners: `/v1/compare`.

A test belongs to the token that ordered it. Without tokens, whoever knows its id manages it: ids
cannot be guessed, and there is no list of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field, StrictBool
from starlette.responses import JSONResponse, Response

from dia_demo.config import PRECISIONS, SEED_LIMIT, RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.server.errors import ApiError
from dia_demo.server.speech.routes import asker_of
from dia_demo.server.tokens import caller_of, require_token
from dia_demo.services.listening.owner.jobs import JobState, TestJobs
from dia_demo.services.listening.owner.options import PanelOptions
from dia_demo.services.listening.owner.tests import OwnTests
from dia_demo.services.listening.panel.analysis.ending import reveal_panel
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.store import PanelStore
from dia_demo.services.listening.plan.plan import (
    MAX_TRIALS,
    NAMES,
    ComparisonPlan,
    make_plan,
    split_scripts,
)
from dia_demo.services.listening.report.files import report_page, test_json, votes_csv
from dia_demo.services.listening.sides import seeds_of, settings_of
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import key_of_token
from dia_demo.services.synthesis import Synthesis
from dia_demo.text.pronunciations import Pronunciations

ROUTE = "/v1/compare"


class CompareBody(BaseModel):
    """What is compared, and how many people judge it."""

    script: Annotated[str, Field(description="Scripts, with lines of --- between them.")]
    settings: Annotated[
        list[dict[str, Any]],
        Field(
            min_length=2, max_length=len(NAMES), description="What the sides differ in, by name."
        ),
    ]
    test: Annotated[
        dict[str, Any],
        Field(description="Options of the test: design, raters, goal, margin and so on."),
    ] = {}
    pairs: Annotated[int | None, Field(ge=1, le=MAX_TRIALS)] = None
    seed: Annotated[int | None, Field(ge=0, le=SEED_LIMIT)] = None
    model: str = ""
    precision: Annotated[str, Field(description=f"One of {', '.join(PRECISIONS)}.")] = "auto"
    normalise: StrictBool = False
    pronunciations: Annotated[str, Field(max_length=40_000)] = ""


def compare_router(synthesis: Synthesis) -> APIRouter:
    """The routes of an application whose speech `synthesis` makes; they need a token where there
    are any."""
    settings = synthesis.settings
    own = OwnTests(PanelStore.from_settings(settings), ComparisonStore.for_synthesis(synthesis))
    router = APIRouter(dependencies=[Depends(require_token)])
    CompareRoutes(TestJobs(own)).add_to(router)
    return router


class CompareRoutes:
    """The handlers of the routes."""

    def __init__(self, jobs: TestJobs) -> None:
        self._jobs, self._own = jobs, jobs.own

    def add_to(self, router: APIRouter) -> None:
        """Add the routes to a router."""
        router.post(ROUTE, status_code=202)(self.order)
        router.get(f"{ROUTE}/{{test}}")(self.look)
        for name, change in (("close", Panel.close), ("open", Panel.reopen)):
            router.post(f"{ROUTE}/{{test}}/{name}")(self._change_handler(change))
        router.post(f"{ROUTE}/{{test}}/reveal")(self.reveal)
        router.get(f"{ROUTE}/{{test}}/votes", response_class=Response)(self.votes)
        router.get(f"{ROUTE}/{{test}}/report", response_class=Response)(self.report)
        router.delete(f"{ROUTE}/{{test}}")(self.delete)

    async def order(self, body: CompareBody, request: Request) -> JSONResponse:
        """Order a test. The answer comes at once with its link, which works when all takes are
        made: its `state` is then `open`."""
        options = PanelOptions.from_mapping(body.test)
        plan = await to_thread.run_sync(self._plan, body)
        cancel = caller_of(request)
        job = await to_thread.run_sync(self._jobs.begin, key_of(request), plan, options, cancel)
        return JSONResponse(
            {"id": job.plan.id, "state": job.state, "pairs": job.pairs}
            | _links(request, job.plan.id, job.plan.link),
            202,
        )

    def _plan(self, body: CompareBody) -> ComparisonPlan:
        synthesis = self._own.comparisons.synthesis

        def model_of(name: object) -> ModelInfo:
            if name not in synthesis.models:
                known = ", ".join(synthesis.models)
                raise InputError(f"model must be one of {known}, not {name!r:.60}.")
            return synthesis.models[str(name)]

        scripts = split_scripts(body.script)
        for script in scripts:
            synthesis.check_length(script)
        runtime = RuntimeConfig(
            model=body.model or synthesis.settings.runtime.model, precision=body.precision
        )
        words = Pronunciations.parse(body.pronunciations)
        settings = settings_of(body.settings, runtime, model_of, body.normalise, words)
        seeds = seeds_of(body.pairs, max(1, len(scripts)), body.seed)
        return make_plan("preference", settings, scripts, seeds)

    async def look(self, test: str, request: Request) -> dict[str, Any]:
        """How far a test is, and its result once the plan allows."""
        job = self._jobs.find(key_of(request), test)
        if job is not None and job.state is not JobState.READY:
            about = {"id": test, "state": job.state, "pairs": job.pairs}
            return about | {"pairs_made": job.pairs_made, "message": job.message}
        panel = await self._panel(test, request)
        about = await to_thread.run_sync(test_json, panel)
        return about | _links(request, test, panel.plan.link)

    async def votes(self, test: str, request: Request) -> Response:
        """The votes as CSV, one row each, after the reveal."""
        panel = await self._panel(test, request)
        return Response(await to_thread.run_sync(votes_csv, panel), media_type="text/csv")

    async def report(self, test: str, request: Request) -> Response:
        """The report as one HTML file, after the reveal."""
        panel = await self._panel(test, request)
        return Response(await to_thread.run_sync(report_page, panel), media_type="text/html")

    async def reveal(self, test: str, request: Request, early: bool = False) -> dict[str, Any]:
        """End a test and answer with its result. early: although fewer listeners count than were
        planned, which the result says."""
        panel = await self._panel(test, request)
        await to_thread.run_sync(reveal_panel, panel, early)
        return await self.look(test, request)

    async def delete(self, test: str, request: Request) -> dict[str, Any]:
        """Delete a test with its votes."""
        await self._panel(test, request)
        await to_thread.run_sync(self._own.panels.delete, key_of(request), test)
        return {"id": test, "deleted": True}

    def _change_handler(self, change: Callable[[Panel], object]) -> Callable:
        async def changed(test: str, request: Request) -> dict[str, Any]:
            panel = await self._panel(test, request)
            await to_thread.run_sync(change, panel)
            return await self.look(test, request)

        return changed

    async def _panel(self, test: str, request: Request) -> Panel:
        try:
            return await to_thread.run_sync(self._own.panels.get, key_of(request), test)
        except InputError as error:
            raise ApiError(404, f"There is no test {test[:40]!r} here.", param="test") from error


def key_of(request: Request) -> str:
    """The key of the tests of whoever sends a request."""
    return asker_of(request).owner or key_of_token("")


def _links(request: Request, test: str, link: str) -> dict[str, str]:
    base = str(request.base_url).rstrip("/")
    return {"link": f"{base}/listen/{link}", "status": f"{base}{ROUTE}/{test}"}

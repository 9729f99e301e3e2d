"""The page of invited listeners in tests: a server of its routes alone, what a person does."""

from __future__ import annotations

from contextlib import contextmanager

from fastapi import APIRouter, FastAPI
from playwright.sync_api import expect

from dia_demo.server.listening.routes import ListeningRoutes
from dia_demo.services.listening.panel.store import PanelStore
from tests.helpers.engines import serving_application

WAIT = 60_000  # a shared machine may be slow


@contextmanager
def serve_tests(store: PanelStore):
    """The address of a server of the tests in a store, in a thread of this process."""
    application, router = FastAPI(), APIRouter()
    ListeningRoutes(store).add_to(router)
    application.include_router(router)
    with serving_application(application) as url:
        yield url


def open_test(context, url: str):
    """A new page of a test."""
    page = context.new_page()
    page.set_default_timeout(WAIT)
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.errors = []
    page.goto(url)
    return page


def begin(page, name: str = "") -> None:
    """Past consent and volume, to the first trial."""
    if name:
        page.get_by_label("Your name").fill(name)
    page.get_by_label("I agree to take part").check()
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="The volume is right").click()
    page.locator(".trial").wait_for()


def listen(page) -> None:
    """Play every clip of the trial on show to its end."""
    clips = page.locator(".clip")
    count = clips.count()
    expect(page.locator(".clip:enabled")).to_have_count(count)
    page.keyboard.press("p")
    judged = count - clips.get_by_text("Reference", exact=True).count()
    expect(clips.get_by_text("heard", exact=True)).to_have_count(judged)


def answer(page, key: str = "Shift+Digit1") -> None:
    """Answer the trial on show with the keyboard, and go on."""
    heading = page.locator("h1")
    before = heading.inner_text()
    page.keyboard.press(key)
    page.keyboard.press("Enter")
    expect(heading).not_to_have_text(before)

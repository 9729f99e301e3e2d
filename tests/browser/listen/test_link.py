"""Invited people at a link, in real browsers: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import json
import re

import pytest

from dia_demo.files import LISTEN_FILES, module_url
from dia_demo.services.listening.link.offline import write_offline_test
from dia_demo.services.listening.panel.offline import merge_results
from dia_demo.services.listening.panel.plan import SessionRules
from tests.helpers.page.accessibility import small_controls, violations
from tests.helpers.page.browser import DESKTOP, PHONE
from tests.services.listening.link.panels import PLAIN, make_panel

sync_api = pytest.importorskip("playwright.sync_api")
from tests.browser.listen.link_page import (  # noqa: E402
    answer,
    begin,
    listen,
    open_test,
    serve_tests,
)

pytestmark = pytest.mark.long

DONE = "All your answers are saved"


@pytest.fixture
def window(chromium):
    """A function that opens a browser window of its own."""
    contexts = []

    def open_one(size=DESKTOP, **options):
        contexts.append(chromium.new_context(viewport=size, **options))
        return contexts[-1]

    yield open_one
    for context in contexts:
        for page in context.pages:
            print(f"What the page said:\n{page.locator('body').inner_text()}\n")
        errors = [error for page in context.pages for error in getattr(page, "errors", [])]
        context.close()
        assert errors == []


def test_two_vote_at_once_and_one_loses_the_connection(window, tmp_path):
    """Bob's connection is away for two of his answers, and the confirmation of his first is lost:
    it is sent again, and counts once. His order and sides are not Ann's."""
    store, panel = make_panel(tmp_path, size=(2, 4), completion_code="C0DE-7")
    with serve_tests(store) as url:
        link = f"{url}/listen/{panel.plan.link}"
        ann = open_test(window(), f"{link}?PROLIFIC_PID=ann&STUDY_ID=s1")
        bob = open_test(window(PHONE, color_scheme="dark"), link)
        for page, name in ((ann, "Ann"), (bob, "")):
            begin(page, name)
        lost = []

        def lose(route):
            if lost:
                route.continue_()
                return
            lost.append(route.fetch().json())
            route.abort()

        bob.route("**/answers", lose)
        for page in (ann, bob):
            listen(page)
        # Both answers are under way before either is confirmed.
        for page in (ann, bob):
            page.keyboard.press("Shift+Digit1")
        for page in (ann, bob):
            page.keyboard.press("Enter")
        for page in (ann, bob):
            sync_api.expect(page.locator("h1")).to_have_text("2 of 4")
        sync_api.expect(bob.locator("main")).to_have_attribute("data-waiting", "0")
        assert lost[0]["results"][0]["state"] == "counted"
        # The clips of the next trials are there already.
        listen(bob)
        bob.wait_for_timeout(1000)
        bob.context.set_offline(True)
        answer(bob)
        listen(bob)
        answer(bob)
        sync_api.expect(bob.locator("main")).to_have_attribute("data-waiting", "2")
        sync_api.expect(bob.locator(".status")).to_contain_text("The connection is lost")
        for _ in range(3):
            listen(ann)
            answer(ann, "Shift+Digit2")
        sync_api.expect(ann.get_by_text(DONE)).to_be_visible()
        sync_api.expect(ann.locator(".code")).to_contain_text("C0DE-7")
        bob.context.set_offline(False)
        sync_api.expect(bob.locator("main")).to_have_attribute("data-waiting", "0")
        listen(bob)
        answer(bob)
        sync_api.expect(bob.get_by_text(DONE)).to_be_visible()
    first, second = panel.raters()
    votes = panel.votes()
    assert [len(votes[rater.id]) for rater in (first, second)] == [4, 4]
    lines = (panel.folder / "votes.csv").read_text().splitlines()
    assert len(lines) == 9, "a head and eight votes"
    assert [rater.name for rater in (first, second)] == ["Ann", ""]
    assert first.recruitment == {"PROLIFIC_PID": "ann", "STUDY_ID": "s1"} and first.finished
    heard = [
        [(screen.item, screen.systems) for screen in panel.screens(rater.session).values()]
        for rater in (first, second)
    ]
    assert [item for item, _ in heard[0]] != [item for item, _ in heard[1]], "another order"
    assert sorted(heard[0]) != sorted(heard[1]), "other sides"


def test_a_test_in_a_folder_runs_from_the_disk(window, tmp_path):
    """Opened as a file: its answers stay in the browser over a reload, and its results file is
    merged once."""
    import zipfile

    _, panel = make_panel(tmp_path / "home", "cmos", size=(2, 2))
    with zipfile.ZipFile(write_offline_test(panel, tmp_path / "test.zip")) as archive:
        archive.extractall(tmp_path / "unpacked")
    page = open_test(window(accept_downloads=True), (tmp_path / "unpacked/index.html").as_uri())
    begin(page, "Cleo")
    listen(page)
    page.get_by_label("Slightly better").check()
    page.get_by_label("Note").fill("a note")
    page.reload()
    sync_api.expect(page.get_by_label("Slightly better")).to_be_checked()
    page.locator('.trial[data-ready="true"]').wait_for()
    page.locator("main").press("Enter")
    sync_api.expect(page.locator("h1")).to_have_text("2 of 2")
    listen(page)
    page.get_by_label("Much worse").check()
    page.get_by_role("button", name="Save and go on").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Save the results").click()
    contents = download.value.path().read_bytes()
    assert merge_results(panel, contents).added == 2
    assert merge_results(panel, contents).known == 2
    (rater,) = panel.raters()
    assert rater.name == "Cleo" and rater.finished and rater.offline
    scores = sorted(vote.value["score"] for vote in panel.votes()[rater.id].values())
    assert scores == [-3, 1]
    assert {vote.note for vote in panel.votes()[rater.id].values()} == {"a note", ""}


@pytest.mark.parametrize("design", ["abx", "mushra", "bws", "mos"])
def test_every_design_can_be_answered(window, tmp_path, design):
    """With training, a break and a reload in the middle; by mouse, on a phone. No page of it lacks
    what axe-core asks for, or has a control too small for a finger."""
    size = (2, 2) if design in ("abx", "mos") else (3, 2)
    rules = SessionRules(**(vars(PLAIN) | {"training": 1, "break_every": 1}))
    more = {"reference": 0} if design == "mushra" else {}
    store, panel = make_panel(
        tmp_path, design, size, trials=2, session=rules, attributes=("voice", "noise"), **more
    )
    with serve_tests(store) as url:
        scheme = "dark" if design in ("mushra", "mos") else "light"
        context = window(PHONE, color_scheme=scheme, bypass_csp=True)
        page = open_test(context, f"{url}/listen/{panel.plan.link}")
        page.get_by_label("I agree to take part").wait_for()
        lacks = [violations(page), small_controls(page)]
        begin(page)
        sync_api.expect(page.locator("h1")).to_contain_text("Training 1 of 1")
        for number in range(3):
            listen(page)
            fill_in(page, design)
            page.get_by_label("Noise").check()
            lacks += [violations(page), small_controls(page)]
            if number == 1:
                page.reload()
                sync_api.expect(page.get_by_label("Noise")).to_be_checked()
            page.locator('.trial[data-ready="true"]').wait_for()
            page.get_by_role("button", name="Save and go on").click()
            if number == 1:
                lacks.append(violations(page))
                page.get_by_role("button", name="Go on").click()
        sync_api.expect(page.get_by_text(DONE)).to_be_visible()
        lacks.append(violations(page))
        assert not any(lacks), lacks
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    (votes,) = panel.votes().values()
    assert len(votes) == 2 and {vote.attributes for vote in votes.values()} == {"noise"}


def fill_in(page, design: str) -> None:
    if design == "mushra":
        for slider in page.locator(".slider input").all():
            slider.focus()
            slider.press("ArrowRight")
    elif design == "bws":
        page.locator(".best").get_by_label("Clip 1").check()
        page.locator(".worst").get_by_label("Clip 3").check()
    else:
        page.get_by_label({"abx": "X is clip 2", "mos": "Good"}[design], exact=True).check()


def test_a_test_that_is_closed_meanwhile_says_so(window, tmp_path):
    store, panel = make_panel(tmp_path, size=(2, 2))
    with serve_tests(store) as url:
        page = open_test(window(), f"{url}/listen/{panel.plan.link}")
        begin(page)
        listen(page)
        panel.close()
        page.keyboard.press("Shift+Digit1")
        page.keyboard.press("Enter")
        sync_api.expect(page.get_by_role("heading", name="This test is closed")).to_be_visible()
        sync_api.expect(page.locator(".status")).to_contain_text("not counted")
    assert not panel.votes()


def test_a_part_of_a_long_clip_is_repeated(window, tmp_path):
    store, panel = make_panel(tmp_path, size=(2, 1), seconds=9.0)
    with serve_tests(store) as url:
        page = open_test(window(), f"{url}/listen/{panel.plan.link}")
        begin(page)
        sync_api.expect(page.locator(".clip:enabled")).to_have_count(2)
        page.get_by_label("Repeat", exact=True).check()
        page.keyboard.press("1")
        time, part = page.locator(".lab-time"), re.compile(r"part 0\.0 to (\d\.\d) s")
        sync_api.expect(time).to_contain_text(re.compile(r"Clip 1: [1-8]\.\d"))
        page.keyboard.press("t")
        sync_api.expect(time).to_contain_text(part)
        end = float(part.search(time.inner_text())[1])
        assert 0.5 <= end < 9.0
        # Twice around, and it has not left the part.
        page.wait_for_timeout(2000 * end + 500)
        playing = page.locator('.clip[aria-pressed="true"]')
        sync_api.expect(playing).to_have_count(1)
        assert float(re.search(r": (\d\.\d) of", time.inner_text())[1]) <= end
        page.keyboard.press("w")
        sync_api.expect(time).not_to_contain_text("part")


def test_a_turned_tone_cancels_out_over_loudspeakers_alone(window):
    """The samples of the headphone check, made in the browser."""
    page = window().new_page()
    url = module_url(LISTEN_FILES / "headphones.js")
    tones = page.evaluate(
        """async (url) => {
          const { samplesOf } = await import(url);
          return samplesOf(["loud", "quiet", "turned"]).map((ear) => [...ear]);
        }""",
        url,
    )
    left, right = tones
    third = len(left) // 3
    parts = [(left[at : at + third], right[at : at + third]) for at in (0, third, 2 * third)]
    loud, quiet, turned = (
        (sum(a * a for a in one), sum((a + b) ** 2 for a, b in zip(one, other, strict=True)))
        for one, other in parts
    )
    assert turned[1] < 1e-9 < quiet[1] < loud[1], "both ears together"
    assert quiet[0] < turned[0] == pytest.approx(loud[0]), "one ear alone"


# Keeps which third of a sound with two channels is the quietest in its first channel: what somebody
# with headphones answers; and which is the quietest in both together, as over loudspeakers.
OVERHEAR = """
  const start = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function (...args) {
    if (this.buffer.numberOfChannels === 2) {
      const [left, right] = [0, 1].map((channel) => this.buffer.getChannelData(channel));
      const third = Math.floor(left.length / 3);
      const quietest = (value) => {
        const sums = [0, 0, 0];
        for (let at = 0; at < 3 * third; at += 1) sums[Math.floor(at / third)] += value(at) ** 2;
        return sums.indexOf(Math.min(...sums));
      };
      window.overheard = {
        headphones: quietest((at) => left[at]),
        loudspeakers: quietest((at) => left[at] + right[at]),
      };
    }
    return start.apply(this, args);
  };
"""


def test_who_wears_headphones_passes_their_check(window, tmp_path):
    """Six rounds of tones are played and judged by what the samples are; over loudspeakers the
    same check is failed, and may be tried again."""
    rules = SessionRules(**(vars(PLAIN) | {"headphone_check": True}))
    store, panel = make_panel(tmp_path, size=(2, 1), session=rules)
    with serve_tests(store) as url:
        context = window()
        context.add_init_script(OVERHEAR)
        page = open_test(context, f"{url}/listen/{panel.plan.link}")
        page.get_by_label("I agree to take part").check()
        page.get_by_role("button", name="Start").click()
        page.get_by_role("button", name="The volume is right").click()
        judge_tones(page, "loudspeakers")
        page.get_by_role("heading", name="This did not sound like headphones").wait_for()
        page.get_by_role("button", name="Try again").click()
        judge_tones(page, "headphones")
        page.locator(".trial").wait_for()
        listen(page)
        answer(page)
        sync_api.expect(page.get_by_text(DONE)).to_be_visible()
    (rater,) = panel.raters()
    assert rater.headphones is True


def judge_tones(page, by: str) -> None:
    """The rounds of the headphone check, answered as one hears them by headphones or
    loudspeakers."""
    for number in range(1, 7):
        sync_api.expect(page.locator(".check [role=status]")).to_contain_text(f"Round {number} of")
        page.get_by_role("button", name="Play the three tones").click()
        choices = page.get_by_role("group", name="Which tone is the quietest?")
        sync_api.expect(choices.locator("button:enabled")).to_have_count(3)
        choices.get_by_role("button").nth(page.evaluate("overheard")[by]).click()


def test_a_listener_without_headphones_goes_on_and_is_noted(window, tmp_path):
    rules = SessionRules(**(vars(PLAIN) | {"headphone_check": True}))
    store, panel = make_panel(tmp_path, size=(2, 1), session=rules)
    with serve_tests(store) as url:
        page = open_test(window(), f"{url}/listen/{panel.plan.link}")
        # As after a check that was not passed.
        page.evaluate(
            "([name, value]) => localStorage.setItem(name, value)",
            [f"dia-listen-{panel.plan.link}-headphones", json.dumps(False)],
        )
        begin(page)
        listen(page)
        answer(page)
        sync_api.expect(page.get_by_text(DONE)).to_be_visible()
    (rater,) = panel.raters()
    assert rater.headphones is False

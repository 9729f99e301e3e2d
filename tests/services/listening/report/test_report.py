"""What a test gives to take away: one page without anything from elsewhere, a table, JSON."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re

import pytest

from dia_demo.errors import InputError
from dia_demo.services.listening.panel.analysis.ending import reveal_panel
from dia_demo.services.listening.panel.plan import Goal
from dia_demo.services.listening.report.charts import chart_of, nice_step
from dia_demo.services.listening.report.files import report_page, test_json, votes_csv
from dia_demo.services.listening.report.methods import methods_of
from tests.services.listening.panel.helpers import make_panel, new_id, take_test

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    """A test that three listeners took, before its end; one has a hostile name."""
    goal = Goal("noninferiority", 0.5)
    folder = tmp_path_factory.mktemp("panel") / "x"
    panel = make_panel(folder, "cmos", raters=2, items=4, goal=goal, title="Old & new")
    for seed in range(3):
        take_test(panel, 0.4, seed)
    panel.start_rater(new_id(), HOSTILE)
    return panel


@pytest.fixture(scope="module")
def revealed(panel):
    reveal_panel(panel)
    return panel


class Checker(html.parser.HTMLParser):
    """The tags of a page, and the addresses that it names."""

    def __init__(self):
        super().__init__()
        self.tags, self.addresses = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset")]


def test_before_the_reveal_nothing_names_a_side(panel):
    for write in (report_page, votes_csv):
        with pytest.raises(InputError, match="reveal the result first"):
            write(panel)
    told = json.dumps(test_json(panel))
    assert '"contrasts": []' in told and '"scripts": []' in told and '"verdict": "open"' in told
    for secret in (panel.plan.key, panel.plan.invitation.token, *panel.plan.clips.values()):
        assert secret not in told


def test_the_report_is_one_file_with_its_numbers(revealed):
    page = report_page(revealed).decode()
    checker = Checker()
    checker.feed(page)
    assert checker.addresses == [] and "script" not in checker.tags and "url(" not in page
    assert checker.tags.count("svg") == 3, "leads, scripts, listeners"
    assert "Old &amp; new" in page and "&lt;script&gt;" in page
    assert re.search(r"answered 0 of \d+ screens", page), "why somebody is left out"
    for words in ("4 listeners began and 3 completed", "(CMOS, ITU-T P.800", "0.5 points of CMOS"):
        assert words in page


def test_methods_follow_from_the_plan_alone(tmp_path):
    panel = make_panel(tmp_path / "x", "mushra", systems=3, reference=0)
    text = methods_of(panel)
    assert "system 0 was the open and hidden reference" in text and "BS.1534" in text
    assert "0 listeners began" in text and "null pair" not in text


def test_the_table_has_a_row_for_each_vote(revealed):
    rows = list(csv.DictReader(io.StringIO(votes_csv(revealed).decode())))
    assert len(rows) == sum(one.answered for one in revealed.progress())
    main = [row for row in rows if row["part"] == "main"]
    assert len(main) == 3 * revealed.plan.trials
    scores = [int(row["scores"]) for row in main]
    assert min(scores) < 0, "a negative number is a number"
    assert all(row["time"] and row["systems"].count("system") == 2 for row in main)


@pytest.mark.parametrize("span", [0.03, 0.5, 1.0, 3.7, 60.0, 12000.0])
def test_axes_have_few_round_steps(span):
    step = nice_step(span)
    assert span / 6 < step <= span and f"{step:e}"[0] in "125"


def test_intervals_beyond_the_axis_stay_inside(revealed):
    drawn = chart_of("x", [("a", 1.0, -2.0, 4.0), ("b", 0.0, 0.0, 0.0)], [-9.0], null=0.0)
    places = [float(at) for at in re.findall(r'(?:x1|x2|cx)="([\d.]+)"', drawn)]
    assert min(places) >= 0 and max(places) <= 480

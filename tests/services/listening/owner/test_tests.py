"""Tests of a person: made from takes or clips, within the space of comparisons; ordered ones."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pytest
import soundfile

from dia_demo.errors import InputError
from dia_demo.services.listening.owner import jobs
from dia_demo.services.listening.owner.jobs import JobState, TestJobs
from dia_demo.services.listening.owner.options import PanelOptions
from dia_demo.services.listening.owner.tests import OwnTests, items_of
from dia_demo.services.listening.panel.analysis.ending import reveal_panel
from dia_demo.services.listening.panel.analysis.table import long_table
from dia_demo.services.listening.panel.stimuli import from_comparison
from dia_demo.services.listening.panel.store import PANEL, PanelStore, panel_folder
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import new_key
from tests.helpers.comparisons import SCRIPTS
from tests.services.listening.panel.helpers import make_panel, take_test

OPTIONS = PanelOptions(design="cmos", raters=2, training=1)


@pytest.fixture
def own(synthesis, tmp_path):
    return OwnTests(PanelStore(tmp_path), ComparisonStore(tmp_path, synthesis))


def test_a_plan_knows_its_items_before_there_are_takes(finished):
    assert items_of(finished.plan) == from_comparison(finished).items


def test_uploaded_clips_become_a_test_with_a_link(own, tmp_path):
    random, key = np.random.default_rng(1), new_key()
    for system in ("old", "new"):
        (tmp_path / "clips" / system).mkdir(parents=True)
        for sentence in ("a", "b"):
            wave = random.normal(0, 0.1, 16_000)
            soundfile.write(tmp_path / "clips" / system / f"{sentence}.flac", wave, 16_000)
    panel = own.from_clips(key, tmp_path / "clips", OPTIONS)
    assert panel.plan.systems == ("new", "old") and len(panel.plan.items) == 2
    assert own.panels.by_link(panel.plan.link) is panel
    with pytest.raises(InputError):
        own.panels.get(new_key(), panel.plan.id)


def test_tests_share_the_space_of_comparisons(own, tmp_path):
    (tmp_path / "somebody" / "panels" / "x").mkdir(parents=True)
    (tmp_path / "somebody" / "panels" / "x" / "clip.wav").write_bytes(bytes(1000))
    own.comparisons.limit = 1500
    own.comparisons.make_room(500)
    with pytest.raises(InputError, match="no room"):
        own.comparisons.make_room(501)


def test_the_link_of_a_shared_test_opens_it_and_nothing_else(synthesis, tmp_path):
    panel = make_panel(tmp_path / "shared" / PANEL)
    folder = panel_folder(tmp_path / "shared")
    assert folder == panel.folder == panel_folder(folder)
    store = PanelStore(tmp_path / "kept", folder)
    assert store.by_link(panel.plan.link).plan == panel.plan
    wrong = panel.plan.link[:-1] + ("0" if panel.plan.link[-1] != "0" else "1")
    with pytest.raises(InputError, match="no listening test"):
        store.by_link(wrong)


def wait_for(job):
    for _ in range(6000):
        if job.state is not JobState.MAKING:
            return job
        time.sleep(0.01)
    raise AssertionError("the order was not made")


def test_an_order_becomes_a_test_and_leaves_no_comparison(own, two_settings):
    key, plan = new_key(), make_plan("preference", two_settings, SCRIPTS, (1,))
    orders = TestJobs(own)
    job = orders.begin(key, plan, OPTIONS, threading.Event())
    assert orders.find(key, job.plan.id) is job and orders.find(new_key(), job.plan.id) is None
    assert wait_for(job).state is JobState.READY and job.pairs_made == job.pairs == 2
    panel = own.panels.by_link(job.plan.link)
    assert panel.plan.systems == job.plan.systems and own.comparisons.list(key) == []
    take_test(panel, 0.5, 1)
    reveal_panel(panel, early=True)
    main = next(row for row in long_table(panel) if row["part"] == "main")
    settings = main["settings"].split(" | ")
    assert sorted(json.loads(one)["temperature"] for one in settings) == [0.7, 1.9]


def test_an_order_goes_on_after_a_restart(own, two_settings):
    """The program ends before the first take; asked by its owner, the next one makes the test."""
    key, cancel = new_key(), threading.Event()
    cancel.set()
    plan = make_plan("preference", two_settings, SCRIPTS, (1,))
    job = wait_for(TestJobs(own).begin(key, plan, OPTIONS, cancel))
    assert job.state is JobState.FAILED and job.message == jobs.STOPPED
    test, orders = job.plan.id, TestJobs(own)
    assert orders.find(new_key(), test) is None and orders.find(key, "0" * 24) is None
    assert wait_for(orders.find(key, test)).state is JobState.READY
    assert own.panels.get(key, test).plan.systems and own.comparisons.list(key) == []
    assert TestJobs(own).find(key, test) is None, "what is made is no order"

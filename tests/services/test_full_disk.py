"""A disk that is full: one sentence, nothing half written, and all goes on when there is space."""

from __future__ import annotations

import shutil
import threading

import pytest

from dia_demo.errors import RunError
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.render import RenderEnded
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import new_key
from tests.helpers.comparisons import HEARD, SCRIPTS
from tests.helpers.stand_ins.disks import fill, mount_disk


@pytest.fixture
def disk(tmp_path):
    with mount_disk(tmp_path / "disk", "2m") as folder:
        yield folder


@pytest.fixture
def on_disk(disk, finished):
    """The finished pairs on the small disk, to vote on."""
    shutil.copytree(finished.folder, disk / "dir")
    return Comparison.open(disk / "dir")


def test_a_vote_that_cannot_be_written_does_not_count(on_disk, disk):
    filler = fill(disk)
    # A full disk has no room for the file; what is left of its first page later takes some lines.
    with pytest.raises(RunError, match="vote could not be saved: No space left.*Free some space"):
        on_disk.vote(on_disk.plan.trials[0].id, "A", HEARD)
    assert on_disk.votes == {}
    filler.unlink()
    on_disk.vote(on_disk.plan.trials[0].id, "A", HEARD)
    filler = fill(disk)
    with pytest.raises(RunError, match="vote could not be saved"):
        for trial in on_disk.plan.trials[1:]:
            on_disk.vote(trial.id, "B", HEARD, note="🎧" * 500)
    counted = on_disk.votes.keys()
    assert Comparison.open(on_disk.folder).votes.keys() == counted
    filler.unlink()
    left = next(trial for trial in on_disk.plan.trials if trial.id not in counted)
    on_disk.vote(left.id, "B", HEARD)
    assert Comparison.open(on_disk.folder).votes == on_disk.votes


def test_a_reveal_that_cannot_be_written_leaves_the_test_blind(on_disk, disk):
    on_disk.vote(on_disk.plan.trials[0].id, "A", HEARD)
    filler = fill(disk)
    with pytest.raises(RunError, match="plan.json could not be written"):
        on_disk.reveal()
    assert not on_disk.is_unblinded and not Comparison.open(on_disk.folder).is_unblinded
    filler.unlink()
    on_disk.reveal()
    assert Comparison.open(on_disk.folder).is_unblinded


def test_a_comparison_that_cannot_be_written_leaves_nothing(disk, two_settings, synthesis):
    store, key = ComparisonStore(disk / "kept", synthesis), new_key()
    plan = make_plan("preference", two_settings, SCRIPTS, [1])
    filler = fill(disk)
    with pytest.raises(RunError, match="plan.json could not be written"):
        store.create(key, plan)
    assert [path for path in disk.glob("kept/*/comparisons/*")] == [] and store.list(key) == []
    filler.unlink()
    assert store.get(key, store.create(key, plan)).plan.scripts == SCRIPTS


def test_takes_that_cannot_be_written_are_made_when_there_is_space(disk, two_settings, synthesis):
    plan = make_plan("preference", two_settings, SCRIPTS[:1], [1])
    comparison = Comparison.create(disk / "dir", plan, synthesis)
    (disk / "dir" / "clips").mkdir()
    (disk / "dir" / "takes").mkdir()
    filler = fill(disk)
    with pytest.raises(RunError, match="could not be written: No space left"):
        list(comparison.run(synthesis, threading.Event()))
    assert Comparison.open(disk / "dir").plan.scripts == plan.scripts and not comparison.running
    filler.unlink()
    ended = list(comparison.run(synthesis, threading.Event()))[-1]
    assert isinstance(ended, RenderEnded) and ended.pairs_made == ended.pairs == 1

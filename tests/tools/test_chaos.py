"""The faults of tools/chaos in their short form. Those of a cluster are tests/server/cluster."""

import pytest

from tools.chaos import app_faults, write_faults
from tools.chaos.__main__ import run
from tools.chaos.scenario import NotHere, Scenario, check

SCENARIOS = [*app_faults.SCENARIOS, *write_faults.SCENARIOS]


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: f"{each.fault}, {each.during}")
def test_nothing_is_lost(scenario, tmp_path):
    try:
        assert scenario.run(tmp_path, True)
    except NotHere as reason:
        pytest.skip(str(reason))


def scenario_of(happens) -> Scenario:
    return Scenario("a fault", "a take", "nothing is lost", lambda folder, short: happens(folder))


def test_what_is_lost_is_told():
    """A scenario that could not fail would prove nothing."""
    assert run(scenario_of(lambda folder: f"seen {folder.is_dir()}"), True) == ("held", "seen True")
    lost = run(scenario_of(lambda folder: check(False, "3 votes are lost")), True)
    assert lost == ("LOST", "AssertionError: 3 votes are lost")


def test_what_a_machine_cannot_have_is_no_success():
    def cannot(folder):
        raise NotHere("no disk")

    assert run(scenario_of(cannot), True) == ("not run", "no disk")

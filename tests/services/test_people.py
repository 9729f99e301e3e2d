"""What the visitors of one address may keep in a day."""

import pytest

from dia_demo.errors import BusyError, InputError
from dia_demo.services.people import DAY_SECONDS, Allowance, Visitor

HERE, ELSEWHERE = Visitor("192.0.2.1", "a"), Visitor("192.0.2.2", "b")


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_an_address_has_an_allowance_for_a_day():
    clock = Clock()
    allowance = Allowance(2, "voices", clock)
    with allowance.spend(HERE):
        pass
    with pytest.raises(InputError, match="no name"), allowance.spend(HERE):
        raise InputError("no name")  # Nothing was kept.
    clock.seconds = 100
    with allowance.spend(Visitor(HERE.address, "another session")):
        pass
    with pytest.raises(BusyError, match="2 voices") as refused, allowance.spend(HERE):
        raise AssertionError("the block must not run")
    assert refused.value.retry_seconds == DAY_SECONDS - 100
    with allowance.spend(ELSEWHERE):
        pass
    clock.seconds = DAY_SECONDS
    with allowance.spend(HERE):
        pass

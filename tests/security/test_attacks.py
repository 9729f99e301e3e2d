"""No attack on a running app succeeds; `python -m tests.security` prints all of them as a table."""

from __future__ import annotations

import pytest

from tests.security import access, files, load
from tests.security.__main__ import row_of, running
from tests.security.client import Attack

# Hundreds of calls, and a second app to start.
LONG = (load.refused_calls, files.second_app_on_folder)


def cases(*attacks: Attack) -> list:
    marks = {attack: [pytest.mark.long] * (attack in LONG) for attack in attacks}
    return [pytest.param(attack, id=attack.what, marks=marks[attack]) for attack in attacks]


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    with running(tmp_path_factory.mktemp("attacked") / "app") as app:
        yield app


@pytest.mark.parametrize("attack", cases(*load.QUICK, *files.QUICK, *access.QUICK))
def test_an_app_withstands(app, attack):
    row = row_of(attack, app)
    assert row.withstood, f"expected: {row.expected}; found: {row.found}"


def test_an_app_leaves_no_temporary_files(app):
    """The last attack, because it ends the app."""
    row = row_of(files.temporary_files, app)
    assert row.withstood, row.found

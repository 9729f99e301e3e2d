"""No attack on a running app succeeds; `python -m tests.security` prints all of them as a table."""

from __future__ import annotations

import pytest

from tests.security import access, files, listening, load, programs
from tests.security.__main__ import row_of, run_app

pytestmark = pytest.mark.long
ATTACKS = (*load.QUICK, *files.QUICK, *access.QUICK, *programs.QUICK, *listening.QUICK)


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    with run_app(tmp_path_factory.mktemp("attacked") / "app") as app:
        yield app


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what)
def test_an_app_withstands(app, attack):
    row = row_of(attack, app)
    assert row.withstood, f"expected: {row.expected}; found: {row.found}"


def test_no_token_is_shown(tmp_path):
    row = row_of(programs.tokens, tmp_path / "home")
    assert row.withstood, row.found


def test_an_app_leaves_no_temporary_files(app):
    """The last attack, because it ends the app."""
    row = row_of(files.temporary_files, app)
    assert row.withstood, row.found

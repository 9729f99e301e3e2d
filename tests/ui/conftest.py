"""Fixtures of the page's tests: settings of a side of a comparison, as quick as they get."""

import pytest


@pytest.fixture(scope="session")
def side_values(synthesis):
    """A side's field values: takes of 60 tokens."""
    from dia_demo.ui.compare.form.fields import default_side

    return default_side(synthesis, synthesis.settings.runtime.model) | {"max_tokens": 60}

"""The plan of a comparison that is made again, and why uploaded clips cannot be."""

from __future__ import annotations

from dataclasses import replace

from dia_demo.errors import InputError
from dia_demo.services.listening.plan.plan import ComparisonPlan

UPLOADED_ONCE = (
    "The clips of this comparison were uploaded, so they cannot be generated again: start a new "
    "comparison with the same files."
)


def rebuild_plan(plan: ComparisonPlan) -> ComparisonPlan:
    """The plan of a new comparison with the same pairs: nothing generated, nothing revealed.

    Raises InputError for uploaded clips, which nothing can generate.
    """
    if plan.is_uploaded:
        raise InputError(UPLOADED_ONCE)
    return replace(plan.clear_takes(), revealed=False, sound_removed=False)

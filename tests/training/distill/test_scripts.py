"""training/distill: the scripts that a teacher speaks."""

from __future__ import annotations

from itertools import islice

import pytest

from training.distill import scripts
from training.voice.corpus.natural import DICTIONARY


@pytest.mark.skipif(not DICTIONARY.exists(), reason="training needs Debian's wamerican")
def test_the_grammar_writes_short_scripts_and_dialogues_within_the_limit():
    drawn = list(islice(scripts.draw_scripts(3, 420), 20))
    assert drawn[:3] == list(islice(scripts.draw_scripts(3, 420), 3)), "the seed decides"
    assert max(map(len, drawn)) <= 420
    assert max(map(len, islice(scripts.draw_scripts(3, 60), 3))) <= 60
    turns = [sum(script.count(bytes([tag])) for tag in (1, 2)) for script in drawn]
    assert min(turns) == 1 and sum(count >= 6 for count in turns) > 4

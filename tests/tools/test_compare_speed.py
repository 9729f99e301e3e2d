"""The comparison with transformers: it runs what the program runs, and prints ratios."""

from __future__ import annotations

from dia_demo.services.measurements.fixtures import load_engine
from dia_demo.services.measurements.types import Job, JobKind
from tools import compare_speed


def test_a_side_of_ours_takes_a_step_at_a_time():
    job = Job(JobKind.RUN, random="tiny", precision="float32", threads=1)
    engine = load_engine(job, lambda *_: None)
    step = compare_speed.ours(engine.model, 2, 40)
    times = compare_speed.take_turns({"ours, float32, 2 together": step}, steps=5)
    assert [len(seconds) for seconds in times.values()] == [compare_speed.TURN]


def test_ratios_are_those_of_the_medians(capsys):
    name = compare_speed.THEIRS + ", bfloat16"
    compare_speed.print_times({"ours, int8": [0.02, 0.03, 0.9], name: [0.09, 0.09, 0.08]})
    assert "3.00 times as fast" in capsys.readouterr().out

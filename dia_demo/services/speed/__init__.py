"""The speed of this machine, and the expected time of a take.

quick.py measures a few rates, and background.py runs it while nobody generates. machine_speed.py
stores them as Rates (rates.py) and learns from takes; estimate.py derives the time of a take.
run_estimate.py follows a run.
"""

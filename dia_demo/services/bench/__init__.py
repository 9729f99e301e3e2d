"""The benchmark: what this machine could do, and how near the program comes to it.

plan.py says what to measure, runner.py runs it (every measurement in a process of its own, see
worker.py), report.py holds the figures. hardware.py, codec.py, steps.py and quality.py measure.
"""

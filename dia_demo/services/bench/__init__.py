"""The benchmark: the limits of this machine, and how close the program comes to them.

plan.py defines what to measure, runner.py runs it (each of services/measurements in its own
process, see services/worker), report.py contains the figures.
"""

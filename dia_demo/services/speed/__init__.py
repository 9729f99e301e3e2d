"""How fast this machine makes takes, and so how long one will take.

quick.py measures a few rates, background.py when nobody generates; machine_speed.py keeps them and
learns from takes; estimate.py derives the time of a take.
"""

"""Work in a process of its own, with its progress: measurements and calibrations.

worker.py starts it and listens, child.py is what runs there, messages.py is what they exchange.
"""

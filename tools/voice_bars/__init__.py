"""What `tools/check_voices.py` measures, a module for each group of bars."""

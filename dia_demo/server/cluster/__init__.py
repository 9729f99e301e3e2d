"""Engines as replicas of Ray Serve, on one machine or many: see docs/scale.md."""

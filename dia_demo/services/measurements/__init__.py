"""Measurements of this machine: each is a job, which `services/worker` runs in its own process."""

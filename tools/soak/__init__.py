"""Many clients at once on the running app, and what became of their requests."""

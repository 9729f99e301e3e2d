"""The routes of invited listeners."""

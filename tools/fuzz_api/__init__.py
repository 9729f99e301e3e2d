"""Requests by chance to the routes for programs, and what came back."""

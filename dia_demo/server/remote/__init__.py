"""The engine of this process as a route for other servers (services/remote)."""

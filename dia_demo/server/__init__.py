"""The web server above the page: one ASGI application, its limits, and uvicorn, which runs it."""

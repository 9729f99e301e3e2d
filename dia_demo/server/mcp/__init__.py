"""Tools for agents by the Model Context Protocol: `python app.py --mcp`."""

"""The checks of a script: what they find, and the report that pages and programs get."""

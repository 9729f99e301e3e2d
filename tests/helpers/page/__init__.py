"""The page in tests: a real browser, and the page without one."""

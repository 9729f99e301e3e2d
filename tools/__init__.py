"""Tools for contributors; the app runs without them."""

import dia_demo  # noqa: F401  Applies DIA_CPU, which must come before torch is loaded.

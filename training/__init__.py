"""How the embedded voice is trained and checkpoints distilled. The app runs without it."""

import dia_demo  # noqa: F401  Applies DIA_CPU, which must come before torch is loaded.

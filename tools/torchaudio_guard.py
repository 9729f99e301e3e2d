"""Let transformers be imported beside a torchaudio that does not load.

descript-audio-codec installs a torchaudio that may be built for another torch, and transformers
imports it wherever it is installed. The app itself does not use transformers; its codec has its
own care (dia_demo/codec/files.py).
"""

import sys


def hide_broken_torchaudio() -> None:
    """Make a torchaudio that does not load look as if it were not installed."""
    try:
        import torchaudio  # noqa: F401
    except (ImportError, OSError):
        sys.modules["torchaudio"] = None

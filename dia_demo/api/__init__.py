"""The Python API. `import dia_demo` offers these names, and loads them when they are used."""

from dia_demo.api.model import Model, load
from dia_demo.api.stream import BatchError, Stream
from dia_demo.errors import DiaDemoError, InputError, RunError
from dia_demo.services.take import Take

__all__ = [
    "BatchError", "DiaDemoError", "InputError", "Model", "RunError", "Stream", "Take", "load",
]  # fmt: skip

"""The page.

Whenever gradio is imported, it writes type stubs of its components beside its sources, which takes
two fifths of the time. Nothing reads them, so this package, which is imported before gradio, leaves
that out (gradio/component_meta.py).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_MODULE, _WRITE_STUBS = "gradio.component_meta", "create_or_modify_pyi"


class _WithoutStubs(MetaPathFinder):
    """Finds gradio's module as usual, and replaces its function once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                vars(module)[_WRITE_STUBS] = lambda *_: None

            vars(spec.loader)["exec_module"] = exec_module
        return spec


if _MODULE not in sys.modules:
    sys.meta_path.insert(0, _WithoutStubs())

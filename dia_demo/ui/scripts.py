"""The page's JavaScript modules, as gradio's `js_on_load` takes them: one string.

The modules travel inside that string, as data URLs. So they need no route of the server's, and a
browser that has kept an older version never mixes it with a newer one.
"""

from __future__ import annotations

import json
from pathlib import Path

from dia_demo.files import module_url

# gradio calls a component's script with these.
_PARAMETERS = "element, props, server, trigger, watch"


def start_class(module: Path, name: str, **constants: str) -> str:
    """A script that makes an object of the class `name`, which `module` exports, from gradio's
    parameters and from constants."""
    named = "".join(f", {constant}: {json.dumps(value)}" for constant, value in constants.items())
    arguments = f"{{ {_PARAMETERS}{named} }}"
    return f'import("{module_url(module)}").then((module) => new module.{name}({arguments}));'

"""The page's JavaScript modules, as gradio's `js_on_load` takes them: one string.

The modules travel inside that string, as data URLs. So they need no route of the server's, and a
browser that has kept an older version never mixes it with a newer one.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

_IMPORT = re.compile(r'(?<= from )"\./([\w-]+\.js)"')
# gradio calls a component's script with these.
_PARAMETERS = "element, props, server, trigger, watch"


def start_class(module: Path, name: str, **constants: str) -> str:
    """A script that makes an object of the class `name`, which `module` exports, from gradio's
    parameters and from constants."""
    named = "".join(f", {constant}: {json.dumps(value)}" for constant, value in constants.items())
    arguments = f"{{ {_PARAMETERS}{named} }}"
    return f'import("{_url_of(module)}").then((module) => new module.{name}({arguments}));'


def _url_of(module: Path) -> str:
    source = module.read_text(encoding="utf-8")
    # A data URL has no folder that a relative import could start from.
    source = _IMPORT.sub(lambda match: f'"{_url_of(module.with_name(match[1]))}"', source)
    # The name that the browser's developer tools show.
    source += f"//# sourceURL={module.parent.name}/{module.name}\n"
    return "data:text/javascript;base64," + base64.b64encode(source.encode()).decode("ascii")

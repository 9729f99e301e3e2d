"""Starts the page: settings, services, page. Everything else lives in dia_demo."""

import gc
import os
import signal
import sys

# Loading leaves no garbage, and collections would take a quarter of its time. The server enables
# them (dia_demo/server/application.py).
gc.disable()

# isort: split
from dia_demo.errors import DiaDemoError
from dia_demo.server.address import Address

IS_PROGRAM = __name__ == "__main__"


def end_with(error: DiaDemoError) -> None:
    """End the program with an error for people, one line for each of its sentences."""
    sys.stderr.writelines(f"error: {line}\n" for line in str(error).splitlines())
    sys.exit(2)


if IS_PROGRAM:
    try:  # gradio reads the port when it is imported.
        Address.from_env()
    except DiaDemoError as error:
        end_with(error)

# isort: split
# Kernels that are not in the cache are compiled beside the imports below, which take as long.
from dia_demo.kernels.precompile import Precompilation

PRECOMPILATION = Precompilation(os.environ.get("DIA_PRECISION") or "auto") if IS_PROGRAM else None

# isort: split
from dia_demo.ui.space import zero_gpu  # noqa: F401 - on ZeroGPU, before torch

# isort: split
from dia_demo.machine.system import raise_descriptor_limit, share_malloc_arenas
from dia_demo.server.run import serve
from dia_demo.services.folders import app_folders
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.gradio_internals import configure_gradio
from dia_demo.ui.page import build_ui


def main() -> None:
    """Serve the page where GRADIO_SERVER_NAME and GRADIO_SERVER_PORT say."""
    share_malloc_arenas()
    raise_descriptor_limit()
    # SIGTERM ends the app as Ctrl-C does: what is temporary is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with app_folders(Settings.from_env()) as settings:
        configure_gradio(settings)
        synthesis = Synthesis(settings)
        try:
            synthesis.warm_up(PRECOMPILATION)
            serve(build_ui(synthesis), settings)
        finally:
            synthesis.close()
            if PRECOMPILATION is not None:
                PRECOMPILATION.close()


if __name__ == "__main__":
    try:
        main()
    except DiaDemoError as error:
        end_with(error)
    except KeyboardInterrupt:
        sys.exit(130)

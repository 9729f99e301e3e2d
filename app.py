"""Starts the page: settings, services, page. Everything else lives in dia_demo."""

import signal

from dia_demo.machine import share_malloc_arenas
from dia_demo.services.folders import held
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.build import build_ui, launch_options
from dia_demo.ui.serving import configure_gradio


def main() -> None:
    """Serve the page where GRADIO_SERVER_NAME and GRADIO_SERVER_PORT say."""
    share_malloc_arenas()
    # SIGTERM ends the app as Ctrl-C does: what is temporary is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with held(Settings.from_env()) as settings:
        configure_gradio(settings)
        synthesis = Synthesis(settings)
        synthesis.warm_up()
        build_ui(synthesis).launch(**launch_options(settings))


if __name__ == "__main__":
    main()

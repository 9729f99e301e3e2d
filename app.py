"""Starts the page: settings, services, page. Everything else lives in dia_demo."""

from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.build import build_ui, launch_options


def main() -> None:
    """Serve the page where GRADIO_SERVER_NAME and GRADIO_SERVER_PORT say."""
    settings = Settings.from_env()
    synthesis = Synthesis(settings)
    synthesis.warm_up()
    build_ui(synthesis).launch(**launch_options(settings))


if __name__ == "__main__":
    main()

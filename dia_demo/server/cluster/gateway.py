"""A gateway of a cluster: the routes for programs, whose takes the replicas make."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from ray import serve
from ray.serve.handle import DeploymentHandle
from starlette.types import ASGIApp

from dia_demo.machine.system import prepare_to_serve
from dia_demo.server.address import Address
from dia_demo.server.application import make_application
from dia_demo.server.cluster.engine import ClusterEngine
from dia_demo.server.remote.route import engine_router
from dia_demo.server.speech.api import SpeechApi
from dia_demo.services.folders import temporary_folder
from dia_demo.services.remote.synthesis import RemoteSynthesis
from dia_demo.services.settings import Settings
from dia_demo.services.speech.speaker import LocalSpeaker


@serve.ingress()
class Gateway:
    """Speaks the same HTTP as the app, without its page. host: where the cluster listens, which
    decides whether programs need a token."""

    def __init__(self, replicas: DeploymentHandle, host: str) -> None:
        prepare_to_serve()
        self._open, self._host = ExitStack(), host
        settings = Settings.from_env()
        folder = self._open.enter_context(temporary_folder(settings.takes_folder))
        settings = replace(settings, takes_folder=folder, engine="cluster")
        self._synthesis = RemoteSynthesis(settings, ClusterEngine(replicas))
        self._open.callback(self._synthesis.close)

    def __serve_build_asgi_app__(self) -> ASGIApp:  # noqa: N807 - Ray Serve's name
        synthesis = self._synthesis
        speech = SpeechApi.with_speaker(LocalSpeaker(synthesis), synthesis.settings)
        address = Address(self._host)
        routers = [engine_router(synthesis)]
        return make_application(None, synthesis.settings, speech, address, routers, synthesis)

    def __del__(self) -> None:
        self._open.close()

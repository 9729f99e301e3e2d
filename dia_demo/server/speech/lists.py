"""The lists of models and voices, on every path where clients look for them, without a token."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from dia_demo.server.errors import ApiError
from dia_demo.server.speech.routes import asker_of
from dia_demo.services.speech.catalogue import Catalogue

OWNER = "dia-demo"


def add_lists(router: APIRouter, catalogue: Catalogue) -> None:
    """Add the lists. Whoever sends a token also sees the voices kept with it."""

    @router.get("/v1/models")
    def models() -> dict[str, Any]:
        """The models, as OpenAI lists them."""
        return {"object": "list", "data": [_model(name) for name in catalogue.model_names()]}

    @router.get("/v1/models/{name:path}")
    def model(name: str) -> dict[str, Any]:
        """One of the models."""
        if name not in catalogue.model_names():
            raise ApiError(404, f"There is no model {name[:60]!r} here: see /v1/models.")
        return _model(name)

    @router.get("/v1/audio/models")
    def audio_models() -> dict[str, Any]:
        """The models, as Open WebUI lists them."""
        return {"models": [{"id": name} for name in catalogue.model_names()]}

    @router.get("/v1/audio/voices")
    def voices(request: Request) -> dict[str, Any]:
        """The voices: kept ones, the model's own, and OpenAI's names."""
        names = catalogue.voice_names(asker_of(request).owner)
        return {"voices": [{"id": name, "name": name} for name in names]}


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": OWNER}

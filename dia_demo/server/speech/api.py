"""The routes for programs, added to an application."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Depends, FastAPI

from dia_demo.server.speech.answers import Answers
from dia_demo.server.speech.lists import add_lists
from dia_demo.server.speech.questions import Questions
from dia_demo.server.speech.routes import SpeechRoutes
from dia_demo.server.speech.sillytavern import SillyTavernRoutes
from dia_demo.server.speech.voices import VoiceRoutes
from dia_demo.server.speech.websocket import add_websocket
from dia_demo.server.tokens import require_token, require_websocket_token
from dia_demo.services.settings import Settings
from dia_demo.services.speech.catalogue import Catalogue
from dia_demo.services.speech.speaker import Speaker


@dataclass(frozen=True)
class SpeechApi:
    """The routes for programs. speaker: makes the speech."""

    settings: Settings
    speaker: Speaker
    catalogue: Catalogue
    answers: Answers

    @classmethod
    def with_speaker(cls, speaker: Speaker, settings: Settings) -> SpeechApi:
        """Routes whose speech a speaker makes."""
        answers = Answers(speaker, settings.takes_folder / "answers")
        return cls(settings, speaker, Catalogue(settings), answers)

    def add_to(self, application: FastAPI) -> None:
        """Add the routes; those that make or change something need a token where there are any."""
        listed, guarded = APIRouter(), APIRouter(dependencies=[Depends(require_token)])
        add_lists(listed, self.catalogue)
        questions = Questions(self.speaker, self.catalogue)
        SpeechRoutes(questions, self.answers).add_to(guarded)
        VoiceRoutes(self.catalogue, self.settings).add_to(guarded)
        SillyTavernRoutes(self.settings).add_to(guarded)
        sockets = APIRouter(dependencies=[Depends(require_websocket_token)])
        add_websocket(sockets, questions, self.answers)
        for router in (listed, guarded, sockets):
            application.include_router(router)

"""The page in tests: a run's events, a filled form, handlers over a service that only yields."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from dia_demo import audio
from dia_demo.config import GenerationParams
from dia_demo.engine.events import Figures, Progress, Result, Started
from dia_demo.engine.time_left import TimeLeft
from dia_demo.services.earlier.history import History
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, Take
from dia_demo.ui import form
from dia_demo.ui.compare.form.fields import FIELDS, HEAD, SHARED
from dia_demo.ui.generate import expectation, layout
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.live_audio import LiveAudio
from tests.helpers.models.known import NANO

FIGURES = Figures(
    audio_seconds=14.2,
    wall_seconds=45.8,
    realtime_factor=0.31,
    token_seconds=41.8,
    codec_seconds=4.6,
    first_audio_seconds=1.9,
    steps=1223,
    finish_reason="end",
    seed=421337,
    model="nari-labs/Dia-1.6B-0626",
    precision="bfloat16",
    device="cpu",
    sample_rate=44100,
    peak_rss_bytes=1,
)
STARTED = Started(7, "nano", "float32", "cpu", 16000, 30.0, ("The prompt was cut to 20 s.",))
COMPARE_SCRIPT = "[S1] Hello there. <b>[S2] Yes."
RUNNING = Progress(500, 12.4, 40.0, 0.31, 18.6, left=TimeLeft(18, 22))


def result(reason: str = "end", samples: int = 160) -> Result:
    wave = np.sin(np.arange(samples) / 5).astype(np.float32) / 4
    figures = replace(FIGURES, finish_reason=reason, sample_rate=16000)
    return Result(np.zeros((3, 5), np.int16), wave, figures)


def silent_take(script: str = "[S1] Hi.", samples: int = 4000) -> Take:
    """A take that was not generated."""
    wave = np.zeros(samples, np.float32)
    request = Request(script, GenerationParams(), NANO)
    codes = np.zeros((3, 5), np.int16)
    return Take(wave, 16000, codes, FIGURES, request, audio.health(wave, 16000))


def field_values(**changes) -> list:
    """The values of the Generate tab's fields, in the order of the page."""
    sampling = 0.4, 1.5, 200, 0.9, 40, 7, 1.0
    first = ("[S1] Hi. [S2]", *sampling, None, "", "nano", "float32", False, False, "")
    values = dict(zip(form.FIELDS, (*first, "", "", 0.6, False), strict=True)) | changes
    return [values[name] for name in form.FIELDS]


def expectation_values(**changes) -> list:
    """A person's key, and the values that the time beside Generate depends on."""
    values = dict.fromkeys(expectation.FIELDS, "") | {
        "script": "[S1] Hello.", "model": "nano", "max_tokens": 60, "precision": "auto",
        "speed": 1.0, "normalise": False, "voice_prompt": None, "xpu": False, "in_parts": True,
    }  # fmt: skip
    return [None, *(values | changes).values()]


def parts_by_name(cls: type) -> SimpleNamespace:
    """Components that are their own names, so that updates can be read."""
    return SimpleNamespace(**{name: name for name in cls.__annotations__})


def stub_handlers(events, home: Path) -> tuple[GenerateHandlers, dict]:
    """GenerateHandlers over a service that yields `events`: an exception among them is raised, a
    threading.Event is waited for.

    home: the folder of temporary and of kept files.
    """
    seen = {}

    def stream(request, cancel: threading.Event, in_int8_meanwhile: bool = False):
        seen["cancel"] = cancel
        for event in events:
            if isinstance(event, Exception):
                raise event
            if isinstance(event, threading.Event):
                event.wait(60)
                continue
            yield event

    real = Synthesis(Settings(takes_folder=home / "takes", kept_folder=home / "kept"))
    synthesis = SimpleNamespace(settings=real.settings, stream=stream, take=real.take)
    synthesis.models, synthesis.notice = real.models, real.notice
    synthesis.run_in_background, synthesis.downloads = real.run_in_background, real.downloads
    parts = parts_by_name(layout.GenerateParts)
    return GenerateHandlers(synthesis, parts, LiveAudio(), History(home / "kept")), seen


def compare_values(first: dict, second: dict | None = None, **head) -> list:
    """The values of the Compare tab's fields, in the order of the page. `second` is what differs
    on the second side; its first entry is the question."""
    changes = {"temperature": 1.9} if second is None else second
    name = next(iter(changes), "temperature")
    pair = first[name], changes.get(name, first[name])
    defaults = ("preference", name, *pair, *pair, "", COMPARE_SCRIPT, 2, "7", False)
    values = dict(zip(HEAD, (*defaults, len(changes) > 1, 20, True), strict=True)) | head
    for side, fields in (("a", first), ("b", first | changes)):
        values |= {f"{side}_{name}": value for name, value in fields.items()}
    values |= {"voice_prompt": None, "voice_transcript": "", "pronunciations": ""} | head
    return [values[name] for name in (*FIELDS, *SHARED)]

"""The endpoints "/generate" and "/audition": one take, or several of one script to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from dia_demo.audio import suffix_of
from dia_demo.config import SEED_LIMIT, Range
from dia_demo.errors import InputError
from dia_demo.services.dialogue.plan import needs_chunks
from dia_demo.services.earlier.candidates import FEWEST, MOST
from dia_demo.services.earlier.labels import file_stem
from dia_demo.services.programs.takes import MadeTake, make_take, make_takes
from dia_demo.services.take import Request
from dia_demo.ui import form
from dia_demo.ui.api.argument import checked_values, with_signature
from dia_demo.ui.api.arguments import Arguments
from dia_demo.ui.generate.handlers import GenerateHandlers

TOO_LONG = (
    "An audition has takes of a short script, and this one is too long for one take or asks for "
    "pauses: shorten it, or use /dialogue."
)


def make_generate(
    handlers: GenerateHandlers, arguments: Arguments
) -> Callable[..., Iterator[tuple[str, dict]]]:
    """The function behind "/generate"."""

    def generate(request: gr.Request, *values: Any) -> Iterator[tuple[str, dict]]:
        """Generate speech from a script: an audio file and its figures.

        A number that is left out is the model's own default; seed null or -1 gives a random one.
        """
        named = checked_values(arguments, values)
        with handlers.calls.run(request) as cancel, handlers.files.scratch() as folder:
            made = make_take(handlers.synthesis, request_of(handlers, named), cancel)
            # Yielded while the folder exists: gradio copies the file first.
            yield str(_save(made, folder, named["format"])), made.report()

    return with_signature(generate, arguments)


def make_audition(
    handlers: GenerateHandlers, arguments: Arguments
) -> Callable[..., Iterator[tuple[list[str], dict]]]:
    """The function behind "/audition"."""

    def audition(request: gr.Request, *values: Any) -> Iterator[tuple[list[str], dict]]:
        """Generate several takes of a short script together, to choose from: their audio files and
        figures, in the same order. The takes differ in their seeds, voices or presets."""
        named = checked_values(arguments, values)
        with handlers.calls.run(request) as cancel, handlers.files.scratch() as folder:
            several = _several(handlers, named)
            requests = [request_of(handlers, one) for _, one in several]
            for one in requests:
                one.params.check(one.model.config)
            if needs_chunks(requests[0]):
                raise InputError(TOO_LONG)
            takes = make_takes(handlers.synthesis, requests, cancel)
            files = [str(_save(made, folder, named["format"])) for made in takes.made]
            figures = [
                made.report() | several[made.row][0] | {"verdict": made.verdict.verdict}
                for made in takes.made
            ]
            yield files, {"takes": figures, "problems": list(takes.problems)}

    return with_signature(audition, arguments)


def request_of(handlers: GenerateHandlers, named: Mapping[str, Any]) -> Request:
    """The request of the values of "/generate", with the model's own defaults for numbers that are
    None. Raises InputError for what cannot be used."""
    defaults = form.defaults_of(handlers.synthesis.models[named["model"]])
    given = {name: value for name, value in named.items() if value is not None}
    values = {**named, **defaults, **given, form.IN_PARTS: False}
    return handlers.request_of(form.Form.from_values([values[name] for name in form.FIELDS]))


def _several(
    handlers: GenerateHandlers, named: dict[str, Any]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Of each take: what it differs in from the others, for programs, and the values of
    "/generate" that it is made with."""
    seed, voices, presets = form.chosen_seed(named["seed"]), named["voices"], named["presets"]
    named = named | {"seed": seed}
    if voices and presets:
        raise InputError("Give voices or presets to choose from, not both.")
    if not (voices or presets):
        Range(FEWEST, MOST, whole=True).check("takes", named["takes"])
        seeds = ((seed + k) % (SEED_LIMIT + 1) for k in range(int(named["takes"])))
        return [({"preset": None}, named | {"seed": one}) for one in seeds]
    what, listed = ("voices", voices) if voices else ("presets", presets)
    if not FEWEST <= len(set(listed)) == len(listed) <= MOST:
        raise InputError(f"Give {FEWEST} to {MOST} different {what} to choose from.")
    if voices:
        return [({"preset": None}, named | {"voice_s1": voice}) for voice in voices]
    known = form.presets_of(handlers.synthesis.models[named["model"]])
    if unknown := [preset for preset in presets if preset not in known]:
        there_are = f"there are {', '.join(known)}" if known else "it has none"
        raise InputError(f"The model {named['model']} has no preset {unknown[0]!r}: {there_are}.")
    return [({"preset": preset}, named | known[preset]) for preset in presets]


def _save(made: MadeTake, folder: Path, name: str) -> Path:
    """Write the file of a take. name: of its format."""
    stem = file_stem(made.take.request.script, vars(made.take.figures))
    while (path := folder / f"{stem}{suffix_of(name)}").exists():
        stem = f"{stem}_{made.row + 1}"
    return made.take.save(path)

"""What a take brings back to a form, and the notes on what it cannot bring back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from dia_demo.config import PARAMS
from dia_demo.errors import InputError
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.text.pronunciations import Pronunciations, merge_lists
from dia_demo.ui import form
from dia_demo.voices import VOICE_FIELDS

_MOST_NAMED = 3


def kept_voices(take: Mapping[str, Any], voices: KeptVoices) -> tuple[dict[str, str], str]:
    """The names of a take's kept voices by the fields of the form, and a note on those that are not
    among `voices`, or nothing."""
    found, gone = {}, []
    for speaker, identity in enumerate(take["kept_voices"], start=1):
        name = voices.name_of(identity) if identity else None
        if name is not None:
            found[VOICE_FIELDS[speaker - 1]] = name
        elif identity:
            gone.append(f"S{speaker}")
    if not gone:
        return found, ""
    return found, (
        f"Note: its kept voice of {' and '.join(gone)} is not among your voices, so the take will "
        "have another one."
    )


def describe_values(values: dict, defaults: dict[str, float]) -> list[str]:
    """What a form takes from a take, without what the model has as its default anyway."""
    changed = [name for name in form.SAMPLING if values.get(name, defaults[name]) != defaults[name]]
    words = ["script", *(f"{PARAMS[name].label} {values[name]:g}" for name in changed)]
    words += [f"Speed {values['speed']:g}"] if values["speed"] != 1 else []
    words += [f"Seed {values['seed']:.0f}"] if "seed" in values else []
    return words + ([values["precision"]] if "precision" in values else [])


def voice_prompt(transcript: str | None, sound: str | None, words: str) -> tuple[Any, Any, str]:
    """Sound and words of the voice prompt for a restored take, and a note or nothing.

    transcript: the words of the take's prompt, None if it had none. sound, words: those in the
    form. A take's file contains the words of its prompt, but not the recording.
    """
    if transcript is None:
        removed = "Note: the take has no voice prompt, so the one in the form was removed."
        return None, "", removed if sound else ""
    if sound and transcript.split() == words.split():
        kept = (
            "Note: it was generated with a voice prompt of the same words as the one in the form, "
            "which was kept. With another recording of them the take will differ."
        )
        return gr.skip(), gr.skip(), kept
    return None, transcript, voice_note(transcript)


def pronunciations_of(take: Mapping[str, Any], own: str | None) -> tuple[str, list[str]]:
    """The list of the form with which a take's words are said as in the take, and notes on what
    was changed in it. own: the list in the form, of which nothing is lost."""
    own = own or ""
    texts = f"{take['voice_transcript'] or ''}\n{take['script']}"
    try:
        of_take = Pronunciations.parse(take["pronunciations"] or "")
        listed, added, set_aside = merge_lists(own, of_take, texts)
        Pronunciations.parse(listed)
    except InputError as error:
        why = f"Note: the take's pronunciations could not be added to the list. {error}"
        return own, [why]
    notes = []
    if added:
        notes.append(f"Note: the take's pronunciation of {_quote(added)} was added to the list.")
    if set_aside:
        notes.append(
            f"Note: your pronunciation of {_quote(set_aside)} is turned off with a #, because the "
            "take was made without it. Remove the # to use it again."
        )
    return listed, notes


def _quote(words: Sequence[str]) -> str:
    """Words in quotes, the first of many."""
    more = f" and {len(words) - _MOST_NAMED} more" if len(words) > _MOST_NAMED else ""
    return f"{', '.join(f'“{word}”' for word in words[:_MOST_NAMED])}{more}"


def voice_note(transcript: str) -> str:
    """A note that the file does not contain the recording of its voice prompt."""
    words = " ".join(transcript.split())
    saying = f" that says “{words[:117]}{'…' if len(words) > 117 else ''}”" if words else ""
    return (
        f"Note: it was generated with a voice prompt{saying}. The file does not contain that "
        "recording; add it again to get the same take."
    )

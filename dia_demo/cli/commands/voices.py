"""The command `voices`: list, keep, rename, export, import and remove kept voices."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from dia_demo.audio import STORED_SUFFIX
from dia_demo.prompt.voice_file import SUFFIX, VoiceFile
from dia_demo.services.models import Models
from dia_demo.services.settings import Settings
from dia_demo.services.voices.keep import keep
from dia_demo.services.voices.kept import KeptVoices


def register(commands) -> None:
    """Add `voices` to the command line."""
    parser = commands.add_parser("voices", help="keep, list and exchange voices")
    parser.set_defaults(run=_list, json=False)
    parser.add_argument("--json", action="store_true", help="list the voices as JSON")
    actions = parser.add_subparsers(metavar="ACTION", parser_class=type(parser))
    adding = actions.add_parser("keep", help="keep the voice of a take or of a recording")
    adding.set_defaults(run=_keep)
    add = adding.add_argument
    add("audio", type=Path, metavar="AUDIO", help="a take of this program, or a recording")
    add("--name", required=True, metavar="NAME")
    add("--from", dest="start", type=float, metavar="SECONDS", help="the part that is kept")
    add("--to", dest="end", type=float, metavar="SECONDS")
    add("--transcript", default="", metavar="TEXT", help="its exact words; a whole take has them")
    add("--model", metavar="nano | OWNER/NAME | PATH", help="whose codec encodes a recording")
    add("--consent", action="store_true", help="the person heard in the recording has agreed")
    renaming = actions.add_parser("rename", help="rename a voice")
    renaming.set_defaults(run=_rename)
    renaming.add_argument("name", metavar="NAME")
    renaming.add_argument("new", metavar="NEW_NAME")
    exporting = actions.add_parser("export", help="write a copy of a voice's file")
    exporting.set_defaults(run=_export)
    exporting.add_argument("name", metavar="NAME")
    exporting.add_argument("file", type=Path, metavar="FILE", help=f"a folder or a name{SUFFIX}")
    importing = actions.add_parser("import", help="keep a voice from a voice file")
    importing.set_defaults(run=_import)
    importing.add_argument("file", type=Path, metavar="FILE")
    importing.add_argument("--name", metavar="NAME", help="a name other than its own")
    removing = actions.add_parser("remove", help="delete a voice")
    removing.set_defaults(run=_remove)
    removing.add_argument("name", metavar="NAME")


def _kept_voices() -> KeptVoices:
    return KeptVoices.for_user(Settings.from_env())


def _list(options: argparse.Namespace) -> int:
    voices = _kept_voices().list()
    if options.json:
        print(json.dumps([_voice_fields(voice) for voice in voices]))
        return 0
    if not voices:
        take = f"TAKE{STORED_SUFFIX}"
        print(f"No voice is kept yet: python -m dia_demo voices keep {take} --name NAME")
    for voice in voices:
        speakers = " and ".join(f"S{speaker}" for speaker in voice.speakers)
        print(
            f"{voice.name}: {voice.seconds:.1f} s of {speakers}, from a {voice.source} of "
            f"{voice.model}: “{voice.transcript}”"
        )
    return 0


def _voice_fields(voice: VoiceFile) -> dict:
    names = ("name", "transcript", "speakers", "seconds", "model", "source", "seed", "created")
    return {name: getattr(voice, name) for name in names}


def _keep(options: argparse.Namespace) -> int:
    settings = Settings.from_env()
    start = settings.runtime.model
    voice = keep(
        options.audio,
        options.name,
        model=Models(settings.models, start)[options.model or start],
        transcript=options.transcript,
        has_consent=options.consent,
        part=(options.start, options.end),
    )
    voice = KeptVoices.for_user(settings).add(voice)
    print(f"{voice.name}: {voice.seconds:.1f} s. Use it with: say --voice {_quote(voice.name)}")
    return 0


def _rename(options: argparse.Namespace) -> int:
    print(f"{options.name} is now {_kept_voices().rename(options.name, options.new).name}.")
    return 0


def _export(options: argparse.Namespace) -> int:
    print(_kept_voices().export_file(options.name, options.file))
    return 0


def _import(options: argparse.Namespace) -> int:
    voice = _kept_voices().import_file(options.file, options.name)
    print(f"{voice.name}: {voice.seconds:.1f} s. Use it with: say --voice {_quote(voice.name)}")
    return 0


def _remove(options: argparse.Namespace) -> int:
    _kept_voices().remove(options.name)
    print(f"{options.name} was removed.")
    return 0


def _quote(name: str) -> str:
    return name if name.isalnum() else json.dumps(name, ensure_ascii=False)

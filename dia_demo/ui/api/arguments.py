"""The arguments of the endpoints for programs: their names, types, ranges and texts."""

from __future__ import annotations

from collections.abc import Sequence

from dia_demo.audio import FORMAT_LABELS, FORMAT_NAMES, SPEEDS, STORED_SUFFIX
from dia_demo.config import PARAMS, PRECISIONS, SEED_LIMIT
from dia_demo.engine.family import ModelInfo
from dia_demo.prompt.voice_file import LONGEST_NAME
from dia_demo.services.dialogue import subtitles
from dia_demo.services.dialogue.plan import DEFAULT_RETRIES, RETRIES, Join
from dia_demo.services.earlier.candidates import FEWEST, MOST
from dia_demo.services.listening.plan.plan import MAX_TRIALS, NAMES, ComparisonKind
from dia_demo.services.listening.plan.setting import SETTING_FIELDS
from dia_demo.services.listening.sides import PAIRS
from dia_demo.text.pronunciations import MAX_CHARACTERS, MAX_ENTRIES
from dia_demo.ui import form
from dia_demo.ui.api.argument import Argument
from dia_demo.ui.gradio_internals import FileData
from dia_demo.voices import VOICE_FIELDS

Arguments = dict[str, Argument]

EXAMPLE = "[S1] Hello there. How are you? [S2] I am fine, thank you. [S1]"


def arguments_of_generate(models: Sequence[ModelInfo], model: str, precision: str) -> Arguments:
    """The arguments of "/generate", by their names: those of `form.FIELDS` and the format.

    model, precision: what the app was started with.
    """
    listed = [
        *_arguments_of_script(models, model),
        *(_sampling(name, models) for name in form.SAMPLING),
        _seed("The same seed with the same settings repeats a take; null or -1 for a random one."),
        Argument(
            "speed",
            "Speed",
            f"{SPEEDS.low:g} to {SPEEDS.high:g}, without changing the pitch.",
            {"type": "number", "minimum": SPEEDS.low, "maximum": SPEEDS.high},
            1.0,
        ),
        _voice_prompt(),
        _precision(precision),
        *_arguments_of_voices(),
        Argument(
            "xpu",
            "Intel XPU",
            "Run on an Intel GPU that passed its self-check (experimental).",
            {"type": "boolean"},
            False,
        ),
        _format("Format of the file"),
    ]
    named = {argument.name: argument for argument in listed}
    names = [name for name in form.FIELDS if name != form.IN_PARTS]
    # Programs may pass arguments by position, so those of later parameters follow this one.
    names.insert(len(form.FIRST_FIELDS), "format")
    return {name: named[name] for name in names}


def arguments_of_audition(models: Sequence[ModelInfo], model: str, precision: str) -> Arguments:
    """The arguments of "/audition": those of "/generate", and what its takes differ in."""
    presets = sorted({name for info in models for name in info.profile.presets})
    several = [
        Argument(
            "takes",
            "Takes",
            f"How many takes, {FEWEST} to {MOST}, with this seed and those after it, unless there "
            "are voices or presets to choose from.",
            {"type": "integer", "minimum": FEWEST, "maximum": MOST},
            4,
        ),
        Argument(
            "voices",
            "Voices",
            f"{FEWEST} to {MOST} names of voices: one take with each as the voice of S1, all with "
            "the same seed.",
            _list_of({"type": "string", "maxLength": LONGEST_NAME}),
            [],
        ),
        Argument(
            "presets",
            "Presets",
            "Names of the model's presets of sampling parameters: one take with each, all with the "
            f"same seed. There are {', '.join(presets) or 'none'}.",
            _list_of({"type": "string"}),
            [],
        ),
    ]
    alone = arguments_of_generate(models, model, precision)
    return alone | {argument.name: argument for argument in several}


def arguments_of_dialogue(models: Sequence[ModelInfo], model: str, precision: str) -> Arguments:
    """The arguments of "/dialogue": those of "/generate", and how its parts are made."""
    more = [
        Argument(
            "join",
            "Join",
            "steady: all parts have the voices of the first; flowing: of the part before.",
            {"type": "string", "enum": [str(join) for join in Join]},
            str(Join.STEADY),
        ),
        Argument(
            "retries",
            "Retries",
            f"How many times a faulty part is made again, {RETRIES.low:g} to {RETRIES.high:g}.",
            {"type": "integer", "minimum": RETRIES.low, "maximum": RETRIES.high},
            DEFAULT_RETRIES,
        ),
        Argument(
            "subtitles",
            "Subtitles",
            "Also write subtitles of the file: SubRip, WebVTT, or none.",
            {"type": "string", "enum": ["none", *(s.lstrip(".") for s in subtitles.FORMATS)]},
            "none",
        ),
    ]
    alone = arguments_of_generate(models, model, precision)
    return alone | {argument.name: argument for argument in more}


def arguments_of_compare(models: Sequence[ModelInfo], model: str, precision: str) -> Arguments:
    """The arguments of "/compare"."""
    script, *others = _arguments_of_script(models, model)
    sides = [{"temperature": 1.0}, {"temperature": 1.6}]
    listed = [
        Argument(
            "script",
            "Scripts",
            "What all takes say: one script, or several with lines of --- between them. For "
            f"example “{EXAMPLE}”",
            script.schema,
            required=True,
        ),
        Argument(
            "settings",
            "Settings",
            f"2 to {len(NAMES)} objects with what the sides differ in, by name: "
            f"{', '.join(SETTING_FIELDS)}. What is left out is the model's default.",
            _list_of({"type": "object"}) | {"examples": [sides]},
            required=True,
        ),
        Argument(
            "kind",
            "Kind",
            "sighted: a zip of the takes, named by their settings; preference or abx: a zip for a "
            "blind test, which the Compare tab of the page opens.",
            {"type": "string", "enum": [str(kind) for kind in ComparisonKind]},
            str(ComparisonKind.SIGHTED),
        ),
        Argument(
            "pairs",
            "Pairs",
            f"Scripts x seeds, a multiple of the number of scripts, at most {MAX_TRIALS}; null for "
            f"at least {PAIRS}.",
            {"type": "integer", "minimum": 1, "maximum": MAX_TRIALS},
        ),
        _seed("Of the first pair; the others have those after it. null or -1 for random ones."),
        *others,
        _voice_prompt(),
        _precision(precision),
        _format("Format of the takes in a sighted comparison"),
    ]
    return {argument.name: argument for argument in listed}


def _list_of(items: dict) -> dict:
    return {"type": "array", "items": items}


def _seed(description: str) -> Argument:
    kind = {"type": "integer", "minimum": -1, "maximum": SEED_LIMIT}
    return Argument("seed", "Seed", f"0 to {SEED_LIMIT:,}. {description}", kind)


def _voice_prompt() -> Argument:
    return Argument(
        "voice_prompt",
        "Voice prompt",
        f"5 to 10 s of speech whose voice the take continues: one of {FORMAT_LABELS}.",
        FileData.model_json_schema(),
    )


def _precision(precision: str) -> Argument:
    return Argument(
        "precision",
        "Precision",
        "How weights are stored: auto is the fastest that is as good as float32 here.",
        {"type": "string", "enum": list(PRECISIONS)},
        precision,
    )


def _format(what: str) -> Argument:
    return Argument(
        "format",
        "Format",
        f"{what}: {FORMAT_LABELS}. Every one has the settings inside.",
        {"type": "string", "enum": list(FORMAT_NAMES)},
        STORED_SUFFIX.removeprefix("."),
    )


def _arguments_of_voices() -> list[Argument]:
    return [
        Argument(
            name,
            f"Voice of {name[-2:].upper()}",
            "A voice kept on the machine of the app, or one of the model's own by name; blank for "
            "one that the seed chooses.",
            {"type": "string", "maxLength": LONGEST_NAME},
            "",
        )
        for name in VOICE_FIELDS
    ]


def arguments_of_check(models: Sequence[ModelInfo], model: str) -> Arguments:
    """The arguments of "/check", by their names."""
    *listed, pronunciations = _arguments_of_script(models, model)
    listed += [_sampling("max_tokens", models), pronunciations]
    return {argument.name: argument for argument in listed}


def _arguments_of_script(models: Sequence[ModelInfo], model: str) -> list[Argument]:
    """The arguments that say what is spoken and by which model."""
    always = " and ".join(info.name for info in models if info.profile.normalises)
    return [
        Argument(
            "script",
            "Script",
            "What is spoken: [S1] and [S2] before each turn, sounds such as (laughs). For example "
            f"“{EXAMPLE}”",
            {"type": "string", "examples": [EXAMPLE]},
            required=True,
        ),
        Argument(
            "model", "Model", "One of those that /models lists.",
            {"type": "string", "enum": [info.name for info in models]}, model,
        ),
        Argument(
            "voice_transcript",
            "Text of the voice prompt",
            "The exact words of the voice prompt, with their speaker tags.",
            {"type": "string"},
            "",
        ),
        Argument(
            "normalise",
            "Write out numbers and symbols as words",
            "Write out numbers, abbreviations and signs for a model that otherwise reads what is "
            f"written; with {always} it is always done.",
            {"type": "boolean"},
            False,
        ),
        Argument(
            "pronunciations",
            "Pronunciations",
            "Words and how to say them, one per line: word = how to say it. At most "
            f"{MAX_ENTRIES} words.",
            {"type": "string", "maxLength": MAX_CHARACTERS},
            "",
        ),
    ]  # fmt: skip


def _sampling(name: str, models: Sequence[ModelInfo]) -> Argument:
    """A sampling parameter, whose range and default may depend on the model."""
    spec = PARAMS[name]
    ranges = {info.name: spec.range(info.config) for info in models}
    low, high = min(r.low for r in ranges.values()), max(r.high for r in ranges.values())
    texts = {f"{r.low:g} to {r.high:,g}" for r in ranges.values()}
    reach = (
        texts.pop()
        if len(texts) == 1
        else ", ".join(f"{r.low:g} to {r.high:,g} with {model}" for model, r in ranges.items())
    )
    defaults = ", ".join(
        f"{getattr(info.config.defaults, name):,g} with {info.name}" for info in models
    )
    return Argument(
        name,
        spec.label,
        f"{spec.help} Allowed: {reach}. Default: {defaults}.",
        {"type": "integer" if spec.is_whole else "number", "minimum": low, "maximum": high},
    )

"""What the endpoints for programs return, described field by field as JSON schema."""

from __future__ import annotations


def _object(description: str, **properties: str) -> dict:
    """JSON schema of an object. properties: of each, its type and its description."""
    fields = {}
    for name, text in properties.items():
        kind, _, words = text.partition(": ")
        fields[name] = {"type": kind, "description": words, "items": {}}
    return {"type": "object", "description": description, "properties": fields}


def _more(known: dict, description: str, **properties: str) -> dict:
    """JSON schema of an object with the properties of another one and more."""
    added = _object(description, **properties)
    return added | {"properties": known["properties"] | added["properties"]}


FIGURES = _object(
    "Measurements of the take: lengths and times in seconds, settings.",
    audio_seconds="number: length of the audio",
    wall_seconds="number: from the start of the run to its end",
    realtime_factor="number: audio_seconds / wall_seconds; above 1 is faster than playback",
    token_seconds="number: of wall_seconds, for the tokens",
    codec_seconds="number: of wall_seconds, for turning tokens into audio",
    first_audio_seconds="number: until the first audio, null without audio",
    steps="integer: decoder steps",
    finish_reason="string: end, max_tokens (cut off) or cancelled",
    seed="integer: repeats the take with the same settings",
    model="string: name of the model",
    precision="string: precision of the weights; int8 while int4 is being calibrated",
    device="string: cpu or xpu",
    sample_rate="integer: samples per second",
    peak_rss_bytes="integer: most memory of the program so far",
    expected_seconds="number: how long the script was expected to take",
    numerics="object: class of processor, versions and kernels, which decide the rounding",
    surplus_turns="integer: turns more than the script has, negative if some are missing; or null",
    shared_with="integer: the most other takes generated at the same time; each makes it slower",
    voices="array: names of the voices of S1 and S2 (null: the prompt's); null without names",
    remarks="array: what was done to a voice prompt, and what is odd about sound or length",
    words="array: word, start and end in seconds, speaker and turn, counted from 0",
)
AUDITION = _object(
    "The takes in the order of their files, and why others could not be made.",
    takes="array: figures of each take",
    problems="array: sentences",
)
AUDITION["properties"]["takes"]["items"] = _more(
    FIGURES,
    "Measurements of a take, as of /generate.",
    preset="string: of its sampling parameters, null without presets to choose from",
    verdict="string: good, or what is wrong with it",
)
DIALOGUE = _more(
    FIGURES,
    "Measurements of the whole, as of a take of /generate, and what became of each part.",
    chunks="array: index, script, seed, seconds, words_per_second, verdict (good, or what is "
    "wrong), remade (how often)",
)
COMPARISON = _object(
    "What was compared and made.",
    kind="string: sighted, preference or abx",
    differences="object: the fields in which the settings differ, each with their values",
    scripts="integer: number of scripts",
    seeds="array: of each script",
    pairs="integer: number of pairs",
    pairs_made="integer: of which are in the archive",
    takes_failed="integer: takes that could not be made",
    stopped="boolean: the run ended early",
    audio_seconds="number: length of all takes",
    wall_seconds="number: from the start of the run to its end",
    realtime_factor="number: audio_seconds / wall_seconds",
    can_show="string: what the answers of a listener can show",
    warning="string: what an ABX test of these settings cannot show, or null",
    warnings="array: what a result will not show, sentences",
    problems="array: why takes could not be made, sentences",
    settings="array: setting (A to F), name, and of each take the script (from 0), the seed, its "
    "files in the archive and its measurements; null for a blind test",
)
REPORT = _object(
    "The contents of the script, and findings with their repairs.",
    speakers="integer: number of speakers",
    turns="integer: number of turns",
    bytes="integer: bytes that the model reads",
    byte_limit="integer: the most it can read",
    expected_seconds="number: estimated length of the audio",
    read_as="string: the script as the model reads it",
    findings="array: code, level (error, warning or tip), message, line, repaired, repair_label",
)
MODELS = {
    "type": "array",
    "description": "The models, the embedded voice first.",
    "items": _object(
        "",
        name="string: for the argument model",
        title="string: as on the page",
        note="string: what it is",
        sample_rate="integer: of its audio",
        byte_limit="integer: longest script with its voice transcript",
        normalises="boolean: scripts are always written out in words",
        precisions="array: for the argument precision",
        parameters="object: minimum, maximum and default by name",
        seconds_per_second="number: expected wait for a second of audio here, null if not known",
    ),
}

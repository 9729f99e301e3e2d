"""Make a voice file of a take or of a recording, the whole of it or a part."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dia_demo import audio
from dia_demo.disclosure.notice import seconds_in
from dia_demo.engine.events import FinishReason
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.prompt.codes import unpack_codes
from dia_demo.prompt.decode import LONGEST_SECONDS as LONGEST_RECORDING
from dia_demo.prompt.decode import decode
from dia_demo.prompt.prompt import read_prompt
from dia_demo.prompt.voice_file import (
    LONGEST_TRANSCRIPT,
    RECORDING,
    TAKE,
    VoiceFile,
    WordTime,
    checked_name,
    parse_word_times,
)
from dia_demo.prompt.word_times import find_words
from dia_demo.services.models import fetch_description, fetch_files
from dia_demo.task import result_of
from dia_demo.text.dialogue.pauses import remove_pauses
from dia_demo.text.script import TAG, has_words, write_script

# All of a voice is read before every take. The shortest has to show how somebody speaks.
SHORTEST_SECONDS, LONGEST_SECONDS = 1.0, 20.0
Part = tuple[float | None, float | None]
WHOLE: Part = (None, None)


def keep_take(
    contents: Mapping[str, Any], name: str, part: Part = WHOLE, transcript: str = ""
) -> VoiceFile:
    """A voice from the metadata of a take's file (`audio.read_metadata`): its exact codes.

    part: from and to, in seconds of the file; it needs its own transcript. Raises InputError for a
    take whose file has no codes, that was cut off, or that is too short or too long.
    """
    if not isinstance(contents.get("codes"), str):
        raise InputError(
            "This file contains no codes: it was made by an earlier version, or joined from parts. "
            "Keep the voice of a long take on the page, where its parts are kept. Make a "
            "short take with the same seed, or keep its voice as a recording."
        )
    codes, figures = unpack_codes(contents["codes"]), contents["figures"]
    rate, numerics = figures["sample_rate"], figures.get("numerics", {})
    speed = float(contents.get("speed") or 1.0)
    fps = float(contents["frames_per_second"])
    is_whole = part == WHOLE
    words = transcript.strip() or (contents["script"].strip() if is_whole else "")
    if is_whole and figures.get("finish_reason") != FinishReason.END and not transcript.strip():
        raise InputError(
            "This take was cut off before the end of its script, so its words are not known. Keep "
            "another take, or enter the words that it says."
        )
    own = without_notice(_check_part(part), contents)
    first, last = (None if at is None else round(at * speed * fps) for at in own)
    spoken = _spoken_words(contents, len(codes) / fps)
    codes = codes[first:last]
    _check_seconds(len(codes) / fps)
    spoken = _words_within(spoken, (first or 0) / fps, len(codes) / fps)
    if not words and spoken:
        words = write_script((speaker, word) for word, _, speaker in spoken)
    return VoiceFile(
        name=checked_name(name),
        codes=codes,
        transcript=_checked_words(words, is_whole),
        codec=str(numerics.get("codebooks", "")),
        sample_rate=rate,
        fps=fps,
        model=str(figures["model"]),
        source=TAKE,
        seed=figures.get("seed"),
        settings=dict(contents.get("settings", {})),
        words=spoken,
    )


def _spoken_words(contents: Mapping[str, Any], seconds: float) -> tuple[WordTime, ...]:
    """The words of a take so long, which its file contains if its model knows their times. Raises
    InputError if they are damaged."""
    try:
        return parse_word_times(contents.get("spoken_words", []), seconds)
    except (TypeError, ValueError) as error:
        raise InputError(
            "The times of the words in this file are damaged, so its voice cannot be kept as it "
            "is: keep it as a recording."
        ) from error


def _words_within(words: Sequence[WordTime], start: float, seconds: float) -> tuple[WordTime, ...]:
    """The words that begin in a part, at the times of the part."""
    return tuple(
        (word, round(at - start, 4), speaker)
        for word, at, speaker in words
        if 0 <= round(at - start, 4) < seconds
    )


def keep_recording(
    path: Path,
    name: str,
    transcript: str,
    model: ModelInfo,
    *,
    has_consent: bool,
    part: Part = WHOLE,
) -> VoiceFile:
    """A voice from a recording, encoded once by the codec of `model`.

    has_consent: whether the person heard agreed. Raises InputError without consent or words, and
    for audio that is not one voice speaking.
    """
    if not has_consent:
        raise InputError(
            "Keep a voice from a recording only if the person heard has agreed: confirm their "
            "consent, which is recorded in the voice file (--consent)."
        )
    words = _checked_words(transcript, is_whole=True)
    info = result_of(fetch_description(model))
    with tempfile.TemporaryDirectory() as temporary:
        heard = _cut(path, part, Path(temporary)) if part != WHOLE else path
        prompt = read_prompt(heard, info.sample_rate, LONGEST_SECONDS)
    _check_seconds(len(prompt.samples) / info.sample_rate)
    info = result_of(fetch_files(info))
    assert info.folder is not None, "its files were fetched"
    codec = result_of(info.family.codecs.open(info.folder))
    spoken, are_estimated = tuple[WordTime, ...](), True
    if info.family.has_word_times:
        said = remove_pauses(words)
        spoken, are_estimated = find_words(said, prompt.samples, info.sample_rate)
    return VoiceFile(
        name=checked_name(name),
        codes=codec.encode(prompt.samples),
        transcript=words,
        codec=codec.identity,
        sample_rate=info.sample_rate,
        fps=info.frames_per_second,
        model=info.name,
        source=RECORDING,
        consent="The person heard agreed, according to whoever kept this voice.",
        words=spoken,
        is_aligned=not are_estimated,
    )


def keep(
    path: Path,
    name: str,
    *,
    model: ModelInfo,
    transcript: str = "",
    has_consent: bool = False,
    part: Part = WHOLE,
) -> VoiceFile:
    """A voice from a file: a take with its codes inside, or any other recording."""
    contents = take_in(path)
    if contents is not None:
        return keep_take(contents, name, part, transcript)
    return keep_recording(path, name, transcript, model, has_consent=has_consent, part=part)


def take_in(path: Path) -> Mapping[str, Any] | None:
    """The metadata of a file if it is a take with its codes inside; None for other recordings."""
    contents = audio.read_metadata(path) or {}
    is_take = isinstance(contents.get("figures"), dict) and isinstance(contents.get("codes"), str)
    return contents if is_take else None


def _checked_words(words: str, is_whole: bool) -> str:
    """Words that begin with a tag. Raises InputError if there are none, or far too many."""
    words = " ".join(words.split())
    if not has_words(words):
        what = "the recording" if is_whole else "this part of the take"
        raise InputError(f"Enter exactly what is said in {what} (--transcript).")
    if len(words) > LONGEST_TRANSCRIPT:
        raise InputError(
            f"A voice's words may have at most {LONGEST_TRANSCRIPT} characters, not {len(words)}: "
            "keep a shorter part."
        )
    return words if TAG.match(words) else f"[S1] {words}"


def without_notice(part: Part, contents: Mapping[str, Any]) -> Part:
    """From and to of a file in seconds of its take, which a notice may precede."""
    start, end = (None if at is None else max(0.0, at - seconds_in(contents)) for at in part)
    return start, end


def _check_part(part: Part) -> Part:
    start, end = part
    if (start or 0.0) < 0 or (end is not None and end <= (start or 0.0)):
        raise InputError(
            f"A part goes from a time to a later one, not from {start or 0:g} to {end:g} s."
        )
    return part


def _check_seconds(seconds: float) -> None:
    if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise InputError(
            f"A voice is {SHORTEST_SECONDS:g} to {LONGEST_SECONDS:g} s long, 5 to 10 s work best; "
            f"this is {seconds:.1f} s. Keep a part that is."
        )


def _cut(path: Path, part: Part, folder: Path) -> Path:
    """The part of a recording, as a file of its own."""
    import soundfile

    start, end = _check_part(part)
    channels, rate = decode(path, max_seconds=LONGEST_RECORDING)
    first, last = (None if at is None else round(at * rate) for at in (start, end))
    cut = folder / f"part{audio.STORED_SUFFIX}"
    soundfile.write(str(cut), channels[first:last], rate, subtype="PCM_24")
    return cut

"""A loaded model that generates takes.

model = dia_demo.load("nano")
take = model.generate("[S1] Hello. [S2] Hi.", seed=7)
take.save("hello.wav")
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack

from dia_demo.api.stream import BatchError, Stream, take_of
from dia_demo.config import PARAMS, GenerationParams, RuntimeConfig, random_seed
from dia_demo.engine.events import AudioChunk
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError, RunError
from dia_demo.services.settings import Settings, read_notice
from dia_demo.services.speech.incoming import speak_incoming
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, Take, VoicePrompt
from dia_demo.services.voices.choice import add_voices
from dia_demo.services.voices.keep import keep_take
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.text.checks.script_check import ScriptReport
from dia_demo.text.pronunciations import NONE, Pronunciations


class Options(TypedDict, total=False):
    """What a take depends on besides its script. Sampling parameters that are left out have the
    model's own defaults, and each take without a seed gets a random one.

    speed: from 0.25 to 4, changes the tempo and not the pitch. voice_prompt: an audio file whose
    voice goes on; voice_transcript: its exact words, which a take's own file contains. voice:
    one of `Model.voices` or a voice file, or two of them for S1 and S2, None for one that the seed
    chooses. normalise: write out numbers and abbreviations, which is always done for the nano
    voice. pronunciations: words and how to say them.
    """

    seed: int | None
    max_tokens: int
    temperature: float
    cfg_scale: float
    top_p: float
    top_k: int
    text_temperature: float
    speed: float
    voice_prompt: str | PathLike[str]
    voice_transcript: str
    voice: str | Sequence[str | None]
    normalise: bool
    pronunciations: Mapping[str, str]


def load(
    model: str = "nano",
    *,
    precision: str = "auto",
    threads: int | None = None,
    device: str = "cpu",
    progress: Callable[[str, float | None], None] | None = None,
) -> Model:
    """Load a model: "nano", the folder of a checkpoint, or a name on the Hugging Face hub.

    A model of the hub is downloaded first if it is not in the cache. precision: "auto", "float32",
    "bfloat16", "int8" or "int4". threads: None for one per core. progress is called with what is
    being done and which share of it is done, None where that is not known. DIA_NOTICE
    is followed as on the page: files and streams begin with the notice.

    Raises InputError for a model or a setting that does not exist, RunError if loading fails.
    """
    runtime = RuntimeConfig(model, precision, device, threads)
    notice = read_notice(os.environ)
    synthesis = Synthesis(Settings(runtime, models=(model,), measure=False, notice=notice))
    try:
        for event in synthesis.load():
            if progress is not None:
                progress(event.what, event.fraction)
    except BaseException:
        synthesis.close()
        raise
    return Model(synthesis)


class Model:
    """A model in memory, from `load`. Takes of several threads are generated together.

    `close`, or a `with` block, ends what is running.
    """

    def __init__(self, synthesis: Synthesis) -> None:
        self._synthesis = synthesis
        self._kept = KeptVoices.for_user(synthesis.settings)

    @property
    def info(self) -> ModelInfo:
        """Its name, sample rate, frames per second, sizes and default parameters."""
        return self._synthesis.models[self._synthesis.settings.runtime.model]

    @property
    def voices(self) -> list[str]:
        """The names of the kept voices, and of the model's own."""
        own = self.info.config.voices
        names = [voice.name for voice in self._kept.list()]
        return names + ([] if own is None else [voice.name for voice in own.voices])

    def keep_voice(self, take: Take, name: str) -> None:
        """Keep the voice of a take, for the page and the command line as well. Raises InputError
        if the name exists, or the take is too long or was cut off."""
        self._kept.add(keep_take(take.metadata(), name))

    def check(self, script: str, **options: Unpack[Options]) -> ScriptReport:
        """What the page shows below a script: length, findings and repairs. Generates nothing."""
        return self._request(script, **options).check_script()

    def generate(self, script: str, **options: Unpack[Options]) -> Take:
        """One take. Raises InputError for a script or an option that cannot be used, RunError if
        the take fails."""
        stream = self.stream(script, **options)
        for _ in stream:
            pass
        return stream.take

    def stream(self, script: str, **options: Unpack[Options]) -> Stream:
        """The samples of one take while it is generated. Raises InputError like `generate`."""
        return Stream(self._synthesis, self._request(script, **options))

    def speak(
        self, pieces: Iterable[str], **options: Unpack[Options]
    ) -> Generator[AudioChunk, None, None]:
        """The samples of a text that is still being written, such as by a language model: every
        sentence is spoken as soon as it is complete, and with Dia2 every word, in one take.

        pieces: of the text, with [S1] and [S2] where speakers change. After a minute without any,
        what has come is spoken, and the speech ends. Closing the generator stops it. Raises
        InputError like `generate`, and RunError if a sentence fails.
        """
        request, cancel = self._request("", **options), threading.Event()
        try:
            with closing(speak_incoming(self._synthesis, request, pieces, cancel)) as events:
                for event in events:
                    if isinstance(event, AudioChunk):
                        yield event
        finally:
            cancel.set()

    def batch(
        self,
        scripts: Sequence[str],
        *,
        seeds: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> list[Take]:
        """A take of each script, generated together, which takes less time than one by one. Each is
        the take that `generate` returns for the same seed.

        seeds: one for each script, in place of the option `seed`. Raises InputError like
        `generate`, and BatchError, which has the other takes, if some fail.
        """
        if isinstance(scripts, str):
            raise InputError("A batch is a list of scripts, not one script.")
        if seeds is not None and len(seeds) != len(scripts):
            raise InputError(f"There are {len(scripts)} scripts and {len(seeds)} seeds.")
        requests = [self._request(script, **options) for script in scripts]
        if seeds is not None:
            requests = [
                replace(request, params=replace(request.params, seed=seed))
                for request, seed in zip(requests, seeds, strict=True)
            ]
        if not requests:
            return []
        takes: list[Take | None] = [None] * len(requests)
        problems = {}
        with closing(self._synthesis.stream_together(requests, threading.Event())) as events:
            for event in events:
                try:
                    take = take_of(self._synthesis, requests[event.row], event)
                except RunError as error:
                    problems[event.row + 1] = str(error)
                else:
                    takes[event.row] = take or takes[event.row]
        if problems:
            number, message = min(problems.items())
            counts = f"{len(problems)} of {len(requests)} takes failed"
            raise BatchError(f"{counts}. Script {number}: {message}", takes)
        return [take for take in takes if take is not None]

    def close(self) -> None:
        """End what is running, and free the model."""
        self._synthesis.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _request(
        self,
        script: str,
        *,
        seed: int | None = None,
        speed: float = 1.0,
        voice_prompt: str | PathLike[str] | None = None,
        voice_transcript: str = "",
        voice: str | Sequence[str | None] = (),
        normalise: bool = False,
        pronunciations: Mapping[str, str] | None = None,
        **params: Any,
    ) -> Request:
        if not isinstance(script, str):
            raise InputError(f"script must be text, not {script!r}.")
        if unknown := sorted(params.keys() - PARAMS.keys()):
            known = ", ".join(Options.__annotations__)
            raise TypeError(f"unknown option {unknown[0]!r}; there are: {known}")
        if voice_transcript and voice_prompt is None:
            raise InputError("voice_transcript needs voice_prompt.")
        GenerationParams.check_known(params, self.info.config)
        info, seed = self.info, random_seed() if seed is None else seed
        prompt = voice_prompt and VoicePrompt.from_file(Path(voice_prompt), voice_transcript)
        request = Request(
            script=script,
            params=replace(info.config.defaults, seed=seed, **params),
            model=info,
            runtime=self._synthesis.settings.runtime,
            voice=prompt or None,
            speed=speed,
            normalise=normalise,
            pronunciations=Pronunciations.from_mapping(pronunciations) if pronunciations else NONE,
        )
        choices = [voice] if isinstance(voice, str) else voice
        return add_voices(request, choices, self._kept, with_files=True)

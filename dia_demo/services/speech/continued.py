"""One take of a text that is still being written: the model reads it as it comes.

The codes are those of a take of the whole text, because the model waits where it would look at
words that are not there yet. A text that is too long for a take goes on in another one, with the
voices of the first.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace

from dia_demo.engine.events import (
    AudioChunk,
    Failed,
    Finished,
    FinishReason,
    Result,
)
from dia_demo.engine.rows.text_queue import TextQueue
from dia_demo.errors import RunError
from dia_demo.machine.background import Background
from dia_demo.services.speech.reading import TextStopped, read_sentences
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.text.dialogue.incoming import Sentence
from dia_demo.text.dialogue.pauses import find_pauses, remove_pauses
from dia_demo.text.pronunciations import NONE
from dia_demo.text.script import (
    check_readable,
    has_words,
    parse_turns,
    words_of,
    write_script,
)

# A take gets sentences for this share of its length, since it may speak more slowly than expected;
# beyond the second share it ends within a sentence.
FILLED, OVERFILLED = 0.7, 0.9
# How much of the first take shows the others how its speakers sound, which leaves most of a take
# for new words.
VOICE_SECONDS, VOICE_SHARE = 10.0, 0.2

Spoken = Sentence | AudioChunk | TextStopped


def speak_continued(
    synthesis: Synthesis, request: Request, pieces: Iterable[str], cancel: threading.Event
) -> Generator[Spoken, None, None]:
    """The speech of a text in one take, or as few as it fits into; see `speak_incoming`."""
    # What is written out, or said as a person wishes, may be longer than a word.
    by_words = not request.normalise and request.pronunciations == NONE
    over = threading.Event()
    text = _Text(read_sentences(pieces, lambda: cancel.is_set() or over.is_set(), by_words))
    try:
        while result := (yield from _GrowingTake(request, text).speak(synthesis, cancel)):
            if request.voice is None:
                request = replace(request, voice=_voice_of(result, request))
    finally:
        over.set()
    yield from text.told()
    if text.stopped is not None:
        yield text.stopped
    if text.error is not None:
        raise text.error


class _Text:
    """The text of all takes. One thread at a time calls its methods, but for `told`.

    error, stopped: what ended it, once all before that was returned.
    """

    def __init__(self, sentences: Iterator[Sentence | TextStopped]) -> None:
        self.error: BaseException | None = None
        self.stopped: TextStopped | None = None
        self._sentences = sentences
        self._returned: list[Sentence] = []
        self._begun: list[Sentence] = []
        self._told: queue.SimpleQueue[Sentence] = queue.SimpleQueue()

    def next(self) -> Sentence | None:
        """What follows, once it is there; None at the end."""
        if self._returned:
            return self._returned.pop(0)
        if self.error is not None or self.stopped is not None:
            return None
        try:
            match next(self._sentences, None):
                case Sentence() as found:
                    check_readable(found.text)
                    find_pauses(found.text)
                    self._tell(found)
                    return found
                case stopped:
                    self.stopped = stopped
        except BaseException as error:
            self.error = error
        self._tell_begun()
        return None

    def put_back(self, sentences: list[Sentence]) -> None:
        """They are the next ones again."""
        self._returned = sentences + self._returned

    def told(self) -> Iterator[Sentence]:
        """The sentences that are complete since the last call."""
        while not self._told.empty():
            yield self._told.get()

    def _tell(self, found: Sentence) -> None:
        if found.is_tagged:
            self._tell_begun()
        self._begun.append(found)
        if found.is_end:
            self._tell_begun()

    def _tell_begun(self) -> None:
        said = " ".join(part.text for part in self._begun)
        if has_words(remove_pauses(said)):
            self._told.put(Sentence(self._begun[0].speaker, said))
        self._begun = []


class _GrowingTake:
    """A take, and the thread that adds its text while it is made."""

    def __init__(self, request: Request, text: _Text) -> None:
        self._request, self._text, self._queue = request, text, TextQueue()
        prompt = request.voice.codes if request.voice else None
        frames = 0 if prompt is None else len(prompt)
        room = request.model.seconds_of(request.params.max_tokens)
        self._longest = room - frames / request.model.frames_per_second
        self._seconds, self._is_between = 0.0, True
        # A text that begins without a tag is that of S1.
        self._speaker = 1
        # Of each speaker, as they were added.
        self._words: list[tuple[int, str]] = []
        self._is_over = threading.Event()

    def speak(
        self, synthesis: Synthesis, cancel: threading.Event
    ) -> Generator[Spoken, None, Result | None]:
        """The events of the take; returns its result, None if there are no words or it was
        stopped."""
        script = ""
        while not has_words(script):
            if (more := self._text.next()) is None:
                return None
            script = f"{script} {self._add(more)}"
        adding = Background("more text", self._add_more).start()
        request, result = replace(self._request, script=script, more_text=self._queue), None
        try:
            with closing(synthesis.stream(request, cancel)) as events:
                for event in events:
                    yield from self._text.told()
                    match event:
                        case AudioChunk():
                            yield event
                        case Failed(message=message):
                            raise RunError(message)
                        case Finished():
                            result = event.result
        finally:
            self._is_over.set()
        if result is not None:
            adding.join()
            if result.figures.finish_reason == FinishReason.MAX_TOKENS:
                self._return_unsaid(len(result.words or ()))
        return result

    def _add_more(self) -> None:
        while (more := self._text.next()) is not None:
            if self._is_over.is_set() or not self._fits(more):
                self._text.put_back([more])
                break
            self._queue.add(self._request.reading(self._add(more)).text)
        self._queue.finish()

    def _fits(self, sentence: Sentence) -> bool:
        share = FILLED if self._is_between or sentence.is_tagged else OVERFILLED
        return self._seconds + self._length(sentence.text) <= share * self._longest

    def _length(self, text: str) -> float:
        return self._request.model.expected_seconds(text)

    def _add(self, sentence: Sentence) -> str:
        """Note that it is a part of the take; returns it as a script has it."""
        self._seconds += self._length(sentence.text)
        self._is_between = sentence.is_end
        read = self._request.reading(sentence.text).text
        self._words += [(sentence.speaker, word) for _, word in words_of(remove_pauses(read))]
        is_tagged = sentence.is_tagged or sentence.speaker != self._speaker
        self._speaker = sentence.speaker
        return f"[S{self._speaker}] {sentence.text}" if is_tagged else sentence.text

    def _return_unsaid(self, begun: int) -> None:
        """The words that had no place in the take are said in the next one, with the last one that
        was begun."""
        unsaid = self._words[max(0, begun - 1) :]
        if len(unsaid) == len(self._words):
            tokens = self._request.params.max_tokens
            raise RunError(
                f"Not even a word of the text fits into a take of {tokens} max tokens: raise them."
            )
        turns = parse_turns(write_script(unsaid))
        self._text.put_back([Sentence(turn.speaker, turn.text) for turn in turns])


def _voice_of(result: Result, request: Request) -> VoicePrompt | None:
    """How the speakers of a take sound, as the voice prompt of the next one; None if nobody has
    spoken."""
    fps = request.model.frames_per_second
    words = [replace(word, seconds=word.seconds * request.speed) for word in result.words or ()]
    longest = VOICE_SHARE * request.model.seconds_of(request.params.max_tokens)
    shown = [word for word in words if word.seconds < min(VOICE_SECONDS, longest)]
    if not shown:
        return None
    end = len(result.codes) if len(shown) == len(words) else round(words[len(shown)].seconds * fps)
    script = write_script((word.speaker, word.word) for word in shown)
    return VoicePrompt(codes=result.codes[:end], transcript=script, words=tuple(shown))

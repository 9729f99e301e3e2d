"""Dia2Row: a take of Dia2 while it is generated; Dia2Batch: rows that advance together.

Step t reads the column t of the delayed grid and the text of the step before, and gives the column
t + 1: frame f of channel c is in the column f + delay[c]. After a voice prompt of n frames the
first step is n - 1, which the prompt has read already: as in nari-labs/dia2, generation reads it
again, and what it draws replaces the prompt's codes in the columns that follow.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import torch

from dia_demo.config import GenerationParams
from dia_demo.engine.events import FinishReason, SpokenWord
from dia_demo.engine.row import check_prompt
from dia_demo.engine.rows.base_row import BaseRow
from dia_demo.engine.rows.text_queue import TextQueue
from dia_demo.families.dia2.prompt import VoicePrefix, from_take, spread_words
from dia_demo.families.dia2.script import ScriptParser, write_breaks
from dia_demo.families.dia2.state_machine import StateMachine
from dia_demo.families.dia2.tokenizer import tokenizer_of
from dia_demo.model.dia2.config import (
    ACTION_TOP_K,
    FRAMES_PER_SECOND,
    INITIAL_PADDING,
    MAX_PADDING,
    Dia2Config,
)
from dia_demo.model.dia2.drawing import NOT_FINITE, draw
from dia_demo.model.dia2.interface import Drawing, FrameCache, FrameModel
from dia_demo.prompt.voice_traits import VoiceTraits
from dia_demo.text.script import from_bytes
from dia_demo.voices import NO_NAMES, VoiceNames


class Dia2Batch:
    """Rows of Dia2 that advance together."""

    def __init__(self, model: FrameModel, rows: Sequence[Dia2Row]) -> None:
        self._model, self._rows = model, list(rows)
        self._caches = [row.cache for row in rows]
        self._branches = [cache.branches for cache in self._caches]
        decoder = model.config.decoder
        self._excluded = decoder.bos, decoder.pad
        self._drawing = [row.audio_drawing for row in rows]
        slots = sum(self._branches)
        self._text = torch.empty(slots, 2, dtype=torch.int64)
        self._codes = torch.empty(slots, decoder.num_channels, dtype=torch.int64)
        # Of the action, and of each codebook.
        self._uniforms = torch.empty(len(self._rows), 1 + decoder.num_channels)

    @torch.inference_mode()
    def step(self) -> None:
        """One frame of every row."""
        self._gather()
        actions, first = self._model.step(self._text, self._codes, self._caches)
        for row, out in zip(self._rows, self._uniforms.unbind(), strict=True):
            row.draw_uniforms(out)
        uniforms, first_codes = self._uniforms.numpy(), np.empty(len(self._rows), np.int64)
        by_row = zip(actions.split(self._branches), first.split(self._branches), strict=True)
        for index, (of_action, of_first) in enumerate(by_row):
            row, its = self._rows[index], uniforms[index]
            action = draw(of_action.numpy(), row.action_drawing, float(its[0]))
            code = draw(of_first.numpy(), row.audio_drawing, float(its[1]), self._excluded)
            is_finite = NOT_FINITE not in (action, code)
            first_codes[index] = code if is_finite else NOT_FINITE
            if is_finite:
                row.accept_action(action)
        codes = np.column_stack([first_codes, self._draw_others(first_codes, uniforms[:, 2:])])
        for row, its_codes in zip(self._rows, codes, strict=True):
            if NOT_FINITE in its_codes:
                row.fail_not_finite()
            else:
                row.accept(its_codes)

    def _draw_others(self, first_codes: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        """The codes [rows, stages] of the depth part, for those rows in which somebody reads
        them."""
        others = np.full(uniforms.shape, self._model.config.decoder.pad, np.int64)
        deep = [index for index, row in enumerate(self._rows) if row.has_depth]
        if deep:
            drawing, caches = zip(
                *((self._drawing[index], self._caches[index]) for index in deep), strict=True
            )
            others[deep] = self._model.depth(first_codes[deep], uniforms[deep], drawing, caches)
        return others

    def _gather(self) -> None:
        """What the step reads."""
        slot, ids = 0, self._model.config.text_ids
        for row, branches in zip(self._rows, self._branches, strict=True):
            self._codes[slot : slot + branches] = torch.from_numpy(row.next_codes)
            self._text[slot] = torch.tensor(row.next_text)
            self._text[slot + 1 : slot + branches] = torch.tensor([ids.zero, ids.pad])
            slot += branches


class Dia2Row(BaseRow):
    """One row of Dia2.

    prompt: codes [frames, C] of a voice, with prompt_words: the words that they say and when; if
    these are left out, the first `said` bytes of the text, spread over the frames. Or prefix: a
    voice prompt that is ready. Raises InputError where it leaves no room. more_text: what follows
    the text; the codes are the same, whenever it comes.
    """

    make_batch = Dia2Batch

    def __init__(
        self,
        config: Dia2Config,
        text: bytes,
        params: GenerationParams,
        prompt: np.ndarray | None = None,
        cancel: threading.Event | None = None,
        said: int = 0,
        prompt_voice: VoiceTraits | None = None,
        chosen: VoiceNames = NO_NAMES,
        prompt_words: Sequence[SpokenWord] = (),
        prefix: VoicePrefix | None = None,
        more_text: TextQueue | None = None,
    ) -> None:
        tokenizer = tokenizer_of(config)
        if prefix is None and prompt is not None:
            transcript = from_bytes(text[:said])
            words = prompt_words or spread_words(transcript, len(prompt), tokenizer)
            prefix = from_take(prompt, words, tokenizer)
        frames = 0 if prefix is None else len(prefix.codes)
        super().__init__(config, text, params, frames, cancel)
        self._shape = config
        self._prefix = prefix
        self._delays = np.array(config.delay_pattern)
        d = config.decoder
        # Column 0 of a channel without delay is never drawn.
        self._grid = np.full((self.params.max_tokens + 1, d.num_channels), d.pad, np.int64)
        self._grid[0] = d.bos
        self._start = max(0, frames - 1)
        self.position = self._start
        self._parser, self._more_text = ScriptParser(tokenizer, FRAMES_PER_SECOND), more_text
        script = self._parser.parse(write_breaks(from_bytes(text[said:])))
        said_entries = () if prefix is None else prefix.entries
        self._machine = StateMachine(
            [*said_entries, *script], config.text_ids, config.second_stream_ahead
        )
        self._machine.is_complete = more_text is None
        self.next_text = tokenizer.bos, config.text_ids.pad
        self._prompt_text = self._read_prefix()
        self._words_before = len(said_entries)
        # Upstream looks for the token of a new word on the main stream. With a second stream it is
        # never there, so that nothing but the prompt is cut off.
        self._cut = self._start if config.second_stream_ahead else None

    def _read_prefix(self) -> list[tuple[int, int]]:
        """Fill the grid with the prompt's codes, and run its actions; the text of each step."""
        texts: list[tuple[int, int]] = []
        if self._prefix is None:
            return texts
        codes, begins = self._prefix.codes, set(self._prefix.steps)
        check_prompt(codes, self._shape, self.params.max_tokens)
        for channel, delay in enumerate(self._shape.delay_pattern):
            column = self._grid[delay : delay + len(codes), channel]
            column[:] = codes[: len(column), channel]
        for step in range(len(codes)):
            texts.append(self.next_text)
            self.next_text = self._machine.step(step, int(step in begins), is_forced=True)
        return texts

    def read(self, model: FrameModel) -> FrameCache:
        branches, frames = self._shape.branches(self.params.cfg_scale), self.prompt_frames
        cache = model.new_cache(branches, self.params.max_tokens + min(1, frames))
        if frames:
            ids = self._shape.text_ids
            texts = torch.tensor([ids.zero, ids.pad]).repeat(branches, frames, 1)
            texts[0] = torch.tensor(self._prompt_text)
            codes = np.stack([self._column(step) for step in range(frames)])
            model.read(texts, torch.from_numpy(codes).repeat(branches, 1, 1), cache)
            cache.position -= 1
        return cache

    @property
    def audio_drawing(self) -> Drawing:
        """How its codes are drawn."""
        return Drawing(self.params.cfg_scale, self.params.temperature, self.params.top_k)

    @property
    def action_drawing(self) -> Drawing:
        """How its actions are drawn."""
        return Drawing(self.params.cfg_scale, self.params.text_temperature, ACTION_TOP_K)

    @property
    def next_codes(self) -> np.ndarray:
        """The codes [C] that the next step reads."""
        return self._column(self.position)

    @property
    def has_depth(self) -> bool:
        """Whether the next step draws more than the first code: see `Dia2Config.light_steps`."""
        return self.position >= self._shape.light_steps

    def _column(self, step: int) -> np.ndarray:
        return np.where(step < self._delays, self._shape.decoder.bos, self._grid[step])

    def needs_text(self) -> bool:
        if self._more_text is not None and not self._machine.is_complete:
            pieces, self._machine.is_complete = self._more_text.take()
            for piece in pieces:
                self._machine.entries += self._parser.parse(write_breaks(piece))
        return self._machine.needs_text

    def accept_action(self, action: int) -> None:
        """Choose the text of the next step."""
        self.next_text = self._machine.step(self.position, action)
        if self._cut is None and self.next_text[0] == self._shape.text_ids.new_word:
            self._cut = max(0, self.position - INITIAL_PADDING)

    def accept(self, codes: np.ndarray) -> None:
        """Append the codes [C] drawn for the next column, and check whether the row ended."""
        self.position += 1
        self.steps += 1
        self._grid[self.position] = codes
        end = self._machine.end_step
        if end is not None and self.position >= end + self._shape.max_delay + MAX_PADDING:
            self.finish_reason = FinishReason.END
        elif self.position >= self.params.max_tokens:
            self.finish_reason = FinishReason.MAX_TOKENS

    @property
    def done(self) -> bool:
        return self.failure is not None or self.finish_reason is not None

    @property
    def _first_frame(self) -> int | None:
        """The frame at which the take begins; None while it is not known."""
        return self._start if self._cut is None and self.done else self._cut

    @property
    def known_frames(self) -> int:
        first = self._first_frame
        if first is None or not self.steps:
            return 0
        return max(0, self.position + 1 - self._shape.max_delay - first)

    def codes(self, first: int = 0, last: int | None = None) -> np.ndarray:
        last = self.known_frames if last is None else last
        start = self._first_frame or 0
        columns = [(start + first + lag, start + last + lag) for lag in self._shape.delay_pattern]
        frames = np.stack([self._grid[a:b, c] for c, (a, b) in enumerate(columns)], axis=1)
        valid = (frames >= 0) & (frames < self._shape.num_codes)
        return np.where(valid, frames, 0).astype(np.int16)

    @property
    def words(self) -> list[SpokenWord]:
        """The words that were begun, each at the step that chose it."""
        first = self._first_frame
        if first is None:
            return []
        return [
            SpokenWord(entry.text, (step - first) / FRAMES_PER_SECOND, entry.speaker)
            for entry, step in self._machine.begun[self._words_before :]
            if step >= first
        ]

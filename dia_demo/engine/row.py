"""Row: one take of Dia while it is generated. Its tokens, its voices and its end.

Positions are Dia's: 0 is BOS, a voice prompt of n frames fills 1..n, the first new frame is n + 1.
A step reads the position `Row.position`, with several frames a step (F) those before it too: it is
a multiple of F, and the positions before 0 are BOS. So a step may predict the last of a prompt's
frames, which stay as they are.
"""

from __future__ import annotations

import threading

import numpy as np
import torch

from dia_demo.config import GenerationParams, ModelConfig
from dia_demo.engine.batch import Batch
from dia_demo.engine.decoder_model import DecoderCache, DecoderModel
from dia_demo.engine.events import FinishReason
from dia_demo.engine.rows.base_row import BaseRow
from dia_demo.engine.sampling import Sampler
from dia_demo.engine.turns.passages import readable, speakers_of
from dia_demo.engine.turns.voices import TurnVoices
from dia_demo.errors import InputError
from dia_demo.model.delay import UNKNOWN, apply_delay, revert_delay
from dia_demo.prompt.voice_traits import TraitsOfBoth, VoiceTraits
from dia_demo.voices import NO_NAMES, VoiceNames


class Row(BaseRow):
    """One row of Dia.

    text: the bytes the encoder reads, including a prompt's transcript. prompt: codes [frames, C] or
    None; said: how many bytes of the text it says; prompt_voice, chosen: see TurnVoices.
    Raises InputError also where the prompt leaves no room, or the model has no voice of a chosen
    name.
    """

    make_batch = Batch
    # Draws the codes of several rows at once.
    make_sampler = Sampler

    def __init__(
        self,
        config: ModelConfig,
        text: bytes,
        params: GenerationParams,
        prompt: np.ndarray | None = None,
        cancel: threading.Event | None = None,
        said: int = 0,
        prompt_voice: VoiceTraits | None = None,
        chosen: VoiceNames = NO_NAMES,
    ) -> None:
        prompt_frames = 0 if prompt is None else len(prompt)
        super().__init__(config, text, params, prompt_frames, cancel)
        channels = config.decoder.num_channels
        prompt = np.zeros((0, channels), np.int64) if prompt is None else prompt
        check_prompt(prompt, config, self.params.max_tokens)
        delayed = apply_delay(prompt, config.delay_pattern, config.decoder.bos)
        frames = config.frames_per_step
        # Every position, and before them the BOS that the first step reads besides position 0.
        self._fed = np.full((frames + self.params.max_tokens, channels), UNKNOWN, np.int64)
        self._fed[: frames - 1] = config.decoder.bos
        self._tokens = self._fed[frames - 1 :]
        self._tokens[: len(delayed)] = delayed[: len(self._tokens)]
        self._known_positions = len(delayed)
        self._delay, self._max_delay = np.array(config.delay_pattern), config.max_delay
        self._prompt_voice, self._prompted = prompt_voice, speakers_of(text[:said])
        if config.voices is not None:
            # Of a prompt without a transcript it is not known who speaks in it.
            with_marks = bool(said) or not self.prompt_frames
            self.text = readable(text)
            self.turns = TurnVoices(
                config,
                self.params.seed,
                text,
                said,
                prompt=prompt,
                prompt_voice=prompt_voice,
                chosen=chosen,
                with_marks=with_marks,
            )
        self._end: int | None = None
        self.position = self.prompt_frames - self.prompt_frames % frames

    def read(self, model: DecoderModel) -> DecoderCache:
        cache = model.encode(self.text, self.params.cfg_scale, self.max_steps)
        if self.position > 0:
            codes = torch.from_numpy(self.previous_inputs)[None].expand(cache.branches, -1, -1)
            model(codes, [cache])
        return cache

    @property
    def next_input(self) -> np.ndarray:
        """Codes [F * C] that the next step reads, F frames."""
        return self._fed[self.position : self.position + self.config.frames_per_step].ravel()

    @property
    def previous_inputs(self) -> np.ndarray:
        """Codes [steps, F * C] of the steps before the next. At first they are the prompt's."""
        steps = self.position // self.config.frames_per_step
        fed = self._fed[: steps * self.config.frames_per_step]
        return fed.reshape(steps, self.config.codes_per_step)

    @property
    def last_frame(self) -> np.ndarray:
        """Codes [C] of the position accepted last."""
        return self._tokens[self.position]

    @property
    def max_steps(self) -> int:
        """Steps from the first to the row's last, with those of a prompt."""
        return self.config.steps_within(self.params.max_tokens)

    @property
    def known_frames(self) -> int:
        complete = self.position - self.config.max_delay
        last = complete if self._end is None else min(complete, self._end - 1)
        return max(0, last - self.prompt_frames)

    @property
    def voices(self) -> tuple[str | None, str | None] | None:
        return None if self.turns is None else self.turns.names

    @property
    def expected_voices(self) -> TraitsOfBoth:
        """Without voices by name, only that of a voice prompt with one speaker."""
        if self.turns is not None:
            return self.turns.traits
        one, two = (self._prompt_voice if self._prompted == {k} else None for k in (1, 2))
        return one, two

    @property
    def surplus_turns(self) -> int | None:
        if self.turns is None or self._end is None or self.finish_reason != FinishReason.END:
            return None
        return self.turns.surplus(self._end - self.prompt_frames)

    @property
    def correction(self) -> np.ndarray | None:
        """What to add to the next logits [C, V] of the codec's codes; see VoiceDrift."""
        return None if self.turns is None else self.turns.drift.correction

    def steer(self, codes: np.ndarray, logits_V: np.ndarray) -> None:
        """Set those of the codes [C] sampled for the next position that begin a turn of a speaker
        with a voice by name. logits: of the last channel."""
        is_new = self.position >= self.prompt_frames
        if self.turns is None or self._end is not None or not is_new:
            return
        assert self.cache is not None, "the row has made a step"
        place = self.cache.text_place
        assert place is not None, "a model with voices by name follows its text"
        self.turns.steer(codes, logits_V, self._tokens[self.prompt_frames :], place)

    def accept(self, codes: np.ndarray) -> None:
        """Append the codes [C] predicted for the next position, and check whether the row ended.

        BOS and prompt codes that are known already stay. After the end (EOS on channel 0, or the
        last position that leaves room for the delays) channel c has EOS delay[c] later, then PAD.
        """
        decoder = self.config.decoder
        self.position += 1
        self.steps += 1
        if self.position < self._known_positions:
            known = self._tokens[self.position]
            codes = np.where(known == UNKNOWN, codes, known)
        if self._end is None:
            if codes[0] == decoder.eos:
                self._end, self.finish_reason = self.position, FinishReason.END
            elif self.position >= self.params.max_tokens - self._max_delay:
                self._end, self.finish_reason = self.position, FinishReason.MAX_TOKENS
        if self._end is not None:
            steps_after = self.position - self._end
            codes = np.where(steps_after == self._delay, decoder.eos, codes)
            codes = np.where(steps_after > self._delay, decoder.pad, codes)
        self._tokens[self.position] = codes

    @property
    def done(self) -> bool:
        if self.failure is not None:
            return True
        return self._end is not None and self.position - self._end >= self._max_delay - 1

    def codes(self, first: int = 0, last: int | None = None) -> np.ndarray:
        last = self.known_frames if last is None else last
        start = self.prompt_frames
        frames = revert_delay(self._tokens, self.config.delay_pattern, start + first, start + last)
        valid = (frames >= 0) & (frames < self.config.num_codes)
        return np.where(valid, frames, 0).astype(np.int16)


def check_prompt(prompt: np.ndarray, config: ModelConfig, max_tokens: int) -> None:
    """InputError where a prompt's codes do not fit the model or leave no room for a new frame."""
    channels, limit = config.decoder.num_channels, config.num_codes
    if prompt.ndim != 2 or prompt.shape[1] != channels:
        raise InputError(
            f"Voice codes must be [frames, {channels}] for this model, not {list(prompt.shape)}."
        )
    if not np.issubdtype(prompt.dtype, np.integer):
        raise InputError(f"Voice codes must be whole numbers, not {prompt.dtype}.")
    if prompt.size and (prompt.min() < 0 or prompt.max() >= limit):
        raise InputError(
            f"Voice codes must be from 0 to {limit - 1}, not {prompt.min()} to {prompt.max()}."
        )
    if config.frames_within(max_tokens, len(prompt)) < 1:
        room = config.frames_within(max_tokens) - 1
        raise InputError(
            f"The voice prompt has {len(prompt)} frames, but with max tokens {max_tokens} it can "
            f"have at most {max(room, 0)}: shorten the prompt or raise max tokens."
        )

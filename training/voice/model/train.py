"""Train the small Dia. `python -m training.voice.model.train --work DIR --minutes 60`.

Saves DIR/nano.pt every two minutes; run again to resume. The text is zeroed under its real mask in
a tenth of the items, as guidance does at inference. Against exposure bias 3% of the input codes are
random, and parts of turns have drifted to another voice or say something else (scripts.py). Voice
marks are learnt at the temperature at which they are drawn. Where nothing says whose voice it is,
the target is an even draw and not the mark of the turn that happened to be said: a model soon knows
every text's voice by heart, and then gives a new text the voice of another.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from training.voice import parallel
from training.voice.codec.marks import read_marks
from training.voice.corpus.lexicon import Spellings, load_lexicon
from training.voice.model.batches import Batch, collate
from training.voice.model.export import trained_weights
from training.voice.model.losses import (
    GUIDE_FADE,
    GUIDE_FULL,
    code_losses,
    draw_loss,
    guide_loss,
    guide_weight,
    phone_loss,
    spelling_loss,
    tag_loss,
    voice_classes,
    voice_loss,
)
from training.voice.model.network import CHANNELS, CODES, MOST_VOICES, Nano, load_nano, save_nano
from training.voice.model.scripts import IGNORE, Scripts
from training.voice.model.turns import Turn, load_turns

log = logging.getLogger(__name__)
SAVE_EVERY, CHECK_EVERY = 120.0, 300.0  # seconds
HELD_OUT = 100  # turns kept from training for the running check
DROP_TEXT, WRONG_CODES = 0.1, 0.03
# of the loss, as logged before the books
PARTS = (
    "codes", "guide", "phone", "spelling", "dictionary", "frame-voice", "onset-voice",
    "later-voice", "draw", "first-draw", "tags",
)  # fmt: skip
LINES_AN_OPENING = 8  # an opening costs as much as a script's whole text
BOOK_WEIGHT = torch.tensor([2.0, 1.5, 1.2, 1.0, 0.8][:CHANNELS])


@dataclass(frozen=True)
class Plan(parallel.Plan):
    frames: int
    lines: int
    start: Path | None = None


def learning_rate(base: float, step: int, done: float) -> float:
    """Warm-up of 100 steps, constant to 30%, then a line down to 1%."""
    decay = 1.0 if done < 0.3 else max(0.01, 1 - (done - 0.3) / 0.7)
    return base * min(1.0, (step + 1) / 100) * decay


def corrupt(batch: Batch, generator: torch.Generator):
    """(text with some rows zeroed, inputs with some random codes, rows that kept their text)."""
    device = batch.text.device
    noise = (torch.rand(batch.inputs.shape, generator=generator) < WRONG_CODES).to(device)
    random_codes = torch.randint(0, CODES, batch.inputs.shape, generator=generator).to(device)
    inputs = torch.where(noise & (batch.inputs < CODES), random_codes, batch.inputs)
    keep = (torch.rand(len(batch.text), generator=generator) >= DROP_TEXT).to(device)
    return batch.text.masked_fill(~keep[:, None], 0), inputs, keep


def training_loss(
    model, batch: Batch, openings: Batch, dictionary, mark_codes, voices, step: int, generator
):
    """Total loss and the parts worth logging, as in PARTS.

    openings: first frames of further items, for the draw of a voice alone. dictionary: what
    Spellings.batch gives; words without speech, for the encoder alone.
    mark_codes [V]: the codes that are voice marks. voices: what voice_classes gives.
    """
    words, mask, *said = dictionary
    text, inputs, keep = corrupt(batch, generator)
    with torch.autocast(text.device.type, torch.bfloat16):
        predicted = model(text, batch.mask, inputs)
        dictionary_spelled = model.spell(model.encode(words, mask)[0])
        opened, *_ = model(openings.text, openings.mask, openings.inputs)
    logits, attention, phone_logits, spelled, frame_voices, turn_voices, *tags = predicted
    wanted = batch.targets.clone()
    wanted[..., -1].masked_fill_(batch.drawn != IGNORE, IGNORE)
    books, _ = code_losses(logits, wanted, batch.marks, batch.weights)
    draw = draw_loss(logits, batch.drawn, mark_codes)
    first_draw = draw_loss(opened, openings.drawn, mark_codes)
    weight = BOOK_WEIGHT.to(books.device)
    codes = (books * weight).sum() / weight.sum()
    guide = guide_loss(attention, batch.letters, keep.float(), batch.weights[..., 0])
    phones = phone_loss(phone_logits, batch.phones.masked_fill(~keep[:, None, None], IGNORE))
    spelling = spelling_loss(spelled, batch.mask, batch.spelling, batch.spelling_count, keep)
    dictionary = spelling_loss(dictionary_spelled, mask, *said)
    frame_voice = voice_loss(frame_voices, batch.frame_voices, voices)
    onset_voice, later_voice = (
        voice_loss(turn_voices, places.masked_fill(~keep[:, None], IGNORE), voices)
        for places in (batch.onset_voices, batch.later_voices)
    )
    tag = tag_loss(*tags, batch, keep)
    aids = 0.3 * phones + 0.2 * (spelling + dictionary + tag)
    aids = aids + 0.1 * frame_voice + 0.3 * onset_voice + 0.2 * later_voice
    total = codes + guide_weight(step) * guide + aids + 0.1 * draw + 0.3 * first_draw
    return total, [
        codes,
        guide,
        phones,
        spelling,
        dictionary,
        frame_voice,
        onset_voice,
        later_voice,
        draw,
        first_draw,
        tag,
        *books,
    ]


@torch.no_grad()
def check(model, held: list[Batch], voices: int) -> str:
    """Cross-entropy and accuracy by book on held-out turns, accuracy of the voices of turns, where
    they are among the first `voices`, which have names, and of the counts of tags."""
    model.eval()
    found, right, counted_right = [], [], []
    for batch in held:
        with torch.autocast(batch.text.device.type, torch.bfloat16):
            logits, *_, turn_voices, _, frame_tags = model(batch.text, batch.mask, batch.inputs)
        known = (batch.onset_voices != IGNORE) & (batch.onset_voices < voices)
        named = turn_voices[..., :MOST_VOICES].argmax(-1)
        right.append((named == batch.onset_voices)[known])
        known = batch.frame_tags != IGNORE
        counted_right.append((frame_tags.argmax(-1) == batch.frame_tags)[known])
        books, counted = code_losses(logits, batch.targets, batch.marks)
        hits = (logits.argmax(-1) == batch.targets) & counted
        found.append(torch.stack([books, hits.sum((0, 1)) / counted.sum((0, 1))]))
    model.train()
    mean = torch.stack(found).mean(0)
    loss, accuracy = ([round(x, 3) for x in row.tolist()] for row in mean)
    voices, tags = (torch.cat(hits).float().mean().item() for hits in (right, counted_right))
    return f"held out: cross-entropy {loss} accuracy {accuracy} voices {voices:.3f} tags {tags:.3f}"


def optimisers(parameters: list[tuple[str, torch.nn.Parameter]], lr: float, decay=(0.02, 0.01)):
    """Muon for matrices inside layers, AdamW for embeddings, norms, heads. decay: of each."""
    inner, rest = [], []
    for name, p in parameters:
        is_inner = p.dim() == 2 and name.startswith(("encoder.", "decoder."))
        (inner if is_inner else rest).append(p)
    return (
        torch.optim.Muon(
            inner, lr=lr, weight_decay=decay[0], momentum=0.95, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(rest, lr=lr, betas=(0.9, 0.98), weight_decay=decay[1]),
    )


def batches(plan: Plan, turns: list[Turn], marks: dict[str, int], seed: int):
    """Batches, openings and lines of the dictionary, without end."""
    scripts, words = Scripts(turns, marks, seed), Spellings(load_lexicon(plan.work), seed)
    for items in scripts.batches(plan.frames):
        openings = collate(scripts.openings(max(1, plan.lines // LINES_AN_OPENING)))
        yield collate(items), openings, words.batch(plan.lines)


class Progress:
    """What rank 0 tells the log and keeps on disk while training."""

    def __init__(self, path: Path, checks: list[Batch], voices: int) -> None:
        self.path, self.checks, self.voices = path, checks, voices
        self.begin = self.saved = self.checked = time.time()
        self.history: list[torch.Tensor] = []
        self.frames = 0

    def tell(self, model, opts, step: int, elapsed: float, parts, frames: int) -> None:
        """After every step: means every 50 steps, a checkpoint and a check now and then."""
        self.frames += frames
        self.history.append(torch.stack(parts).detach())  # read later: a GPU need not wait
        now = time.time()
        if step % 50 == 0:
            means = np.round(torch.stack(self.history).mean(0).tolist(), 3).tolist()
            self.history.clear()
            log.info(
                "step %d t %.0f frames/s %.0f %s books %s",
                step,
                elapsed,
                self.frames / (now - self.begin),
                " ".join(f"{name} {mean:.3f}" for name, mean in zip(PARTS, means, strict=False)),
                means[len(PARTS) :],
            )
        if now - self.saved > SAVE_EVERY:
            self.keep(model, opts, step, elapsed)
            self.saved = now
        if now - self.checked > CHECK_EVERY:
            log.info("step %d %s", step, check(model, self.checks, self.voices))
            self.checked = now

    def keep(self, model, opts, step: int, elapsed: float) -> None:
        states = [o.state_dict() for o in opts]
        save_nano(self.path, model, optimisers=states, step=step, elapsed=elapsed)


def prepare(rank: int, plan: Plan):
    """Model, optimisers, steps and seconds so far, marks and the places of the voices, batches,
    rank 0's progress."""
    path = plan.path
    if rank == 0:
        parallel.log_to(path.with_suffix(".log"))
    torch.manual_seed(plan.seed)
    if path.exists():
        model, state = load_nano(path)
    else:
        model, state = Nano(), {}
        if plan.start:
            model.load_state_dict(trained_weights(plan.start, model), strict=False)
            state["step"] = GUIDE_FULL + GUIDE_FADE  # it knows where to look
    model.to(plan.device)
    opts = optimisers(list(model.named_parameters()), plan.lr)
    for opt, kept in zip(opts, state.get("optimisers", ()), strict=False):
        opt.load_state_dict(kept)
    step, elapsed = state.get("step", 0), state.get("elapsed", 0.0)
    turns = load_turns(plan.work)
    marks = read_marks(plan.work)
    held = Scripts(turns[:HELD_OUT], marks, 3, drift=0, slip=0)
    checks = [collate([held.item() for _ in range(8)]).to(plan.device) for _ in range(4)]
    seed = plan.seed + 100 * rank + 7919 * step
    learnt = turns[HELD_OUT:]
    places = Scripts(learnt, marks, seed).places
    source = parallel.prefetch(partial(batches, plan, learnt, marks), seed, plan.loaders)
    log.info(
        "%d parameters, %d turns, %.1f h",
        sum(p.numel() for p in model.parameters()),
        len(turns),
        sum(len(t.codes) for t in turns) * 0.024 / 3600,
    )
    progress = Progress(path, checks, len(marks)) if rank == 0 else None
    return model, opts, step, elapsed, marks, places, source, progress


def fit(plan, workers, opts, parameters, step, seconds, loss, tell) -> tuple[int, float]:
    """Optimise until the plan's minutes are over; the steps and seconds of training then.

    step, seconds: those so far. loss(step) gives the total and what tell(step, seconds, …) is given
    after the step.
    """
    watch = parallel.Stopwatch(seconds)
    while True:
        seconds = parallel.share(watch.lap(), workers)
        done = seconds / (plan.minutes * 60)
        if done >= 1:
            return step, seconds
        for opt in opts:
            for group in opt.param_groups:
                group["lr"] = learning_rate(plan.lr, step, done)
        total, told = loss(step)
        for parameter in parameters:
            parameter.grad = None
        total.backward()
        parallel.average_gradients(parameters, workers)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for opt in opts:
            opt.step()
        step += 1
        tell(step, seconds, told)


def train(rank: int, workers: int, plan: Plan) -> None:
    model, opts, step, before, marks, places, source, progress = prepare(rank, plan)
    generator = torch.Generator().manual_seed(plan.seed + rank + step)
    mark_codes = torch.tensor(list(marks.values()), device=plan.device)
    voices = voice_classes(places, marks).to(plan.device)

    def loss(step):
        batch, openings, dictionary = next(source)
        batch, openings = batch.to(plan.device), openings.to(plan.device)
        dictionary = tuple(part.to(plan.device) for part in dictionary)
        total, parts = training_loss(
            model, batch, openings, dictionary, mark_codes, voices, step, generator
        )
        return total, (parts, workers * batch.inputs[..., 0].numel())

    def tell(step, seconds, told):
        if progress:
            progress.tell(model, opts, step, seconds, *told)

    parameters = list(model.parameters())
    step, elapsed = fit(plan, workers, opts, parameters, step, before, loss, tell)
    if progress:
        progress.keep(model, opts, step, elapsed)
        log.info("done, step %d %s", step, check(model, progress.checks, progress.voices))


def main() -> None:
    parser = parallel.arguments(__doc__, minutes=60, lr=4.5e-3, out="nano.pt")
    parser.add_argument("--frames", type=int, default=3000, help="frames a batch and process")
    parser.add_argument(
        "--lines",
        type=int,
        default=32,
        help="lines of words a batch, text alone; openings of scripts are an eighth of it",
    )
    parser.add_argument("--start", type=Path, help="an exported folder whose weights to go on from")
    plan = Plan(**vars(parser.parse_args()))
    parallel.launch(plan.workers, train, plan)


if __name__ == "__main__":
    main()

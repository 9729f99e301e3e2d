"""Change a trained small Dia in one respect and keep it as it is in all others.
`python -m training.voice.model.adapt --work DIR --start assets/nano --minutes 60`.

Training on with train.py from a finished model changes how it reads: it says turns twice or leaves
them out. Here only what is to change is learnt from codes; everywhere else the model keeps to the
distribution of the one that it started from (Li and Hoiem 2016, "Learning without forgetting").
What is to change:

- Voices: those without a mark in --known, or those that --learn names, those without a name among
  them. Their frames are learnt; the attention to the text stays fixed.
- Its own mistakes, where own_takes.py has found some in DIR/own. What corrects them is learnt, by
  all of the model, and where to look in the text while they are corrected.

Draws of voices, and the aid that tells voices apart, are as in train.py. Saves DIR/adapted.pt every
two minutes; run again to resume.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F

from training.voice import parallel
from training.voice.codec.marks import read_marks
from training.voice.model.batches import Batch, attention_cost, collate
from training.voice.model.export import trained_weights
from training.voice.model.losses import (
    GUIDED_HEADS,
    at_sampling,
    draw_loss,
    voice_classes,
    voice_loss,
)
from training.voice.model.network import (
    BOS,
    CHANNELS,
    FRAME_HEADS_AFTER,
    ONSET_HEAD_AFTER,
    PAD,
    VOCABULARY,
    Nano,
    load_nano,
    save_nano,
)
from training.voice.model.own_batches import OwnTake, load_own_takes, own_batches
from training.voice.model.scripts import IGNORE, Scripts
from training.voice.model.train import BOOK_WEIGHT, HELD_OUT, corrupt, fit, optimisers
from training.voice.model.turns import Turn, load_turns
from training.voice.teacher.voices import nearest_voice

log = logging.getLogger(__name__)
SAVE_EVERY, LOG_EVERY = 120.0, 25  # seconds, steps
HEAD_STEPS = 200  # first of which the head that knows voices learns alone
OPENINGS = 4  # scripts a batch of which the first frames alone are tried, for the draw of a voice
NEW_CAST = 0.6  # scripts with a new voice
FREE = "free"  # for --learn: all voices without a name
OWN_EVERY = 3  # steps; own takes cost as much as scripts
GUIDE_WEIGHT = 0.3  # of the attention that corrects
PARTS = "kept", "learnt", "draw", "first-draw", "voices", "own-kept", "own-learnt", "own-guide"


@dataclass(frozen=True)
class Plan(parallel.Plan):
    frames: int
    start: Path
    known: Path
    learn: list[str] | None


class Lessons(Scripts):
    """Scripts in most of which one of `new` speaks."""

    def __init__(self, turns: list[Turn], marks: dict[str, int], seed: int, new: list[str]) -> None:
        super().__init__(turns, marks, seed)
        self.new = [voice for voice in new if voice in self.named]

    def _cast(self) -> list[str]:
        cast = super()._cast()
        has_new = any(voice in self.new for voice in cast)
        if self.new and not has_new and self.random.random() < NEW_CAST:
            cast[self.random.randrange(2)] = self.random.choice(self.new)
        return cast


def decode(model: Nano, text, mask, tokens):
    """(logits [B, T, C, V], attention of the guided heads, [B, H, T, S] a layer, states after each
    layer)."""
    encoded, bias = model.encode(text, mask)
    x, attention, states = model.code_embedding(tokens + model.offsets).sum(2), [], []
    for layer in model.decoder:
        x, weights = layer(x, encoded, bias)
        attention.append(weights[:, :GUIDED_HEADS])
        states.append(x)
    logits = model.logits_dense(model.decoder_norm(x))
    return logits.view(*x.shape[:2], CHANNELS, VOCABULARY), attention, states


def lesson_loss(logits, taught, batch: Batch, learnt):
    """Mean of the cross-entropy where codes are `learnt` [B, T, C] and of the divergence from
    `taught`, the logits of the model before, elsewhere; and the two by themselves."""
    ignored = (batch.targets == PAD) | (batch.targets == BOS)
    wanted = batch.targets.masked_fill(ignored, IGNORE)
    wanted[..., -1].masked_fill_(batch.drawn != IGNORE, IGNORE)
    chances = at_sampling(logits.float(), batch.marks).log_softmax(-1)
    before = taught.float().log_softmax(-1)
    kept = (before.exp() * (before - chances)).sum(-1)
    missed = F.nll_loss(chances.flatten(0, 2), wanted.flatten(), reduction="none")
    weights = (wanted != IGNORE) * batch.weights * BOOK_WEIGHT.to(batch.weights.device)
    kept, missed = kept * weights * ~learnt, missed.view(wanted.shape) * weights * learnt
    parts = [
        (loss.sum() / (weights * which).sum().clamp(min=1)).detach()
        for loss, which in ((kept, ~learnt), (missed, learnt))
    ]
    return (kept + missed).sum() / weights.sum(), parts


def look_loss(attention, letters):
    """Minus the logarithm of the attention near the letters [B, T] to be read, where they are
    known. A mean of the attention itself would teach least where it is most wrong."""
    near = 1 - attention_cost(letters, attention[0].shape[-1])[:, None]
    known = (~letters.isnan())[:, None]
    losses = [-(a.float() * near).sum(-1).clamp(min=1e-4).log() * known for a in attention]
    return sum(loss.sum() for loss in losses) / (
        len(attention) * GUIDED_HEADS * known.sum().clamp(min=1)
    )


def voice_aid(model, states, batch: Batch, voices, learns: bool):
    """As train.py's, of the voices of frames and of turns.

    voices: what voice_classes gives; learns: whether more than the head, which starts from nothing,
    is to learn from it.
    """
    layers = FRAME_HEADS_AFTER, ONSET_HEAD_AFTER
    early, late = (states[n - 1] if learns else states[n - 1].detach() for n in layers)
    frames = voice_loss(model.voice_head(early), batch.frame_voices, voices)
    turns = model.voice_head(late)
    onset, later = (voice_loss(turns, v, voices) for v in (batch.onset_voices, batch.later_voices))
    return 0.1 * frames + 0.3 * onset + 0.2 * later


def adapt_loss(model, before, lessons, openings, own, new, mark_codes, voices, step, generator):
    """Total loss and PARTS.

    own: what collate_own gives, or None; new: places of the voices to learn; mark_codes: the codes
    that are voice marks; voices: what voice_classes gives.
    """
    text, inputs, _ = corrupt(lessons, generator)
    with torch.autocast(text.device.type, torch.bfloat16):
        with torch.no_grad():
            taught = decode(before, text, lessons.mask, inputs)[0]
        logits, _, states = decode(model, text, lessons.mask, inputs)
        opened = decode(model, openings.text, openings.mask, openings.inputs)[0]
        aid = voice_aid(model, states, lessons, voices, step >= HEAD_STEPS)
    learnt = torch.isin(lessons.frame_voices, new)[..., None].expand(inputs.shape).clone()
    learnt[..., -1] |= lessons.marks
    total, parts = lesson_loss(logits, taught, lessons, learnt)
    draw = draw_loss(logits, lessons.drawn, mark_codes)
    first_draw = draw_loss(opened, openings.drawn, mark_codes)
    total = total + 0.1 * draw + 0.3 * first_draw + aid
    parts += [draw.detach(), first_draw.detach(), aid.detach()]
    if own:
        batch, learnt = own
        with torch.autocast(text.device.type, torch.bfloat16):
            with torch.no_grad():
                taught = decode(before, batch.text, batch.mask, batch.inputs)[0]
            logits, attention, _ = decode(model, batch.text, batch.mask, batch.inputs)
        loss, own_parts = lesson_loss(logits, taught, batch, learnt)
        look = look_loss(attention, batch.letters)
        total = total + loss + GUIDE_WEIGHT * look
        parts += [*own_parts, look.detach()]
    return total, parts


def lend_marks(model: Nano, marks: dict[str, int], known: dict[str, int]) -> None:
    """A new voice begins as the nearest of the known ones: its mark is read and drawn like that."""
    last = (CHANNELS - 1) * VOCABULARY
    with torch.no_grad():
        for voice in marks.keys() - known.keys():
            lender = known[nearest_voice(voice, known)]
            for table in (model.code_embedding.weight, model.logits_dense.weight):
                table[last + marks[voice]] = table[last + lender]


def to_train(model: Nano, reading: bool) -> list[tuple[str, torch.nn.Parameter]]:
    """The parameters that change; without `reading`, none of what finds a place in the text."""
    read = ("text_embedding", "encoder"), ("cross_attention", "pre_ca_norm")
    chosen = []
    for name, parameter in model.named_parameters():
        reads = name.startswith(read[0]) or any(part in name for part in read[1])
        parameter.requires_grad_(
            name.startswith("voice_head.") or ("_head." not in name and (reading or not reads))
        )
        if parameter.requires_grad:
            chosen.append((name, parameter))
    return chosen


class Progress:
    """What rank 0 tells the log and keeps on disk."""

    def __init__(self, path: Path, model: Nano, opts) -> None:
        self.path, self.model, self.opts = path, model, opts
        self.saved = time.time()
        self.history: list[torch.Tensor] = []

    def tell(self, step: int, elapsed: float, parts: list[torch.Tensor]) -> None:
        """After every step: means now and then, of each part over the steps that have it."""
        self.history.append(
            F.pad(torch.stack(parts), (0, len(PARTS) - len(parts)), value=torch.nan)
        )
        if step % LOG_EVERY == 0:
            means = torch.stack(self.history).nanmean(0).tolist()
            self.history.clear()
            told = " ".join(f"{name} {mean:.3f}" for name, mean in zip(PARTS, means, strict=True))
            log.info("step %d t %.0f %s", step, elapsed, told)
        if time.time() - self.saved > SAVE_EVERY:
            self.keep(step, elapsed)
            self.saved = time.time()

    def keep(self, step: int, elapsed: float) -> None:
        states = [opt.state_dict() for opt in self.opts]
        save_nano(self.path, self.model, optimisers=states, step=step, elapsed=elapsed)


def load_models(plan: Plan, marks: dict[str, int], known: dict[str, int]):
    """The model before, the one to change, and the state of its training."""
    before = Nano()
    before.load_state_dict(trained_weights(plan.start, before), strict=False)
    lend_marks(before, marks, known)
    before.to(plan.device).eval().requires_grad_(False)
    model, state = load_nano(plan.path) if plan.path.exists() else (Nano(), {})
    if not state:
        model.load_state_dict(before.state_dict())
    return before, model.to(plan.device), state


def batches(make_scripts, takes: list[OwnTake], plan: Plan, seed: int):
    """Lessons, openings and what collate_own gives (every OWN_EVERY batches, where there are takes;
    else None), without end. make_scripts(seed) gives the Lessons."""
    scripts = make_scripts(seed)
    own_source = own_batches(takes, plan.frames, seed) if takes else None
    for count, items in enumerate(scripts.batches(plan.frames)):
        own = next(own_source) if own_source and count % OWN_EVERY == 0 else None
        yield collate(items), collate(scripts.openings(OPENINGS)), own


def adapt(rank: int, workers: int, plan: Plan) -> None:
    if rank == 0:
        parallel.log_to(plan.path.with_suffix(".log"))
    torch.manual_seed(plan.seed)
    marks, known = read_marks(plan.work), json.loads(plan.known.read_text())
    before, model, state = load_models(plan, marks, known)
    takes = load_own_takes(plan.work)
    chosen = to_train(model, reading=bool(takes))
    opts = optimisers(chosen, plan.lr, decay=(0, 0))  # weights stay near those of the start
    for opt, kept in zip(opts, state.get("optimisers", ()), strict=False):
        opt.load_state_dict(kept)
    step, elapsed = state.get("step", 0), state.get("elapsed", 0.0)
    seed = plan.seed + 100 * rank + 7919 * step
    new = plan.learn or sorted(marks.keys() - known.keys())
    corrected = sum(take.corrected is not None for take in takes)
    log.info("learning %s; %d own takes, %d corrected", new, len(takes), corrected)
    make_scripts = partial(Lessons, load_turns(plan.work)[HELD_OUT:], marks, new=new)
    scripts = make_scripts(seed)
    source = parallel.prefetch(partial(batches, make_scripts, takes, plan), seed, plan.loaders)
    learnt = {*new, *(scripts.free if FREE in new else ())} & scripts.places.keys()
    places = torch.tensor([scripts.places[voice] for voice in learnt], device=plan.device)
    voices = voice_classes(scripts.places, marks).to(plan.device)
    mark_codes = torch.tensor(list(marks.values()), device=plan.device)
    generator = torch.Generator().manual_seed(seed)
    progress = Progress(plan.path, model, opts) if rank == 0 else None

    def loss(step):
        lessons, openings, own = next(source)
        lessons, openings = lessons.to(plan.device), openings.to(plan.device)
        own = own and tuple(part.to(plan.device) for part in own)
        return adapt_loss(
            model, before, lessons, openings, own, places, mark_codes, voices, step, generator
        )

    def tell(step, elapsed, parts):
        if progress:
            progress.tell(step, elapsed, parts)

    parameters = [parameter for _, parameter in chosen]
    step, elapsed = fit(plan, workers, opts, parameters, step, elapsed, loss, tell)
    if progress:
        progress.keep(step, elapsed)
        log.info("done, step %d", step)


def main() -> None:
    parser = parallel.arguments(__doc__, minutes=60, lr=2e-4, out="adapted.pt")
    parser.add_argument("--frames", type=int, default=2400, help="frames a batch and process")
    parser.add_argument(
        "--start", type=Path, default=Path("assets/nano"), help="an exported folder"
    )
    parser.add_argument(
        "--known",
        type=Path,
        default=Path("training/voice/codec/shipped_marks.json"),
        help="the marks of its voices",
    )
    parser.add_argument(
        "--learn",
        nargs="+",
        help="voices, or free: all without a name; if left out, voices it does not know",
    )
    plan = Plan(**vars(parser.parse_args()))
    parallel.launch(plan.workers, adapt, plan)


if __name__ == "__main__":
    main()

"""Stage 6: how well the voice is understood. `python -m tools.voice.evaluate --work DIR`.

Word error by pocketsphinx on sentences never trained on (heldout.py), for each voice: the teacher
itself, the codec alone (teacher encoded and decoded), and the whole pipeline through the app's
engine with the checkpoint's own settings, seeds 0, 1, 2... in order. Prints Markdown, writes JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from dia_demo.config import GenerationParams, RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Finished
from dia_demo.engine.rows import Row
from dia_demo.script import encode_script, parse_turns
from tools.voice import asr, corpus, heldout, teacher

SETS = {"natural": tuple(heldout.NATURAL), "template": heldout.template()}
PITCH_TOLERANCE = 0.1


@dataclass(frozen=True)
class Score:
    """One row of the table. Rates are 0..1; length is over the teacher's."""

    stage: str
    voice: str
    sentences: str
    count: int
    word_error: float
    stopped: float | None = None
    length_ratio: float | None = None
    length_within: float | None = None
    pitch_right: float | None = None


def load_engine(folder: str, threads: int) -> Engine:
    loading = Engine.load(RuntimeConfig(model=folder, precision="float32", threads=threads))
    while True:
        try:
            next(loading)
        except StopIteration as stop:
            return stop.value


def speak_teacher(work: Path, sentences, tag: str) -> list[np.ndarray]:
    """The teacher's waveforms, kept in DIR/eval for the next time."""
    path = work / "eval" / f"{tag}-{len(sentences)}-{abs(hash_of(sentences)):08x}.npz"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        table = corpus.load_table(work)
        waves = [teacher.speak(s, teacher.VOICES[tag], table)[0] for s in sentences]
        np.savez(path, *[(w * 32767).astype(np.int16) for w in waves])
    stored = np.load(path)
    return [stored[k].astype(np.float32) / 32767 for k in stored.files]


def hash_of(sentences) -> int:
    import zlib

    return zlib.crc32("\n".join(sentences).encode())


def generate(engine: Engine, scripts: list[str], params: GenerationParams, batch: int):
    """Codes and finish reason of every script, seeds counted up from the params' seed."""
    out = []
    for start in range(0, len(scripts), batch):
        part = scripts[start : start + batch]
        rows = [
            Row(engine.config, encode_script(s), replace(params, seed=params.seed + start + k))
            for k, s in enumerate(part)
        ]
        found = {}
        for event in engine.stream(rows, [3.0] * len(rows), with_audio=False):
            if isinstance(event, Finished):
                found[event.row] = (event.result.codes, event.result.figures.finish_reason)
        out += [found[k] for k in range(len(part))]
    return out


def median_pitch(wave: np.ndarray) -> float:
    """Hz, by WORLD's dio; 0 where nothing is voiced."""
    world = teacher._pyworld()
    f0, _ = world.dio(wave.astype(np.float64), teacher.SAMPLE_RATE, speed=4)
    return float(np.median(f0[f0 > 0])) if (f0 > 0).any() else 0.0


def speak_dialogues(work: Path, scripts: list[str]) -> list[np.ndarray]:
    """What the teacher makes of whole scripts: its turns one after the other."""
    turns = [parse_turns(script) for script in scripts]
    spoken = {}
    for tag in teacher.VOICES:
        texts = tuple(t.text for turn in turns for t in turn if f"S{t.speaker}" == tag)
        spoken[tag] = iter(speak_teacher(work, texts, tag))
    return [np.concatenate([next(spoken[f"S{t.speaker}"]) for t in turn]) for turn in turns]


def score_pipeline(engine, voice, name, scripts, reference, params, batch) -> tuple[Score, list]:
    made = generate(engine, scripts, params, batch)
    waves = [engine.codec.decode(c) if len(c) > 1 else np.zeros(800, np.float32) for c, _ in made]
    error, heard = asr.word_errors(scripts, waves)
    ratios = np.array([len(w) / len(r) for w, r in zip(waves, reference, strict=True)])
    right = None
    if voice in teacher.VOICES:
        pitches = np.array([median_pitch(w) for w in waves])
        off = np.abs(pitches / teacher.VOICES[voice].f0 - 1)
        right = float((off < PITCH_TOLERANCE).mean())
    return Score(
        "pipeline",
        voice,
        name,
        len(scripts),
        error,
        stopped=float(np.mean([reason == "end" for _, reason in made])),
        length_ratio=float(ratios.mean()),
        length_within=float(((ratios > 0.8) & (ratios < 1.25)).mean()),
        pitch_right=right,
    ), heard


def score_set(engine, voice, name, scripts, reference, args, params) -> list[Score]:
    """Every wanted stage on one set of scripts."""
    scores = []
    if "teacher" in args.stages:
        error, _ = asr.word_errors(scripts, reference)
        scores.append(Score("teacher", voice, name, len(scripts), error))
    if "codec" in args.stages:
        waves = [engine.codec.decode(engine.codec.encode(w)) for w in reference]
        error, _ = asr.word_errors(scripts, waves)
        scores.append(Score("codec", voice, name, len(scripts), error))
    if "pipeline" in args.stages:
        score, heard = score_pipeline(engine, voice, name, scripts, reference, params, args.batch)
        scores.append(score)
        for script, words in list(zip(scripts, heard, strict=True))[: args.show]:
            print(f"  {script}\n    {words}")
    return scores


def chosen_sets(args):
    """Yield (voice, set, scripts, the teacher's waveforms) of what was asked for."""
    for name in args.sets:
        if name == "dialogue":
            scripts = heldout.dialogues()[: args.count]
            yield "both", name, scripts, speak_dialogues(args.work, scripts)
            continue
        for tag in teacher.VOICES:
            sentences = SETS[name][: args.count]
            scripts = [f"[{tag}] {s}" for s in sentences]
            yield tag, name, scripts, speak_teacher(args.work, sentences, tag)


def markdown(scores: list[Score]) -> str:
    """One line a voice and set: teacher, codec alone, whole pipeline."""
    lines = [
        "| voice | sentences | N | teacher | codec alone | pipeline |",
        "|---|---|---|---|---|---|",
    ]
    for voice, name in sorted({(s.voice, s.sentences) for s in scores}):
        mine = {s.stage: s for s in scores if (s.voice, s.sentences) == (voice, name)}
        cells = [
            f"{mine[k].word_error:.1%}" if k in mine else "-"
            for k in ("teacher", "codec", "pipeline")
        ]
        count = next(iter(mine.values())).count
        lines.append(f"| {voice} | {name} | {count} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", default="assets/nano")
    parser.add_argument("--count", type=int, default=100, help="sentences a set and voice")
    parser.add_argument(
        "--sets", nargs="+", choices=[*SETS, "dialogue"], default=[*SETS, "dialogue"]
    )
    parser.add_argument("--stages", nargs="+", default=["teacher", "codec", "pipeline"])
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--show", type=int, default=0, help="sentences to print as heard")
    parser.add_argument("--out", type=Path, help="JSON file for the scores")
    for name, kind in (
        ("temperature", float),
        ("cfg_scale", float),
        ("top_p", float),
        ("top_k", int),
        ("seed", int),
    ):
        parser.add_argument(f"--{name}", type=kind, help="instead of the checkpoint's")
    args = parser.parse_args()
    start, engine = time.time(), load_engine(args.model, args.threads)
    given = {k: getattr(args, k) for k in ("temperature", "cfg_scale", "top_p", "top_k", "seed")}
    params = replace(engine.config.defaults, **{k: v for k, v in given.items() if v is not None})
    torch.manual_seed(0)
    scores = [s for chosen in chosen_sets(args) for s in score_set(engine, *chosen, args, params)]
    print(markdown(scores))
    for s in scores:
        if s.stage == "pipeline":
            print(
                f"{s.voice} {s.sentences}: stopped {s.stopped:.0%}, length {s.length_ratio:.3f} of "
                f"the teacher's ({s.length_within:.0%} within 0.8-1.25), pitch "
                + ("-" if s.pitch_right is None else f"{s.pitch_right:.0%}")
            )
    print(f"settings {asdict(params)}, {time.time() - start:.0f} s")
    if args.out:
        record = {"settings": asdict(params), "scores": [asdict(s) for s in scores]}
        args.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()

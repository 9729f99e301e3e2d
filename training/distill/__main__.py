"""Distillation of guidance. See docs/distillation.md.

`python -m training.distill guidance --teacher nano --out FOLDER` makes a student that needs no
unconditional branch: the teacher samples takes, the student learns from them, and FOLDER/student is
a checkpoint that the app loads. `python -m training.distill frames --teacher nano --out FOLDER`
then makes FOLDER/student-2-frames of it, which needs half as many steps, and `own` lets that
student learn from takes of its own, too. Run a command again to resume it after a kill. `judge`
measures what a student's takes lose, `speed` what it saves, `rehearse` what training needs.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from dia_demo.checkpoint_config import read_model_config
from dia_demo.config import PRECISIONS, ModelConfig
from dia_demo.errors import DiaDemoError, InputError
from dia_demo.families.resolve import local_folder
from dia_demo.model.cpu_model import CpuModel
from dia_demo.model.dia import Dia
from dia_demo.model.loading import Calibrator, load_model
from dia_demo.model.weights import checkpoint
from dia_demo.task import result_of
from training.distill import guidance, judge, rehearsal, scripts, speed, takes
from training.distill.student import several_frames, student_config, student_of, write_student
from training.voice.corpus import heldout

log = logging.getLogger("training.distill")
# Scripts for held-out takes and for a student's own are drawn with seeds far above those of
# the teacher's takes.
HELD_OUT_SEED, OWN_SEED = 10_000, 20_000


def sampler_of(folder: Path, args: argparse.Namespace) -> CpuModel:
    """A checkpoint as the engine runs it, for sampling takes."""
    calibrator = Calibrator(lambda _: iter(()), why_not="not needed")
    return result_of(
        load_model(folder, read_model_config(folder), args.precision, args.threads, calibrator)
    ).model


def sample(folder: Path, args: argparse.Namespace, sets: Sequence[tuple[str, int, int]]) -> None:
    """Takes of the checkpoint in `folder`. sets: a name, the first script's seed, and how many."""
    longest = min(args.longest_text, read_model_config(folder).encoder.max_positions)

    def source(offset: int):
        if args.text is not None:
            return lambda number: scripts.from_file(args.text, offset + number, longest)
        return lambda number: scripts.draw_scripts(offset + number, longest)

    if all(len(takes.load_takes(args.out / name, count)) == count for name, _, count in sets):
        return
    sampler = sampler_of(folder, args)
    for name, offset, count in sets:
        takes.sample_takes(args.out / name, sampler, source(offset), args.scales, count)


def distill_guidance(args: argparse.Namespace) -> None:
    folder = teacher_folder(args)
    student_config(read_model_config(folder), args.scales)

    def first(teacher: Dia) -> Dia:
        return student_of(teacher, args.scales, args.seed)

    distill(folder, args, "", first)


def distill_frames(args: argparse.Namespace) -> None:
    folder, source = teacher_folder(args), student_folder(args)

    def first(_: Dia) -> Dia:
        return several_frames(result_of(checkpoint.load(source, "float32")), args.frames, args.seed)

    distill(folder, args, f"-{args.frames}-frames", first)


def distill_own(args: argparse.Namespace) -> None:
    """A student learns on from takes that it samples itself, and from the teacher's as before: what
    the teacher would do after what the student has done."""
    folder, source = teacher_folder(args), student_folder(args)
    own = f"own-{args.student}-frames", OWN_SEED, args.own

    def first(_: Dia) -> Dia:
        return result_of(checkpoint.load(source, "float32")).float().requires_grad_(True)

    def sample_own() -> list[takes.SampledTake]:
        sample(source, args, [own])
        return takes.load_takes(args.out / own[0], args.own)

    distill(folder, args, f"-{args.student}-frames-own", first, sample_own)


def student_folder(args: argparse.Namespace) -> Path:
    """Of the student that a phase begins with."""
    source = args.out / (f"student-{args.student}-frames" if args.student > 1 else "student")
    if not source.exists():
        raise InputError(f"{source} is missing: the phase before makes it in the same folder.")
    args.scales = list(read_model_config(source).guidance_scales)
    return source


def teacher_folder(args: argparse.Namespace) -> Path:
    folder = local_folder(args.teacher)
    if folder is None:
        raise InputError(f"Fetch {args.teacher} first: the teacher must be a folder or nano.")
    return folder


def distill(
    folder: Path,
    args: argparse.Namespace,
    suffix: str,
    first: Callable[[Dia], Dia],
    more_takes: Callable[[], list[takes.SampledTake]] = list,
) -> None:
    """Sample takes, train, measure and write a student. suffix: of the names of its files. first:
    creates it from the teacher, before training. more_takes: samples takes of another model."""
    if not 0 <= args.average < 1:
        raise InputError(f"--average must be a number from 0 to below 1, not {args.average:g}.")
    finished = args.out / f"student{suffix}"
    if finished.exists():
        raise InputError(f"{finished} exists: this student is finished.")
    args.out.mkdir(parents=True, exist_ok=True)
    handlers = [logging.FileHandler(args.out / f"log{suffix}.txt"), logging.StreamHandler()]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", handlers=handlers)
    sample(folder, args, [("held-out", HELD_OUT_SEED, args.held_out), ("takes", 0, args.takes)])
    others = more_takes()
    teacher = result_of(checkpoint.load(folder, "float32"))
    lesson = guidance.lesson_of(teacher, first(teacher), args.device, args.keep_states)
    temperatures = tuple(args.temperature or lesson.temperatures[-1:])
    plan = guidance.Plan(
        args.steps,
        args.lr,
        args.positions,
        args.seed,
        args.device,
        temperatures,
        args.average,
        args.muon,
    )
    held_out = takes.load_takes(args.out / "held-out", args.held_out)
    before_file = args.out / f"before{suffix}.json"
    if not before_file.exists():
        before = guidance.measure(lesson, held_out, args.positions)
        before_file.write_text(json.dumps(before))
        log.info("KL before training, by CFG scale and temperature: %s", before)
    training = guidance.Training(lesson, plan, args.out / f"training{suffix}.pt")
    training.run([*takes.load_takes(args.out / "takes", args.takes), *others])
    lesson.student = training.result
    after = guidance.measure(lesson, held_out, args.positions)
    log.info("KL of the student, by CFG scale and temperature: %s", after)
    (args.out / f"after{suffix}.json").write_text(json.dumps(after))
    write_student(lesson.student, folder, finished)


def show_speed(args: argparse.Namespace) -> None:
    for rows in args.rows:
        saving = speed.measure(
            size_of(args),
            args.precision,
            args.threads,
            rows,
            args.text_bytes,
            args.frames,
            args.frames_per_step,
        )
        print(
            f"{rows} rows, {args.precision}: a frame {saving.teacher_ms:.2f} ms with guidance, "
            f"{saving.student_ms:.2f} ms distilled ({saving.time_ratio:.2f}), the decoder's part "
            f"{saving.teacher_decoder_ms:.2f} and {saving.student_decoder_ms:.2f} ms "
            f"({saving.decoder_ratio:.2f}); caches "
            f"{saving.teacher_cache / 1e6:.2f} and {saving.student_cache / 1e6:.2f} MB "
            f"({saving.memory_ratio:.2f})"
        )


def show_rehearsal(args: argparse.Namespace) -> None:
    dtype = getattr(torch, args.dtype)
    rehearsed = rehearsal.rehearse(
        size_of(args), args.steps, args.positions, dtype, args.device, args.frames_per_step
    )
    seconds = ", ".join(f"{each:.1f}" for each in rehearsed.seconds)
    print(
        f"{rehearsed.parameters / 1e9:.2f} billion weights, {rehearsed.positions} positions, "
        f"{rehearsed.flops / 1e12:.2f} TFLOP a step: {seconds} s; KL {rehearsed.kl}; peak memory "
        f"{rehearsed.peak_bytes / 1e9:.1f} GB"
    )


def show_judgement(args: argparse.Namespace) -> None:
    checkpoints = (args.teacher, args.student)

    def listen(scripts: list[str]) -> list[judge.Heard]:
        return [judge.listen(each, scripts, args.precision, args.threads) for each in checkpoints]

    if args.sentences:
        texts = judge.sentences(args.sentences)
        found = judge.compare(texts, *(heard.texts for heard in listen(texts)))
        print(
            f"{found.takes} sentences: word error {found.before:.1%} and {found.after:.1%}; the "
            f"difference lies between {found.low:.1%} and {found.high:.1%} (95%)",
            flush=True,
        )
    if args.dialogues:
        texts = heldout.dialogues(args.dialogues)
        shares = [judge.share_whole(texts, heard) for heard in listen(texts)]
        print(f"{len(texts)} dialogues: {shares[0]:.1%} and {shares[1]:.1%} whole")


def size_of(args: argparse.Namespace) -> ModelConfig:
    """The shape of a model, with fewer layers where that is asked for."""
    if args.size == "dia-1.6b":
        config = ModelConfig()
    elif (folder := local_folder(args.size)) is not None:
        config = read_model_config(folder)
    else:
        raise InputError(f"{args.size} is not on this machine: use dia-1.6b, nano or a folder.")
    if not args.layers:
        return config
    return replace(
        config,
        encoder=replace(config.encoder, num_layers=args.layers),
        decoder=replace(config.decoder, num_layers=args.layers),
    )


def add_training(phase: argparse.ArgumentParser) -> None:
    phase.add_argument("--teacher", default="nano", help="nano, or a checkpoint's folder")
    phase.add_argument("--out", type=Path, required=True)
    phase.add_argument("--takes", type=int, default=1024, help="that the teacher samples")
    phase.add_argument("--held-out", type=int, default=200, help="takes to measure with")
    phase.add_argument("--text", type=Path, help="one script a line, instead of the grammar")
    phase.add_argument("--longest-text", type=int, default=420, help="bytes of a script")
    phase.add_argument("--steps", type=int, default=3000)
    phase.add_argument("--lr", type=float, default=3e-5)
    phase.add_argument("--positions", type=int, default=3000, help="in a batch")
    phase.add_argument(
        "--temperature",
        type=float,
        nargs="+",
        help="of the loss, which is the mean over them; default: the checkpoint's",
    )
    phase.add_argument(
        "--average",
        type=float,
        default=0.0,
        help="decay of the moving average of the weights that becomes the student, such as 0.999; "
        "0: the last weights",
    )
    phase.add_argument(
        "--muon", action="store_true", help="for the matrices inside the layers, instead of AdamW"
    )
    phase.add_argument(
        "--keep-states",
        action="store_true",
        help="keep the teacher's states of all takes in memory: for a small teacher",
    )
    phase.add_argument("--precision", default="float32", help="in which takes are sampled")
    phase.add_argument("--device", default="cpu", help="of the training")
    phase.add_argument("--threads", type=int, default=1)
    phase.add_argument("--seed", type=int, default=0)


def add_size(command: argparse.ArgumentParser) -> None:
    command.add_argument("--size", default="nano", help="dia-1.6b, nano, or a checkpoint's folder")
    command.add_argument("--layers", type=int, help="fewer, to measure a part of a large model")
    command.add_argument("--threads", type=int, default=1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m training.distill", description=__doc__)
    commands = parser.add_subparsers(required=True)
    phase = commands.add_parser("guidance", help="phase 1: no unconditional branch")
    phase.set_defaults(run=distill_guidance)
    phase.add_argument("--scales", type=float, nargs="+", default=[0.0, 1.0, 2.0, 3.0])
    add_training(phase)
    phase = commands.add_parser("frames", help="phase 2: several frames a step")
    phase.set_defaults(run=distill_frames)
    phase.add_argument("--frames", type=int, default=2, help="of a step")
    phase.add_argument("--student", type=int, default=1, help="frames a step of where it starts")
    add_training(phase)
    phase = commands.add_parser("own", help="after a phase: the student's own takes, too")
    phase.set_defaults(run=distill_own)
    phase.add_argument("--student", type=int, default=2, help="frames a step of the student")
    phase.add_argument("--own", type=int, default=1024, help="takes that the student samples")
    add_training(phase)
    quality = commands.add_parser("judge", help="what a student's takes lose, by a recogniser")
    quality.set_defaults(run=show_judgement)
    quality.add_argument("--teacher", default="nano", help="what the student is compared with")
    quality.add_argument("--student", required=True, help="a checkpoint's folder")
    quality.add_argument("--sentences", type=int, default=200)
    quality.add_argument("--dialogues", type=int, default=200, help="of six turns")
    quality.add_argument("--precision", choices=PRECISIONS[1:], default="float32")
    quality.add_argument("--threads", type=int, default=1)
    faster = commands.add_parser("speed", help="what a student saves, on random weights")
    faster.set_defaults(run=show_speed)
    add_size(faster)
    faster.add_argument("--precision", choices=PRECISIONS[1:], default="float32")
    faster.add_argument("--rows", type=int, nargs="+", default=[1, 8])
    faster.add_argument("--frames-per-step", type=int, default=1, help="of the student")
    faster.add_argument("--text-bytes", type=int, default=80)
    faster.add_argument("--frames", type=int, default=240, help="to time")
    trial = commands.add_parser("rehearse", help="a phase on random weights: memory, time a step")
    trial.set_defaults(run=show_rehearsal)
    add_size(trial)
    trial.add_argument("--steps", type=int, default=3)
    trial.add_argument("--positions", type=int, default=128, help="in a batch")
    trial.add_argument("--frames-per-step", type=int, default=1, help="2 to 4: phase 2")
    trial.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    trial.add_argument("--device", default="cpu")
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    try:
        args.run(args)
    except DiaDemoError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()

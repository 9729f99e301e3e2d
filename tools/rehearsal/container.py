"""The Dockerfile, carried out without a container engine: its steps, read from it one by one.

What an engine would do is done by hand: a file system of its own (chroot), its user, its variables,
its volume, its health check. The base image is Debian's files by debootstrap, if that is installed,
else those of this machine, with an interpreter of this machine in /usr/local.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser

from dia_demo.files import ROOT
from tools.app_process import HOST
from tools.rehearsal import visitor
from tools.rehearsal.isolation import Limits, Root, copy_repository, cut_network
from tools.rehearsal.space import (
    SYSTEM_PATH,
    RunningApp,
    disk_bytes,
    downloaded_bytes,
    index_environment,
)
from tools.rehearsal.table import Mismatch, Table

# What the image python:3.12-slim has beside Python, as far as Python needs it.
PACKAGES = (
    "ca-certificates,netbase,tzdata,libbz2-1.0,libffi8,liblzma5,libncursesw6,libreadline8,"
    "libsqlite3-0,libssl3,libuuid1,zlib1g"
)
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
NOT_COPIED = shutil.ignore_patterns("__pycache__", "test", "config-*", "*.a")


@dataclass(frozen=True)
class Instruction:
    """One of a Dockerfile, such as RUN, and what follows it."""

    name: str
    argument: str


def read_dockerfile(text: str) -> list[Instruction]:
    """Its instructions. Comments go, continued lines are joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    split = (line.partition(" ") for line in joined.splitlines() if line.strip())
    return [Instruction(name, argument.strip()) for name, _, argument in split]


def is_ignored(path: str, patterns: list[str]) -> bool:
    """Whether .dockerignore leaves out a path of the repository, or a folder above it."""
    parts = path.split("/")
    paths = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(re.fullmatch(_expression(pattern), name) for pattern in patterns for name in paths)


def _expression(pattern: str) -> str:
    """A pattern of .dockerignore as a regular expression: ** are folders, * is within a name."""
    return re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")


def ignore_patterns() -> list[str]:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


class Container:
    """Carries out instructions in `root`: each `do_` is one of them, and returns what was found."""

    def __init__(self, folder: Path, python: str, base: Path | None) -> None:
        self.folder, self.python, self.base = folder, python, base
        self.root: Root
        self.environment = {"PATH": SYSTEM_PATH, "HOME": "/root"}
        self.work, self.user, self.volume = "/", "root", ""
        self.health: list[str] = []
        self.program: list[str] = []

    def carry_out(self, instruction: Instruction) -> str:
        """What was found. Raises Mismatch where a step fails."""
        method = getattr(self, f"do_{instruction.name.lower()}", None)
        if method is None:
            raise Mismatch("not known to this rehearsal")
        return method(instruction.argument)

    # Instructions

    def do_from(self, image: str) -> str:
        base, what = self._base()
        self.root = Root(self.folder, base)
        version = image.partition(":")[2].partition("-")[0]
        self._install_python(version)
        for path in ("/etc/resolv.conf", "/etc/hosts", CERTIFICATES):
            if Path(path).exists():
                shutil.copy(path, self.root.inside(path))
        return f"{what}, {self._run(['python', '--version']).strip()}"

    def do_run(self, line: str) -> str:
        began = time.perf_counter()
        before = disk_bytes(self.root.changes)
        printed = self._run(["/bin/sh", "-c", line], **index_environment())
        grown = (disk_bytes(self.root.changes) - before) / 1e6
        fetched = downloaded_bytes(printed) / 1e6
        seconds = time.perf_counter() - began
        return f"{seconds:.0f} s, {fetched:.0f} MB fetched, {grown:.0f} MB more on disk"

    def do_workdir(self, path: str) -> str:
        self.root.inside(path).mkdir(parents=True, exist_ok=True)
        self.work = path
        return path

    def do_copy(self, argument: str) -> str:
        *sources, target = argument.split()
        context, folder = self.folder / "context", self.root.inside(f"{self.work}/{target}")
        copy_repository(context)
        copied = 0
        for path in sorted(context.rglob("*")):
            name = path.relative_to(context).as_posix()
            if path.is_dir() or is_ignored(name, ignore_patterns()):
                continue
            if sources == ["."] or name in sources:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, folder / name)
                copied += 1
        shutil.rmtree(context)
        if sources != ["."] and copied != len(sources):
            raise Mismatch(f"{copied} of {len(sources)} files are in the repository")
        return f"{copied} files"

    def do_user(self, name: str) -> str:
        self.user = name
        self.environment["HOME"] = self._run(["sh", "-c", f"echo ~{name}"]).strip()
        return self._run(["id"]).strip()

    def do_env(self, argument: str) -> str:
        pairs = dict(word.split("=", 1) for word in shlex.split(argument))
        self.environment |= pairs
        return f"{len(pairs)} variables"

    def do_volume(self, path: str) -> str:
        self.volume = path
        self._run(["test", "-w", path])
        return "the user can write there"

    def do_expose(self, port: str) -> str:
        if port not in self.environment.values():
            raise Mismatch("no variable names this port")
        return "the port of the app"

    def do_healthcheck(self, argument: str) -> str:
        self.health = json.loads(argument.partition(" CMD ")[2])
        return "run below"

    def do_cmd(self, argument: str) -> str:
        self.program = json.loads(argument)
        return "run below"

    # What an engine does around them

    @contextmanager
    def running(self) -> Iterator[RunningApp]:
        """The container's program, with the limits of a small machine."""
        command = self.root.command(self.program, self.environment, self.work, self.user)
        port = self.environment["GRADIO_SERVER_PORT"]
        app = RunningApp(command, f"http://{HOST}:{port}/", self.folder / "app.log")
        try:
            yield app
        finally:
            app.end()

    def check_health(self) -> bool:
        return self._ran(self.health).returncode == 0

    def _base(self) -> tuple[Path, str]:
        """The files that the image begins with, and what they are."""
        program = shutil.which("debootstrap")
        if self.base is None and program is None:
            return Path("/"), "the files of this machine instead of an image"
        base = self.base or self.folder / "debian"
        if not base.exists():
            release = dict(
                line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines()
            )
            subprocess.run(
                [program, "--variant=minbase", f"--include={PACKAGES}",
                 release["VERSION_CODENAME"], base],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
        return base, "Debian's files by debootstrap instead of an image"

    def _install_python(self, version: str) -> None:
        """This machine's interpreter in /usr/local, with pip and nothing else."""
        prefix = Path(self.python).resolve().parent.parent
        name, local = f"python{version}", self.root.inside("/usr/local")
        if not (prefix / "bin" / name).exists():
            raise Mismatch(f"no {name} in {prefix}: give one with --python")
        shutil.rmtree(local / "lib" / name, ignore_errors=True)
        shutil.copytree(
            prefix / "lib" / name, local / "lib" / name, symlinks=True, ignore=NOT_COPIED
        )
        shutil.rmtree(local / "lib" / name / "site-packages")
        shutil.copy(prefix / "bin" / name, local / "bin" / name)
        for library in (prefix / "lib").glob(f"lib{name}.so*"):
            shutil.copy(library, local / "lib" / library.name)
        self._run(["ldconfig"])
        for other in ("python", "python3"):
            (local / "bin" / other).unlink(missing_ok=True)
            (local / "bin" / other).symlink_to(name)
        self._run(["python", "-m", "ensurepip", "--upgrade"])
        (local / "bin" / "pip").unlink(missing_ok=True)
        (local / "bin" / "pip").symlink_to("pip3")

    def _ran(self, command: list[str], **others: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **others}
        return self.root.run(command, environment, self.work, self.user)

    def _run(self, command: list[str], **others: str) -> str:
        ran = self._ran(command, **others)
        if ran.returncode:
            raise Mismatch(f"exit code {ran.returncode}: {ran.stdout.strip()[-600:]}")
        return ran.stdout


def rehearse_container(table: Table, folder: Path, python: str, base: Path | None) -> None:
    """Build the image, then use the container as a visitor and as an engine."""
    container = Container(folder, python, base)
    for instruction in read_dockerfile((ROOT / "Dockerfile").read_text(encoding="utf-8")):
        shown = (
            instruction.argument
            if len(instruction.argument) < 48
            else (f"{instruction.argument[:44]}…")
        )
        if not table.step(instruction.name, shown, partial(container.carry_out, instruction)):
            return
    cut_network()
    table.step("limits", "2 cores and 16 GB", partial(limit, container))
    with visitor.running_chromium() as chromium:
        take = partial(use, container, chromium)
        table.step("program", "2 to 15 s of speech; healthy meanwhile", take)
        table.step("health check", "fails without the app", partial(gone, container))
        table.step("volume", "has what was prepared and kept", partial(examine_volume, container))
        table.step("second start", "the same, with what the volume has", take)


def limit(container: Container) -> str:
    limits = Limits(container.folder.name)
    container.root.limit(limits)
    return f"by control groups, version {limits.version}"


def use(container: Container, chromium: Browser) -> str:
    """Start the program, make a take in a browser, and ask for its health."""
    with container.running() as app:
        app.wait_until_up()
        watched = visitor.Visitor(chromium, app.address)
        page = watched.open()
        seconds = app.seconds
        take = visitor.make_take(page)
        problems = watched.problems()
        watched.close()
        if not take.is_speech or problems or not container.check_health():
            healthy = container.check_health()
            raise Mismatch(f"{take}; healthy: {healthy}; {'; '.join(problems)}"[:600])
        return f"page after {seconds:.1f} s; {take}; healthy"


def gone(container: Container) -> str:
    if container.check_health():
        raise Mismatch("it reports health without an app")
    return "it fails"


def examine_volume(container: Container) -> str:
    """What lies in the volume, all of which belongs to the container's user."""
    volume = container.root.inside(container.volume)
    files = [path for path in volume.rglob("*") if path.is_file()]
    owners = {path.stat().st_uid for path in files}
    kernels = any("kernels" in path.parts for path in files)
    takes = any(path.suffix == ".wav" or path.suffix == ".flac" for path in files)
    contents = f"{len(files)} files, kernels: {kernels}, takes: {takes}"
    if not kernels or not takes or owners != {1000}:
        raise Mismatch(f"{contents}, owners {owners}")
    return contents

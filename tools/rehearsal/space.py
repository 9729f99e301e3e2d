"""A Space, acted out: its user, its build, its environment, and the app that it starts."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from dia_demo.files import ROOT
from tools.app_process import HOST, START_SECONDS
from tools.rehearsal.isolation import CORES, MEMORY_BYTES, Limits, Root, copy_repository
from tools.rehearsal.table import Mismatch
from tools.rehearsal.visitor import SPACE_ID

USER, HOME = "user", "/home/user"
APP, CACHE, ENVIRONMENT = f"{HOME}/app", f"{HOME}/.cache", "/venv"
PREFIX = "/spaces/dia"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PIP_INSTALL = ("-m", "pip", "install", "--no-cache-dir", "--progress-bar", "off")
CARD = yaml.safe_load((ROOT / "README.md").read_text(encoding="utf-8").split("---")[1])
UNITS = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
# What a service of this machine may need to reach the index.
PASSED_ON = re.compile(r"PIP_|SSL_CERT|(https?|no)_proxy$", re.IGNORECASE)


def index_environment() -> dict[str, str]:
    """Where pip looks for packages on this machine."""
    return {name: text for name, text in os.environ.items() if PASSED_ON.match(name)}


def find_python(version: str) -> str:
    """The interpreter of a version such as 3.12 if there is one, else the one that runs this."""
    name = shutil.which(f"python{version}")
    say = "import sys, os; print(os.path.realpath(sys.executable))"
    ran = name and subprocess.run([name, "-c", say], capture_output=True, text=True)
    return ran.stdout.strip() if ran and ran.returncode == 0 else sys.executable


class RunningApp:
    """The app as a process. log: what it wrote so far."""

    def __init__(self, command: list[str], address: str, log: Path) -> None:
        self.began = time.perf_counter()
        self.address, self._log = address, log
        with open(log, "w") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, start_new_session=True
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def seconds(self) -> float:
        """Since its start."""
        return time.perf_counter() - self.began

    def wait_until_up(self) -> None:
        """Raises Mismatch with the end of its log if it ends, or does not answer."""
        while self.process.poll() is None and self.seconds < START_SECONDS:
            try:
                if httpx.get(self.address, timeout=5, trust_env=False).is_success:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise Mismatch(f"not up, exit code {self.process.poll()}: {self.log.strip()[-600:]}")

    def kill(self) -> None:
        """End it without a warning."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        """End it as a platform does: a warning, and time to finish."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.kill()


class Space:
    """The steps of a Space's life. Each returns what was found, or raises Mismatch.

    python: the interpreter, which has the requirements in the short form.
    """

    def __init__(self, root: Root, python: str, port: int) -> None:
        self.root, self.python, self.port = root, python, port

    # The machine

    def limit(self) -> str:
        limits = Limits(self.root.folder.name)
        self.root.limit(limits)
        return f"{CORES} cores, {MEMORY_BYTES >> 30} GB by control groups, version {limits.version}"

    def add_user(self) -> str:
        added = self.root.run(
            ["useradd", "--create-home", "--non-unique", "--uid", "1000", USER],
            {"PATH": SYSTEM_PATH},
        )
        if added.returncode:
            raise Mismatch(added.stdout.strip())
        for path in (".config/pip/pip.conf", ".pip/pip.conf"):
            if (Path.home() / path).exists():
                shutil.copy(Path.home() / path, self.root.inside("/etc/pip.conf"))
        for path in (sys.prefix, sys.base_prefix, str(Path(self.python).resolve().parent.parent)):
            self.root.open_way(Path(path) / "bin")
        return f"uid {self._run(['id', '-u']).strip()}, {HOME}"

    # The build

    def make_environment(self) -> str:
        self.root.inside(ENVIRONMENT).mkdir()
        shutil.chown(self.root.inside(ENVIRONMENT), 1000, 1000)
        self._run([self.python, "-m", "venv", ENVIRONMENT])
        self.python = f"{ENVIRONMENT}/bin/python"
        version = self._run([self.python, "--version"]).strip()
        return f"{version}; the card says {CARD['python_version']}"

    def install(self) -> str:
        """requirements.txt alone, since a Space has no other file yet."""
        alone = self.root.inside("/tmp/requirements.txt")
        shutil.copy(ROOT / "requirements.txt", alone)
        began = time.perf_counter()
        printed = self._run([self.python, *PIP_INSTALL, "-r", "/tmp/requirements.txt"])
        seconds = time.perf_counter() - began
        alone.unlink()
        megabytes = downloaded_bytes(printed) / 1e6
        used = disk_bytes(self.root.inside(ENVIRONMENT)) / 1e9
        build = self._run([self.python, "-c", "import torch; print(torch.__version__)"]).strip()
        return f"torch {build}: {megabytes:.0f} MB fetched, {used:.1f} GB on disk, {seconds:.0f} s"

    def install_platform(self) -> str:
        """What the build of a Space installs after the requirements."""
        gradio = f"gradio[oauth]=={CARD['sdk_version']}"
        before = self._packages()
        self._run([self.python, *PIP_INSTALL, gradio, "uvicorn>=0.14.0", "spaces"])
        after = self._packages()
        changed = [name for name, version in before.items() if after.get(name) != version]
        if changed:
            raise Mismatch(f"other versions of {', '.join(changed)}")
        return f"{len(after) - len(before)} more, spaces {after['spaces']}"

    def check_packages(self) -> str:
        ran = self._ran([self.python, "-m", "pip", "check"])
        if ran.returncode:
            raise Mismatch(" ".join(ran.stdout.split()))
        return ran.stdout.strip()

    def _packages(self) -> dict[str, str]:
        printed = self._run([self.python, "-m", "pip", "list", "--format", "json"])
        (listed,) = (line for line in printed.splitlines() if line.startswith("["))
        return {package["name"]: package["version"] for package in json.loads(listed)}

    def has_spaces(self) -> str:
        find = "import importlib.metadata as m; print('spaces', m.version('spaces'))"
        ran = self._ran([self.python, "-c", find])
        if ran.returncode:
            raise Mismatch("not installed: pip install -r requirements-dev.txt")
        return ran.stdout.strip()

    def has_cuda_build(self) -> bool:
        """Whether torch is the build that ZeroGPU has."""
        find = "import torch; print('CUDA', torch.version.cuda)"
        return "CUDA None" not in self._run([self.python, "-c", find])

    def remove_spaces(self) -> str:
        """In the rehearsal's files alone, also where the environment is that of this machine."""
        command = [self.python, "-m", "pip", "uninstall", "--yes", "spaces"]
        removed = self.root.run(command, self.environment(), "/", "root")
        if self._ran([self.python, "-c", "import spaces"]).returncode == 0:
            raise Mismatch(removed.stdout.strip()[-300:])
        return "uninstalled"

    def add_repository(self) -> str:
        folder = self.root.inside(APP)
        copy_repository(folder)
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, 1000, 1000)
        return f"{disk_bytes(folder) / 1e6:.0f} MB"

    def lock_home(self) -> str:
        self.root.inside(CACHE).mkdir(exist_ok=True)
        shutil.chown(self.root.inside(CACHE), 1000, 1000)
        self.root.read_only(HOME, CACHE)
        tried = self._ran(["touch", f"{HOME}/file", f"{APP}/file", f"{CACHE}/file"])
        refused = tried.stdout.count("Read-only file system")
        if refused != 2 or not self.root.inside(f"{CACHE}/file").exists():
            raise Mismatch(tried.stdout)
        return f"{HOME} and {APP} refuse a file, {CACHE} takes it"

    # The app

    def environment(self, **others: str) -> dict[str, str]:
        """What a Space sets, as its build log and documentation show, and a path of its own."""
        binaries = str(Path(self.python).parent)
        space = {
            "HOME": HOME,
            "USER": USER,
            "PATH": f"{binaries}:{SYSTEM_PATH}",
            "PYTHONUNBUFFERED": "1",
            "SYSTEM": "spaces",
            "SPACE_ID": SPACE_ID,
            "SPACE_HOST": "someone-dia.example",
            "GRADIO_ALLOW_FLAGGING": "never",
            "GRADIO_NUM_PORTS": "1",
            "GRADIO_SERVER_NAME": "0.0.0.0",
            "GRADIO_SERVER_PORT": str(self.port),
            "GRADIO_THEME": "huggingface",
            "GRADIO_ROOT_PATH": PREFIX,
        }
        return {**index_environment(), **space, **others}

    def examine(self) -> str:
        """What `doctor` sees of the machine."""
        printed = self._run([self.python, "-m", "dia_demo", "doctor", "--json"], APP)
        report = json.loads(printed.splitlines()[-1])
        cores, memory = report["machine"]["cores"], report["machine"]["memory_bytes"]
        machine = f"{cores} cores, {memory / 2**30:.1f} GB, ready: {report['ready']}"
        if cores != CORES or memory != MEMORY_BYTES or not report["ready"]:
            raise Mismatch(machine)
        return machine

    @contextmanager
    def run_app(self, **others: str) -> Iterator[RunningApp]:
        """The app, started as a Space does; not yet up."""
        command = self.root.command(
            [self.python, CARD["app_file"]], self.environment(**others), APP, "1000:1000"
        )
        address = f"http://{HOST}:{self.port}/"
        app = RunningApp(command, address, self.root.folder / "app.log")
        try:
            yield app
        finally:
            app.end()

    def _ran(self, command: Sequence[str], folder: str = HOME) -> subprocess.CompletedProcess[str]:
        return self.root.run(command, self.environment(), folder, "1000:1000")

    def _run(self, command: Sequence[str], folder: str = HOME) -> str:
        ran = self._ran(command, folder)
        if ran.returncode:
            raise Mismatch(f"exit code {ran.returncode}: {ran.stdout.strip()[-600:]}")
        return ran.stdout


def downloaded_bytes(printed: str) -> float:
    """What pip fetched for an installation, by its own account; wheels of this disk included."""
    total = 0.0
    for line in printed.splitlines():
        if match := re.match(r"\s*Downloading \S+(?<!\.metadata) \(([\d.]+) (\w+)\)", line):
            total += float(match[1]) * UNITS[match[2]]
        elif match := re.match(r"\s*Processing (/\S+\.whl)", line):
            total += Path(match[1]).stat().st_size
    return total


def disk_bytes(folder: Path) -> int:
    """The space that a folder takes."""
    paths = (path.lstat() for path in folder.rglob("*"))
    return sum(stat.st_blocks * 512 for stat in paths)


def peak_bytes(limits: Limits) -> int:
    """The most memory that was in use within the limits."""
    names = ("memory.peak", "memory.max_usage_in_bytes")
    files = [folder / name for folder in limits.folders for name in names]
    return max(int(file.read_text()) for file in files if file.exists())

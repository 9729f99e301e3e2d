"""A throw-away copy of this machine's files, and limits of processor and memory. Linux, as root.

The copy is an overlay: changes are in a file that is removed. Mounts and processes end with the
namespaces in which everything runs, however the rehearsal ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from dia_demo.files import ROOT

CORES, MEMORY_BYTES = 2, 16 * 2**30
CGROUP = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
# The disk of a Space on cpu-basic; only what is written takes space here.
DISK_BYTES = 50 * 10**9
# Where the outer process, which removes it, made a folder for the mounts.
FOLDER = "DIA_REHEARSAL"
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
UNSHARE = "unshare --mount --pid --fork --kill-child --mount-proc --propagation private".split()
# What `Root` mounts, in the current folder.
TRY_MOUNTS = """truncate -s 64M image; mkfs.ext4 -q image; mkdir disk; mount -o loop image disk
cd disk; mkdir changes work root
mount -t overlay overlay -o lowerdir=/,upperdir=changes,workdir=work root"""


def why_impossible() -> str:
    """Why nothing can be isolated on this machine, as in most containers; empty if it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "control groups, mounts and users need Linux and root"
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        ran = subprocess.run(
            [*UNSHARE, "sh", "-ec", TRY_MOUNTS], cwd=folder, capture_output=True, text=True
        )
    if ran.returncode:
        return ran.stderr.strip() or "mounts are not possible"
    limits = Limits(f"rehearsal-probe-{os.getpid()}")
    try:
        limits.create()
    except OSError as error:
        return f"control groups cannot be written: {error}"
    finally:
        limits.remove()
    return ""


def in_namespaces(module: str, arguments: Sequence[str]) -> int:
    """Run a module with mounts and processes of its own; its exit code."""
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        ran = subprocess.run(
            [*UNSHARE, sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=os.environ | {FOLDER: folder},
        )
        Limits(Path(folder).name).remove()
        return ran.returncode


def cut_network() -> None:
    """Take every network but loopback away from this thread and what it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "no network namespace")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


class Limits:
    """Two cores and 16 GB for what joins a control group: of version 2 where it has controllers,
    else of version 1."""

    def __init__(self, name: str) -> None:
        controllers = CGROUP / "cgroup.controllers"
        self.version = 2 if controllers.exists() and "cpu" in controllers.read_text() else 1
        parts = [""] if self.version == 2 else ["cpu", "memory"]
        self.folders = [CGROUP / part / name for part in parts]

    def create(self) -> None:
        """Raises OSError where control groups cannot be written."""
        for folder in self.folders:
            folder.mkdir()
        if self.version == 2:
            (self.folders[0] / "cpu.max").write_text(f"{CORES * PERIOD_US} {PERIOD_US}")
            (self.folders[0] / "memory.max").write_text(str(MEMORY_BYTES))
        else:
            cpu, memory = self.folders
            (cpu / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (cpu / "cpu.cfs_quota_us").write_text(str(CORES * PERIOD_US))
            (memory / "memory.limit_in_bytes").write_text(str(MEMORY_BYTES))

    def remove(self) -> None:
        """Remove the groups; nothing where there are none."""
        for folder in self.folders:
            with suppress(OSError):
                folder.rmdir()


class Root:
    """The files of a rehearsal, below `path`: those of this machine, and changes to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # A disk in a file: an overlay cannot keep its changes on the disk that it covers.
        image, disk = folder / "disk.img", folder / "disk"
        disk.mkdir()
        with open(image, "wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True, capture_output=True)
        mount("-o", "loop", image, disk)
        self.changes, work, self.path = disk / "changes", disk / "work", disk / "root"
        for new in (self.changes, work, self.path):
            new.mkdir()
        layers = f"lowerdir=/,upperdir={self.changes},workdir={work}"
        mount("-t", "overlay", "overlay", "-o", layers, self.path)
        for system in ("dev", "sys"):
            mount("--rbind", f"/{system}", self.path / system)
        mount("-t", "proc", "proc", self.path / "proc")
        self.limits: Limits | None = None

    def limit(self, limits: Limits) -> None:
        """Let all that is started from now on join `limits`, which it finds as a container does."""
        limits.create()
        self.limits = limits
        for folder in limits.folders:
            mount("--bind", folder, self.inside(folder.parent))

    def open_way(self, path: Path) -> None:
        """Let every user pass through the folders above `path`."""
        for folder in path.parents:
            inside = self.inside(folder)
            inside.chmod(inside.stat().st_mode | 0o055)

    def inside(self, path: Path | str) -> Path:
        """Where a path of the rehearsal lies for us."""
        return self.path / str(path).lstrip("/")

    def read_only(self, path: str, *writable: str) -> None:
        """Let nobody write below `path`, but for the folders `writable` in it."""
        for folder in (path, *writable):
            mount("--bind", self.inside(folder), self.inside(folder))
        mount("-o", "remount,bind,ro", self.inside(path))

    def command(
        self, command: Sequence[str], env: Mapping[str, str], folder: str, user: str
    ) -> list[str]:
        """A command line that runs `command` in there; it becomes the process that is started."""
        groups = self.limits.folders if self.limits else []
        join = "".join(f"echo $$ > {group}/cgroup.procs && " for group in groups)
        variables = [f"{name}={text}" for name, text in env.items()]
        chroot = ["chroot", f"--userspec={user}", str(self.path), "env", "-i", "-C", folder]
        return ["sh", "-c", f'{join}exec "$@"', "sh", *chroot, *variables, *command]

    def run(
        self, command: Sequence[str], env: Mapping[str, str], folder: str = "/", user: str = "root"
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with its output in one text."""
        return subprocess.run(
            self.command(command, env, folder, user),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def mount(*arguments: object) -> None:
    """Raises CalledProcessError with mount's own words."""
    subprocess.run(["mount", *map(str, arguments)], check=True, capture_output=True, text=True)


def copy_repository(folder: Path) -> None:
    """Copy the files of this repository that git knows, as a push does, with what is new."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in listed.stdout.rstrip("\0").split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)

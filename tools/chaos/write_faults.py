"""kill -9 of what is writing: votes, voices, the files of a download."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dia_demo.files import ROOT
from dia_demo.prompt.voice_file import SUFFIX
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.voices.kept import KeptVoices
from tests.helpers.stand_ins.stand_in_hub import NAME, Hub, running_hub
from tools.app_process import START_SECONDS
from tools.chaos.scenario import Scenario, check
from tools.make_random_dia import CODECS, NAMINGS, TINY, write_checkpoint, write_codec

RATE = 200_000


def killed_in_a_vote(folder: Path, short: bool) -> str:
    made = folder / "comparison"
    plan_of_votes(made, folder, pairs=24 if short else 60)
    confirmed: set[str] = set()
    kills = 0
    while not Comparison.open(made).is_unblinded and kills < 100:
        kills += 1
        confirmed |= kill_writer("votes", made, after=1 + kills % 3)
        stored = Comparison.open(made).votes.keys()
        check(confirmed <= stored, f"{len(confirmed - stored)} confirmed votes are lost")
    check(Comparison.open(made).is_unblinded, "the votes do not come to an end")
    return f"{kills} kills, {len(confirmed)} votes confirmed, none lost"


def plan_of_votes(made: Path, folder: Path, pairs: int) -> None:
    """A comparison whose takes are made."""
    synthesis = Synthesis(Settings(takes_folder=folder / "takes", measure=False))
    runtime = synthesis.settings.runtime
    params = replace(synthesis.models["nano"].config.defaults, max_tokens=120)
    setting = Setting(params, runtime)
    sides = [setting.change({"temperature": value}) for value in (0.7, 1.2)]
    plan = make_plan("preference", sides, ["[S1] Hello there. [S2] Yes."], range(1, pairs + 1))
    comparison = Comparison.create(made, plan, synthesis)
    for _ in comparison.run(synthesis, threading.Event()):
        pass
    synthesis.close()


def killed_in_a_voice(folder: Path, short: bool) -> str:
    kept = folder / "voices"
    confirmed: set[str] = set()
    kills = 4 if short else 20
    for kill in range(kills):
        confirmed |= kill_writer("voices", kept, after=2 + kill % 3)
        stored = {voice.name for voice in KeptVoices(kept).own_voices()}
        check(confirmed <= stored, f"{len(confirmed - stored)} kept voices are lost")
        files = len(list(kept.glob(f"*{SUFFIX}")))
        check(files == len(stored), f"{files - len(stored)} files are damaged")
    return f"{kills} kills, {len(confirmed)} voices kept, none lost, no damaged file"


def kill_writer(kind: str, folder: Path, after: int) -> set[str]:
    """What a process of writers.py confirmed before it was killed, soon after so many."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.chaos.writers", kind, str(folder)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    found = set()
    for line in process.stdout:
        found.add(line.strip())
        if len(found) == after:
            # At another moment of the next one each time.
            time.sleep(0.001 * (after + os.getpid() % 7))
            process.kill()
    process.wait()
    return found


def killed_in_a_download(folder: Path, short: bool) -> str:
    model = folder / "model"
    write_checkpoint(model, TINY, next(iter(NAMINGS)))
    write_codec(model / "codec", CODECS["tiny"])
    hub = Hub()
    hub.upload(model)
    weights = next(name for name in hub.files if name.startswith("model-"))
    size = len(hub.files[weights])
    hub.rate = size // 3
    with running_hub(hub) as url:
        command = say(folder, NAME, "hub.npy")
        silent: dict[str, Any] = dict(cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        first = subprocess.Popen(command, env=hub_environment(folder, url), **silent)
        wait_for(lambda: any(name == weights for name, _ in hub.ranges), first)
        time.sleep(1.0)  # The file takes three seconds.
        first.kill()
        first.wait()
        hub.rate = None
        subprocess.run(command, env=hub_environment(folder, url), check=True, **silent)
    subprocess.run(say(folder, str(model), "here.npy"), check=True, **silent)
    resumed = hub.starts(weights)[-1]
    check(0 < resumed < size, f"the weights were asked for again from byte {resumed}")
    same = (folder / "hub.npy").read_bytes() == (folder / "here.npy").read_bytes()
    check(same, "the downloaded model makes another take")
    return f"goes on at byte {resumed:,} of {size:,}; the model makes the same take"


def say(folder: Path, model: str, codes: str) -> list[str]:
    return [
        sys.executable, "-m", "dia_demo", "say", "[S1] Hello.", "--model", model,
        "--precision", "float32", "--max-tokens", "60", "--seed", "1",
        "--codes", str(folder / codes),
    ]  # fmt: skip


def hub_environment(folder: Path, url: str) -> dict[str, str]:
    return os.environ | {
        "HF_ENDPOINT": url,
        "HF_HOME": str(folder / "hub"),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "DIA_CACHE": str(folder / "cache"),
    }


def wait_for(condition: Callable[[], bool], process: subprocess.Popen) -> None:
    end = time.monotonic() + START_SECONDS
    while not condition():
        check(process.poll() is None, "the download ended by itself")
        check(time.monotonic() < end, "the download did not begin")
        time.sleep(0.02)


SCENARIOS = [
    Scenario("kill -9 of the program", "a download", "it goes on there", killed_in_a_download),
    Scenario("kill -9 of the program", "votes", "no confirmed vote is lost", killed_in_a_vote),
    Scenario("kill -9 of the program", "keeping voices", "no voice is lost", killed_in_a_voice),
]

"""The clients: each asks for one thing after another, and notes what became of it."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass

from tools.soak.app import App
from tools.soak.client import Client, Left, Refused
from tools.soak.jobs import Job, make_jobs
from tools.soak.report import Tally

LEAVING = 1 / 3
# Of those that leave where the answer can go on.
COMING_BACK = 1 / 2
# Between two requests of a client.
MOST_PAUSE_SECONDS = 2.0


@dataclass(frozen=True)
class Soak:
    """expected: the answers of all jobs by name."""

    app: App
    expected: dict[str, bytes]
    tally: Tally

    @classmethod
    async def prepare(cls, app: App) -> Soak:
        """Ask for everything once, alone."""
        client = Client(app.url)
        try:
            expected = {job.name: await client.ask(job) for job in make_jobs()}
        finally:
            await client.close()
        return cls(app, expected, Tally())

    async def run(self, clients: int, seconds: float, seed: int) -> None:
        """Let the clients ask for so long, and wait for their last answers."""
        began = time.monotonic()
        watching = asyncio.create_task(self._watch_memory(began))
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(clients):
                    chance = random.Random(f"{seed} {number}")
                    group.create_task(self._use(2 + number, chance, began + seconds))
        finally:
            watching.cancel()

    async def _watch_memory(self, began: float) -> None:
        while True:
            self.tally.memory.append((time.monotonic() - began, self.app.memory))
            await asyncio.sleep(1)

    async def _use(self, number: int, chance: random.Random, end: float) -> None:
        client, jobs = Client(self.app.url, number), make_jobs()
        try:
            while time.monotonic() < end:
                job = chance.choices(jobs, [job.weight for job in jobs])[0]
                leaves, size = chance.random() < LEAVING, len(self.expected[job.name])
                self.tally.routes[job.route] += 1
                left = await self._ask(client, job, chance.randrange(1, size) if leaves else None)
                if left is not None and left.path and chance.random() < COMING_BACK:
                    await self._come_back(client, job, left)
                await asyncio.sleep(chance.uniform(0, MOST_PAUSE_SECONDS))
        finally:
            await client.close()

    async def _ask(self, client: Client, job: Job, leave_after: int | None) -> Left | None:
        """One request, sent again while it is refused; returns where it was left."""
        while True:
            try:
                answer = await client.ask(job, leave_after)
            except Left as left:
                self.tally.counts["left"] += 1
                return left
            except Refused as refused:
                self.tally.counts["refused"] += 1
                await asyncio.sleep(refused.seconds)
            except Exception as error:
                self._lost(job, error)
                return None
            else:
                self.tally.note_answer(job.name, answer, self.expected)
                return None

    async def _come_back(self, client: Client, job: Job, left: Left) -> None:
        try:
            answer = await client.resume(left)
        except Exception as error:
            self._lost(job, error)
        else:
            self.tally.counts["continued"] += 1
            self.tally.note_answer(job.name, answer, self.expected)

    def _lost(self, job: Job, error: Exception) -> None:
        self.tally.note_problem("lost", f"{job.name}: {type(error).__name__}: {error}")

"""What the clients ask for: requests of all routes and lengths, each with a seed of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SENTENCES = (
    "The river was high that year.",
    "Nobody had expected so many people in such a small place.",
    "Bring two chairs and the old lamp.",
    "It rained for three days, and then the sun came back.",
    "We left the keys with the woman at the corner shop.",
    "Can you hear the bells from here?",
    "They sold the boat in spring, long before the storm.",
    "My sister writes with her left hand and paints with her right.",
    "There is fresh bread on the table for you.",
    "The last train leaves a little after ten.",
)
FORMATS = ("mp3", "wav", "pcm", "flac", "opus")
# Of a text, and of a dialogue, that take more than a minute to say.
LONG_SENTENCES = 24


@dataclass(frozen=True)
class Job:
    """A request that has the same answer every time. route: a function of `Client` by its name;
    weight: how often it is asked for."""

    route: str
    body: dict[str, Any] = field(hash=False)
    weight: int = 2

    @property
    def name(self) -> str:
        """For a table."""
        return f"{self.route}, seed {self.body['seed']}"


def make_jobs() -> list[Job]:
    """All of them."""
    jobs = [
        Job("speech", speech_body(_words(number, 1 + number % 3), form))
        for number, form in enumerate(FORMATS * 3)
    ]
    jobs += [Job("events", speech_body(_words(n, 1), "pcm")) for n in (3, 8)]
    jobs += [Job("captions", speech_body(_words(n, 2), "wav")) for n in (4, 9)]
    jobs += [Job("sentences", speech_body(_words(n, 3), "wav")) for n in (2, 5)]
    jobs += [Job("page", {"script": f"[S1] {_words(n, 2)}"}) for n in (1, 6)]
    jobs += [
        Job("dialogue", {"turns": _turns(count), "response_format": "flac"}) for count in (2, 5)
    ]
    texts = [{"input": _words(n, 1)} for n in range(3)]
    jobs.append(Job("batch", {"items": texts, "response_format": "pcm"}))
    jobs.append(Job("speech", speech_body(_words(0, LONG_SENTENCES), "mp3"), weight=1))
    jobs.append(Job("dialogue", {"turns": _turns(LONG_SENTENCES)}, weight=1))
    # A seed of its own, so that no two jobs have the same answer.
    for seed, job in enumerate(jobs, start=1):
        job.body["seed"] = seed
    return jobs


def speech_body(text: str, form: str) -> dict[str, Any]:
    """OpenAI's request."""
    return {"model": "nano", "input": text, "response_format": form}


def _words(first: int, count: int) -> str:
    return " ".join(SENTENCES[(first + n) % len(SENTENCES)] for n in range(count))


def _turns(count: int) -> list[dict[str, str]]:
    return [{"voice": ("alloy", "nova")[n % 2], "text": _words(n, 1)} for n in range(count)]

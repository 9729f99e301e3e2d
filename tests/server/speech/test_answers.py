"""An answer is the same bytes for every reader, stops with the last one, and can be continued."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from dia_demo.errors import BusyError, RunError
from dia_demo.server.encoders import open_encoder
from dia_demo.server.speech import answers as answers_module
from dia_demo.server.speech.answers import Answer, Answers, Question, State
from dia_demo.services.speech.job import SpeechJob
from tests.helpers.asynchronous import async_test
from tests.helpers.speech import RATE, HeldSpeaker

JOB = SpeechJob("Hello.", "nano", 7)
SECONDS = 20.0


@pytest.fixture
def speaker() -> HeldSpeaker:
    return HeldSpeaker()


@pytest.fixture
def answers(speaker, tmp_path):
    found = Answers(speaker, tmp_path / "answers")
    yield found
    found.close()


def question(speaker: HeldSpeaker, job: SpeechJob = JOB, key="same", has_seed=True) -> Question:
    return Question(job, "wav", key, has_seed, speaker.promised)


def ask(answers: Answers, speaker: HeldSpeaker, **changes) -> Answer:
    return answers.open(question(speaker, **changes), threading.Event)


async def read(answer: Answer, start: int = 0) -> bytes:
    with answer.reader(start) as reader:
        return await asyncio.wait_for(reader.all(), SECONDS)


async def until(condition) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.002)


def expected(job: SpeechJob = JOB) -> bytes:
    """What the speaker says, encoded at once."""
    speaker, encoder = HeldSpeaker(), open_encoder("wav", RATE, job.model)
    speaker.release()
    *chunks, _ = speaker.stream(job, threading.Event())
    return b"".join([*(encoder.add(chunk.samples) for chunk in chunks), encoder.finish()])


@async_test
async def test_an_answer_is_the_encoded_speech(answers, speaker):
    speaker.release()
    answer = ask(answers, speaker)
    assert await read(answer) == expected()
    assert answer.state is State.COMPLETE and answer.finished.figures.seed == 7


@async_test
async def test_a_reader_gets_what_is_there_while_the_rest_is_made(answers, speaker):
    answer = ask(answers, speaker)
    with answer.reader() as reader:
        speaker.release(1)
        first = await asyncio.wait_for(anext(reader.blocks()), SECONDS)
        assert 0 < len(first) < len(expected()) and answer.state is State.RUNNING
        speaker.release()
        assert first + await reader.all() == expected()


@async_test
async def test_two_readers_share_one_job(answers, speaker):
    first, second = ask(answers, speaker), ask(answers, speaker)
    assert first is second
    reading = [asyncio.create_task(read(first)), asyncio.create_task(read(second))]
    await until(lambda: speaker.started)
    speaker.release()
    assert await asyncio.gather(*reading) == [expected()] * 2 and len(speaker.started) == 1


@async_test
async def test_one_of_two_readers_may_leave(answers, speaker):
    answer = ask(answers, speaker)
    with answer.reader() as staying:
        with answer.reader():
            await until(lambda: speaker.started)
        speaker.release()
        assert await staying.all() == expected() and speaker.stopped == []


@async_test
async def test_the_job_stops_when_the_last_reader_leaves(answers, speaker):
    answer = ask(answers, speaker)
    with answer.reader():
        await until(lambda: speaker.started)
    await until(lambda: speaker.stopped)
    assert answer.state is State.STOPPED


@async_test
async def test_a_cut_answer_is_continued_at_any_byte(answers, speaker):
    answer = ask(answers, speaker)
    with answer.reader() as reader:
        speaker.release(2)
        await until(lambda: answer.size > 2000)
        first = await anext(reader.blocks())
    await until(lambda: speaker.stopped)
    speaker.release()
    again = ask(answers, speaker)
    assert again is answer, "a repeated request finds its answer"
    assert first + await read(again, len(first)) == expected()
    assert await read(again, 1000) == expected()[1000:]
    assert len(speaker.started) == 2


@async_test
async def test_a_random_seed_is_kept_for_a_retry_but_not_for_another_take(answers, speaker):
    answer = ask(answers, speaker, has_seed=False)
    with answer.reader():
        await until(lambda: speaker.started)
    other = replace(JOB, seed=8)
    retried = ask(answers, speaker, job=other, has_seed=False)
    assert retried is answer
    speaker.release()
    assert await read(retried) == expected()
    assert ask(answers, speaker, job=other, has_seed=False) is not answer, "it was delivered"


@async_test
async def test_other_questions_have_other_answers(answers, speaker):
    speaker.release()
    one, other = ask(answers, speaker), ask(answers, speaker, key="other", job=replace(JOB, seed=9))
    assert await read(one) == expected()
    assert await read(other) == expected(replace(JOB, seed=9)) != expected()


@async_test
async def test_a_failure_reaches_the_reader_and_is_not_repeated(answers, tmp_path):
    speaker = HeldSpeaker(problem=RunError("The take contains no speech."))
    speaker.release()
    failing = Answers(speaker, tmp_path / "failing")
    answer = ask(failing, speaker)
    with answer.reader() as reader, pytest.raises(RunError, match="no speech"):
        await reader.begin(SECONDS)
    assert answer.state is State.FAILED
    speaker.problem = None
    assert await read(ask(failing, speaker)) == expected()
    failing.close()


@async_test
async def test_what_was_not_foreseen_is_a_sentence(answers, speaker, monkeypatch):
    monkeypatch.setattr(speaker, "stream", lambda *given: 1 / 0)
    with ask(answers, speaker).reader() as reader, pytest.raises(RunError, match="still usable"):
        await reader.all()


@async_test
async def test_answers_are_dropped_a_while_after_their_last_reader(answers, speaker, monkeypatch):
    speaker.release()
    answer = ask(answers, speaker)
    await read(answer)
    answers.tidy()
    assert answers.find(answer.id) is answer
    monkeypatch.setattr(answers_module, "KEPT_SECONDS", -1.0)
    answers.tidy()
    assert answers.find(answer.id) is None and answer.read(0) == b""


@async_test
async def test_an_answer_that_is_read_is_never_dropped(answers, speaker, monkeypatch):
    monkeypatch.setattr(answers_module, "KEPT_SECONDS", -1.0)
    monkeypatch.setattr(answers_module, "MOST_BYTES", 0)
    answer = ask(answers, speaker)
    with answer.reader() as reader:
        answers.tidy()
        speaker.release()
        assert await reader.all() == expected()


@async_test
async def test_the_oldest_are_dropped_beyond_the_limit(answers, speaker, monkeypatch):
    speaker.release()
    first = ask(answers, speaker)
    await read(first)
    second = ask(answers, speaker, key="other")
    await read(second)
    monkeypatch.setattr(answers_module, "MOST_BYTES", second.size)
    answers.tidy()
    assert answers.find(first.id) is None and answers.find(second.id) is second


@async_test
async def test_the_oldest_are_dropped_beyond_the_count(answers, speaker, monkeypatch):
    speaker.release()
    monkeypatch.setattr(answers_module, "MOST_ANSWERS", 2)
    made = []
    for number in range(4):
        made.append(ask(answers, speaker, key=f"question {number}"))
        await read(made[-1])
    answers.tidy()
    assert [answers.find(one.id) is one for one in made] == [False, False, True, True]


@async_test
async def test_no_answer_begins_while_those_that_are_read_use_all_space(
    answers, speaker, monkeypatch
):
    monkeypatch.setattr(answers_module, "MOST_BYTES", 10)
    answer = ask(answers, speaker)
    with answer.reader() as reader:
        speaker.release(1)
        await asyncio.wait_for(anext(reader.blocks()), SECONDS)
        await until(lambda: answer.size > 10)
        with pytest.raises(BusyError, match="no space") as refused:
            ask(answers, speaker, key="another question")
        assert refused.value.retry_seconds > 0
        assert ask(answers, speaker) is answer, "it can still be joined"
    assert ask(answers, speaker, key="another question") is not answer


@async_test
async def test_one_that_is_made_for_later_is_not_dropped_meanwhile(answers, speaker, monkeypatch):
    monkeypatch.setattr(answers_module, "KEPT_SECONDS", -1.0)
    answer = ask(answers, speaker)
    answer.keep_running()
    answers.tidy()
    assert answers.find(answer.id) is answer
    speaker.release()
    await until(lambda: answer.state is State.COMPLETE)
    answers.tidy()
    assert answers.find(answer.id) is None


@async_test
async def test_one_that_is_to_be_made_needs_no_reader(answers, speaker):
    answer = ask(answers, speaker)
    answer.keep_running()
    with answer.reader():
        pass
    speaker.release()
    await until(lambda: answer.state is State.COMPLETE)
    assert await read(answer) == expected() and speaker.stopped == []


def test_the_end_of_the_server_stops_all_jobs(answers, speaker):
    answer = ask(answers, speaker)
    answer.keep_running()
    answers.close()
    assert speaker.started == speaker.stopped and answers.find(answer.id) is None


@async_test
async def test_a_full_disk_is_said(answers, speaker, monkeypatch):
    answer = ask(answers, speaker)

    class Full:
        def seek(self, at):
            return at

        def write(self, data):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr(answer, "_file", Full())
    speaker.release()
    with answer.reader() as reader, pytest.raises(RunError, match="No space left.*DIA_TAKES"):
        await reader.all()

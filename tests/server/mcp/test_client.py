"""The tools as an agent uses them: the client of the package mcp and the real app."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile

mcp = pytest.importorskip("mcp", reason="pip install -r requirements-mcp.txt")

from mcp.client.streamable_http import streamable_http_client  # noqa: E402

from dia_demo.audio import read_metadata  # noqa: E402
from tests.helpers.asynchronous import run_async  # noqa: E402
from tests.helpers.page import browser  # noqa: E402
from tests.helpers.page.examples import example  # noqa: E402


@pytest.fixture(scope="module")
def app(tmp_path_factory) -> str:
    with browser.running_app(tmp_path_factory.mktemp("mcp"), options=["--mcp"]) as url:
        yield url


def with_session(url: str, work: Callable[..., Any]) -> Any:
    """The result of `work` with a session of the app at this address."""

    async def run() -> Any:
        async with (
            streamable_http_client(f"{url}/mcp") as (read, write, _),
            mcp.ClientSession(read, write) as session,
        ):
            await session.initialize()
            return await work(session)

    return run_async(run())


def call(url: str, tool: str, arguments: dict, **options: Any) -> Any:
    return with_session(url, lambda session: session.call_tool(tool, arguments, **options))


def sound_of(url: str) -> tuple[np.ndarray, int]:
    """What is at an address; it is no silence."""
    answer = httpx.get(url, trust_env=False)
    assert answer.status_code == 200 and "attachment" in answer.headers["content-disposition"]
    samples, rate = soundfile.read(io.BytesIO(answer.content))
    assert np.sqrt(np.mean(samples**2)) > 0.01
    return samples, rate


def test_there_are_exactly_three_tools_with_descriptions(app):
    tools = {tool.name: tool for tool in with_session(app, mcp.ClientSession.list_tools).tools}
    assert list(tools) == ["speak", "dialogue", "list_voices"]
    for tool in tools.values():
        assert tool.title and len(tool.description) > 60 and "\n    " not in tool.description
        for name, argument in tool.inputSchema["properties"].items():
            assert argument["description"], f"{tool.name}: {name}"
        for name, field in tool.outputSchema["properties"].items():
            assert field, f"{tool.name}: {name}"
    assert tools["speak"].inputSchema["required"] == ["text"]
    assert tools["dialogue"].inputSchema["required"] == ["script"]
    speak = tools["speak"].inputSchema["properties"]
    assert (speak["speed"]["minimum"], speak["speed"]["maximum"]) == (0.25, 4)
    assert "mp3" in speak["format"]["enum"] and speak["text"]["examples"]
    assert tools["list_voices"].annotations.readOnlyHint


def test_speak_returns_a_file_and_its_figures(app, tmp_path):
    said = {"text": "Hello there! It is good to see you.", "voice": "rms deep", "seed": 7}
    spoken = call(app, "speak", said | {"format": "flac"}).structuredContent
    samples, rate = sound_of(spoken["url"])
    assert len(samples) / rate == pytest.approx(spoken["seconds"], abs=0.05)
    assert 1 < spoken["seconds"] < 6 and spoken["parts"] == 1 and spoken["seed"] == 7
    assert spoken["voices"] == ["rms deep"] and spoken["subtitles_url"] is None
    again = call(app, "speak", said).structuredContent
    assert again["seconds"] == spoken["seconds"] and again["url"].endswith(".mp3")
    assert len(sound_of(again["url"])[0]) == pytest.approx(len(samples), abs=0.1 * rate)
    file = tmp_path / "a.flac"
    file.write_bytes(httpx.get(spoken["url"], trust_env=False).content)
    assert read_metadata(file)["settings"]["seed"] == 7


@pytest.mark.long
def test_dialogue_joins_its_parts_and_reports_progress(app):
    told: list[tuple[float, float]] = []

    async def tell(done: float, total: float, _: str | None) -> None:
        told.append((done, total))

    script = "[S1] Hello there, how are you today? (pause 1.5) [S2] I am fine, thank you. "
    arguments = {"script": script * 8, "voice_s1": "rms deep", "voice_s2": "awb high"}
    answer = call(app, "dialogue", arguments | {"subtitles": True}, progress_callback=tell)
    spoken = answer.structuredContent
    samples, rate = sound_of(spoken["url"])
    assert len(samples) / rate == pytest.approx(spoken["seconds"], abs=0.1)
    assert spoken["seconds"] > 8 * 3 and spoken["parts"] > 4
    assert spoken["voices"] == ["rms deep", "awb high"]
    assert "S2: I am fine" in httpx.get(spoken["subtitles_url"], trust_env=False).text
    assert told == sorted(told) and all(done <= total for done, total in told)


def test_voices_are_listed_by_the_models_that_have_them(app):
    listed = call(app, "list_voices", {}).structuredContent
    assert listed["models"][0]["name"] == "nano"
    voices = {voice["name"]: voice for voice in listed["voices"]}
    assert voices["rms deep"]["model"] == "nano"
    assert voices["rms deep"]["pitch_hz"] < voices["rms high"]["pitch_hz"]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("speak", {}, "text is missing."),
        ("speak", {"text": " "}, "There are no words to say"),
        ("speak", {"text": 5}, "text: Input should be a valid string, not 5."),
        ("speak", {"text": "x" * 20_001}, "text: String should have at most 20000 characters"),
        ("speak", {"text": "Hi.", "voice": "nobody"}, "There is no voice 'nobody'"),
        ("speak", {"text": "Hi.", "model": "/etc"}, "There is no model '/etc' here"),
        ("speak", {"text": "Hi.", "speed": 9}, "speed: Input should be less than or equal to 4"),
        ("speak", {"text": "Hi.", "speed": "nan"}, "speed: Input should be a finite number"),
        ("speak", {"text": "Hi.", "seed": -1}, "seed: Input should be greater than or equal to 0"),
        ("speak", {"text": "Hi.", "format": "aac"}, "format must be one of wav, flac, mp3, opus"),
        ("dialogue", {"script": "[S1] (pause 99)"}, ""),
        ("dialogue", {"script": "Hi.", "subtitles": "maybe"}, "subtitles: Input should be a valid"),
        ("generate", {}, "Unknown tool: generate"),
    ],
)
def test_mistakes_are_told_in_a_sentence(app, tool, arguments, message):
    answer = call(app, tool, arguments)
    (content,) = answer.content
    assert answer.isError and content.text.startswith(message) and len(content.text) < 400
    assert "Traceback" not in content.text and "\n" not in content.text


def test_the_example_of_the_documents_runs(app):
    source = example("python", app, "call_tool")
    result = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    url, seconds = result.stdout.split()
    assert url.startswith(f"{app}/mcp/files/") and 0.5 < float(seconds) < 4

"""The page without a browser: what a run says, what the form means, what is wired to what."""

from __future__ import annotations

import base64
import logging
import re
import threading
from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
import soundfile

from dia_demo.config import GenerationParams, RuntimeConfig
from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Failed,
    Figures,
    Finished,
    Loading,
    Progress,
    Result,
    Started,
    Waiting,
)
from dia_demo.errors import InputError
from dia_demo.script import NONVERBALS, SOUND
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.text import Finding, check_script
from dia_demo.ui import build, form, generate_tab, markup, present, theme
from dia_demo.ui.handlers import Handlers
from dia_demo.ui.live import KEPT_RUNS, LiveAudio
from dia_demo.ui.sessions import Sessions

FIGURES = Figures(
    audio_seconds=14.2,
    wall_seconds=45.8,
    realtime_factor=0.31,
    token_seconds=41.8,
    codec_seconds=4.6,
    first_audio_seconds=1.9,
    steps=1223,
    finish_reason="end",
    seed=421337,
    model="nari-labs/Dia-1.6B-0626",
    precision="bfloat16",
    device="cpu",
    sample_rate=44100,
    peak_rss_bytes=1,
)
STARTED = Started(7, "nano", "float32", "cpu", 16000, 30.0, ("The prompt was cut to 20 s.",))
RUNNING = Progress(500, 12.4, 40.0, 0.31, 18.6, 20.0)


def result(reason: str = "end", samples: int = 160) -> Result:
    wave = np.sin(np.arange(samples) / 5).astype(np.float32) / 4
    figures = replace(FIGURES, finish_reason=reason, sample_rate=16000)
    return Result(np.zeros((3, 5), np.int16), wave, figures)


@pytest.mark.parametrize(
    ("event", "state", "words"),
    [
        (Waiting(2, 40.0), "waiting", "Place 2 in the queue, about 40 s"),
        (Waiting(1), "waiting", "Place 1 in the queue."),
        (Loading("Reading the weights", 0.4), "loading", "Reading the weights, 40%"),
        (STARTED, "running", "seed 7"),
        (RUNNING, "running", "12.4 s of audio, 0.31x realtime, about 20 s left"),
        (Finished(result()), "done", "14.2 s of audio in 45.8 s, 0.31x realtime"),
        (Finished(result("max_tokens")), "cut", "raise Max tokens or shorten"),
        (Cancelled(result("cancelled")), "stopped", "14.2 s of audio kept"),
        (Cancelled(None), "stopped", "Nothing was made yet"),
        (Failed("The disk is full."), "failed", "The disk is full."),
    ],
)
def test_every_event_is_said_in_plain_words(event, state, words):
    status = present.status_of(event, present.PREPARING)
    assert status.state == state and words in status.detail
    assert f'data-state="{state}"' in markup.status_card(status)


def test_sound_changes_no_words_and_notes_stay_for_the_run():
    running = present.status_of(STARTED, present.PREPARING)
    assert present.status_of(AudioChunk(np.zeros(4, np.float32), 16000, 0.0), running) == running
    later = present.status_of(RUNNING, running)
    assert later.notes == STARTED.notes
    assert STARTED.notes[0] in markup.status_card(later)


def test_only_the_end_fills_the_bar():
    over = replace(RUNNING, audio_seconds=30.0)
    status = present.status_of(over, present.PREPARING)
    assert status.fraction < 1 and "longer than estimated" in status.detail
    assert present.status_of(Finished(result()), status).fraction == 1


def test_a_screen_reader_hears_states_not_every_figure():
    one = present.status_of(RUNNING, present.PREPARING)
    two = present.status_of(replace(RUNNING, audio_seconds=13.0), one)
    assert one.detail != two.detail and one.announcement == two.announcement


def test_ours_are_explained_and_the_unexpected_is_logged_not_shown(caplog):
    assert present.explain(InputError("seed must be whole.")) == "seed must be whole."
    with caplog.at_level(logging.ERROR):
        assert present.explain(KeyError("secret path")) == present.UNEXPECTED
    assert "secret path" in caplog.text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "0 s"),
        (20.4, "20 s"),
        (-3, "0 s"),
        (130, "2 min 10 s"),
        (180, "3 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_read_like_words(seconds, words):
    assert present.duration(seconds) == words


def test_max_tokens_are_said_in_seconds_and_names_go_with_values():
    assert present.tokens_hint(1720, 19.97) == "1,720 tokens ≈ 20 s"
    rows = dict(present.figure_rows(FIGURES))
    assert rows["Seed"] == "421337" and rows["Realtime factor"] == "0.31x"
    assert rows["Tokens alone"] == "0.34x" and rows["Model"] == "Dia-1.6B-0626"
    assert "CUT" in dict(present.figure_rows(replace(FIGURES, finish_reason="max_tokens")))["Ended"]


def test_text_from_outside_stays_text():
    evil = '<img src=x onerror="alert(1)">'
    finding = Finding("x", "warning", evil, 1, evil, evil)
    report = replace(check_script(""), findings=(finding,))
    for html in (
        markup.script_report(report, 10),
        markup.status_card(present.failed(evil)),
        markup.figures_table([(evil, evil)]),
    ):
        assert "<img" not in html and 'onerror="' not in html


# -- the form


@pytest.mark.parametrize("asked", [None, "", " ", "-1", -1, -1.0])
def test_blank_and_minus_one_ask_for_a_new_seed(asked):
    assert len({form.chosen_seed(asked) for _ in range(4)}) > 1


@pytest.mark.parametrize("asked", [1.5, float("nan"), float("inf"), "seven", "0x1", "1e400"])
def test_a_seed_that_is_none_is_refused(asked):
    with pytest.raises(InputError, match="seed must be a whole number"):
        form.chosen_seed(asked)


@pytest.mark.parametrize("asked", ["7", " 7 ", 7, 7.0])
def test_a_seed_means_the_same_typed_or_sent(asked):
    assert form.chosen_seed(asked) == 7


def values(**changes) -> form.Form:
    given = dict(zip(form.FIELDS, ("[S1] Hi. [S2]", 0.4, 1.5, 200, 0.9, 40, 7, 1.0), strict=False))
    rest = {"voice_prompt": None, "voice_transcript": "", "model": "nano", "precision": "float32"}
    return form.Form(**(given | rest | {"xpu": False} | changes))


def test_a_request_takes_the_page_and_leaves_the_rest_as_started():
    asked = values(voice_prompt="/tmp/a.wav", voice_transcript=" [S1] Yes. ").to_request(
        RuntimeConfig(threads=1)
    )
    assert asked.runtime == RuntimeConfig("nano", "float32", "cpu", 1)
    assert asked.params == GenerationParams(0.4, 1.5, 0.9, 40, 200, 7)
    assert asked.voice.transcript == "[S1] Yes." and asked.script == "[S1] Hi. [S2]"


def test_what_is_remembered_is_checked_before_it_is_believed():
    ends = {"temperature": (0.0, 2.5), "max_tokens": (6, 860)}
    saved = {"model": "nano", "script": "[S1]", "temperature": "hot", "max_tokens": 9999, "x": 1}
    kept = {"model": "nano", "script": "[S1]", "max_tokens": 860}
    assert form.restored(saved, ends) == kept


@pytest.mark.parametrize("junk", [None, 3, "text", [], {}, {"model": "/etc"}, {"model": None}])
def test_a_memory_that_is_none_changes_nothing(junk):
    handlers, _ = stub_handlers([])
    assert all(set(update) == {"__type__"} for update in handlers.restore(junk))


# -- listening while it is made


def test_the_pieces_a_page_fetches_are_the_whole_take():
    live = LiveAudio()
    run = live.begin()
    wave = np.linspace(-0.5, 0.5, 1000).astype(np.float32)
    got = np.zeros(0, "<i2")
    for start in range(0, 1000, 130):
        run.add(wave[start : start + 130], 16000)
        part = live.after(run.token, len(got))
        got = np.concatenate([got, np.frombuffer(base64.b64decode(part["pcm"]), "<i2")])
        assert part["rate"] == 16000 and not part["done"]
    run.done = True
    assert live.after(run.token, len(got)) == {"pcm": "", "rate": 16000, "done": True}
    assert np.abs(got / 32767 - wave).max() < 1e-4


def test_runs_that_are_not_there_are_silent_and_old_ones_go():
    live = LiveAudio()
    runs = [live.begin() for _ in range(KEPT_RUNS + 1)]
    runs[0].add(np.ones(9, np.float32), 16000)
    for token in ("nonsense", runs[0].token):
        assert live.after(token, 0) == {"pcm": "", "rate": 0, "done": True}


def test_stop_reaches_the_page_that_asked_and_no_other():
    sessions = Sessions()
    with sessions.run("a") as first, sessions.run("b") as second:
        sessions.stop("a")
        sessions.stop("nobody")
        assert first.is_set() and not second.is_set()
    assert second.is_set(), "a run that is over must not keep the engine"


# -- the page as it is wired


@pytest.fixture(scope="module")
def page() -> gr.Blocks:
    return build.build_ui(Synthesis(Settings()))


def test_the_labels_that_people_and_programs_rely_on(page):
    labels = {getattr(block, "label", None) for block in page.blocks.values()}
    texts = {block.value for block in page.blocks.values() if isinstance(block, gr.Button)}
    assert labels >= {
        "Script",
        "Temperature",
        "CFG scale",
        "Max tokens",
        "Top-p",
        "Top-k",
        "Seed",
        "Speed",
        "Model",
        "Precision",
        "Intel XPU (experimental)",
        "Take",
    }
    assert texts >= {"Generate", "Stop"}


def test_one_endpoint_is_offered_and_its_arguments_have_names(page):
    page.config = page.get_config_file()
    offered = page.get_api_info()["named_endpoints"]
    assert list(offered) == ["/generate"]
    names = [one["parameter_name"] for one in offered["/generate"]["parameters"]]
    assert names == list(form.FIELDS)
    assert all(one["parameter_has_default"] for one in offered["/generate"]["parameters"])


def test_defaults_are_the_checkpoints_own(page):
    synthesis = Synthesis(Settings())
    info = synthesis.info("nano")
    sliders = {b.label: b.value for b in page.blocks.values() if isinstance(b, gr.Slider)}
    asked = info.config.defaults
    assert sliders["Temperature"] == asked.temperature and sliders["CFG scale"] == asked.cfg_scale
    assert sliders["Max tokens"] == asked.max_tokens
    for model in synthesis.models():
        for name, (low, high) in form.slider_ends(model).items():
            assert low <= form.defaults_of(model)[name] <= high, (model.name, name)


def stub_handlers(events) -> tuple[Handlers, dict]:
    """Handlers over a service that yields `events` (an exception among them is raised)."""
    seen = {}

    def stream(request, cancel: threading.Event):
        seen["cancel"] = cancel
        for event in events:
            if isinstance(event, Exception):
                raise event
            yield event

    real = Synthesis(Settings())
    synthesis = SimpleNamespace(settings=Settings(), stream=stream, take=real.take, info=real.info)
    synthesis.models = real.models
    names = [name for name in generate_tab.Parts.__annotations__]
    parts = SimpleNamespace(**{name: name for name in names})
    return Handlers(synthesis, parts, LiveAudio()), seen


def press_generate(handlers: Handlers):
    given = [getattr(values(), name) for name in form.FIELDS]
    return handlers.generate(SimpleNamespace(session_hash="s"), *given)


@pytest.mark.parametrize("error", [InputError("No such thing."), ZeroDivisionError("bug")])
def test_a_failed_run_keeps_the_earlier_take_and_frees_the_buttons(error):
    handlers, seen = stub_handlers([STARTED, RUNNING, error])
    updates = list(press_generate(handlers))
    assert all("take" not in update and "wav" not in update for update in updates)
    assert 'data-state="failed"' in updates[-2]["status"]
    assert updates[-1]["generate"]["interactive"] and not updates[-1]["stop"]["interactive"]
    assert updates[-1]["live"]["done"] and seen["cancel"].is_set()


def test_a_page_that_goes_away_stops_its_run():
    handlers, seen = stub_handlers([STARTED, RUNNING, Finished(result())])
    run = press_generate(handlers)
    next(run), next(run)
    assert not seen["cancel"].is_set()
    run.close()
    assert seen["cancel"].is_set()


def test_a_place_that_cannot_be_written_is_named_and_the_buttons_come_back(tmp_path):
    handlers, _ = stub_handlers([STARTED, Finished(result())])
    taken = tmp_path / "file"
    taken.write_text("not a folder")
    handlers.synthesis.settings = Settings(takes_folder=taken)
    updates = list(press_generate(handlers))
    assert "DIA_TAKES" in updates[-2]["status"] and updates[-1]["generate"]["interactive"]


def test_a_run_without_a_sound_is_no_take():
    silent = replace(result(), samples=np.zeros(0, np.float32))
    for event, words in (
        (Finished(silent), "before it made a sound"),
        (Cancelled(silent), "Nothing"),
    ):
        handlers, _ = stub_handlers([STARTED, event])
        updates = list(press_generate(handlers))
        assert all("take" not in update for update in updates)
        assert any(words in update.get("status", "") for update in updates)


def test_what_is_wrong_with_the_sound_is_said():
    quiet = replace(result(samples=16000), samples=np.zeros(16000, np.float32))
    handlers, _ = stub_handlers([STARTED, Finished(quiet)])
    assert any("Note: It is silent." in one.get("status", "") for one in press_generate(handlers))


def test_a_finished_run_hands_over_sixteen_bits_and_says_what_they_are():
    handlers, _ = stub_handlers([STARTED, Finished(result(samples=1600))])
    shown = {}
    for update in press_generate(handlers):
        if "take" in update:
            shown = update
            assert soundfile.info(update["take"]).subtype == "PCM_16"
            assert soundfile.info(update["flac"]["value"]).format == "FLAC"
    assert shown["take_seed"] == FIGURES.seed and "421337" in shown["figures"]
    assert "data:image/png;base64," in shown["spectrogram"]


# -- what ships with it


def test_the_examples_are_scripts_nobody_would_remark_on():
    examples = generate_tab.load_examples()
    assert 3 <= len(examples) <= 5
    for one in examples:
        found = {f.code for f in check_script(one["script"]).findings} - {"too_short", "too_long"}
        assert found == set(), (one["label"], found)
        assert all(match[1] in NONVERBALS for match in SOUND.finditer(one["script"]))


def test_nothing_on_the_page_comes_from_elsewhere():
    options = build.launch_options(Settings())
    sources = [options["js"], *(path.read_text() for path in options["css_paths"])]
    sources += [
        (generate_tab.ASSETS / name).read_text() for name in ("live_player.js", "repair.js")
    ]
    sources.append(options["theme"]._get_theme_css())
    for source in sources:
        source = source.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
        assert not re.search(r"https?://|//[a-z0-9.-]+\.[a-z]{2,}/|@import|@font-face", source)
    assert options["theme"]._stylesheets == []


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_the_themes_colours_stand_apart(scheme):
    for ink in (theme.INK, theme.QUIET, theme.ACCENT):
        for paper in (theme.PAPER, theme.CARD, theme.FIELD, theme.ACCENT_SOFT):
            assert contrast(ink[scheme], paper[scheme]) >= 4.5, (ink, paper)
    assert contrast(theme.ON_ACCENT[scheme], theme.ACCENT[scheme]) >= 4.5
    assert contrast(theme.ON_ACCENT[scheme], theme.ACCENT_HOVER[scheme]) >= 4.5
    assert contrast(theme.FIELD_LINE[scheme], theme.CARD[scheme]) >= 3


def contrast(one: str, two: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    dark, bright = sorted((light(one), light(two)))
    return (bright + 0.05) / (dark + 0.05)

"""The About tab: the program, the nano voice and Dia-1.6B, privacy, licences, limits."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import gradio as gr

from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import gb, model_bytes, needed_bytes
from dia_demo.families.resolve import recommended_model
from dia_demo.files import PAGE_FILES
from dia_demo.services.wording import duration
from dia_demo.ui.person_runs import UNATTENDED_SECONDS

# Dia-1.6B, which the text is about.
DIA = recommended_model()
DOWNLOAD = gb(model_bytes(DIA, "float32"))


def _memory(precision: str) -> str:
    """What a take of Dia-1.6B needs."""
    return gb(needed_bytes(DIA, precision))


def _seconds(precision: str) -> str:
    """Seconds of computation for a second of speech of Dia-1.6B, as measured."""
    return f"{1 / DIA.profile.realtime[precision]:.1f}"


TEXT = f"""
## What this is

Dia is a text-to-speech model by Nari Labs. It generates a whole dialogue at once, with two voices
and sounds such as laughter. This program runs it on an ordinary CPU, without a graphics card and,
with the included nano voice, without an internet connection.

## The nano voice and Dia-1.6B

The **nano voice** is a small synthetic voice, trained for this program so that you can try
everything immediately. It has Dia's architecture and runs the same code, but it is 18 MB instead of
{DOWNLOAD}. The seed chooses who speaks, or you do: 24 synthetic voices are in the menus above the
script. They speak common English words, and rare ones less clearly. Its
laugh is a series of "ha", it reads numbers as the app writes them out, and a prompt that sounds
like none of its own voices becomes the nearest of them. Its model card in `assets/nano` has the
measured figures. **How it sounds says nothing about how Dia sounds.**

**Dia-1.6B** is the original model. A take needs about {_memory("int8")} of memory in int8,
{_memory("bfloat16")} in bfloat16 and {_memory("float32")} in float32. Two cores of the server
it was measured on need {_seconds("int8")} seconds (int8) or {_seconds("bfloat16")} seconds
(bfloat16) for a second of speech; the Machine tab measures your computer. There are three ways to
load it:

- Select it under *Model* and press *Download*: {DOWNLOAD} from the Hugging Face Hub, once.
- Start the program with it: `DIA_MODEL=nari-labs/Dia-1.6B-0626 python app.py`
- On a machine without a connection, copy the folder of a checkpoint there and start with
  `DIA_MODEL=/path/to/the/folder python app.py`

## Writing a script

Start with `[S1]`, alternate `[S1]` and `[S2]`, and aim for 5 to 20 seconds of speech. End with the
tag of the speaker who would be next, which keeps the last word from being cut off. Write sounds in
parentheses, for example (laughs), (sighs) or (clears throat). English only. Ctrl+Enter presses
Generate from anywhere.

Dia's voices change with the seed and with every sampling setting. A voice that you keep from a
take, or a voice prompt of 5 to 10 seconds with an exact transcript, fixes them. `(pause 1.5)` is a
silence of so many seconds.

## What is stored, and where

The script and the settings are stored in this browser, audio on the computer that runs this page:

| What | Where | Until |
|---|---|---|
| Script and settings | this browser | you clear its data |
| Takes, uploaded voice prompts | a temporary folder of that computer | a day at most |
| Your latest 30 takes, your comparisons, kept voices | that computer | you delete them |
| Your last long script in parts, with its voice prompt | that computer | the next one |
| The key that opens them, and nobody else has | this browser | you clear its data |

A take goes on when you reload or close the page, or lose the connection, for up to
{duration(UNATTENDED_SECONDS)} without an open page. It is among your earlier takes when you come
back, and the last one is in the player.

Nothing is sent anywhere else, and there are no usage statistics. Only a model from the hub is
downloaded, when you select one. A downloaded take contains its script, settings, seed and model, in
each of the formats.

If the storage of the computer is full, the people who use the most of it lose their oldest takes,
and comparisons that have not been used for a long time lose their audio: plan, votes and result
stay, and the same audio can be generated again. If that is not enough, comparisons without votes
are deleted, and finally the voice prompts of the others.
"""

# The address is that of the page on show, whatever its host and port: assets/page/about.js.
EXAMPLE = """from gradio_client import Client  # pip install gradio_client

client = Client("{address}")
file, figures = client.predict(script="[S1] Hello. [S2] Hi. [S1]", api_name="/generate")
print(file, figures["audio_seconds"])"""
SCRIPT = (PAGE_FILES / "about.js").read_text(encoding="utf-8")
PROGRAMS = f"""
<h2>For programs</h2>
<p>A program can do what this page does. This example generates a take and prints the name of its
file:</p>
<pre class="example"><code data-example="{escape(EXAMPLE)}"></code></pre>
<p>Arguments that are left out have the model's own defaults. <code>/check</code> checks a script
without speaking it, and <code>/models</code> lists the models. The <a href="?view=api">API page</a>
has all arguments, and <code>docs/api.md</code> more examples, also for curl.</p>
"""

NOTICES = """
## Licences

The code and weights of Dia are by Nari Labs, under the Apache License 2.0. Its codec is the
Descript Audio Codec, under the MIT License. That of Dia2 is
[Mimi](https://huggingface.co/kyutai/mimi) by Kyutai, under
[CC BY 4.0](https://creativecommons.org/licenses/by/4.0/). The nano voice was trained on synthetic
speech of Flite (Carnegie Mellon University), which has a free licence of its own. All notices are
in the file `NOTICE`. Do not use a person's voice as a prompt without their consent, and do not
present generated speech as a recording.

## Limits

Takes of one model share the machine, eight at most; other runs wait in a queue and are shown their
place. Less than 5 s of speech sounds unnatural with Dia; a long script is made in parts of 8 to
18 s, which are joined. A take ends at *Max tokens* even if the script is not finished; the page
then says so. The Intel XPU switch is experimental: it stays off until a self-check has
passed on your GPU.
"""


def build_layout(models: list[ModelInfo], build_xpu: Callable[[], None]) -> None:
    """The text, one line about each model on the page, and the section on the XPU."""
    with gr.Column(elem_id="about", elem_classes="card"):
        gr.Markdown(TEXT)
        gr.HTML(PROGRAMS, elem_classes="prose", js_on_load=SCRIPT)
        listed = "\n".join(f"- **{info.title}** (`{info.name}`): {info.note}" for info in models)
        gr.Markdown(f"{NOTICES}\n## Models on this page\n\n{listed}\n")
        build_xpu()

"""The About tab: what this is, what the embedded voice is not, and what is kept where."""

from __future__ import annotations

import gradio as gr

from dia_demo.services.models import DIA_DOWNLOAD, DIA_MEMORY, DIA_REALTIME, ModelInfo


def _seconds(precision: str) -> str:
    """Seconds of work for a second of Dia-1.6B's speech, where it was measured."""
    return f"{1 / DIA_REALTIME[precision]:.1f}"


TEXT = f"""
## What this is

Dia is a model by Nari Labs that speaks a whole dialogue at once, two voices and their laughter
included. This program runs it on an ordinary CPU, without a graphics card and, with the voice
that comes along, without a connection.

## The embedded voice, and the real one

The **nano voice** is a small synthetic voice, trained for this program so that everything can be
tried at once. It is built like Dia and runs through the same code, but it is 15 MB where Dia is
{DIA_DOWNLOAD}: two plain, robot-like voices that say common English words, and rarer ones less
clearly. Its laugh is a row of "ha", it reads few numbers in digits, and a voice prompt can only be
one of its own two voices; its model card in `assets/nano` has the measured figures. **How it sounds
says nothing about how Dia sounds.**

**Dia-1.6B** is the real one. A take needs about {DIA_MEMORY["int8"]} of memory in int8,
{DIA_MEMORY["bfloat16"]} in bfloat16 and {DIA_MEMORY["float32"]} in float32. Two cores of the server
it was measured on worked {_seconds("int8")} seconds (int8) or {_seconds("bfloat16")} (bfloat16) for
a second of speech; the Machine tab measures yours. To load it:

- choose it under *Model*: the first run fetches {DIA_DOWNLOAD} from the Hugging Face hub and keeps
  them for the next time; or
- start the program with it: `DIA_MODEL=nari-labs/Dia-1.6B-0626 python app.py`; or
- on a machine without a connection, copy a checkpoint's folder there and start with
  `DIA_MODEL=/path/to/the/folder python app.py`.

## Writing a script

Begin with `[S1]`, let `[S1]` and `[S2]` take turns, aim at 5 to 20 seconds of speech, and end
with the tag of the speaker who would be next: it keeps the last word whole. Sounds stand in round
brackets, for instance (laughs), (sighs) or (clears throat). English only.

The voices change with the seed and with every sampling setting. A voice prompt of 5 to 10 seconds
with its exact transcript holds them.

## What is kept, and where

Script and settings are kept in this browser alone. Takes and uploaded voice prompts lie in a
temporary folder of the machine that runs this page, under names that cannot be guessed, until the
program ends and for a day at most. Your comparisons and your latest 30 takes are kept on that
machine until you delete them; the key that opens them lies in this browser, and nobody else is
shown them. Where many people fill the machine's room, those who keep most lose their oldest takes,
and comparisons that were not used for long lose their sound: plan, votes and result stay, and the
same sound can be made again. Where that is not enough, comparisons without any vote go whole, and
the voice prompts of the others go as a last resort. Nothing is sent anywhere else, nothing is
counted. Only a model from the hub is fetched, when you choose one.

A WAV or FLAC you download carries its script's settings, seed and model inside.

## For programs

The same run is offered to programs (`pip install gradio_client`); `?view=api` at the end of this
page's address lists every argument.

```text
from gradio_client import Client

client = Client("http://127.0.0.1:7860")
wav, figures = client.predict(script="[S1] Hello. [S2] Hi. [S1]", api_name="/generate")
```

## Licences

Dia's code and weights are Nari Labs', under the Apache License 2.0. The codec is the Descript
Audio Codec, MIT. The nano voice learned from synthetic speech of Flite (Carnegie Mellon
University), under its own free licence. All notices are in the file `NOTICE`. Do not use a
voice prompt of someone who has not agreed to it, and do not pass generated speech off as a
recording.

## Limits

One run uses the whole machine, so runs wait for each other and are told their place. Long scripts
sound rushed, short ones unnatural. A run ends at *Max tokens* whether or not the script is
finished, and says so. The Intel XPU switch is experimental: it stays off until it has proved
itself on the very device.
"""


def build_layout(models: list[ModelInfo]) -> None:
    """The text, then one line about each model that can be chosen."""
    with gr.Column(elem_id="about", elem_classes="card"):
        listed = "\n".join(f"- **{one.title}** (`{one.name}`): {one.note}" for one in models)
        gr.Markdown(f"{TEXT}\n## Models this page offers\n\n{listed}\n")

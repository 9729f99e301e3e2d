"""The voices by name in a checkpoint's config: `python -m training.voice.judge.voice_table FOLDER`.

Measures every voice of codec/shipped_marks.json on takes of its own, and writes "voices" into
FOLDER/config.json: the mark, the median pitch, the place of the mean spectral envelope on the first
two principal components of all (94% of their variance), and the median spectrum, with which the app
compares its takes. A take in another voice makes no difference to a median. Run it again after
training. Voices
that were not drawn before ("drawn": false) are not drawn afterwards, and those that open a dialogue
("opens": true) still do.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.engine.row import Row
from dia_demo.families.resolve import resolve
from dia_demo.task import result_of
from dia_demo.text.script import encode_script
from dia_demo.voices import Voice, VoiceTable
from training.voice.codec import marks
from training.voice.corpus import heldout
from training.voice.judge import speakers, trials

TAKES = 20  # of a voice
COMPONENTS = 2
# Of these codes a turn's first two frames are made: the codec's, of the end of one silence and the
# beginning of another.
TURN_START = ((25, 51, 145, 134), (77, 95, 199, 234))
SILENCE = (77, 68, 199, 14)  # marks.silence of the codec
# Codes of the first two books in silent frames; they are decoded below -66 dB on average.
QUIET = ((25, 77, 216, 224, 245), (27, 51, 68, 82, 95, 106, 152, 245))
SEMITONES_APART, ENVELOPES_APART = 3.0, 0.5
TEXT_HEAD = 0  # the first of those that training guides (model/losses.py)
SHIPPED = Path(marks.__file__).with_name("shipped_marks.json")


def untold(chosen: dict[str, int]) -> VoiceTable:
    """A table of voices of which only the marks are known, so that all pairs are drawn."""
    voices = tuple(Voice(name, mark, 0.0, (0.0,)) for name, mark in chosen.items())
    return VoiceTable(voices, TURN_START, SILENCE, QUIET, 0.0, 0.0, TEXT_HEAD)


def measure_traits(
    engine: Engine, table: VoiceTable, takes: int
) -> dict[str, list[speakers.Traits]]:
    """The traits of so many takes of each voice; the seeds are the first that draw it for S1."""
    config = replace(engine.config, voices=table)
    rows: dict[str, list[Row]] = {voice.name: [] for voice in table.voices}
    for seed in count():
        its = rows[table.draw(seed)[0].name]
        if len(its) < takes:
            text = encode_script(f"[S1] {heldout.NATURAL[len(its)]}")
            its.append(Row(config, text, replace(config.defaults, seed=seed)))
        if all(len(its) == takes for its in rows.values()):
            break
    found = defaultdict(list)
    for name, its in rows.items():
        for spoken in trials.run_rows(engine, its):
            traits = speakers.traits(spoken.wave)
            if traits is not None:
                found[name].append(traits)
    return found


def config_section(
    table: VoiceTable, takes: dict[str, list[speakers.Traits]], kept: dict[str, dict[str, bool]]
) -> dict:
    """The section for config.json. kept: what each voice keeps of it, by name."""
    names = [voice.name for voice in table.voices]
    envelopes = np.array([np.mean([t.envelope for t in takes[name]], 0) for name in names])
    envelopes -= envelopes.mean(0)
    left, sizes, _ = np.linalg.svd(envelopes / np.sqrt(speakers.BANDS), full_matrices=False)
    places = left[:, :COMPONENTS] * sizes[:COMPONENTS]
    return {
        "turn_start": TURN_START,
        "silence": SILENCE,
        "quiet": QUIET,
        "semitones_apart": SEMITONES_APART,
        "envelopes_apart": ENVELOPES_APART,
        "text_head": TEXT_HEAD,
        "table": [
            {
                "name": voice.name,
                "mark": voice.mark,
                **kept.get(voice.name, {}),
                "semitones": round(float(np.median([t.pitch for t in takes[voice.name]])), 1),
                "envelope": [round(float(number), 2) for number in place],
                "spectrum": np.median([t.spectrum for t in takes[voice.name]], 0).round(2).tolist(),
            }
            for voice, place in zip(table.voices, places, strict=True)
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--takes", type=int, default=TAKES, help="of each voice")
    parser.add_argument("--marks", type=Path, default=SHIPPED, help="the marks of its voices")
    args = parser.parse_args()
    table = untold(json.loads(args.marks.read_text()))
    engine = result_of(Engine.load(resolve(str(args.folder)), RuntimeConfig(threads=1)))
    path = args.folder / "config.json"
    config = json.loads(path.read_text())
    before = config.get("voices", {}).get("table", [])
    kept = {v["name"]: {key: v[key] for key in ("drawn", "opens") if key in v} for v in before}
    config["voices"] = config_section(table, measure_traits(engine, table, args.takes), kept)
    path.write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    main()

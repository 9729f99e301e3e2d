"""Every recogniser of the table reads its own examples, and leaves alone what only looks alike."""

import random
from dataclasses import replace

import pytest

from dia_demo.services.take import Request
from dia_demo.text.checks.script_check import check_script
from dia_demo.text.formats.check import CHOICES
from dia_demo.text.formats.table import FORMATS, recognise, write_turns
from dia_demo.text.normaliser import normalise
from dia_demo.text.script import TAG
from tests.helpers.models.known import DIA, NANO

EXAMPLES = [
    pytest.param(row.name, written, turns, id=f"{row.name} {number}")
    for row in FORMATS
    for number, (written, turns) in enumerate(row.examples)
]
LEFT_ALONE = [
    pytest.param(script, id=f"{row.name} {number}")
    for row in FORMATS
    for number, script in enumerate(row.left_alone)
]


@pytest.mark.parametrize(("name", "written", "turns"), EXAMPLES)
def test_a_recogniser_reads_its_examples(name, written, turns):
    found = recognise(written)
    assert found is not None and found.is_sure
    assert found.script == turns
    assert found.format == name
    assert recognise(turns) is None


@pytest.mark.parametrize("script", LEFT_ALONE)
def test_what_looks_alike_is_read_as_written(script):
    assert write_turns(script) == script


@pytest.mark.parametrize(
    ("script", "turns"),
    [
        ("Zorblax - Hi there.\nKweem - Ho.", "[S1] Hi there.\n[S2] Ho."),
        ("Zorblax – Hi there.\nKweem – Ho.", "[S1] Hi there.\n[S2] Ho."),
        ("1: Hello.\n2: Hi.", "[S1] Hello.\n[S2] Hi."),
        ("@ann: Hello there.", "[S1] Hello there."),
        ("— Hello.\n— Hi.\n— Bye.", "[S1] Hello.\n[S2] Hi.\n[S1] Bye."),
        ("It was late.\n– Hello.\n– Hi, he said.", "[S1] It was late.\nHello.\n[S2] Hi, he said."),
    ],
)
def test_what_may_be_a_dialogue_is_a_choice(script, turns):
    found = recognise(script)
    assert found is not None and not found.is_sure and found.script == turns
    (choice,) = [one for one in check_script(script).findings if one.code == "format_unsure"]
    assert choice.repaired == turns and choice.repair_label


def test_lines_of_all_formats_in_any_order_are_read_without_losing_the_tags():
    """Nothing raises, what is certain begins with a tag, and is not recognised again."""
    pieces = [line for row in FORMATS for script, _ in row.examples for line in script.split("\n")]
    draw = random.Random(5)
    certain = 0
    for _ in range(600):
        script = "\n".join(draw.choices(pieces, k=draw.randint(1, 6)))
        found = recognise(script)
        if found is None or not found.is_sure:
            continue
        certain += 1
        assert TAG.search(found.script), script
        assert write_turns(found.script) == found.script, script
        reading = normalise(script)
        assert TAG.match(reading.text.lstrip()), script
        assert normalise(reading.text).text == reading.text, script
    assert certain > 100


def test_edits_tell_where_the_words_were():
    found = recognise('[{"who": "Ann", "text": "Hi there."}, {"who": "Ben", "text": "Ho."}]')
    assert found is not None
    assert [edit[2] for edit in found.edits] == ["[S1] ", " [S2] ", ""]
    marked = [
        text.strip() for text, is_new in normalise("Ann: Hi there.\nBen: Ho.").parts() if is_new
    ]
    assert marked == ["[S1]", "[S2]"]


def test_a_take_says_what_its_script_was_read_as():
    script = "Ann: Hi there.\nBen: Ho."
    nano, dia = NANO, DIA
    request = Request(script, nano.config.defaults, nano)
    assert request.notes[0].startswith("Read as a dialogue with names: Ann is [S1]")
    assert "“Ann:” and “Ben:” are read aloud as written" in replace(request, model=dia).notes[0]
    assert replace(request, model=dia).encode() == script.encode()
    assert Request("[S1] Hi there.", nano.config.defaults, nano).notes == ()


def test_the_length_of_a_script_is_that_of_its_words():
    """Subtitles are longer than what is said."""
    cues = "".join(
        f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},900\nThe river was quiet.\n\n"
        for n in range(1, 41)
    )
    report = NANO.check(cues * 2, 1536)
    assert report.reading is not None and "-->" not in report.reading.text
    (cut,) = [one for one in report.findings if one.code == "too_many_bytes"]
    assert cut.repaired.startswith("[S1] The river was quiet.") and len(cut.repaired) < 1024
    raw = check_script(cues, byte_limit=1024)
    assert {one.code for one in raw.findings if one.repaired} == {"format"}


def test_read_as_written_undoes_a_format():
    script = "Ann: Hi there.\nBen: Ho."
    report = NANO.check(script, 400)
    assert report.reading is not None and report.reading.text == "[S1] Hi there.\n[S2] Ho."
    (choice,) = [one for one in report.findings if one.code == "format_read"]
    assert choice.repair_label == "Read as written" and choice not in report.fixes
    assert "Ann is [S1], Ben is [S2]" in choice.message
    undone = NANO.check(choice.repaired, 400)
    assert undone.reading is None and "format_read" not in {one.code for one in undone.findings}


@pytest.mark.parametrize(
    ("script", "label"),
    [
        ("Ann: Hi there.\nBen: 12 times.", "Make Ann [S1] and Ben [S2]"),
        ('[{"speaker": "Ann", "text": "Hi."}, {"speaker": "Ben", "text": "Ho."}]', "Make Ann [S1]"),
        ("INT. ROOM - DAY\n\nANN\nHello.\n\nBEN\n(softly)\nYes.", "Make ANN [S1] and BEN [S2]"),
        ("1\n00:00:01,000 --> 00:00:02,000\nHello there.\n", "Keep only the words"),
    ],
)
def test_what_is_read_can_be_written_into_the_script(script, label):
    report = NANO.check(script, 400)
    (choice,) = [one for one in report.findings if one.code == "format_turns"]
    assert choice.repair_label.startswith(label) and choice not in report.fixes
    written = NANO.check(choice.repaired, 400)
    assert not {one.code for one in written.findings} & set(CHOICES)
    assert NANO.reading(choice.repaired).text == NANO.reading(script).text
    assert choice.repaired.startswith("[S1] H")


def test_data_of_a_program_is_read():
    python = "lines = [\n    ('Ann', 'Hi there.'),\n    ('Ben', \"It's me.\"),\n]"
    script = 'const lines = [{speaker: "Ann", text: "Hi there."}, {speaker: "Ben", text: "Ho."}];'
    assert write_turns(python) == "[S1] Hi there.\n[S2] It's me."
    assert write_turns(script) == "[S1] Hi there. [S2] Ho."


@pytest.mark.parametrize("script", ["@Ann Hi there.", "- Hi there!\n- Ho!", "@Ann Hi.\n@Ben Ho."])
def test_what_may_be_a_dialogue_is_asked(script):
    found = recognise(script)
    assert found is not None and not found.is_sure
    assert found.script.startswith("[S1] Hi")

"""Findings of a script: what is wrong, where, and the repair that is offered."""

import pytest

from dia_demo.text.checks.script_check import check_script
from dia_demo.text.script import NONVERBALS
from tests.helpers.scripts import GOOD, codes_of, finding_of


def test_a_good_script_has_no_finding():
    assert check_script(GOOD).findings == ()


@pytest.mark.parametrize(
    ("script", "code", "repaired"),
    [
        ("Hello.", "no_first_tag", "[S1] Hello."),
        ("Hello. [S1] Hi.", "no_first_tag", "[S2] Hello. [S1] Hi."),
        ("[S1] Hi. [S1] There.", "same_speaker", "[S1] Hi. There."),
        ("[S1] Hi.[S1]There.", "same_speaker", "[S1] Hi. There."),
        ("[S1] Hi. [s2] Ho. [s2] Hu.", "unknown_tag", "[S1] Hi. [S2] Ho. [S2] Hu."),
        ("[s1] Hi. [s1] Ho.", "names", "[S1] Hi. Ho."),
        ("(S2) Hi.", "names", "[S2] Hi."),
        ("Speaker 1: Hi.", "names", "[S1] Hi."),
        ("[S1] Ha [laughs].", "unknown_tag", "[S1] Ha (laughs)."),
        ("[S1] Ha (laugh) ha (laugh).", "unknown_sound", "[S1] Ha (laughs) ha (laughs)."),
        ("[S1] (Clears throat) So.", "unknown_sound", "[S1] (clears throat) So."),
        ("[S1] Hi. [S2] Ho.", "no_last_tag", "[S1] Hi. [S2] Ho. [S1]"),
        ("[S2] Hi. [S1] Ho. [S2]", "starts_with_s2", "[S1] Hi. [S2] Ho. [S1]"),
        ("[S1] Hi 😀 there.", "emoji", "[S1] Hi  there."),
        ("[S1] Hi\x00.", "unreadable", "[S1] Hi."),
    ],
)
def test_a_finding_offers_the_expected_repair(script, code, repaired):
    assert finding_of(script, code).repaired == repaired


@pytest.mark.parametrize(
    ("script", "code"),
    [("[S1] Hi. [S3] Ho.", "unknown_tag"), ("[S1] Hi (rumpelstiltskin).", "unknown_sound")],
)
def test_no_repair_where_none_is_safe(script, code):
    assert finding_of(script, code).repaired is None


def test_ordinary_scripts_are_not_reported():
    for sound in NONVERBALS:
        assert "unknown_sound" not in codes_of(f"[S1] Well ({sound}) well.")
    assert "not_english" in codes_of("[S1] Это я.")
    assert "not_english" not in codes_of("[S1] A café in Łódź, “naïve” – of course…")


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("[S1] Café naïve. Très bien, merci beaucoup. [S2]", 1),
        ("[S1] Hello.\n[S2] Guten Tag, ich bin nicht von hier und du?", 2),
        ("[S1] Hola, ¿cómo está usted? Muy bien, gracias.", 1),
        ("[S1] Ciao, sono molto contento di questo.", 1),
        ("[S1] Goed, ik dank je, maar niet voor het eten.", 1),
    ],
)
def test_another_language_is_reported(script, line):
    remark = finding_of(script, "not_english")
    assert (remark.line, remark.level) == (line, "warning")
    assert "Dia speaks English only" in remark.message


@pytest.mark.parametrize(
    "script",
    [
        "[S1] We saw a café in Los Angeles, and the El Niño show in Las Vegas.",
        "[S1] He said merci beaucoup, très chic, and left.",
        "[S1] Que sera, sera, as they say. C'est la vie!",
        "[S1] Die Hard was on, also a war film. Pour me a drink, son.",
        "[S1] La la la, es, y, no.",
    ],
)
def test_english_with_a_foreign_word_is_not_reported(script):
    assert "not_english" not in codes_of(script)


@pytest.mark.parametrize(
    ("script", "code", "message", "label", "repaired"),
    [
        (
            "John: Hi. Mary: Hello.",
            "names",
            "“John:” and “Mary:” would be read aloud",
            "Make John [S1] and Mary [S2]",
            "[S1] Hi. [S2] Hello.",
        ),
        ("[John] Hi.\n[Mary] Ho.", "names", "would be", None, "[S1] Hi.\n[S2] Ho."),
        (
            "Ann: Hi.\nBen: Ho.\nCy: Hu.",
            "names",
            "3 people speak with two voices: [S1] Ann and Cy; [S2] Ben.",
            "Make 3 speakers [S1] and [S2]",
            "[S1] Hi.\n[S2] Ho.\n[S1] Hu.",
        ),
        (
            "Speaker 0: Hi.\nSpeaker 1: Ho.",
            "names",
            "would be read aloud",
            "Make Speaker 0 [S1] and Speaker 1 [S2]",
            "[S1] Hi.\n[S2] Ho.",
        ),
        (
            '[{"speaker": "Ann", "text": "Hi."}, {"speaker": "Ben", "text": "Ho."}]',
            "format",
            "This looks like JSON",
            "Make Ann [S1] and Ben [S2]",
            "[S1] Hi. [S2] Ho.",
        ),
        (
            "Note: bring water.",
            "format_unsure",
            "“Note” is read aloud. If it names a speaker",
            "Make Note [S1]",
            "[S1] bring water.",
        ),
        (
            "[S1] It is $3.50 at 10:45. [S2]",
            "not_in_words",
            "“$3.50” as “three dollars and fifty cents”",
            "Write them out",
            "[S1] It is three dollars and fifty cents at ten forty-five. [S2]",
        ),
        ("[S1] **Hi** you. [S2]", "not_in_words", "“**Hi**” as “Hi”", None, "[S1] Hi you. [S2]"),
        ("[S1] Hi (pause) ho.", "unknown_sound", "Dia has no “(pause)”", None, "[S1] Hi ... ho."),
        (
            "[S1] Hi (giggles).",
            "unknown_sound",
            "not a sound",
            "Write (laughs)",
            "[S1] Hi (laughs).",
        ),
        ("[S1] Hi (smiles).", "unknown_sound", "does not know “(smiles)”", None, None),
    ],
)
def test_findings_of_what_people_write(script, code, message, label, repaired):
    finding = finding_of(script, code)
    assert message in finding.message and finding.repaired == repaired
    assert label is None or finding.repair_label == label


def test_a_script_whose_pauses_are_kept_is_not_told_to_write_dots():
    script = '[S1] Wait (pause 2) [pause:1.5s] <break time="1s"/> for 3 (beat). [S2] Oh. [S1]'
    codes = {"unknown_sound", "unknown_tag", "not_in_words"}
    assert codes_of(script) >= codes
    assert codes_of(script, keeps_pauses=True) & codes == {"unknown_sound", "not_in_words"}
    assert "(beat)" in finding_of(script, "unknown_sound", keeps_pauses=True).message
    words = finding_of(script, "not_in_words", keeps_pauses=True)
    assert words.repaired == script.replace("3", "three").replace("(beat)", "...")
    plain, kept = check_script(script), check_script(script, keeps_pauses=True)
    assert 4.5 < kept.expected_seconds < plain.expected_seconds + 4.5
    endless = finding_of("[S1] Wait (pause 31) here.", "pause", keeps_pauses=True)
    assert endless.level == "error" and "0 to 30 s" in endless.message


def test_sounds_without_a_near_one_are_one_finding():
    findings = check_script("[S1] Hi (smiles) (sobbing) (whispers) (cries).").findings
    (unknown,) = [finding for finding in findings if finding.code == "unknown_sound"]
    assert "“(smiles)”, “(sobbing)”, “(whispers)”, “(cries)”" in unknown.message


def test_errors_come_before_other_findings():
    script = "[S1] Hi.\n[S2] Ho.\n[S2] Hu 😀.\x00"
    report = check_script(script)
    assert finding_of(script, "same_speaker").line == 3
    levels = [finding.level for finding in report.findings]
    assert levels == sorted(levels, key=("error", "warning", "tip").index)

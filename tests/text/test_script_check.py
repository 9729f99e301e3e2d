"""Scripts: bytes are exact, checks find what they say, repairs mend and never harm."""

import gc
import random
import time

import pytest

from dia_demo.errors import InputError
from dia_demo.text.script import (
    MAX_SCRIPT_CHARACTERS,
    NONVERBALS,
    Turn,
    encode_script,
    expected_seconds,
    parse_turns,
)
from dia_demo.text.script_check import check_script, fix_all

GOOD = (
    "[S1] Did you hear that the old bridge opens again on Friday?\n"
    "[S2] I did (laughs), and I will be the first one across.\n"
    "[S1] Then take me with you. [S2]"
)
# Pieces that make every finding appear in some order, near-misses and hostile ones included.
PIECES = (
    "[S1]", "[S2]", "[S1] ", "\n[S2] ", "[s1]", "(S2)", "[Speaker 1]", "\nS1: ", "[S3]", "[John]",
    "[laughs]", "(laugh)", "(laughs)", "(cough)", "(a remark that is no sound)", "(", "]", "[S",
    " Hello there.", " How are you?", "\n", "  ", "ä", "漢字", "😀", "👩\u200d💻", "20", "1]",
    " A rather long sentence without an end to it that goes on", "”", "…", "\x00", "\ud800",
)  # fmt: skip


def codes(script, **options):
    return {finding.code for finding in check_script(script, **options).findings}


def finding(script, code, **options):
    found = [one for one in check_script(script, **options).findings if one.code == code]
    assert found, f"no {code} in {codes(script, **options)}"
    return found[0]


def random_scripts(count):
    rng = random.Random(7)
    for _ in range(count):
        yield "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 25)))


# Bytes


def test_bytes_are_utf8_with_one_byte_a_tag():
    assert encode_script("[S1] Hé\n[S2]  ok ") == b"\x01 H\xc3\xa9\n\x02  ok "
    assert encode_script("[S1] b", "[S2] a") == b"\x02 a\n\x01 b"


def test_what_is_no_tag_stays_as_it_is():
    assert encode_script("[s1] [S3] (S1) [S 1]") == b"[s1] [S3] (S1) [S 1]"


@pytest.mark.parametrize("script", ["", "  \n\t ", "[S1] a\x00b", "[S1] \ud83d half"])
def test_a_script_the_model_cannot_read_is_refused(script):
    with pytest.raises(InputError):
        encode_script(script)
    assert any(one.level == "error" for one in check_script(script).findings)


def test_a_transcript_the_model_cannot_read_is_refused():
    with pytest.raises(InputError):
        encode_script("[S1] fine", "[S1] \x00")
    assert "unreadable_transcript" in codes("[S1] fine", transcript="[S1] \x00")


def test_an_accepted_script_survives_encoding():
    for script in random_scripts(300):
        try:
            raw = encode_script(script)
        except InputError:
            continue
        back = raw.replace(b"\x01", b"[S1]").replace(b"\x02", b"[S2]")
        assert back.decode("utf-8") == script
        assert check_script(script).num_bytes == len(raw)


# Turns and seconds


def test_each_turn_has_its_line_number():
    assert parse_turns("\nfirst\n[S1] one [S2]\ntwo\n[S1]") == (
        Turn(0, "first", 2),
        Turn(1, "one", 3),
        Turn(2, "two", 3),
    )


def test_the_report_counts_every_turn():
    report = check_script(GOOD)
    assert (report.num_speakers, len(report.turns)) == (2, 3)


def test_expected_seconds_depend_on_the_spoken_text():
    assert expected_seconds("[S1] " + "a" * 150) == pytest.approx(10.0)
    assert expected_seconds("[S1]    a\n\n\n") == expected_seconds("[S1] a")
    assert expected_seconds("[S1] aa [S2] bb") > expected_seconds("[S1] aabb")
    assert expected_seconds("[S1] abc", 0.5) == pytest.approx(1.5)
    assert expected_seconds("") == 0


# Findings


def test_a_good_script_has_no_finding():
    assert check_script(GOOD).findings == ()


@pytest.mark.parametrize(
    ("script", "code", "repaired"),
    [
        ("Hello.", "no_first_tag", "[S1] Hello."),
        ("Hello. [S1] Hi.", "no_first_tag", "[S2] Hello. [S1] Hi."),
        ("[S1] Hi. [S1] There.", "same_speaker", "[S1] Hi. There."),
        ("[S1] Hi.[S1]There.", "same_speaker", "[S1] Hi. There."),
        ("[s1] Hi. [s1] Ho.", "unknown_tag", "[S1] Hi. [S1] Ho."),
        ("(S2) Hi.", "unknown_tag", "[S2] Hi."),
        ("Speaker 1: Hi.", "unknown_tag", "[S1] Hi."),
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
    assert finding(script, code).repaired == repaired


@pytest.mark.parametrize(
    ("script", "code"),
    [("[S1] Hi. [S3] Ho.", "unknown_tag"), ("[S1] Hi (rumpelstiltskin).", "unknown_sound")],
)
def test_no_repair_where_none_is_safe(script, code):
    assert finding(script, code).repaired is None


def test_ordinary_scripts_are_not_reported():
    for sound in NONVERBALS:
        assert "unknown_sound" not in codes(f"[S1] Well ({sound}) well.")
    assert "not_english" in codes("[S1] Это я.")
    assert "not_english" not in codes("[S1] A café in Łódź, “naïve” – of course…")


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
    remark = finding(script, "not_english")
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
    assert "not_english" not in codes(script)


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
        ("Al: Hi.\nBo: Ho.\nCy: Hu.", "names", "names 3 speakers, and Dia has two", None, None),
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
    found = finding(script, code)
    assert message in found.message and found.repaired == repaired
    assert label is None or found.repair_label == label


def test_sounds_without_a_near_one_are_one_finding():
    found = check_script("[S1] Hi (smiles) (sobbing) (whispers) (cries).").findings
    (unknown,) = [one for one in found if one.code == "unknown_sound"]
    assert "“(smiles)”, “(sobbing)”, “(whispers)”, “(cries)”" in unknown.message


def test_fix_all_leaves_nothing_to_fix():
    script = "John: I’m 20 (laugh).\nMary: It’s $5, *really*! 😀"
    fixed = fix_all(script, check_script)
    assert fixed == "[S1] I'm twenty (laughs).\n[S2] It's five dollars, really! [S1]"
    assert check_script(fixed).fixes == ()
    for script in random_scripts(25):
        assert check_script(fix_all(script, check_script)).fixes == (), script


def test_a_cut_script_fits_both_limits():
    script = "[S1] " + "This is one of many sentences. " * 40
    over = finding(script, "too_many_bytes", byte_limit=1000, max_seconds=20.0)
    after = check_script(over.repaired, byte_limit=1000, max_seconds=20.0)
    assert after.num_bytes < 1000 and 15 < after.expected_seconds <= 20
    assert finding(over.repaired + script[5:], "over_max_tokens", max_seconds=20).repaired


def test_a_voice_of_unknown_habits_has_no_natural_length():
    assert not {"too_short", "too_long"} & codes("[S1] Hi.", natural_seconds=None)


def test_length_findings_follow_the_expected_seconds():
    assert "too_short" in codes("[S1] Hi.")
    long = "[S1] " + "word " * 70
    assert "too_long" in codes(long)
    over = finding(long, "over_max_tokens", max_seconds=10.0)
    assert over.level == "warning" and "10 s" in over.message
    assert "over_max_tokens" not in codes(long, max_seconds=40.0)


def test_errors_come_before_other_findings():
    script = "[S1] Hi.\n[S2] Ho.\n[S2] Hu 😀.\x00"
    report = check_script(script)
    assert finding(script, "same_speaker").line == 3
    levels = [one.level for one in report.findings]
    assert levels == sorted(levels, key=("error", "warning", "tip").index)


# The byte limit


def test_a_script_over_the_limit_is_cut_at_a_sentence():
    script = "[S1] One sentence. Two sentences. [S2] The third is too long to fit."
    over = finding(script, "too_many_bytes", byte_limit=40)
    kept = encode_script(script)[:40].decode()
    assert over.level == "error"
    assert kept[-7:] + " | rd is too long" in over.message and "too_many_bytes" not in codes(script)
    assert over.repaired == "[S1] One sentence. Two sentences."


def test_the_transcript_counts_towards_the_limit():
    script, transcript = "[S1] Short enough. And more.", "[S2] " + "word " * 4
    assert "too_many_bytes" not in codes(script, byte_limit=40)
    over = finding(script, "too_many_bytes", byte_limit=40, transcript=transcript)
    assert over.repaired == "[S1] Short enough."
    full = finding(script, "too_many_bytes", byte_limit=10, transcript=transcript)
    assert "transcript" in full.message and full.repaired is None


def test_a_cut_never_splits_a_character():
    for limit in range(3, 30):
        over = finding("[S1]ääääääääääääääääääääääää", "too_many_bytes", byte_limit=limit)
        assert len(encode_script(over.repaired)) in (limit, limit - 1)


# The invariant of all repairs


@pytest.mark.slow
def test_a_repair_removes_its_finding_without_adding_errors():
    repairs = set()
    for script in random_scripts(150):
        options = {"byte_limit": 60, "max_seconds": 9.0}
        report = check_script(script, **options)
        errors = {one.code for one in report.findings if one.level == "error"}
        for one in report.findings:
            if one.repaired is None:
                continue
            repairs.add(one.code)
            after = check_script(one.repaired, **options).findings
            assert (one.code, one.message) not in {(x.code, x.message) for x in after}, script
            assert {x.code for x in after if x.level == "error"} <= errors, script
    assert repairs >= {
        "no_first_tag", "same_speaker", "unknown_tag", "unknown_sound", "no_last_tag",
        "starts_with_s2", "emoji", "unreadable", "too_many_bytes",
    }  # fmt: skip


def test_repairs_never_lose_a_word_but_where_they_say_so():
    structural = {"no_first_tag", "same_speaker", "no_last_tag", "starts_with_s2"}
    for script in random_scripts(500):
        for one in check_script(script).findings:
            if one.repaired is not None and one.code in structural:
                words = [turn.text.split() for turn in parse_turns(script)]
                after = [turn.text.split() for turn in parse_turns(one.repaired)]
                assert sum(after, []) == sum(words, []), script


# Long and hostile scripts: linear work up to a bound, and none above it


def seconds_to_check(script):
    """Processor seconds of the fastest of a few checks, without collecting garbage."""
    times = []
    for _ in range(3):
        gc.collect()
        gc.disable()
        start = time.thread_time()
        check_script(script, byte_limit=len(script) // 2)
        times.append(time.thread_time() - start)
        gc.enable()
    return min(times)


@pytest.mark.parametrize(
    "grown, size",
    [
        (lambda size: "[s1" + " " * size + "x", 2_000),
        (lambda size: "[S1]a" * (size // 5), 20_000),
        (lambda size: "a. " * (size // 3), 30_000),
    ],
    ids=["spaces in a tag", "tags", "sentences"],
)
@pytest.mark.slow
def test_four_times_the_script_takes_about_four_times_as_long(grown, size, monkeypatch):
    monkeypatch.setattr("dia_demo.text.script_check.MAX_SCRIPT_CHARACTERS", 10**9)
    assert seconds_to_check(grown(4 * size)) < 10 * seconds_to_check(grown(size))


def test_above_the_bound_nothing_is_looked_at_but_the_length(monkeypatch):
    for name in ("parse_turns", "remarks_on", "normalise"):
        monkeypatch.setattr(f"dia_demo.text.script_check.{name}", None)
    for script, transcript in (("a" * (MAX_SCRIPT_CHARACTERS + 1), ""), ("a", "b" * 20_000)):
        (one,) = check_script(script, transcript=transcript).findings
        assert (one.code, one.level, one.repaired) == ("too_many_characters", "error", None)
        assert f"1 to {MAX_SCRIPT_CHARACTERS:,} are allowed" in one.message


def test_the_longest_script_is_checked_in_full():
    report = check_script("[S1] Words. [S2] More. ".ljust(MAX_SCRIPT_CHARACTERS, "a"))
    assert len(report.turns) == 2 and "too_many_bytes" in {one.code for one in report.findings}

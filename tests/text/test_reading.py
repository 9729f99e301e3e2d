"""A script as it will be read: every kind of thing that people write and nobody says as written."""

from __future__ import annotations

import random
import re

import pytest

from dia_demo.text.normaliser import normalise
from dia_demo.text.script import TAG

# Written, and as it is read, within a turn.
READ_AS = [
    ("It’s “fine”…", 'It\'s "fine"...'),
    ("one—two — three", "one, two, three"),
    ("3–5 apples", "three to five apples"),
    ("a b\u200bc", "a bc"),
    ("$3.50", "three dollars and fifty cents"),
    ("$3", "three dollars"),
    ("$1", "one dollar"),
    ("$1.01", "one dollar and one cent"),
    ("$0.99", "ninety-nine cents"),
    ("$.50", "fifty cents"),
    ("$1,250", "one thousand two hundred and fifty dollars"),
    ("$1,200.50", "one thousand two hundred dollars and fifty cents"),
    ("$3.5 million", "three point five million dollars"),
    ("$2bn", "two billion dollars"),
    ("$40k", "forty thousand dollars"),
    ("$5-$10", "five to ten dollars"),
    ("$5-10", "five to ten dollars"),
    ("a $5 bill", "a five dollar bill"),
    ("US$20", "twenty dollars"),
    ("£5", "five pounds"),
    ("£1.01", "one pound and one penny"),
    ("£0.50", "fifty pence"),
    ("€9.99", "nine euros and ninety-nine cents"),
    ("€20 million", "twenty million euros"),
    ("20 EUR", "twenty euros"),
    ("15 USD", "fifteen dollars"),
    ("¥500", "five hundred yen"),
    ("50¢", "fifty cents"),
    ("10:45", "ten forty-five"),
    ("10:00", "ten o'clock"),
    ("10:05", "ten oh five"),
    ("12:30", "twelve thirty"),
    ("7:05 p.m.", "seven oh five P M."),
    ("7pm", "seven P M"),
    ("7 PM", "seven P M"),
    ("7 a.m.", "seven A M."),
    ("11:59 PM", "eleven fifty-nine P M"),
    ("14:30", "fourteen thirty"),
    ("00:15", "twelve fifteen A M"),
    ("9:00 am", "nine A M"),
    ("We meet at 7 p.m. Then we eat.", "We meet at seven P M. Then we eat."),
    ("3/4/2025", "March fourth, twenty twenty-five"),
    ("12/25/99", "December twenty-fifth, nineteen ninety-nine"),
    ("25/12/2024", "December twenty-fifth, twenty twenty-four"),
    ("2025-03-04", "March fourth, twenty twenty-five"),
    ("4.3.2025", "March fourth, twenty twenty-five"),
    ("March 4, 2025", "March fourth, twenty twenty-five"),
    ("March 4", "March fourth"),
    ("Mar. 4th", "March fourth"),
    ("4 March 2025", "March fourth, twenty twenty-five"),
    ("Dec. 25", "December twenty-fifth"),
    ("the 4th of July", "the fourth of July"),
    ("July 4th, 1776", "July fourth, seventeen seventy-six"),
    ("in May 2020", "in May twenty twenty"),
    ("25%", "twenty-five percent"),
    ("3.5%", "three point five percent"),
    ("5-10%", "five to ten percent"),
    ("100 %", "one hundred percent"),
    ("1st", "first"),
    ("2nd", "second"),
    ("3rd", "third"),
    ("11th", "eleventh"),
    ("21st", "twenty-first"),
    ("103rd", "one hundred and third"),
    ("1,000th", "one thousandth"),
    ("1999", "nineteen ninety-nine"),
    ("in 1905", "in nineteen oh-five"),
    ("in 2000", "in two thousand"),
    ("in 2005", "in two thousand and five"),
    ("in 2025", "in twenty twenty-five"),
    ("1066", "one thousand and sixty-six"),
    ("the 1990s", "the nineteen nineties"),
    ("the '90s", "the nineties"),
    ("the 2010s", "the twenty tens"),
    ("1914-1918", "nineteen fourteen to nineteen eighteen"),
    ("1939-45", "nineteen thirty-nine to forty-five"),
    ("1500 people", "fifteen hundred people"),
    ("2048 bytes", "two thousand and forty-eight bytes"),
    ("555-1234", "five five five, one two three four"),
    ("555-123-4567", "five five five, one two three, four five six seven"),
    ("(555) 123-4567", "five five five, one two three, four five six seven"),
    ("+1 555 123 4567", "plus one, five five five, one two three, four five six seven"),
    ("+44 20 7946 0958", "plus four four, two zero, seven nine four six, zero nine five eight"),
    ("Dr. Smith", "Doctor Smith"),
    ("Mr. and Mrs. Jones", "Mister and Missus Jones"),
    ("Mr Bean", "Mister Bean"),
    ("Ms. Lee", "Miz Lee"),
    ("Prof. Hill", "Professor Hill"),
    ("St. John", "Saint John"),
    ("Baker St.", "Baker Street."),
    ("12 Oak Ave.", "twelve Oak Avenue."),
    ("I live on Main St. It is long.", "I live on Main Street. It is long."),
    ("Mt. Fuji", "Mount Fuji"),
    ("Gen. Lee", "General Lee"),
    ("Sgt. Pepper", "Sergeant Pepper"),
    ("Martin Luther King Jr. spoke", "Martin Luther King Junior spoke"),
    ("e.g., tea", "for example, tea"),
    ("i.e. now", "that is now"),
    ("cats, dogs, etc.", "cats, dogs, et cetera."),
    ("dogs vs. cats", "dogs versus cats"),
    ("dogs vs cats", "dogs versus cats"),
    ("approx. 5", "approximately five"),
    ("No. 5", "number five"),
    ("p. 12", "page twelve"),
    ("pp. 3-5", "pages three to five"),
    ("Fig. 2", "figure two"),
    ("Apple Inc. grew", "Apple Incorporated grew"),
    ("w/ milk", "with milk"),
    ("w/o milk", "without milk"),
    ("NASA", "N A S A"),
    ("FBI", "F B I"),
    ("the U.S.A.", "the U S A."),
    ("the U.S. Army", "the U S Army"),
    ("in the U.S. The end", "in the U S. The end"),
    ("NATO", "NATO"),
    ("BBC", "B B C"),
    ("HTML", "H T M L"),
    ("CEO", "C E O"),
    ("CEOs", "C E O's"),
    ("the FBI's man", "the F B I's man"),
    ("NO WAY", "NO WAY"),
    ("I AM HAPPY", "I AM HAPPY"),
    ("STOP!", "STOP!"),
    ("OK", "okay"),
    ("USA today", "U S A today"),
    ("it is for US", "it is for US"),
    ("J.K. Rowling", "J K Rowling"),
    ("John F. Kennedy", "John F Kennedy"),
    ("a Ph.D. student", "a P H D student"),
    ("MP3", "M P three"),
    ("COVID-19", "COVID nineteen"),
    ("4K", "four K"),
    ("3D", "three D"),
    ("B2B", "B two B"),
    ("iPhone 15", "iPhone fifteen"),
    ("H2O", "H two O"),
    ("A4", "A four"),
    ("5 km", "five kilometers"),
    ("1 km", "one kilometer"),
    ("5km", "five kilometers"),
    ("10 km/h", "ten kilometers per hour"),
    ("60 mph", "sixty miles per hour"),
    ("3 kg", "three kilograms"),
    ("1 lb", "one pound"),
    ("5 lbs.", "five pounds."),
    ("72°F", "seventy-two degrees Fahrenheit"),
    ("20°C", "twenty degrees Celsius"),
    ("45°", "forty-five degrees"),
    ("6'2\"", "six foot two"),
    ("100 m", "one hundred meters"),
    ("1.5 l", "one point five liters"),
    ("16 GB", "sixteen gigabytes"),
    ("2.4 GHz", "two point four gigahertz"),
    ("5 ft. tall", "five feet tall"),
    ("10 min", "ten minutes"),
    ("30 sec", "thirty seconds"),
    ("5 m²", "five square meters"),
    ("1/2", "one half"),
    ("1/4 cup", "one quarter cup"),
    ("3/4", "three quarters"),
    ("2/3", "two thirds"),
    ("1 1/2 cups", "one and a half cups"),
    ("2½", "two and a half"),
    ("¾", "three quarters"),
    ("24/7", "twenty-four seven"),
    ("9/11", "nine eleven"),
    ("50/50", "fifty fifty"),
    ("7/10", "seven out of ten"),
    ("5/8", "five eighths"),
    ("2x", "two times"),
    ("4x4", "four by four"),
    ("1920x1080", "one thousand nine hundred and twenty by one thousand and eighty"),
    ("-5", "minus five"),
    ("-5°C", "minus five degrees Celsius"),
    ("3.14", "three point one four"),
    ("0.5", "zero point five"),
    (".5", "zero point five"),
    ("1,234", "one thousand two hundred and thirty-four"),
    ("1,234,567", "one million two hundred and thirty-four thousand five hundred and sixty-seven"),
    ("007", "zero zero seven"),
    (
        "123456789012345678",
        "one two three four five six seven eight nine zero one two three four five six seven eight",
    ),
    ("v2.0", "version two point zero"),
    ("2.0.1", "two point zero point one"),
    (
        "192.168.0.1",
        "one hundred and ninety-two point one hundred and sixty-eight point zero point one",
    ),
    ("3-5", "three to five"),
    ("3-2", "three to two"),
    ("World War II", "World War two"),
    ("Chapter IV", "Chapter four"),
    ("Henry VIII", "Henry the eighth"),
    ("Louis XIV", "Louis the fourteenth"),
    ("R&D", "R and D"),
    ("salt & pepper", "salt and pepper"),
    ("2+2=4", "two plus two equals four"),
    ("and/or", "and or"),
    ("he/she", "he or she"),
    ("#1", "number one"),
    ("#dia", "hashtag dia"),
    ("@anna", "at anna"),
    ("~20", "about twenty"),
    ("5 > 3", "five is more than three"),
    ("< 5", "less than five"),
    ("bob@example.com", "bob at example dot com"),
    ("https://www.example.com", "example dot com"),
    ("https://example.com/docs?a=1", "example dot com"),
    ("www.example.org", "example dot org"),
    ("example.com", "example dot com"),
    ("**bold**", "bold"),
    ("*very* good", "very good"),
    ("_really_", "really"),
    ("~~old~~ new", "old new"),
    ("`code`", "code"),
    ("# Title", "Title"),
    ("[text](https://x.com)", "text"),
    ("![alt](a.png)", "alt"),
    ("<b>bold</b>", "bold"),
    ('<break time="1s"/>', "..."),
    ("&amp;", "and"),
    ("Tom &amp; Anna", "Tom and Anna"),
    ("*sighs*", "(sighs)"),
    ("<laughs>", "(laughs)"),
    ("*laughing*", "(laughs)"),
    ("Hello 😀 there", "Hello there"),
    ("20", "twenty"),
    ("12 pears", "twelve pears"),
    ("1,000 men", "one thousand men"),
    ("100 years", "one hundred years"),
    ("2 of 3", "two of three"),
    ("Room 101", "Room one hundred and one"),
    ("0", "zero"),
    ("It was 5 p.m. John left.", "It was five P M. John left."),
    ("at 8 a.m. on 1 May", "at eight A M on May first"),
    ("$19.99/month", "nineteen dollars and ninety-nine cents per month"),
    ("a 10-minute break", "a ten-minute break"),
    ("a 5-year-old", "a five-year-old"),
    ("page 3", "page three"),
    ("2:30-3:45", "two thirty to three forty-five"),
    ("9-5 job", "nine to five job"),
    ("No, 5 is fine.", "No, five is fine."),
    ("He said no. 5 men left.", "He said no. five men left."),
    ("They're 6 ft. 2 in. tall", "They're six feet two inches tall"),
    ("the 1980's", "the nineteen eighties"),
    ("A or B", "A or B"),
    ("Vitamin C.", "Vitamin C."),
    ("24 h", "twenty-four hours"),
    ("10%-20%", "ten percent to twenty percent"),
    ("3:2", "three to two"),
    ("1.5x", "one point five times"),
    ("COVID", "COVID"),
    ("OK, fine", "okay, fine"),
    ("$1.5M", "one point five million dollars"),
    ("1/1/2000", "January first, two thousand"),
    ("mid-1990s", "mid-nineteen nineties"),
    ("Nov. 3rd, 2024", "November third, twenty twenty-four"),
    ("I'm 20.", "I'm twenty."),
    ("100k", "one hundred thousand"),
    ("5K run", "five K run"),
    ("p.s.", "P S."),
    ("50 °F", "fifty degrees Fahrenheit"),
    ("½ cup", "one half cup"),
    ("Wi-Fi", "Wi-Fi"),
    ("T-shirt", "T-shirt"),
    ("x = 5", "x equals five"),
    ("F1", "F one"),
    ("Boeing 747", "Boeing seven hundred and forty-seven"),
    ("Highway 66", "Highway sixty-six"),
    ("zip 02139", "zip zero two one three nine"),
    ("5'10\"", "five foot ten"),
    ("#MeToo", "hashtag MeToo"),
    ("HELLO WORLD", "HELLO WORLD"),
    ("I love the USA", "I love the U S A"),
    ("Dr Who", "Doctor Who"),
    ("St Andrews", "St Andrews"),
    ("a.k.a. Bob", "also known as Bob"),
    ("10am-5pm", "ten A M to five P M"),
]

# Whole scripts: who speaks, markup over several lines, what stays as it is.
SCRIPTS = [
    (
        "John: I’m sure you’ll like it — it’s $3.50. Mary: Don’t be late!",
        "[S1] I'm sure you'll like it, it's three dollars and fifty cents. [S2] Don't be late!",
    ),
    ("John: Hello.\nMary: Hi.\nJohn: Bye.", "[S1] Hello.\n[S2] Hi.\n[S1] Bye."),
    ("**John:** Hello.\n**Mary**: Hi.", "[S1] Hello.\n[S2] Hi."),
    ("[John] Hello. [Mary] Hi there.", "[S1] Hello. [S2] Hi there."),
    ("(John) Hello.\n(Mary) Hi there.", "[S1] Hello.\n[S2] Hi there."),
    ("Speaker 1: Hi. Speaker 2: Yo.", "[S1] Hi. [S2] Yo."),
    ("s1: Hi.\nS2: Yo.", "[S1] Hi.\n[S2] Yo."),
    ("[s1] Hi. [Speaker 2] Yo.", "[S1] Hi. [S2] Yo."),
    ("Q: How old? A: 25.", "[S1] How old? [S2] twenty-five."),
    ("Mary Ann: Hi.\nDr. Smith: Hello.", "[S1] Hi.\n[S2] Hello."),
    ("Hello there.", "[S1] Hello there."),
    ("Hello. [S2] Hi.", "[S1] Hello. [S2] Hi."),
    ("Hi. [S1] Hello.", "[S2] Hi. [S1] Hello."),
    # No names: a remark, three people, words before the first name.
    ("Note: bring water.", "[S1] Note: bring water."),
    ("A: One. B: Two. C: Three.", "[S1] A: One. B: Two. C: Three."),
    ("He said this. John: no.", "[S1] He said this. John: no."),
    ("[S1] My plan: rest. [S2] Mary: who?", "[S1] My plan: rest. [S2] Mary: who?"),
    ("# Scene\n\n- [S1] Hello.\n> [S2] Hi.", "[S2] Scene\n\n[S1] Hello.\n[S2] Hi."),
    ("---\n[S1] Hello.\n***\n[S2] Hi.", "[S1] Hello.\n[S2] Hi."),
    *(
        (script, script)
        for script in (
            "[S1] Hello (laughs). [S2] (clears throat) Hi. [S1]",
            "[S1] Well... [S2] I'm fine, thanks; and you? [S1]",
            "",
        )
    ),
    ("   ", "   "),
]
PIECES = [
    *("[S1]", "[S2]", " ", " ", " ", "\n", *".,!?'\"()-_#*&@%x+=~|`/é½", "–", "—", "…", "’", "“"),
    *("$3.50", "£", "10:45", "7pm", "p.m.", "3/4", "2025", "1999", "25%", "1st", "'90s", "5", "km"),
    *("Dr.", "St.", "No.", "U.S.A.", "NASA", "etc.", "John:", "Mary:", "[John]", "S1:", "v2.0"),
    *("and", "Hello", "I", "A", "K", "007", "1,000", ".5", "COVID-19", "<b>", "</b>", "<laughs>"),
    *("(laughs)", "😀", "a@b.com", "https://x.io/a", "°C", "\u200b", "\u00a0", "&amp;"),
]


@pytest.mark.parametrize("written, read", READ_AS)
def test_what_is_written_is_read_in_words(written, read):
    assert normalise(f"[S1] {written}").text == f"[S1] {read}"


@pytest.mark.parametrize("written, read", SCRIPTS)
def test_scripts_are_read_by_their_speakers(written, read):
    assert normalise(written).text == read


@pytest.mark.parametrize(
    "written, read",
    [
        ("The FBI at 7pm.", "[S1] The eff bee eye at seven pee em."),
        ("Vitamin C, plan B", "[S1] Vitamin see, plan bee"),
        ("A cat and I", "[S1] A cat and I"),
        ("Café naïve", "[S1] Cafe naive"),
    ],
)
def test_a_voice_without_letters_gets_their_names(written, read):
    assert normalise(written, letter_names=True).text == read


@pytest.mark.parametrize("letter_names", [False, True])
def test_readings_of_anything(letter_names):
    """Nothing is left to read in words, reading again changes nothing, changes tell all."""
    draw = random.Random(3)
    for _ in range(1500):
        script = "".join(draw.choices(PIECES, k=draw.randint(1, 12)))
        reading = normalise(script, letter_names)
        assert not re.search(r"\d|[–—…’“\u200b\u00a0]", TAG.sub("", reading.text)), script
        assert normalise(reading.text, letter_names).text == reading.text, script
        assert applied(script, reading.changes) == reading.text, script


def applied(script, changes):
    """The script with the changes made to it."""
    parts, done = [], 0
    for change in changes:
        assert change.start >= done and script[change.start : change.end] == change.written
        parts += [script[done : change.start], change.read]
        done = change.end
    return "".join([*parts, script[done:]])


def test_changes_name_the_words_that_changed():
    changes = normalise("[S1] It costs $5, at 7pm. [S2] Fine.").changes
    assert [(change.written, change.read) for change in changes] == [
        ("$5", "five dollars"),
        ("7pm", "seven P M"),
    ]


def test_a_script_in_plain_words_has_no_changes():
    script = "[S1] The river was quiet this morning. (laughs)\n[S2] Then let us go, shall we?"
    assert normalise(script, letter_names=True).changes == ()


def test_parts_mark_the_words_that_changed():
    reading = normalise("[S1] I’m here, it’s $5.")
    assert reading.parts() == [
        ("[S1] ", False),
        ("I'm", True),
        (" here, ", False),
        ("it's", True),
        (" ", False),
        ("five dollars.", True),
    ]

"""Which words before a colon, in brackets or on a line of their own name a speaker."""

from __future__ import annotations

import re
from enum import IntEnum

from dia_demo.text.formats.parts.given_names import GIVEN_NAMES


class Likeness(IntEnum):
    """How much a label looks like a speaker's. NOTE: the label of a remark, a list or a form."""

    NEVER = 0
    NOTE = 1
    MAYBE = 2
    SPEAKER = 3


_LETTER = r"[^\W\d_]"
_WORD = rf"(?:[A-Z]{_LETTER}{{0,3}}\.|[\w'’&#-]{{1,24}})"
# "John", "Mary Ann", "Dr. Smith", "SPEAKER_00", "ann"; `likeness` decides which of them are names.
NAME = rf"(?:(?={_LETTER}){_WORD}(?:[ \t]{{1,2}}{_WORD}){{0,3}})"

_NUMBERED = re.compile(
    r"(?:(?:unknown[ _])?(?:speakers?|spkr?|person|people|voice|actor|character|host|guest|panelist"
    r"|participant|interviewer|interviewee|user|caller|man|woman|boy|girl|male|female|player|student"
    r"|customer|friend|kid|bot|robot|human)"
    r"(?:[ \t_#.-]{0,3}(?P<number>\d{1,3})"
    r"|[ \t_#.-]{1,3}(?P<word>[a-h]|one|two|three|four|five|six))"
    r"|[sp][ \t_#.-]{0,3}(?P<short>\d{1,3}))",
    re.IGNORECASE,
)
_COUNTED = ("one", "two", "three", "four", "five", "six")
_TITLES = frozenset("dr doctor mr mrs ms miss mister prof professor sir lady lord captain".split())
_ROLES = frozenset(
    """
    narrator host cohost co-host guest interviewer interviewee speaker announcer presenter
    moderator teacher student doctor patient customer client agent caller operator user
    assistant chatbot bot bartender waiter waitress barista man woman boy girl mom mum mommy
    mummy dad daddy mother father son daughter brother sister grandma grandpa grandmother
    grandfather husband wife friend boss manager chef coach captain officer policeman detective
    reporter anchor judge witness lawyer nurse child kid baby king queen prince princess knight
    wizard witch robot alien stranger shopkeeper cashier clerk receptionist driver passenger
    pilot librarian gardener tourist guide expert therapist salesman hero villain everyone both
    all together male female computer voiceover
    """.split()
)
# Two labels that are speakers together and not alone.
_PAIRS = ({"q", "a"}, {"a", "b"}, {"x", "y"}, {"m", "f"}, {"m", "w"}, {"i", "r"}, {"h", "g"})
_PAIRED_WORDS = ({"question", "answer"}, {"me", "you"}, {"him", "her"}, {"he", "she"})
_NOTES = frozenset(
    """
    fig tab eq vol ch pt sec
    opening closing contra
    note notes nb warning warnings caution danger remember reminder important tip tips hint
    hints example examples summary title titles subject topic topics theme date dates day time
    times place location where when who what why how which scene scenes setting characters
    character cast act chapter chapters part parts section sections step steps stage phase level
    round unit lesson episode season series volume issue page figure table appendix exhibit item
    items option options choice rule rules point points fact facts myth reason reasons problem
    problems solution solutions cause causes effect effects goal goals aim purpose plan plans
    idea ideas task tasks todo done update updates edit source sources reference references
    question questions answer answers conclusion introduction intro outro overview background
    abstract result results outcome outcomes however first second third fourth fifth sixth last
    finally next then also but and so yes no ok okay well now the this that these those here
    there today tomorrow yesterday tonight monday tuesday wednesday thursday friday saturday
    sunday january february march april may june july august september october november december
    spring summer autumn winter morning afternoon evening night noon breakfast lunch dinner
    supper dessert snack drinks brunch starter main ingredients method directions instructions
    equipment serves yield preparation recipe pros cons pro con advantages advantage
    disadvantages disadvantage benefits benefit drawbacks drawback likenesses weaknesses
    opportunities threats positive negative before after input inputs output outputs left right
    north south east west name names age address phone email tel fax city country state street
    job role occupation education experience skills skill interests hobbies hobby weight height
    size length width color colour price cost costs total subtotal tax amount quantity number
    numbers count score status type kind category categories tags keywords format language
    version author editor publisher director producer writer photo image images caption credit
    credits copyright license file files folder path code error errors info debug log default
    details detail description definition meaning synonym synonyms antonym pronunciation usage
    moral quote quotation proverb joke riddle punchline p.s ps disclaimer announcement notice
    breaking news weather traffic sports business politics technology science health
    entertainment to from cc bcc re fwd attachment attachments sent received attention urgent
    memo agenda minutes action actions decision decisions deadline due budget team members
    attendees present absent transcript transcription audio music sound sfx fx video dialogue
    dialog conversation script podcast tone mood genre duration word words text message messages
    content contents heading headline slide slides bonus extra spoiler trigger deal offer sale
    open closed hours available allergy dosage dose side symptoms treatment diagnosis prognosis
    pass fail true false if else because unless until while suppose imagine consider think look
    listen see read write repeat verdict opinion advice suggestion suggestions recommendation
    recommendations observe observation hypothesis evidence proof theorem lemma corollary given
    find therefore hence thus one two three four five six seven eight nine ten it he she we they
    you i me my your his her our their its translation original english german french spanish
    paris london tokyo berlin rome
    """.split()
)
_NEVER = frozenset(
    "dear hi hello hey http https ftp mailto www hello, greetings thanks sincerely regards".split()
)
_SMALL = frozenset("of the de la le van von der den da di du and & y bin ibn al el".split())
_QUALIFIER = re.compile(r"(?<![\s,])[\s,]*[(\[][^()\[\]]{0,40}[)\]]\s*$")


def key_of(name: str) -> str:
    """What is equal for two spellings of one name."""
    return " ".join(re.split(r"[\s_]+", name.casefold().strip(" \t.:_*~`#-"))).replace(".", "")


def number_of(name: str) -> int | None:
    """The number of a numbered speaker: 1 of "Speaker 1", "S1" and "Speaker A"."""
    match = _NUMBERED.fullmatch(name.strip())
    if match is None:
        return None
    if number := match["number"] or match["short"]:
        return int(number)
    word = match["word"].lower()
    return _COUNTED.index(word) + 1 if word in _COUNTED else ord(word) - ord("a") + 1


def likeness(name: str) -> Likeness:
    """How much a label, alone, looks like a speaker's."""
    key = key_of(name)
    words = key.split()
    if not words or words[0] in _NEVER or len(words) > 4:
        return Likeness.NEVER
    if number_of(name) is not None or key in ("unknown speaker", "unknown"):
        return Likeness.SPEAKER
    written = re.split(r"[\s_]+", name.strip())
    is_title = all(word[:1].isupper() or word[:1].isdigit() or word in _SMALL for word in written)
    if words[0] in _NOTES or words[-1] in _NOTES:
        return Likeness.NOTE if is_title or len(words) == 1 else Likeness.NEVER
    if not is_title:
        # One word in lower case may be a name where others are.
        if len(words) == 1 and (words[0] in GIVEN_NAMES or words[0] in _ROLES):
            return Likeness.SPEAKER
        return Likeness.MAYBE if len(words) == 1 and len(key) <= 15 else Likeness.NEVER
    known = words[0] in GIVEN_NAMES or words[0] in _TITLES
    if known or key in _ROLES or words[-1] in _ROLES or words[0] in _ROLES:
        return Likeness.SPEAKER
    return Likeness.MAYBE


def likenesses(names: list[str]) -> dict[str, Likeness]:
    """The likeness of each name by its key, some of which are speakers only together."""
    found = {key_of(name): likeness(name) for name in names}
    together = set(found)
    if together in _PAIRS or together in _PAIRED_WORDS:
        return dict.fromkeys(found, Likeness.SPEAKER)
    return found


def tags_of(names: list[str]) -> dict[str, int]:
    """The voice, 1 or 2, of each speaker by the key of its name. names: of each line, in order.

    Speakers who are numbered 1 and 2, or 0 and 1, keep their numbers. A third speaker gets a voice
    that differs from that of the one who spoke before.
    """
    order = list(dict.fromkeys(key_of(name) for name in names))
    numbers = {key_of(name): number_of(name) for name in names}
    given = {number for number in numbers.values() if number is not None}
    if None not in numbers.values() and len(given) == len(order):
        if given <= {1, 2}:
            return {key: numbers[key] or 1 for key in order}
        if given == {0, 1}:
            return {key: (numbers[key] or 0) + 1 for key in order}
    tags: dict[str, int] = {}
    before: str | None = None
    for name in names:
        key = key_of(name)
        if key not in tags:
            tags[key] = len(tags) + 1 if len(tags) < 2 else 3 - tags[before or key]
        before = key
    return tags


def without_qualifier(name: str) -> str:
    """A screenplay's name without "(V.O.)" or "(CONT'D)"."""
    return _QUALIFIER.sub("", name).strip()

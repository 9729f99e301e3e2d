"""A small grammar of everyday English: functions draw from `random.Random` and return text."""

from __future__ import annotations

from random import Random

from training.voice.corpus.words import (
    ADJECTIVES,
    ADVERBS,
    ANYONE,
    DETERMINERS,
    HOW_MUCH,
    MASS,
    NAMES,
    NUMBERS,
    OPENERS,
    PEOPLE,
    PLURALS,
    PREPOSITIONS,
    PRONOUNS,
    REPLIES,
    THINGS,
    TIMES,
    VERBS_ALONE,
    VERBS_WITH_OBJECT,
)

WHY = ("did", "didn't", "can't")
THINK = "think|know|hope|believe|said|thought"
LETS = ("let us", "let's", "we should", "you can", "I have to")


def choose(r: Random, choices: str) -> str:
    """One of `choices`, which "|" separates."""
    return r.choice(choices.split("|"))


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _article(phrase: str) -> str:
    return ("an " if phrase[0] in "aeio" else "a ") + phrase


def _noun(r: Random) -> str:
    return r.choice(THINGS) if r.random() < 0.75 else r.choice(PEOPLE)


def noun_phrase(r: Random) -> str:
    k = r.random()
    if k < 0.72:
        noun = _noun(r) if k < 0.42 else f"{r.choice(ADJECTIVES)} {_noun(r)}"
        determiner = r.choice(DETERMINERS)
        return _article(noun) if determiner == "a" else f"{determiner} {noun}"
    if k < 0.82:
        return f"{r.choice(NUMBERS)} {r.choice(PLURALS)}"
    if k < 0.90:
        return f"{choose(r, 'the|some|my|those|these')} {r.choice(PLURALS)}"
    if k < 0.97:
        return f"{choose(r, 'some|more|the|no|enough|a lot of')} {r.choice(MASS)}"
    return r.choice(
        ["it", "them", "him", "her", "us", "me", "this", "that", "something", "nothing"]
    )


def subject(r: Random) -> str:
    k = r.random()
    if k < 0.45:
        return r.choice(PRONOUNS)
    if k < 0.62:
        return r.choice(NAMES)
    if k < 0.68:
        return r.choice(ANYONE)
    return f"{choose(r, 'the|my|your|our|her')} {r.choice(PEOPLE)}"


def place(r: Random) -> str:
    return f"{r.choice(PREPOSITIONS)} {choose(r, 'the|the|my|our|a|this')} {r.choice(THINGS)}"


def quality(r: Random) -> str:
    return f"{r.choice(HOW_MUCH)} {r.choice(ADJECTIVES)}"


def described_noun(r: Random) -> str:
    return _article(f"{r.choice(ADJECTIVES)} {_noun(r)}")


def thing(r: Random) -> str:
    adjective = r.choice(ADJECTIVES) + " " if r.random() < 0.4 else ""
    return f"{choose(r, 'the|my|your|this|that|his|her')} {adjective}{_noun(r)}"


def statement(r: Random) -> str:
    v, i = r.choice(VERBS_WITH_OBJECT), r.choice(VERBS_ALONE)
    return r.choice(
        [
            lambda: f"{subject(r)} {v[1]} {noun_phrase(r)}",
            lambda: f"{subject(r)} {v[1]} {noun_phrase(r)} {r.choice(TIMES)}",
            lambda: f"{subject(r)} {v[1]} {noun_phrase(r)} {place(r)}",
            lambda: f"{subject(r)} {i[1]} {place(r)}",
            lambda: f"{subject(r)} {i[1]} {r.choice(ADVERBS)} {r.choice(TIMES)}",
            lambda: f"{subject(r)} {v[1]} {noun_phrase(r)} and {i[1]} {place(r)}",
            lambda: f"{thing(r)} {choose(r, 'is|was|looks|will be')} {quality(r)}",
            lambda: f"{thing(r)} was {place(r)}",
            lambda: f"there {choose(r, 'is|was')} {described_noun(r)} {place(r)}",
            lambda: f"there are {r.choice(NUMBERS)} {r.choice(PLURALS)} {place(r)}",
            lambda: f"{r.choice(NAMES)} and {r.choice(NAMES)} {modal(r)} {i[0]} {r.choice(TIMES)}",
            lambda: f"{choose(r, 'I|you|we|they')} {modal(r)} {v[0]} {noun_phrase(r)}",
            lambda: f"{form_of_be(r)} {quality(r)} {r.choice(TIMES)}",
            lambda: f"I {choose(r, THINK)} {thing(r)} is {r.choice(ADJECTIVES)}",
            lambda: (
                f"the {r.choice(THINGS)} of the {_noun(r)} "
                f"{choose(r, 'is|was')} {r.choice(ADJECTIVES)}"
            ),
            lambda: f"{r.choice(PLURALS)} and {r.choice(PLURALS)} are {r.choice(ADJECTIVES)}",
        ]
    )()


def modal(r: Random) -> str:
    return r.choice(
        [
            "want to",
            "have to",
            "like to",
            "will",
            "can",
            "should",
            "must",
            "did not",
            "do not",
            "don't",
            "didn't",
            "can't",
            "won't",
            "would",
            "could",
            "may",
            "might",
            "never",
            "always",
            "would like to",
            "are going to",
            "used to",
            "need to",
            "shouldn't",
            "couldn't",
            "had to",
            "wanted to",
        ]
    )


def form_of_be(r: Random) -> str:
    return r.choice(
        [
            "I am",
            "I'm",
            "we are",
            "we're",
            "they are",
            "they're",
            "you are",
            "you're",
            "she is",
            "she's",
            "he is",
            "he's",
            "it is",
            "it's",
            "that's",
            "it was",
            "I was",
            "they were",
            "he isn't",
            "it wasn't",
            "we weren't",
            "you aren't",
        ]
    )


def question(r: Random) -> str:
    v, i = r.choice(VERBS_WITH_OBJECT), r.choice(VERBS_ALONE)
    who = r.choice(["you", "they", "we", "he", "she", r.choice(NAMES), "your " + r.choice(PEOPLE)])
    return (
        r.choice(
            [
                lambda: f"do you {v[0]} {noun_phrase(r)}",
                lambda: f"did {who} {v[0]} {noun_phrase(r)}",
                lambda: f"where {choose(r, 'is|was')} {thing(r)}",
                lambda: f"who {v[1]} {noun_phrase(r)}",
                lambda: f"what did {who} {v[0]} {r.choice(TIMES)}",
                lambda: f"when {choose(r, 'did|will|can|should')} {who} {v[0]} {noun_phrase(r)}",
                lambda: (
                    f"can you {v[0]} {noun_phrase(r)} "
                    f"{choose(r, 'for me|with me|please|now|again')}"
                ),
                lambda: f"why {r.choice(WHY)} {who} {i[0]} {place(r)}",
                lambda: f"how {choose(r, 'much|many|old|far|long|big|good')} is {thing(r)}",
                lambda: f"would you like {r.choice([f'to {v[0]} ', ''])}{noun_phrase(r)}",
                lambda: f"have you ever seen {noun_phrase(r)}",
                lambda: f"is {thing(r)} {r.choice(ADJECTIVES)}",
                lambda: f"are you {r.choice(ADJECTIVES)} {r.choice(TIMES)}",
                lambda: (
                    f"which {_noun(r)} {choose(r, 'is|was')} "
                    f"{choose(r, 'yours|mine|better|the best|hers')}"
                ),
                lambda: f"what is the name of {thing(r)}",
            ]
        )()
        + "?"
    )


def wish(r: Random) -> str:
    v, i = r.choice(VERBS_WITH_OBJECT), r.choice(VERBS_ALONE)
    return r.choice(
        [
            lambda: f"please {v[0]} {noun_phrase(r)}",
            lambda: f"{v[0]} {noun_phrase(r)} {r.choice(TIMES)}",
            lambda: f"don't {v[0]} {noun_phrase(r)}",
            lambda: f"if you {v[0]} {noun_phrase(r)}, I will {i[0]}",
            lambda: f"when {subject(r)} {i[1]}, {subject(r)} {v[1]} {noun_phrase(r)}",
            lambda: f"{r.choice(LETS)} {v[0]} {noun_phrase(r)}",
            lambda: f"{r.choice(OPENERS)}, {statement(r)}",
            lambda: f"{statement(r)}, {choose(r, 'but|and|so|because|or')} {subject(r)} {i[1]}",
            lambda: (
                f"{choose(r, 'because|after|before|while|although')} {statement(r)}, {statement(r)}"
            ),
            lambda: (
                f"first {r.choice(PLURALS)}, then {r.choice(PLURALS)}, and then {r.choice(PLURALS)}"
            ),
        ]
    )()


def sentence(r: Random) -> str:
    """One sentence with capital and end mark."""
    k = r.random()
    if k < 0.2:
        return capital(question(r))
    text = statement(r) if k < 0.72 else wish(r)
    return capital(text) + r.choice("........!")


def reply(r: Random) -> str:
    """A short turn: one to four words."""
    text = r.choice(REPLIES) if r.random() < 0.7 else r.choice(OPENERS)
    if r.random() < 0.25:
        text = f"{r.choice(OPENERS)}, {text}"
    if r.random() < 0.12:
        text = f"{text}, {r.choice(NAMES)}"
    return capital(text) + r.choice("...?!")

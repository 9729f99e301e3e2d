"""Whether a script is English, judged by the short words that every sentence has."""

from __future__ import annotations

import re

from dia_demo.text.script import parse_turns

# Common words of German, French, Spanish, Italian, Portuguese and Dutch that are neither English
# words nor parts of well-known names.
_FOREIGN = frozenset(
    "und ist nicht das ich wir sie ein eine einen für mit auf auch wie aber sind haben wird bitte "
    "danke guten heute sehr ja nein kann mein dein wenn dann oder noch nur schon "
    "les une est et vous nous je tu elle pas très bien merci beaucoup bonjour avec dans mais oui "
    "qui que ce c'est j'ai n'est aujourd'hui ça où être suis fait leur "
    "es y por para muy gracias hola está qué usted nosotros pero buenos días sí señor también "
    "porque cuando tengo quiero una "
    "è che sono molto bene grazie ciao questo buongiorno della perché anche "
    "não muito obrigado obrigada bom dia você uma com isso mas eu "
    "het een niet ik jij wij maar goed dank ook voor".split()
)
_ENGLISH = frozenset(
    "the a an and of to in it is you i we he she they that this was for on with as at be have are "
    "not but what so do my your his her yes can will would there if from by or me him them were "
    "had has did said when how who why which then than one all".split()
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_FEWEST = 3


def foreign_line(script: str) -> int | None:
    """The line of the first turn in another language, None if there is none.

    Such a turn has at least three different common words of that language, and fewer of English.
    """
    for turn in parse_turns(script):
        words = {word.lower().replace("’", "'") for word in _WORD.findall(turn.text)}
        foreign = len(words & _FOREIGN)
        if foreign >= _FEWEST and foreign > len(words & _ENGLISH):
            return turn.line
    return None

"""The characters of topic names, and which of an alphabet's characters RE2's named classes hold."""

import string
import unicodedata

TOPIC_CHARACTERS = frozenset(string.ascii_letters + string.digits + "._-")
ESCAPED_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
PERL_CLASSES = {
    "d": frozenset(string.digits),
    "w": frozenset(string.ascii_letters + string.digits + "_"),
    "s": frozenset("\t\n\f\r "),
}
_GRAPH = string.ascii_letters + string.digits + string.punctuation
POSIX_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "ascii": "".join(map(chr, range(128))),
    "blank": "\t ",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": _GRAPH,
    "lower": string.ascii_lowercase,
    "print": _GRAPH + " ",
    "punct": string.punctuation,
    "space": string.whitespace,
    "upper": string.ascii_uppercase,
    "word": string.ascii_letters + string.digits + "_",
    "xdigit": string.hexdigits,
}
CATEGORIES = frozenset(["C", "L", "M", "N", "P", "S", "Z", "Cc", "Cf", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc"])
CATEGORIES |= {"Me", "Mn", "Nd", "Nl", "No", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So"}
CATEGORIES |= {"Zl", "Zp", "Zs"}
SCRIPTS = frozenset(["Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Georgian", "Greek", "Hangul"])
SCRIPTS |= {"Han", "Hebrew", "Hiragana", "Katakana", "Latin", "Thai"}


class RegexError(ValueError):
    """The expression is not one of RE2's, or too large."""


def posix_class(name: str, alphabet: frozenset[str]) -> frozenset[str]:
    characters = POSIX_CLASSES.get(name.removeprefix("^"))
    if characters is None:
        raise RegexError("invalid character class range")
    return alphabet - frozenset(characters) if name.startswith("^") else alphabet & frozenset(characters)


def unicode_class(name: str, alphabet: frozenset[str]) -> frozenset[str]:
    if name == "Any":
        return alphabet
    if name == "Common":
        return frozenset(each for each in alphabet if _script(each) == "Common")
    if name in SCRIPTS:
        return frozenset(each for each in alphabet if _script(each) == name)
    if name not in CATEGORIES:
        raise RegexError("invalid character class range")
    return frozenset(each for each in alphabet if unicodedata.category(each).startswith(name))


def _script(character: str) -> str:
    """By the first word of the character's name: the standard library has no table of scripts."""
    first = unicodedata.name(character, "").partition(" ")[0]
    script = "Han" if first == "CJK" else first.capitalize()
    return script if script in SCRIPTS and unicodedata.category(character).startswith("L") else "Common"

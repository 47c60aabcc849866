"""The characters of topic names, and which of them RE2's named classes hold."""

import string
import unicodedata

TOPIC_CHARACTERS = frozenset(string.ascii_letters + string.digits + "._-")
ESCAPED_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
PERL_CLASSES = {
    "d": frozenset(string.digits),
    "w": frozenset(string.ascii_letters + string.digits + "_"),
    "s": frozenset[str](),
}
POSIX_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "ascii": "".join(sorted(TOPIC_CHARACTERS)),
    "blank": "",
    "cntrl": "",
    "digit": string.digits,
    "graph": "".join(sorted(TOPIC_CHARACTERS)),
    "lower": string.ascii_lowercase,
    "print": "".join(sorted(TOPIC_CHARACTERS)),
    "punct": "._-",
    "space": "",
    "upper": string.ascii_uppercase,
    "word": string.ascii_letters + string.digits + "_",
    "xdigit": string.hexdigits,
}
CATEGORIES = frozenset(["C", "L", "M", "N", "P", "S", "Z", "Cc", "Cf", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc"])
CATEGORIES |= {"Me", "Mn", "Nd", "Nl", "No", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So"}
CATEGORIES |= {"Zl", "Zp", "Zs"}
SCRIPTS_WITHOUT_TOPIC_CHARACTERS = frozenset(["Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Georgian"])
SCRIPTS_WITHOUT_TOPIC_CHARACTERS |= {"Greek", "Han", "Hangul", "Hebrew", "Hiragana", "Katakana", "Thai"}


class RegexError(ValueError):
    """The expression is not one of RE2's, or too large."""


def posix_class(name: str) -> frozenset[str]:
    characters = POSIX_CLASSES.get(name.removeprefix("^"))
    if characters is None:
        raise RegexError("invalid character class range")
    return TOPIC_CHARACTERS - frozenset(characters) if name.startswith("^") else frozenset(characters)


def unicode_class(name: str) -> frozenset[str]:
    if name == "Any":
        return TOPIC_CHARACTERS
    if name == "Latin":
        return frozenset(string.ascii_letters)
    if name == "Common":
        return TOPIC_CHARACTERS - frozenset(string.ascii_letters)
    if name in SCRIPTS_WITHOUT_TOPIC_CHARACTERS:
        return frozenset()
    if name not in CATEGORIES:
        raise RegexError("invalid character class range")
    return frozenset(each for each in TOPIC_CHARACTERS if unicodedata.category(each).startswith(name))

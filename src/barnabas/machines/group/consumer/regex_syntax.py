"""The syntax of RE2 (as Kafka takes it, through RE2/J), parsed into a small tree for `regex.py`.

Understood: literals, `.`, classes with ranges, negation, `[:alpha:]`, `\\d \\w \\s \\pL \\p{Lu}`, groups with and
without names, flags `imsU`, `|`, `* + ?` and `{n,m}` up to 1000, lazy or not, `^ $ \\A \\z \\b \\B`, `\\Q..\\E`, and
`\\x41`, `\\x{41}`.
As in RE2 there are no back references and nothing that looks ahead or behind: those are errors.
"""

import string

from barnabas.machines.group.consumer.regex_characters import (
    ESCAPED_CONTROLS,
    PERL_CLASSES,
    TOPIC_CHARACTERS,
    RegexError,
    posix_class,
    unicode_class,
)
from barnabas.machines.group.consumer.regex_tree import (
    Alternatives,
    Assertion,
    AssertionKind,
    Characters,
    Node,
    Repetition,
    Sequence,
)

MOST_REPETITIONS = 1000
DEEPEST_NESTING = 100
LONGEST_REGEX = 10_000


ESCAPED_ASSERTIONS = {
    "A": AssertionKind.START,
    "z": AssertionKind.END,
    "b": AssertionKind.WORD_BOUNDARY,
    "B": AssertionKind.NO_WORD_BOUNDARY,
}


def parse_regex(regex: str, alphabet: frozenset[str] = TOPIC_CHARACTERS) -> Node:
    if len(regex) > LONGEST_REGEX:
        raise RegexError("expression is too long")
    parser = _Parser(regex, alphabet)
    node = parser.alternatives()
    if parser.position < len(regex):
        raise RegexError("unexpected )")
    return node


class _Parser:
    def __init__(self, regex: str, alphabet: frozenset[str]) -> None:
        self._regex = regex
        self._alphabet = alphabet
        self.position = 0
        self._depth = 0
        self._ignore_case = False

    def alternatives(self) -> Node:
        ignored_case = self._ignore_case
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        self._ignore_case = ignored_case  # flags set inside a group end with it
        return parts[0] if len(parts) == 1 else Alternatives(tuple(parts))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self.position < len(self._regex) and self._regex[self.position] not in "|)":
            if self._take("\\Q"):
                end = self._regex.find("\\E", self.position)
                end = len(self._regex) if end < 0 else end
                parts += [self._literal(character) for character in self._regex[self.position : end]]
                self.position = min(end + 2, len(self._regex))
                continue
            atom = self._atom()
            if atom is not None:
                parts.append(self._repetitions(atom))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _atom(self) -> Node | None:
        """None for flags, which are no part of the tree."""
        character = self._next()
        if character == "(":
            return self._group()
        if character == "[":
            return Characters(self._bracket())
        if character == ".":
            return Characters(self._alphabet - {"\n"})
        if character in "^$":
            return Assertion(AssertionKind.START if character == "^" else AssertionKind.END)
        if character in "*+?":
            raise RegexError(f"missing argument to repetition operator: {character}")
        if character != "\\":
            return self._literal(character)
        kind = ESCAPED_ASSERTIONS.get(self._regex[self.position : self.position + 1])
        if kind is not None:
            self.position += 1
            return Assertion(kind)
        found = self._escape()
        return self._literal(found) if isinstance(found, str) else Characters(self._fold(found))

    def _repetitions(self, atom: Node) -> Node:
        bounds = self._repetition()
        if bounds is None:
            return atom
        self._take("?")
        if self._repetition() is not None:
            raise RegexError("invalid nested repetition operator")
        repetition = Repetition(atom, *bounds)
        if _repetitions_in(repetition) > MOST_REPETITIONS:
            raise RegexError("invalid repeat count")
        return repetition

    def _repetition(self) -> tuple[int, int | None] | None:
        for operator, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(operator):
                return bounds
        end = self._regex.find("}", self.position)
        if end < 0 or not self._regex.startswith("{", self.position):
            return None
        least, comma, most = self._regex[self.position + 1 : end].partition(",")
        if not (least.isascii() and least.isdigit()) or (most and not (most.isascii() and most.isdigit())):
            return None  # a brace that means itself
        if max(len(least), len(most)) > 4 or int(least) > MOST_REPETITIONS or int(most or 0) > MOST_REPETITIONS:
            raise RegexError("invalid repeat count")
        if most and int(most) < int(least):
            raise RegexError("invalid repeat count")
        self.position = end + 1
        if not comma:
            return int(least), int(least)
        return int(least), int(most) if most else None

    def _group(self) -> Node | None:
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            raise RegexError("expression nests too deeply")
        ignored_case = self._ignore_case
        if self._take("?P<") or (self._lookahead("?<") and not self._lookahead("?<=", "?<!") and self._take("?<")):
            self._group_name()
        elif self._take("?") and not self._flags():
            self._depth -= 1
            return None
        node = self.alternatives()
        if not self._take(")"):
            raise RegexError("missing closing )")
        self._depth -= 1
        self._ignore_case = ignored_case
        return node

    def _group_name(self) -> None:
        end = self._regex.find(">", self.position)
        name = self._regex[self.position : end] if end >= 0 else ""
        if not name or not name.isascii() or not name.replace("_", "a").isalnum():
            raise RegexError("invalid named capture")
        self.position = end + 1

    def _flags(self) -> bool:
        """Whether a group follows; `(?i)` stands alone and counts until the end of the group around it."""
        value = True
        for _ in range(len(self._regex) - self.position):
            character = self._next()
            if character == ":":
                return True
            if character == ")":
                return False
            if character == "-" and value:
                value = False
            elif character == "i":
                self._ignore_case = value
            elif character not in "msU":
                break
        raise RegexError("invalid or unsupported Perl syntax")

    # Characters

    def _literal(self, character: str) -> Characters:
        return Characters(self._fold(frozenset(character)))

    def _fold(self, characters: frozenset[str]) -> frozenset[str]:
        if self._ignore_case:
            characters = characters | {each.swapcase() for each in characters}
        return characters & self._alphabet

    def _bracket(self) -> frozenset[str]:
        negated = self._take("^")
        found: frozenset[str] = frozenset()
        is_first = True
        while is_first or not self._take("]"):
            is_first = False
            low = self._bracket_item()
            if isinstance(low, frozenset):
                found |= low
                continue
            high: str | frozenset[str] = low
            if self._lookahead("-") and not self._lookahead("-]"):
                self.position += 1
                high = self._bracket_item()
            if isinstance(high, frozenset) or high < low:
                raise RegexError("invalid character class range")
            found |= {each for each in self._alphabet if low <= each <= high}
            if self._ignore_case:
                found |= {each for each in self._alphabet if low <= each.swapcase() <= high}
        return self._alphabet - found if negated else self._fold(found)

    def _bracket_item(self) -> str | frozenset[str]:
        if self.position >= len(self._regex):
            raise RegexError("missing closing ]")
        if self._lookahead("[:"):
            end = self._regex.find(":]", self.position)
            if end >= 0:
                name = self._regex[self.position + 2 : end]
                self.position = end + 2
                return posix_class(name, self._alphabet)
        character = self._next()
        return self._escape() if character == "\\" else character

    def _escape(self) -> str | frozenset[str]:
        if self.position >= len(self._regex):
            raise RegexError("trailing backslash at end of expression")
        character = self._next()
        if character.lower() in PERL_CLASSES:
            found = PERL_CLASSES[character.lower()] & self._alphabet
            return found if character.islower() else self._alphabet - found
        if character in "pP":
            return self._unicode_class(negated=character == "P")
        if character in ESCAPED_CONTROLS:
            return ESCAPED_CONTROLS[character]
        if character == "x":
            return self._hexadecimal()
        if character == "0":
            return self._octal()
        if character.isascii() and (character.isalnum()):
            raise RegexError(f"invalid escape sequence: \\{character}")
        return character

    def _hexadecimal(self) -> str:
        if self._take("{"):
            end = self._regex.find("}", self.position)
            digits = self._regex[self.position : end] if end >= 0 else ""
            self.position = end + 1
        else:
            digits = self._regex[self.position : self.position + 2]
            self.position += 2
            digits = digits if len(digits) == 2 else ""
        if not 0 < len(digits) <= 6 or not all(digit in string.hexdigits for digit in digits):
            raise RegexError("invalid escape sequence: \\x")
        if int(digits, 16) > 0x10FFFF:
            raise RegexError("invalid escape sequence: \\x")
        return chr(int(digits, 16))

    def _octal(self) -> str:
        digits = ""
        while len(digits) < 2 and self._regex[self.position : self.position + 1] in tuple(string.octdigits):
            digits += self._next()
        return chr(int(digits or "0", 8))

    def _unicode_class(self, negated: bool) -> frozenset[str]:
        if self._take("{"):
            end = self._regex.find("}", self.position)
            name = self._regex[self.position : end] if end >= 0 else ""
            self.position = end + 1 if end >= 0 else len(self._regex)
        else:
            name = self._regex[self.position : self.position + 1]
            self.position += len(name)
        if name.startswith("^"):
            negated, name = not negated, name[1:]
        found = unicode_class(name, self._alphabet)
        return self._alphabet - found if negated else found

    # Text

    def _next(self) -> str:
        character = self._regex[self.position]
        self.position += 1
        return character

    def _lookahead(self, *texts: str) -> bool:
        return self._regex.startswith(texts, self.position)

    def _take(self, text: str) -> bool:
        if not self._regex.startswith(text, self.position):
            return False
        self.position += len(text)
        return True


def _repetitions_in(node: Node) -> int:
    """How often the innermost part is repeated, at least or at most as the case may be."""
    if isinstance(node, Repetition):
        return max(node.most or node.least, 1) * _repetitions_in(node.part)
    if isinstance(node, Sequence | Alternatives):
        return max(map(_repetitions_in, node.parts), default=1)
    return 1

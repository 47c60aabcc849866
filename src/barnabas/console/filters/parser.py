"""Text to tree. Every mistake has a position, so that the page can show where it is."""

import re
from typing import NamedTuple

from barnabas.console.filters.nodes import And, Compare, Literal, Node, Not, Or, Text

FIELDS = ("key", "value", "header", "topic", "partition", "offset", "timestamp", "size")
NUMBERS = ("partition", "offset", "timestamp", "size")
OPERATORS = ("==", "!=", "<", "<=", ">", ">=", "contains", "startswith", "endswith", "matches")
MAX_LENGTH = 2000
MAX_DEPTH = 40
MAX_REGEX = 500
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"""
    r"""|(?P<op>==|!=|<=|>=|<|>|=~)|(?P<mark>[().\[\]])|(?P<word>[A-Za-z_$][\w$-]*))"""
)
_CONSTANTS: dict[str, Literal] = {"true": True, "false": False, "null": None}


class FilterError(ValueError):
    """What is wrong with a filter, and where: `position` counts characters from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


def parse_filter(source: str) -> Node | None:
    """None for an empty filter: everything matches."""
    if len(source) > MAX_LENGTH:
        raise FilterError(f"a filter has at most {MAX_LENGTH} characters", MAX_LENGTH)
    tokens = _tokens(source)
    return _Parser(tokens, len(source)).parse() if tokens else None


def _tokens(source: str) -> list[_Token]:
    tokens, position = [], 0
    end = len(source.rstrip())
    while position < end:
        found = _TOKEN.match(source, position)
        if found is None:
            start = position + len(source[position:]) - len(source[position:].lstrip())
            if source[start] in "\"'":
                raise FilterError("this text has no closing quote", start)
            raise FilterError(f"{source[start]!r} has no meaning here", start)
        kind = str(found.lastgroup)
        tokens.append(_Token(kind, found.group(kind), found.start(kind)))
        position = found.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[_Token], length: int) -> None:
        self._tokens = tokens
        self._next = 0
        self._end = length
        self._depth = 0

    def parse(self) -> Node:
        node = self._either()
        if self._next < len(self._tokens):
            token = self._tokens[self._next]
            raise FilterError(f"expected `and` or `or` before {token.text}", token.position)
        return node

    def _either(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FilterError("too many parentheses inside each other", self._position())
        parts = [self._both()]
        while self._take_word("or"):
            parts.append(self._both())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _both(self) -> Node:
        parts = [self._one()]
        while self._take_word("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self) -> Node:
        if self._take_word("not"):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise FilterError("too many `not` in a row", self._position())
            part = self._one()
            self._depth -= 1
            return Not(part)
        token = self._take("something to look for")
        if token.text == "(":
            node = self._either()
            self._expect(")")
            return node
        if token.kind == "text":
            return Text(_unquoted(token))
        if token.kind == "word":
            return self._comparison(token)
        raise FilterError(f"expected a field or a text in quotes, not {token.text}", token.position)

    def _comparison(self, first: _Token) -> Node:
        field = "header" if first.text == "headers" else first.text
        if field not in FIELDS:
            raise FilterError(f"there is no field {first.text}; there are {', '.join(FIELDS)}", first.position)
        path = self._path()
        if path and field not in ("key", "value", "header"):
            raise FilterError(f"{field} has no parts", first.position)
        if field == "header" and len(path) != 1:
            raise FilterError('name one header: header.trace, or header["trace id"]', first.position)
        operator = self._take(f"one of {' '.join(OPERATORS)}")
        name = "matches" if operator.text == "=~" else operator.text
        if name not in OPERATORS:
            raise FilterError(f"expected one of {' '.join(OPERATORS)}, not {operator.text}", operator.position)
        value = self._take("a text in quotes, a number, true, false or null")
        literal = _literal(value)
        _check(field, name, literal, operator, value)
        return Compare(field, path, name, literal)

    def _path(self) -> tuple[str | int, ...]:
        path: list[str | int] = []
        while self._peek() in (".", "["):
            if self._take("").text == ".":
                token = self._take("a name after the dot")
                if token.kind not in ("word", "number") or "." in token.text:
                    raise FilterError("expected a name after the dot", token.position)
                path.append(token.text)
            else:
                token = self._take("a number or a name in quotes")
                if token.kind == "text":
                    path.append(_unquoted(token))
                elif token.kind == "number" and token.text.isdecimal() and len(token.text) < 10:
                    path.append(int(token.text))
                else:
                    raise FilterError("expected a number or a name in quotes", token.position)
                self._expect("]")
        return tuple(path)

    def _peek(self) -> str:
        return self._tokens[self._next].text if self._next < len(self._tokens) else ""

    def _position(self) -> int:
        return self._tokens[self._next].position if self._next < len(self._tokens) else self._end

    def _take(self, expected: str) -> _Token:
        if self._next >= len(self._tokens):
            raise FilterError(f"the filter ends too early: expected {expected}", self._end)
        self._next += 1
        return self._tokens[self._next - 1]

    def _take_word(self, word: str) -> bool:
        token = self._tokens[self._next] if self._next < len(self._tokens) else None
        if token is None or token.kind != "word" or token.text.lower() != word:
            return False
        self._next += 1
        return True

    def _expect(self, mark: str) -> None:
        token = self._take(mark)
        if token.text != mark:
            raise FilterError(f"expected {mark}, not {token.text}", token.position)


def _unquoted(token: _Token) -> str:
    return re.sub(r"\\(.)", r"\1", token.text[1:-1])


def _literal(token: _Token) -> Literal:
    if token.kind == "text":
        return _unquoted(token)
    if token.kind == "number":
        return float(token.text) if set(token.text) & set(".eE") else int(token.text[:18])
    if token.kind == "word" and token.text.lower() in _CONSTANTS:
        return _CONSTANTS[token.text.lower()]
    raise FilterError(f"expected a text in quotes, a number, true, false or null, not {token.text}", token.position)


def _check(field: str, operator: str, literal: Literal, at: _Token, value: _Token) -> None:
    if operator in ("contains", "startswith", "endswith", "matches") and not isinstance(literal, str):
        raise FilterError(f"{operator} wants a text in quotes", value.position)
    if operator in ("<", "<=", ">", ">=") and (isinstance(literal, bool) or literal is None):
        raise FilterError(f"{operator} wants a number or a text", value.position)
    if field in NUMBERS and (operator not in OPERATORS[:6] or isinstance(literal, bool) or literal is None):
        raise FilterError(f"{field} is a number: compare it with == != < <= > >=", at.position)
    if field in ("partition", "offset", "size") and isinstance(literal, str):
        raise FilterError(f"{field} is a number, not a text", value.position)
    if field == "timestamp" and isinstance(literal, str):
        from barnabas.console.filters.rows import milliseconds

        if milliseconds(literal) is None:
            raise FilterError('expected a time such as "2026-01-31T12:00:00Z"', value.position)
    if operator == "matches":
        import pyarrow as pa
        import pyarrow.compute as pc

        if len(str(literal)) > MAX_REGEX:
            raise FilterError(f"a regular expression has at most {MAX_REGEX} characters", value.position)
        try:
            pc.match_substring_regex(pa.array([""]), str(literal))
        except pa.ArrowInvalid as error:
            raise FilterError(str(error), value.position) from None

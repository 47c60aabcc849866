"""A regular expression as a tree: what `regex_syntax.py` reads and `regex.py` makes an automaton of."""

from dataclasses import dataclass
from enum import Enum


class AssertionKind(Enum):
    START = "start"
    END = "end"
    WORD_BOUNDARY = "word boundary"
    NO_WORD_BOUNDARY = "no word boundary"


@dataclass(frozen=True, slots=True)
class Characters:
    characters: frozenset[str]


@dataclass(frozen=True, slots=True)
class Assertion:
    kind: AssertionKind


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Alternatives:
    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repetition:
    part: "Node"
    least: int
    most: int | None


Node = Characters | Assertion | Sequence | Alternatives | Repetition

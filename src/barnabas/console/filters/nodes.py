"""The tree of a filter."""

from dataclasses import dataclass
from typing import TypeAlias

Literal: TypeAlias = "str | float | int | bool | None"


@dataclass(frozen=True, slots=True)
class Text:
    """A text somewhere in key, value or headers."""

    text: str


@dataclass(frozen=True, slots=True)
class Compare:
    """`path` is a field of the record and, inside of JSON, the names and numbers that lead to a value."""

    field: str
    path: tuple[str | int, ...]
    operator: str
    literal: Literal


@dataclass(frozen=True, slots=True)
class And:
    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    part: "Node"


Node: TypeAlias = Text | Compare | And | Or | Not


def cost(node: Node) -> int:
    """Columns are cheap, JSON is not: `and` tries the cheap parts first."""
    if isinstance(node, Compare):
        return 10 if node.path and node.field in ("key", "value") else 2 if node.operator == "matches" else 1
    if isinstance(node, Text):
        return 3
    parts = (node.part,) if isinstance(node, Not) else node.parts
    return sum(map(cost, parts))

"""Regular expressions over topic names, in RE2's syntax, matched in linear time whatever the expression.

Members send them (KIP-848) and the broker runs them on its own loop, so a backtracking engine will not do: here is an
automaton. It is made by Thompson's construction; sets of its states are remembered with where each character leads, so
that the second thousand topics cost one look-up a character. An expression stands for the whole name.

A topic name has 65 different characters. A class of characters is the set of those that it holds (`regex_syntax.py`).
"""

from typing import NamedTuple

from barnabas.machines.group.consumer.regex_characters import PERL_CLASSES, TOPIC_CHARACTERS, RegexError
from barnabas.machines.group.consumer.regex_syntax import parse_regex
from barnabas.machines.group.consumer.regex_tree import (
    Alternatives,
    Assertion,
    AssertionKind,
    Characters,
    Node,
    Repetition,
    Sequence,
)

__all__ = ["CompiledRegex", "RegexError", "compile_regex"]

MOST_NODES = 20_000
"""Once repetitions are written out."""
MOST_REMEMBERED_STEPS = 50_000
MOST_VISITS = 500_000
"""Under a second. An expression needs a few thousand, unless it is made to take long."""
WORD = PERL_CLASSES["w"]


class _Instruction(NamedTuple):
    """One of: a set of characters to take, an assertion to hold, or two ways to go on."""

    characters: frozenset[str] | None = None
    assertion: AssertionKind | None = None
    ways: tuple[int, int] | None = None


def compile_regex(regex: str, alphabet: frozenset[str] = TOPIC_CHARACTERS) -> "CompiledRegex":
    """For names made of the characters in `alphabet`. Raises RegexError."""
    return CompiledRegex(parse_regex(regex, alphabet))


class CompiledRegex:
    __slots__ = ("_nodes", "_program", "_steps", "_visits")

    def __init__(self, node: Node) -> None:
        self._nodes = 0
        self._visits = 0
        self._program: list[_Instruction] = []
        self._emit(node)
        self._steps: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}

    def matches(self, name: str) -> bool:
        """Raises RegexError when all names together have taken too long."""
        states = frozenset((0,))
        before = ""
        for character in name:
            key = (states, before, character)
            after = self._steps.get(key)
            if after is None:
                after = self._step(states, before, character)
                if len(self._steps) >= MOST_REMEMBERED_STEPS:
                    self._steps.clear()
                self._steps[key] = after
            if not after:
                return False
            states = after
            before = "w" if character in WORD else "-"
        return len(self._program) in self._closure(states, before, "")

    def _step(self, states: frozenset[int], before: str, character: str) -> frozenset[int]:
        reached = []
        for state in self._closure(states, before, character):
            if state < len(self._program):
                characters = self._program[state].characters
                if characters is not None and character in characters:
                    reached.append(state + 1)
        return frozenset(reached)

    def _closure(self, states: frozenset[int], before: str, character: str) -> set[int]:
        """Where one may be without taking a character: between `before` ("w" word, "-" other, "" start) and this."""
        todo = list(states)
        seen = set(todo)
        while todo:
            state = todo.pop()
            if state == len(self._program):
                continue
            instruction = self._program[state]
            onward: tuple[int, ...] = instruction.ways or ()
            if instruction.assertion is not None and _holds(instruction.assertion, before, character):
                onward = (state + 1,)
            for each in onward:
                if each not in seen:
                    seen.add(each)
                    todo.append(each)
        self._visits += len(seen)
        if self._visits > MOST_VISITS:
            raise RegexError("expression takes too long")
        return seen

    # Thompson's construction: each node's instructions fall through to whatever follows

    def _emit(self, node: Node) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise RegexError("expression is too large")
        if isinstance(node, Characters):
            self._program.append(_Instruction(characters=node.characters))
        elif isinstance(node, Assertion):
            self._program.append(_Instruction(assertion=node.kind))
        elif isinstance(node, Sequence):
            for part in node.parts:
                self._emit(part)
        elif isinstance(node, Alternatives):
            self._emit_alternatives(node.parts)
        else:
            self._emit_repetition(node)

    def _emit_alternatives(self, parts: tuple[Node, ...]) -> None:
        ends = []
        for part in parts[:-1]:
            split = self._reserve()
            self._emit(part)
            ends.append(self._reserve())
            self._program[split] = _Instruction(ways=(split + 1, len(self._program)))
        self._emit(parts[-1])
        for end in ends:
            self._program[end] = _Instruction(ways=(len(self._program), len(self._program)))

    def _emit_repetition(self, node: Repetition) -> None:
        for _ in range(node.least):
            self._emit(node.part)
        if node.most is None:
            split = self._reserve()
            self._emit(node.part)
            self._program.append(_Instruction(ways=(split, split)))
            self._program[split] = _Instruction(ways=(split + 1, len(self._program)))
            return
        splits = []
        for _ in range(node.most - node.least):
            splits.append(self._reserve())
            self._emit(node.part)
        for split in splits:
            self._program[split] = _Instruction(ways=(split + 1, len(self._program)))

    def _reserve(self) -> int:
        self._program.append(_Instruction())
        return len(self._program) - 1


def _holds(kind: AssertionKind, before: str, character: str) -> bool:
    if kind is AssertionKind.START:
        return before == ""
    if kind is AssertionKind.END:
        return character == ""
    at_boundary = (before == "w") != (character in WORD)
    return at_boundary if kind is AssertionKind.WORD_BOUNDARY else not at_boundary

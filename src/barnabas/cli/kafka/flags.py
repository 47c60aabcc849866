"""Flags as Kafka's tools take them, and how a tool ends.

    TOOL = Tool("kafka-topics.sh", "Creates, ...", (BOOTSTRAP_SERVER, COMMAND_CONFIG, Flag("list", "..."), ...))
    main = TOOL.main(check, call)

`--flag value`, `--flag=value` and `-flag value` are the same; a flag that takes a value takes the next word whatever it
looks like (`--shift-by -3`). Flags are not abbreviated, as in Kafka 4. Exit status: 0, or 1 for whatever went wrong,
wrong use included. The difference from Kafka: `--help` prints to stdout and is no failure.

Nothing here imports the clients: `--help` must not wait for them.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from barnabas.cli.command_parser import hint
from barnabas.cli.exit_status import OK, Failure, run_program

KAFKA_VERSION = "4.1.0"


class Flag(NamedTuple):
    """`value` is what the value is called in the help; a flag without one is a switch."""

    name: str
    help: str
    value: str | None = None
    type: Callable[[str], Any] = str
    optional: bool = False
    """The value may be left out."""
    default: Any = None
    synonyms: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"[{self.name}]"


BOOTSTRAP_SERVER = Flag("bootstrap-server", "The brokers to connect to (required).", "HOST:PORT,...")
COMMAND_CONFIG = Flag(
    "command-config",
    "A file of properties for the client: TLS, SASL, time-outs.",
    "FILE",
    synonyms=("admin.config", "consumer.config", "producer.config"),
)
COMMAND_PROPERTY = Flag(
    "command-property",
    "One property for the client; overrides the file.",
    "KEY=VALUE",
    synonyms=("consumer-property", "producer-property", "producer-props"),
)
CONNECTION = (BOOTSTRAP_SERVER, COMMAND_CONFIG, COMMAND_PROPERTY)
HELP, VERSION = Flag("help", "This text."), Flag("version", "The version of Kafka whose command this is.")


class WrongUse(Exception):
    """The words on the command line make no sense; nothing was done."""


class BadValue(WrongUse):
    """The value of a flag is not of its type."""


class UsageNeeded(WrongUse):
    """The same where Kafka's tool prints its help too."""


class Options:
    """What was given: by a flag's name, all its values in their order (None for a value that was left out).

    Values are converted when they are read, as in Kafka: each command reports a bad one in its own way.
    """

    def __init__(self, given: dict[str, list[str | None]], flags: dict[str, Flag], order: Sequence[str] = ()):
        self._given = given
        self._flags = flags
        self.order = tuple(order)
        """Names of the flags as they were given, with repetitions."""

    def has(self, name: str) -> bool:
        return name in self._given

    def values(self, name: str) -> list[Any]:
        flag = self._flags[name]
        return [_converted(flag, word) for word in self._given.get(name, ()) if word is not None]

    def value(self, name: str) -> Any:
        """The one value, or the default."""
        values = self.values(name)
        if len(values) > 1:
            raise WrongUse(f"Found multiple arguments for option {name}, but you asked for only one")
        return values[0] if values else self._flags[name].default

    def given_of(self, *names: str) -> list[str]:
        return [name for name in names if self.has(name)]

    def require(self, *names: str) -> None:
        for name in names:
            if not self.has(name):
                raise UsageNeeded(f'Missing required argument "[{name}]"')

    def forbid(self, used: str, *others: str) -> None:
        """None of the others together with this one."""
        if self.has(used):
            for other in self.given_of(*others):
                raise UsageNeeded(f'Option "[{used}]" can\'t be used with option "[{other}]"')


class Tool:
    def __init__(self, program: str, summary: str, flags: Sequence[Flag]):
        self.program = program
        self.summary = summary
        self.flags = {flag.name: flag for flag in (*flags, HELP, VERSION)}
        self._by_word = {word: flag for flag in self.flags.values() for word in (flag.name, *flag.synonyms)}

    def main(
        self, check: Callable[[Options], None], call: Callable[[Options], int | None]
    ) -> Callable[[Sequence[str] | None], int]:
        """The entry point of the command: checks the flags, calls, and returns the exit status."""

        def main(arguments: Sequence[str] | None = None) -> int:
            return self.run(arguments, check, call)

        return main

    def run(
        self,
        arguments: Sequence[str] | None,
        check: Callable[[Options], None],
        call: Callable[[Options], int | None],
    ) -> int:
        words = java_words(sys.argv[1:] if arguments is None else arguments)
        return run_program(self.program, lambda: self._run(words, check, call), self._failure)

    def _failure(self, error: Exception) -> Failure | None:
        if isinstance(error, UsageNeeded):
            return Failure(f"{error}\n{self.help()}")
        return Failure(str(error)) if isinstance(error, WrongUse) else None

    def _run(
        self, words: list[str], check: Callable[[Options], None], call: Callable[[Options], int | None]
    ) -> int | None:
        options = self.parse(words)
        if not words:
            raise UsageNeeded(self.summary)
        if options.has("help"):
            print(self.help())
            return OK
        if options.has("version"):
            print(KAFKA_VERSION)
            return OK
        check(options)
        from barnabas.cli.log_level import log_level

        with log_level():
            return call(options)

    def parse(self, words: Sequence[str]) -> Options:
        given: dict[str, list[str | None]] = {}
        order: list[str] = []
        left = list(words)
        while left:
            flag, value = self._flag(left.pop(0))
            order.append(flag.name)
            values = given.setdefault(flag.name, [])
            if flag.value is None:
                if value is not None:
                    raise WrongUse(f"Option {flag.name} does not take a value")
                continue
            if value is None and left and (not flag.optional or not left[0].startswith("-")):
                value = left.pop(0)
            if value is None and not flag.optional:
                raise WrongUse(f"Option {flag.name} requires an argument")
            values.append(value)
        return Options(given, self.flags, order)

    def _flag(self, word: str) -> tuple[Flag, str | None]:
        if not word.startswith("-") or word in ("-", "--"):
            raise UsageNeeded(f"Unexpected word {word!r}: every option begins with --")
        name, equals, value = word.lstrip("-").partition("=")
        if name not in self._by_word:
            near = hint(f"--{name}", [f"--{word}" for word in self._by_word])
            raise WrongUse(f"{name} is not a recognized option{near}")
        return self._by_word[name], value if equals else None

    def help(self) -> str:
        import shutil
        import textwrap

        width = max(60, min(shutil.get_terminal_size().columns, 110))
        lines = [self.summary, "", f"usage: {self.program} --FLAG [VALUE] ...", ""]
        for flag in sorted(self.flags.values()):
            shown = "" if flag.value is None else f" [{flag.value}]" if flag.optional else f" {flag.value}"
            text = flag.help if flag.default is None else f"{flag.help} (default {flag.default})"
            if flag.synonyms:
                text = f"{text} Also --{', --'.join(flag.synonyms)}."
            lines.append(f"--{flag.name}{shown}")
            lines += textwrap.wrap(text, width, initial_indent=" " * 8, subsequent_indent=" " * 8)
        return "\n".join(lines)


def java_words(words: Sequence[str]) -> list[str]:
    """As Java gets them: bytes that are no UTF-8 are the sign for what cannot be read."""
    return [word.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for word in words]


def short(text: str | int) -> int:
    """Java's: 16 bits."""
    return _of_java(text, 15)


def integer(text: str | int) -> int:
    """Java's: 32 bits."""
    return _of_java(text, 31)


def long(text: str | int) -> int:
    """Java's: 64 bits."""
    return _of_java(text, 63)


def _of_java(text: str | int, bits: int) -> int:
    value = int(text)
    if not -(1 << bits) <= value < 1 << bits:
        raise ValueError(f'For input string: "{text}"')
    return value


def _converted(flag: Flag, value: str) -> Any:
    try:
        # Java knows no number without a limit.
        return long(value) if flag.type is int else flag.type(value)
    except ValueError:
        raise BadValue(f"Cannot parse argument '{value}' of option {flag.name}") from None


def refuse(message: str) -> NoReturn:
    raise UsageNeeded(message)

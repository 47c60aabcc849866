"""Flags of the commands that move data, and the properties they make. Nothing here imports the clients."""

from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.cli.kafka.flags import Flag, Options

BROKERS = Flag("bootstrap-server", "The brokers to connect to (required).", "HOST:PORT,...", synonyms=("broker-list",))


def key_values(pairs: Iterable[str]) -> dict[str, str]:
    """`key=value` words as properties; a key alone has an empty value."""
    split = [pair.partition("=") for pair in pairs]
    return {key: value for key, _, value in split if key}


def merge(config: dict[str, str], key: str, options: Options, flag: str) -> None:
    """A flag that was given overrides properties; its default does not."""
    if options.has(flag) or key not in config:
        value: Any = options.value(flag)
        if value is not None:
            config[key] = str(value)


def spread(words: Sequence[str], *flags: str) -> list[str]:
    """`--producer-props a=1 b=2` as `--producer-props a=1 --producer-props b=2`: one value per flag."""
    spread: list[str] = []
    open_flag: str | None = None
    fresh = False
    for word in words:
        if word.startswith("--"):
            name = word.lstrip("-")
            open_flag = word if name in flags else None
            fresh = True
        elif open_flag is not None:
            if not fresh:
                spread.append(open_flag)
            fresh = False
        spread.append(word)
    return spread

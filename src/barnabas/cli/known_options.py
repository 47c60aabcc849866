"""What of a properties file is for one kind of client: people have one file for all of their clients.

Called where a command makes a client. An option of another kind of client is left out silently, one that no client has
is left out with a warning that names the nearest: so do Kafka's clients. What a client refuses, it refuses itself.
"""

import difflib
import sys
from collections.abc import Callable, Mapping

from barnabas.client.options import AdminOptions, ConsumerOptions, ProducerOptions
from barnabas.client.options.spelled_elsewhere import SPELLED_ELSEWHERE

Kind = type[AdminOptions] | type[ConsumerOptions] | type[ProducerOptions]

# Commands send and print bytes, whatever the programs that share the file make of them.
_PROGRAMS_OWN = {"key.serializer", "value.serializer", "key.deserializer", "value.deserializer"}


def on_stderr(text: str) -> None:
    print(f"WARN: {text}", file=sys.stderr)


def known_options(
    kind: Kind, config: Mapping[str, str], source: str = "", warn: Callable[[str], None] = on_stderr
) -> dict[str, str]:
    """`source` is where the options stand, for the warning."""
    known = _names(kind) - _PROGRAMS_OWN
    of_others = _names(AdminOptions, ConsumerOptions, ProducerOptions)
    taken = {}
    for spelled, value in config.items():
        name = spelled.replace("_", ".")
        if name in known:
            taken[name] = value
        elif name not in of_others:
            where = f"{source}: " if source else ""
            warn(f"{where}{spelled}: no client has this option, left out{_hint(name, of_others)}")
    return taken


def _names(*kinds: Kind) -> set[str]:
    return {name for kind in kinds for name in (*kind.settings, *kind.refused)}


def _hint(name: str, names: set[str]) -> str:
    elsewhere = SPELLED_ELSEWHERE.get(name)
    if elsewhere is not None:
        return f" ({elsewhere})" if " " in elsewhere else f" (here it is {elsewhere})"
    near = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.7)
    return f" (did you mean {near[0]}?)" if near else ""

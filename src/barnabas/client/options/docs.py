"""Writes the page of client options: `python -m barnabas.client.options.docs docs/`.

`make docs` calls it; a test compares the committed page with what it writes. It reads the tables and decides nothing.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from barnabas.client.options.admin import AdminOptions
from barnabas.client.options.consumer import ConsumerOptions
from barnabas.client.options.option import Option
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.options.refused import COMMON_REFUSED, IGNORED_IN_FILES
from barnabas.client.options.spelled_elsewhere import SPELLED_ELSEWHERE
from barnabas.config.docs import table_row, write_pages
from barnabas.config.setting import Kind, Setting

HEAD = """# Client options

Every option of `Producer`, `Consumer` and `Admin`, with Kafka 4.1's names and defaults. Constructors take them with
underscores (`linger_ms=5`), `from_config` with Kafka's dots (`{"linger.ms": "5"}`). All faults are reported at once, in
one `ConfigError`. How they are used: [clients](clients.md). This page is written by
`python -m barnabas.client.options.docs docs/`.
"""
TABLES: Mapping[str, Mapping[str, Setting]] = MappingProxyType(
    {
        "Producer": ProducerOptions.settings,
        "Consumer": ConsumerOptions.settings,
        "Admin": AdminOptions.settings,
    }
)
# What each client fills in itself, so that the empty default of the table is never seen.
DEFAULTS_IN_WORDS = MappingProxyType(
    {"client.id": "named after the client", "bootstrap.servers": "required", "acks": '`"all"`'}
)


def options_page() -> str:
    shared = _shared()
    parts = [HEAD, "## All three\n", _table(shared)]
    for client, settings in TABLES.items():
        own = [option for option in _options(settings) if option not in shared]
        parts += [f"## {client}\n", _table(own)]
    parts += ["## Names of other libraries\n", _elsewhere(), "## Refused\n", _refused()]
    return "\n".join(parts)


PAGES: Mapping[str, Callable[[], str]] = MappingProxyType({"client-options.md": options_page})


def _options(settings: Mapping[str, Setting]) -> list[Option]:
    return [setting for setting in settings.values() if isinstance(setting, Option)]


def _shared() -> list[Option]:
    """Those that every client has with the same default; the others stand with their client."""
    others = [table.values() for table in TABLES.values()]
    return [option for option in _options(AdminOptions.settings) if all(option in values for values in others)]


def _table(options: Iterable[Option]) -> str:
    rows = ["| option | type | default | allowed | what it is |", "|---|---|---|---|---|"]
    for option in sorted(options, key=lambda each: (each.importance.name != "HIGH", each.name)):
        allowed = option.check.allowed if option.check is not None else ""
        rows.append(table_row(f"`{option.field}`", _kind(option), _default(option), allowed, option.doc))
    return "\n".join(rows) + "\n"


def _kind(option: Option) -> str:
    """In Python's words; `object` is a function or an object, the last column says of which kind."""
    if option.kind is Kind.CLASS:
        return "text" if isinstance(option.default, str | int) else "object"
    return {Kind.STRING: "text", Kind.PASSWORD: "secret", Kind.BOOLEAN: "bool", Kind.LIST: "list"}.get(
        option.kind, "int"
    )


def _default(option: Option) -> str:
    if option.name in DEFAULTS_IN_WORDS:
        return DEFAULTS_IN_WORDS[option.name]
    value = option.default
    if isinstance(value, tuple):
        return f"`{', '.join(value)}`" if value else "none"
    return "empty" if value == "" else f"`{value!r}`"


def _elsewhere() -> str:
    rows = ["| there (librdkafka, kafka-python, aiokafka) | here |", "|---|---|"]
    for name, here in SPELLED_ELSEWHERE.items():
        rows.append(table_row(f"`{name}`", here if " " in here else f"`{here.replace('.', '_')}`"))
    return "\n".join(rows) + "\n"


def _refused() -> str:
    """Kafka's options that would change nothing here, by what to do instead."""
    advice: dict[str, list[str]] = {}
    for name, instead in COMMON_REFUSED.items():
        advice.setdefault(instead, []).append(name)
    rows = ["| option | instead |", "|---|---|"]
    rows += [table_row(" ".join(f"`{name}`" for name in names), instead) for instead, names in advice.items()]
    ignored = "`from_config` ignores these, with one warning: " + " ".join(f"`{n}`" for n in sorted(IGNORED_IN_FILES))
    return "\n".join(rows) + f"\n\n{ignored}, and options of another kind of client.\n"


def main(arguments: list[str]) -> int:
    return write_pages(PAGES, "barnabas.client.options.docs", arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

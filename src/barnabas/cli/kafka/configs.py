"""`kafka-configs.sh`: shows and changes settings of topics, brokers, groups, client metrics, users, clients and hosts.

Settings that are kept by name (of topics, brokers, groups, metrics) are in `configs_resources`, quotas and SCRAM
credentials of users in `configs_users`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import CONNECTION, Flag, Options, Tool, WrongUse, refuse

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

TOPICS, CLIENTS, USERS, BROKERS, IPS = "topics", "clients", "users", "brokers", "ips"
METRICS, GROUPS, LOGGERS = "client-metrics", "groups", "broker-loggers"
ENTITY_TYPES = (TOPICS, CLIENTS, USERS, BROKERS, IPS, METRICS, GROUPS, LOGGERS)
NAMED = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker-logger": LOGGERS,
    "ip": IPS,
    "client-metrics": METRICS,
    "group": GROUPS,
}
DEFAULTS = {"client-defaults": CLIENTS, "user-defaults": USERS, "broker-defaults": BROKERS, "ip-defaults": IPS}
HAS_DEFAULTS = (USERS, CLIENTS, BROKERS, IPS)
TOOL = Tool(
    "kafka-configs.sh",
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, client-metrics or"
    " group",
    (
        *CONNECTION,
        Flag("bootstrap-controller", "Controllers to connect to, instead of brokers.", "HOST:PORT,..."),
        Flag("alter", "Change settings."),
        Flag("describe", "Show settings."),
        Flag("all", "Describe: those that come from elsewhere too (server.properties, defaults)."),
        Flag("entity-type", f"Whose settings: {', '.join(ENTITY_TYPES)}.", "TYPE"),
        Flag("entity-name", "The name of the topic, client, user, broker, host, group.", "NAME"),
        Flag("entity-default", "The default of the type instead of a name."),
        Flag("add-config", "Settings to set; brackets keep commas together: a=1,b=[x,y]", "NAME=VALUE,..."),
        Flag("add-config-file", "A file of properties to set.", "FILE"),
        Flag("delete-config", "Settings to go back to their defaults (repeatable).", "NAME,..."),
        Flag("force", "Accepted for Kafka's sake; nothing is asked."),
        *(Flag(name, f"Short for --entity-type {kind} --entity-name.", "NAME") for name, kind in NAMED.items()),
        *(Flag(name, f"Short for --entity-type {kind} --entity-default.") for name, kind in DEFAULTS.items()),
    ),
)


class Entity(NamedTuple):
    """Whose settings: the name is "" for the default, None for all of the type."""

    type: str
    name: str | None


class Change(NamedTuple):
    add: dict[str, str]
    delete: list[str]


def entities(options: Options) -> list[Entity]:
    types, names = _types(options), _names(options)
    return [Entity(kind, names[index] if index < len(names) else None) for index, kind in enumerate(types)]


def _types(options: Options) -> list[str]:
    short = [kind for name, kind in (NAMED | DEFAULTS).items() if options.has(name)]
    return [*options.values("entity-type"), *short]


def _names(options: Options) -> list[str]:
    given = iter(options.values("entity-name"))
    names = [
        next(given) if word == "entity-name" else ""
        for word in options.order
        if word in ("entity-name", "entity-default")
    ]
    return [
        *names,
        *(options.value(name) for name in options.given_of(*NAMED)),
        *("" for _ in options.given_of(*DEFAULTS)),
    ]


def _check(options: Options) -> None:
    if len(options.given_of("alter", "describe")) != 1:
        refuse("Command must include exactly one action: --describe, --alter")
    options.forbid("describe", "add-config", "delete-config")
    types, names = _types(options), _names(options)
    _check_types(options, types)
    if not options.given_of("bootstrap-server", "bootstrap-controller"):
        raise WrongUse("One of the required --bootstrap-server or --bootstrap-controller arguments must be specified")
    if options.has("bootstrap-server") and options.has("bootstrap-controller"):
        raise WrongUse("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    for name in names:
        if types[0] in (BROKERS, LOGGERS) and name and not name.isdecimal():
            raise WrongUse(f"The entity name for {types[0]} must be a valid integer broker id, but it is: {name}")
    if options.has("describe"):
        if options.has("entity-default") and types[0] not in HAS_DEFAULTS:
            raise WrongUse(f"--entity-default must not be specified with --describe of {','.join(types)}")
        if LOGGERS in types and not any(names):
            raise WrongUse(f"An entity name must be specified with --describe of {','.join(types)}")
    else:
        _check_change(options, types, names)


def _check_types(options: Options, types: list[str]) -> None:
    twice = sorted({kind for kind in types if types.count(kind) > 1})
    if twice:
        raise WrongUse(f"Duplicate entity type(s) specified: {','.join(twice)}")
    for kind in types:
        if kind not in ENTITY_TYPES:
            raise WrongUse(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(ENTITY_TYPES)} with a"
                " --bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        raise WrongUse("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise WrongUse("Only 'users' and 'clients' entity types may be specified together")
    if options.given_of("entity-type", "entity-name", "entity-default") and options.given_of(*NAMED, *DEFAULTS):
        raise WrongUse("--entity-{type,name,default} should not be used in conjunction with specific entity flags")


def _check_change(options: Options, types: list[str], names: list[str]) -> None:
    if types[0] in HAS_DEFAULTS:
        if not names:
            raise WrongUse(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
    elif not any(names):
        raise WrongUse(f"An entity name must be specified with --alter of {','.join(types)}")
    if options.has("add-config") and options.has("add-config-file"):
        raise WrongUse("Only one of --add-config or --add-config-file must be specified")
    if not options.given_of("add-config", "add-config-file", "delete-config"):
        raise WrongUse(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    if len(types) != len(names):
        raise WrongUse("An entity name must be specified for every entity type")


def _run(admin: Admin, options: Options) -> None:
    from barnabas.cli.kafka import configs_resources, configs_users

    whose = entities(options)
    kind, name = whose[0]
    of_users = kind in (USERS, CLIENTS, IPS)
    if options.has("describe"):
        if of_users:
            configs_users.describe(admin, whose)
        else:
            configs_resources.describe(admin, whose[0], describe_all=options.has("all"))
        return
    deleted = [name.strip() for word in options.values("delete-config") for name in word.split(",")]
    change = Change(_added(options), deleted)
    if of_users:
        configs_users.alter(admin, whose, change)
    else:
        configs_resources.alter(admin, whose[0], change)
    if name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _added(options: Options) -> dict[str, str]:
    """`a=1,b=[x,y]`: commas and equal signs within brackets belong to a value."""
    from barnabas.cli.kafka.connection import properties_file

    added = properties_file(options.value("add-config-file")) if options.has("add-config-file") else {}
    if options.has("add-config"):
        outside = r"(?=[^\]]*(?:\[|$))"
        for pair in re.split(f",{outside}", options.value("add-config")):
            parts = re.split(rf"\s*=\s*{outside}", pair)
            if len(parts) != 2:
                raise WrongUse(
                    "requirement failed: Invalid entity config: all configs to be added must be in the format"
                    ' "key=val".'
                )
            added[parts[0].strip()] = re.sub(r"\[?\]?", "", parts[1]).strip()
    for name in added:
        if not re.fullmatch(r"[a-zA-Z0-9._-]*", name):
            raise WrongUse(f"Invalid character found for config key: {name}")
    return added


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    prefix = f"Error while executing config command with args '{' '.join(words)}'\n"
    return TOOL.run(words, _check, with_admin(_run, FailureReport(prefix, with_exception=True)))

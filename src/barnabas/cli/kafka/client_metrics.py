"""`kafka-client-metrics.sh`: which of their own metrics clients push to the brokers (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import CONNECTION, Flag, Options, Tool, WrongUse, refuse

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import ConfigResource

ACTIONS = ("alter", "delete", "describe", "list")
VALUES = {"interval": "interval.ms", "metrics": "metrics", "match": "match"}
TOOL = Tool(
    "kafka-client-metrics.sh",
    "This tool helps to manipulate and describe client metrics configurations.",
    (
        *CONNECTION,
        Flag("alter", "Make or change a subscription."),
        Flag("delete", "Delete a subscription."),
        Flag("describe", "Show the settings of one subscription, or of all."),
        Flag("list", "List the subscriptions."),
        Flag("name", "The name of the subscription.", "NAME"),
        Flag("generate-name", "Alter: make up a name."),
        Flag("interval", "How often clients push, in milliseconds; empty: the default.", "MS"),
        Flag("match", "Which clients: client_id=REGEX, client_software_name=REGEX and so on.", "NAME=REGEX,..."),
        Flag("metrics", "Prefixes of the names of the metrics; * for all of them; empty: none.", "PREFIX,..."),
    ),
)


def _check(options: Options) -> None:
    if len(options.given_of(*ACTIONS)) != 1:
        refuse("Command must include exactly one action: --alter, --delete, --describe or --list.")
    if not options.has("bootstrap-server"):
        raise WrongUse("--bootstrap-server must be specified.")
    options.forbid("delete", "generate-name", *VALUES)
    options.forbid("describe", "generate-name", *VALUES)
    options.forbid("list", "name", "generate-name", *VALUES)
    if options.has("alter") and options.has("name") == options.has("generate-name"):
        raise WrongUse("One of --name or --generate-name must be specified with --alter.")
    if options.has("delete") and not options.has("name"):
        raise WrongUse("A client metrics resource name must be specified with --delete.")
    interval = options.value("interval")
    if interval and not interval.lstrip("+-").isdecimal():
        raise WrongUse("Invalid interval value. Enter an integer, or leave empty to reset.")


def _run(admin: Admin, options: Options) -> None:
    names = _names(admin)
    if options.has("list"):
        print("\n".join(names))
    elif options.has("describe"):
        name = options.value("name")
        if name is not None and name not in names:
            print(f"The client metric resource {name} doesn't exist and doesn't have dynamic config.")
            return
        for each in names if name is None else [name]:
            _describe(admin, each)
    elif options.has("delete"):
        name = options.value("name")
        if name in names:
            admin.alter_config(_resource(name), delete=list(VALUES.values()))
        print(f"Deleted client metrics config for {name}.")
    else:
        _alter(admin, options)


def _alter(admin: Admin, options: Options) -> None:
    import uuid

    from barnabas.types import topic_id_text

    name = options.value("name") if options.has("name") else topic_id_text(uuid.uuid4().bytes)
    given = {VALUES[flag]: options.value(flag) for flag in options.given_of(*VALUES)}
    changed = {setting: value for setting, value in given.items() if value}
    admin.alter_config(_resource(name), changed, delete=[each for each in given if each not in changed])
    print(f"Altered client metrics config for {name}.")


def _describe(admin: Admin, name: str) -> None:
    entries = admin.describe_config(_resource(name))
    print(f"Client metrics configs for {name} are:")
    for setting in sorted(entries):
        print(f"  {setting}={entries[setting].value}")


def _names(admin: Admin) -> list[str]:
    from barnabas.client.admin.types import ConfigResourceType

    return [each.name for each in admin.list_config_resources([ConfigResourceType.CLIENT_METRICS])]


def _resource(name: str) -> ConfigResource:
    from barnabas.client.admin.types import ConfigResource, ConfigResourceType

    return ConfigResource(ConfigResourceType.CLIENT_METRICS, name)


main = TOOL.main(
    _check, with_admin(_run, FailureReport("Error while executing client metrics command : ", on_stdout=True))
)

"""`kafka-groups.sh`: groups of all types."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.cli.kafka.flags import CONNECTION, FAILED, Flag, Options, Tool, refuse

TYPES = ("classic", "consumer", "share", "streams")
FILTERS = ("consumer", "share", "streams")
TOOL = Tool(
    "kafka-groups.sh",
    "This tool helps to list groups of all types.",
    (
        *CONNECTION,
        Flag("list", "List the groups."),
        Flag("group-type", f"Only groups of a type: {', '.join(TYPES)}.", "TYPE"),
        Flag("protocol", "Only groups of a protocol type.", "PROTOCOL"),
        Flag("consumer", "Only groups of consumers, of either protocol, and simple ones."),
        Flag("share", "Only share groups."),
        Flag("streams", "Only streams groups."),
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    return TOOL.run(arguments, _check, _run)


def _check(options: Options) -> None:
    if not options.has("list"):
        refuse("Command must include exactly one action: --list.")
    options.require("bootstrap-server")
    for flag in FILTERS:
        options.forbid(flag, *(other for other in (*FILTERS, "group-type", "protocol") if other != flag))
    if options.has("group-type") and options.value("group-type").lower() not in TYPES:
        refuse("--group-type must be a valid group type.")


def _run(options: Options) -> int | None:
    from barnabas.cli.kafka.connection import admin_client, kafka_text
    from barnabas.cli.kafka.consumer_groups import consumer_groups
    from barnabas.errors import KafkaError

    try:
        with admin_client(options) as admin:
            if options.has("consumer"):
                groups = consumer_groups(admin)
            else:
                kinds = [each for each in ("share", "streams") if options.has(each)]
                kinds += [options.value("group-type")] if options.has("group-type") else []
                protocols = [options.value("protocol")] if options.has("protocol") else []
                groups = admin.list_groups(types=kinds, protocol_types=protocols)
    except KafkaError as error:
        print(f"Error while executing groups command : {kafka_text(error)}")
        return FAILED
    width = max([20, *(len(group_id) for group_id in groups)])
    print(f"{'GROUP':<{width}} {'TYPE':<20} {'PROTOCOL':<20}")
    for group_id, group in groups.items():
        print(f"{group_id:<{width}} {group.type or '':<20} {group.protocol_type:<20}")
    return None

"""`kafka-groups.sh`: groups of all types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import CONNECTION, Flag, Options, Tool, refuse

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

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


def _check(options: Options) -> None:
    if not options.has("list"):
        refuse("Command must include exactly one action: --list.")
    options.require("bootstrap-server")
    for flag in FILTERS:
        options.forbid(flag, *(other for other in (*FILTERS, "group-type", "protocol") if other != flag))
    if options.has("group-type") and options.value("group-type").lower() not in TYPES:
        refuse("--group-type must be a valid group type.")


def _run(admin: Admin, options: Options) -> None:
    from barnabas.cli.kafka.consumer_groups import consumer_groups

    if options.has("consumer"):
        groups = consumer_groups(admin)
    else:
        kinds = [each for each in ("share", "streams") if options.has(each)]
        kinds += [options.value("group-type")] if options.has("group-type") else []
        protocols = [options.value("protocol")] if options.has("protocol") else []
        groups = admin.list_groups(types=kinds, protocol_types=protocols)
    width = max([20, *(len(group_id) for group_id in groups)])
    print(f"{'GROUP':<{width}} {'TYPE':<20} {'PROTOCOL':<20}")
    for group_id, group in groups.items():
        print(f"{group_id:<{width}} {group.type or '':<20} {group.protocol_type:<20}")


main = TOOL.main(_check, with_admin(_run, FailureReport("Error while executing groups command : ", on_stdout=True)))

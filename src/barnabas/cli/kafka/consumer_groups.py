"""`kafka-consumer-groups.sh`: groups, their offsets and members; deleting them, and resetting their offsets.

As in Kafka, what the cluster refuses is reported on stdout and the exit status stays 0; only wrong use gives 1.
The reset of offsets is in `consumer_groups_reset`, descriptions in `consumer_groups_describe`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.cli.exit_status import OK
from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import CONNECTION, BadValue, Flag, Options, Tool, WrongUse, refuse

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import GroupListing
    from barnabas.errors import KafkaError
    from barnabas.types import TopicPartition

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCENARIOS = (
    *("to-offset", "to-current", "to-datetime", "from-file"),
    *("by-duration", "to-earliest", "to-latest", "shift-by"),
)
# In the order in which Kafka's tool names them.
STATES = ("Empty", "Reconciling", "PreparingRebalance", "Dead", "Stable", "CompletingRebalance", "Assigning")
TYPES = ("Consumer", "Classic")
CONSUMERS = ("consumer", "")
NO_ACTION = (
    "WARN: No action will be performed as the --execute option is missing. Dry run, nothing changed; add --execute to"
    " set these offsets, or --dry-run if this is what you want."
)
TOOL = Tool(
    "kafka-consumer-groups.sh",
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset"
    " consumer group offsets.",
    (
        *CONNECTION,
        Flag("list", "Ids of all consumer groups."),
        Flag("describe", "Offsets, lag and members of groups."),
        Flag("delete", "Delete groups that have no members."),
        Flag("reset-offsets", "Set where groups continue to read; only shown unless --execute is given."),
        Flag("delete-offsets", "Forget the offsets of a group for some topics."),
        Flag("group", "The group (repeatable).", "GROUP"),
        Flag("all-groups", "All consumer groups."),
        Flag("topic", "A topic, or some of its partitions as topic:0,1 (repeatable).", "TOPIC"),
        Flag("all-topics", "Reset: all topics that the group has offsets of."),
        Flag("members", "Describe: the members."),
        Flag("offsets", "Describe: offsets and lag (this is the default)."),
        Flag("state", "Describe: the state; list: states, or groups in these.", "STATE,...", optional=True),
        Flag("type", "List: types, or groups of these.", "TYPE,...", optional=True),
        Flag("verbose", "Describe: more columns."),
        Flag("timeout", "How long to wait for the cluster.", "MS", int, default=5000),
        Flag("dry-run", "Reset: only show it."),
        Flag("execute", "Reset: do it."),
        Flag("export", "Reset: print it as CSV, for --from-file."),
        Flag("to-offset", "Reset to this offset.", "OFFSET", int),
        Flag("from-file", "Reset to the offsets of a CSV file.", "FILE"),
        Flag("to-datetime", "Reset to the first record at or after this time.", "YYYY-MM-DDTHH:mm:SS.sss"),
        Flag("by-duration", "Reset to the first record of the time from this long ago on.", "PnDTnHnMnS"),
        Flag("to-earliest", "Reset to the first offset there is."),
        Flag("to-latest", "Reset to the end."),
        Flag("to-current", "Reset to what is committed now."),
        Flag("shift-by", "Reset to so many offsets further, or back if negative.", "NUMBER", int),
    ),
)


def _check(options: Options) -> None:
    options.require("bootstrap-server")
    if options.has("describe"):
        _require_group("describe", options)
        if len(options.given_of("members", "offsets", "state")) > 1:
            refuse("Option [describe] takes at most one of these options: [members], [offsets], [state]")
        if options.value("state") is not None:
            refuse("Option [describe] does not take a value for [state]")
    if options.has("delete"):
        _require_group("delete", options)
        if options.has("topic"):
            refuse("The consumer does not support topic-specific offset deletion from a consumer group.")
    if options.has("delete-offsets") and len(options.given_of("group", "topic")) < 2:
        refuse("Option [delete-offsets] takes the following options: [topic], [group]")
    if options.has("reset-offsets"):
        _check_reset(options)
    options.forbid("group", "all-groups", "list")
    options.forbid("topic", "list", "describe")
    for flag, actions in {"members": ("describe",), "verbose": ("describe",), "offsets": ("describe",)}.items():
        if options.has(flag) and not options.given_of(*actions):
            raise WrongUse(f"Option(s) [{flag}] are unavailable given other options on the command line")
    if len(options.given_of(*ACTIONS)) != 1:
        refuse(f"Command must include exactly one action: {', '.join(f'--{action}' for action in ACTIONS)}")


def _check_reset(options: Options) -> None:
    if options.has("dry-run") and options.has("execute"):
        refuse("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not options.given_of("dry-run", "execute"):
        print(NO_ACTION, file=sys.stderr)
    _require_group("reset-offsets", options)
    for scenario in SCENARIOS:
        options.forbid(scenario, *(other for other in SCENARIOS if other != scenario))


def _require_group(action: str, options: Options) -> None:
    if not options.given_of("group", "all-groups"):
        refuse(f"Option [{action}] takes one of these options: [group], [all-groups]")


def _run(admin: Admin, options: Options) -> None:
    from barnabas.cli.kafka.consumer_groups_describe import describe_groups
    from barnabas.cli.kafka.consumer_groups_reset import reset_offsets

    if options.has("list"):
        _list(admin, options)
    elif options.has("describe"):
        describe_groups(admin, options, chosen_groups(admin, options))
    elif options.has("delete"):
        _delete(admin, chosen_groups(admin, options))
    elif options.has("reset-offsets"):
        reset_offsets(admin, options, chosen_groups(admin, options))
    else:
        _delete_offsets(admin, options.value("group"), options.values("topic"))


def print_error(message: str) -> None:
    print(f"\nError: {message}")


def consumer_groups(admin: Admin, states: Collection[str] = (), types: Collection[str] = ()) -> dict[str, GroupListing]:
    return admin.list_groups(states=states, types=types, protocol_types=CONSUMERS)


def chosen_groups(admin: Admin, options: Options) -> list[str]:
    return list(consumer_groups(admin)) if options.has("all-groups") else list(dict.fromkeys(options.values("group")))


def named_values(given: str | None, valid: Sequence[str], what: str, plural: str) -> list[str]:
    """`stable,empty` as Kafka spells them."""
    if not given:
        return []
    spelled = {each.casefold(): each for each in valid}
    words = [word.strip().casefold() for word in given.split(",")]
    if any(word not in spelled for word in words):
        refuse(f"Invalid {what} list '{given}'. Valid {plural} are: {', '.join(valid)}")
    return [spelled[word] for word in words]


def _list(admin: Admin, options: Options) -> None:
    states = named_values(options.value("state"), STATES, "state", "states")
    types = named_values(options.value("type"), TYPES, "types", "types")
    groups = consumer_groups(admin, states, types)
    if not options.given_of("state", "type"):
        for group_id in groups:
            print(group_id)
        return
    width = max((len(group_id) for group_id in groups), default=0)
    columns = [f"%-{max(15, width) + 10}s", *("%-20s" for _ in options.given_of("type", "state"))]
    line = " ".join(columns)
    print(line % ("GROUP", *(each.upper() for each in options.given_of("type", "state"))))
    for group_id, group in groups.items():
        shown = {"type": group.type or "Unknown", "state": group.state or "Unknown"}
        print(line % (group_id, *(shown[each] for each in options.given_of("type", "state"))))


def _delete(admin: Admin, group_ids: list[str]) -> None:
    from barnabas.cli.kafka.connection import kafka_exception

    failed: dict[str, KafkaError] = {}
    for group_id in group_ids:
        failure = _failure(partial(admin.delete_group, group_id))
        if failure is not None:
            failed[group_id] = failure
    deleted = ", ".join(f"'{group_id}'" for group_id in group_ids if group_id not in failed)
    if not failed:
        print(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    print_error("Deletion of some consumer groups failed:")
    for group_id, error in failed.items():
        print(f"* Group '{group_id}' could not be deleted due to: {kafka_exception(error)}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {deleted}")


def _failure(work: Callable[[], object]) -> KafkaError | None:
    from barnabas.errors import KafkaError

    try:
        work()
    except KafkaError as error:
        return error
    return None


def _delete_offsets(admin: Admin, group_id: str, topics: list[str]) -> None:
    from barnabas.cli.kafka.connection import kafka_exception, kafka_text
    from barnabas.cli.kafka.consumer_groups_reset import partitions_of_topics
    from barnabas.errors import ErrorCode

    partitions, unknown = partitions_of_topics(admin, topics)
    failure = _failure(lambda: admin.delete_group_offsets(group_id, partitions)) if partitions else None
    errors: dict[TopicPartition, KafkaError] = getattr(failure, "errors", {})
    first = next(iter(errors.values()), failure)
    if first is None:
        print(f"Request succeeded for deleting offsets from group {group_id}.")
    elif first.code in (
        *(ErrorCode.INVALID_GROUP_ID, ErrorCode.GROUP_ID_NOT_FOUND),
        *(ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.NON_EMPTY_GROUP),
    ):
        print_error(kafka_text(first))
    elif first.code in (
        *(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ):
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(f"Encountered some unknown error: {first.code.name}")
    rows: dict[tuple[str, int], KafkaError | None] = {(topic, -1): error for topic, error in unknown.items()}
    rows |= {each: errors.get(each, failure if not errors else None) for each in partitions}
    width = max(15, *(len(topic) for topic, _ in rows)) if rows else 15
    line = f"\n%-{width}s %-10s %-15s"
    print(line % ("TOPIC", "PARTITION", "STATUS"), end="")
    for (topic, partition), error in sorted(rows.items(), key=lambda row: f"{row[0][0]}{row[0][1]}"):
        status = f"Error: {kafka_exception(error)}" if error is not None else "Successful"
        print(line % (topic, "-" if partition < 0 else partition, status), end="")
    print()


FAILURE = FailureReport(
    "\nError: Executing consumer group command failed due to ",
    with_exception=True,
    on_stdout=True,
    also=(BadValue,),
    status=OK,
)
main = TOOL.main(_check, with_admin(_run, FAILURE, lambda options: options.value("timeout")))

"""`kafka-metadata-quorum.sh`: the replicas of the metadata log of a cluster with controllers (KRaft).

Barnabas keeps its metadata elsewhere and has no such quorum; its brokers report that. Adding and
removing controllers is left to Kafka's own command, which reads the controller's files.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused
from barnabas.cli.kafka.subcommands import admin_of_options, print_table, tool_main

if TYPE_CHECKING:
    from barnabas.client.admin.types import QuorumInfo, QuorumReplica

NO_DIRECTORY = "A" * 22


def describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--status", action="store_true", help="a summary")
    parser.add_argument("--replication", action="store_true", help="each replica")
    parser.add_argument("--human-readable", action="store_true", help="times as how long ago")


def controller_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)


def _describe(options: argparse.Namespace) -> None:
    if options.status and options.replication:
        raise Refused("Only one of --status or --replication should be specified with describe sub-command")
    if not options.status and not options.replication:
        raise Refused("One of --status or --replication must be specified with describe sub-command")
    if options.human_readable and not options.replication:
        raise Refused("The option --human-readable is only supported along with --replication")
    with admin_of_options(options) as admin:
        quorum = admin.describe_quorum()
        if options.status:
            _print_status(admin.describe_cluster().cluster_id, quorum)
        else:
            _print_replication(quorum, human=options.human_readable)


def _change(options: argparse.Namespace) -> None:
    raise Refused(
        f"{options.command} is not offered here: brokers of Barnabas have no controller quorum. For a cluster of"
        " Apache Kafka use its own kafka-metadata-quorum.sh, which reads the controller's files."
    )


def _leader(quorum: QuorumInfo) -> QuorumReplica:
    return next(each for each in quorum.voters if each.replica_id == quorum.leader_id)


def _print_status(cluster_id: str | None, quorum: QuorumInfo) -> None:
    leader = _leader(quorum)
    last = min(quorum.voters, key=lambda each: each.log_end_offset)
    if last is leader:
        behind_ms = 0
    elif leader.last_caught_up_timestamp is None or last.last_caught_up_timestamp is None:
        behind_ms = -1
    else:
        behind_ms = leader.last_caught_up_timestamp - last.last_caught_up_timestamp
    for name, value in (
        ("ClusterId", cluster_id),
        ("LeaderId", quorum.leader_id),
        ("LeaderEpoch", quorum.leader_epoch),
        ("HighWatermark", quorum.high_watermark),
        ("MaxFollowerLag", leader.log_end_offset - last.log_end_offset),
        ("MaxFollowerLagTimeMs", behind_ms),
        ("CurrentVoters", _replicas(quorum, quorum.voters)),
        ("CurrentObservers", _replicas(quorum, quorum.observers)),
    ):
        print(f"{name + ':':<24}{value}")


def _replicas(quorum: QuorumInfo, replicas: Iterable[QuorumReplica]) -> str:
    shown = []
    for each in replicas:
        fields = [f'"id": {each.replica_id}']
        if each.directory_id not in (None, NO_DIRECTORY):
            fields.append(f'"directoryId": "{each.directory_id}"')
        endpoints = quorum.nodes.get(each.replica_id)
        if endpoints:
            listed = ", ".join(f'"{name}://{address}"' for name, address in endpoints.items())
            fields.append(f'"endpoints": [{listed}]')
        shown.append(f"{{{', '.join(fields)}}}")
    return f"[{', '.join(shown)}]"


def _print_replication(quorum: QuorumInfo, *, human: bool) -> None:
    leader = _leader(quorum)
    followers = [each for each in quorum.voters if each is not leader]
    roles = [(leader, "Leader"), *((each, "Follower") for each in followers)]
    roles += [(each, "Observer") for each in quorum.observers]
    rows = [
        (
            each.replica_id,
            each.directory_id or NO_DIRECTORY,
            each.log_end_offset,
            leader.log_end_offset - each.log_end_offset,
            _time(each.last_fetch_timestamp, human),
            _time(each.last_caught_up_timestamp, human),
            role,
        )
        for each, role in roles
    ]
    times = ("LastFetchTimestamp", "LastCaughtUpTimestamp")
    print_table(("NodeId", "DirectoryId", "LogEndOffset", "Lag", *times, "Status"), rows)


def _time(timestamp: int | None, human: bool) -> str:
    if timestamp is None:
        return "-1"
    return f"{time.time_ns() // 1_000_000 - timestamp} ms ago" if human else str(timestamp)


main = tool_main(
    "kafka-metadata-quorum.sh",
    "This tool describes kraft metadata quorum status.",
    (
        Command("describe", "Describe the metadata quorum info", describe_arguments, _describe),
        *(
            Command(name, f"{name}: not offered here", controller_arguments, _change)
            for name in ("add-controller", "remove-controller")
        ),
    ),
)

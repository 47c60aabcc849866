"""`barnabas cluster`: who is there, and whether all is well."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import FAILED, OK, Verb, add_json_argument, run
from barnabas.cli.output import counted, print_fields, print_json, print_table

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

MIN_ISR = "min.insync.replicas"


def main(arguments: Sequence[str]) -> int:
    return run("cluster", "The cluster as a whole.", VERBS, arguments)


def describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--features", action="store_true", help="feature levels too")
    add_json_argument(parser)


def describe(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client

    with admin_client(options) as admin:
        cluster = admin.describe_cluster()
        features = admin.describe_features() if options.features else None
    if options.json:
        print_json({"cluster": cluster} | ({"features": features} if features else {}))
        return
    controller = cluster.controller
    print_fields({"cluster id": cluster.cluster_id, "controller": None if controller is None else controller.id})
    print()
    rows = [(each.node.id, each.node.address, each.node.rack, each.is_fenced) for each in cluster.brokers]
    print_table(["BROKER", "ADDRESS", "RACK", "FENCED"], rows)
    if features is not None:
        print()
        levels = [
            (name, supported.min_version, supported.max_version, _level(features.finalized.get(name)))
            for name, supported in sorted(features.supported.items())
        ]
        print_table(["FEATURE", "MIN", "MAX", "IN-FORCE"], levels)


def _level(finalized: Any) -> int | None:
    return None if finalized is None else int(finalized.max_version)


def health_arguments(parser: argparse.ArgumentParser) -> None:
    add_json_argument(parser)


def health(options: argparse.Namespace) -> int:
    """Status 1 if anything is wrong, so that scripts can wait for a healthy cluster."""
    from barnabas.cli.connection import admin_client

    with admin_client(options) as admin:
        found = _look(admin)
    faults = {name: places for name, places in found["faults"].items() if places}
    if options.json:
        print_json({"healthy": not faults, **found})
    else:
        state = "healthy" if not faults else "not healthy"
        sizes = [counted(found[f"{noun}s"], noun) for noun in ("broker", "topic", "partition")]
        print(f"{state}: {', '.join(sizes)}")
        for name, places in faults.items():
            print(f"  {name.replace('_', ' ')}: {', '.join(places)}")
    return FAILED if faults else OK


def _look(admin: "Admin") -> dict[str, Any]:
    from barnabas.client.admin.types import ConfigResource
    from barnabas.types import TopicPartition

    cluster = admin.describe_cluster()
    topics = admin.describe_topics(admin.list_topics(include_internal=True))
    configs = admin.describe_configs((ConfigResource.topic(name) for name in topics), names=[MIN_ISR])
    log_dirs = admin.describe_log_dirs()
    faults: dict[str, list[str]] = {
        "no_controller": [] if cluster.controller is not None else ["no broker is controller"],
        "partitions_without_leader": [],
        "under_replicated_partitions": [],
        "partitions_under_min_isr": [],
        "log_directories_offline": [
            f"{path} of broker {broker} ({directory.error.message})"
            for broker, directories in log_dirs.items()
            for path, directory in directories.items()
            if directory.error is not None
        ],
    }
    for name, topic in topics.items():
        min_isr = int(configs[ConfigResource.topic(name)][MIN_ISR].value or 1)
        for each in topic.partitions:
            place = str(TopicPartition(name, each.partition))
            if each.leader is None:
                faults["partitions_without_leader"].append(place)
            if each.is_under_replicated:
                faults["under_replicated_partitions"].append(place)
            if len(each.isr) < min(min_isr, len(each.replicas)):
                faults["partitions_under_min_isr"].append(place)
    return {
        "brokers": len(cluster.brokers),
        "topics": len(topics),
        "partitions": sum(len(topic.partitions) for topic in topics.values()),
        "faults": faults,
    }


VERBS = (
    Verb("describe", "show brokers and controller", describe_arguments, describe),
    Verb("health", "look for what is wrong; exit status 1 if anything is", health_arguments, health),
)

"""`barnabas cluster`: who is there, and whether all is well."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import Command, UsageError, no_arguments, noun_main, with_admin
from barnabas.cli.exit_status import FAILED, OK
from barnabas.cli.moves import Moves, add_move_arguments, check_idle, move_or_show, read_layout, render_moves
from barnabas.cli.output import Output, Table, counted

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

MIN_ISR = "min.insync.replicas"


def describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--features", action="store_true", help="feature levels too")


def describe(admin: "Admin", options: argparse.Namespace) -> dict[str, Any]:
    cluster = admin.describe_cluster()
    return {"cluster": cluster} | ({"features": admin.describe_features()} if options.features else {})


def render_description(options: argparse.Namespace, described: dict[str, Any]) -> Output:
    cluster, features = described["cluster"], described.get("features")
    controller = None if cluster.controller is None else cluster.controller.id
    rows = [(each.node.id, each.node.address, each.node.rack, each.is_fenced) for each in cluster.brokers]
    text: list[str | Table | Mapping[str, object]] = [
        {"cluster id": cluster.cluster_id, "controller": controller},
        "",
        Table(["BROKER", "ADDRESS", "RACK", "FENCED"], rows),
    ]
    if features is not None:
        levels = [
            (name, supported.min_version, supported.max_version, _level(features.finalized.get(name)))
            for name, supported in sorted(features.supported.items())
        ]
        text += ["", Table(["FEATURE", "MIN", "MAX", "IN-FORCE"], levels)]
    return Output(described, text)


def _level(finalized: Any) -> int | None:
    return None if finalized is None else int(finalized.max_version)


def render_health(options: argparse.Namespace, found: dict[str, Any]) -> Output:
    """Status 1 if anything is wrong, so that scripts can wait for a healthy cluster."""
    faults = {name: places for name, places in found["faults"].items() if places}
    sizes = [counted(found[f"{noun}s"], noun) for noun in ("broker", "topic", "partition")]
    text = [f"{'not healthy' if faults else 'healthy'}: {', '.join(sizes)}"]
    text += [f"  {name.replace('_', ' ')}: {', '.join(places)}" for name, places in faults.items()]
    return Output({"healthy": not faults, **found}, text, FAILED if faults else OK)


def health(admin: "Admin", options: argparse.Namespace) -> dict[str, Any]:
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


def balance_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", metavar="TOPIC", action="append", default=[], help="move only these (repeatable)")
    add_move_arguments(parser)


def balance(admin: "Admin", options: argparse.Namespace) -> Moves:
    from barnabas.client.balancing import plan_moves

    layout = read_layout(admin)
    check_idle(layout)
    unknown = sorted(set(options.topic) - {key.topic for key in layout.partitions})
    if unknown:
        raise UsageError(f"there is no topic {unknown[0]}")
    chosen = {key: each for key, each in layout.partitions.items() if not options.topic or key.topic in options.topic}
    return move_or_show(admin, options, layout, plan_moves(chosen, layout.racks))


VERBS = (
    Command("describe", "show brokers and controller", describe_arguments, with_admin(describe), render_description),
    Command(
        "health",
        "look for what is wrong; exit status 1 if anything is",
        no_arguments,
        with_admin(health),
        render_health,
    ),
    Command(
        "balance",
        "spread replicas, data and leaders evenly over brokers and racks",
        balance_arguments,
        with_admin(balance),
        render_moves,
        description="Spread replicas, data and leaders evenly over brokers and racks, with as few moves as possible."
        " Shows the moves; --execute carries them out.",
    ),
)

main = noun_main("cluster", "The cluster as a whole.", VERBS)

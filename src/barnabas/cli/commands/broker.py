"""`barnabas broker`: the brokers of a cluster: list them, move all data off one, take one out for good."""

import argparse
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused, no_arguments, noun_main, with_admin
from barnabas.cli.moves import (
    Moves,
    add_move_arguments,
    all_brokers,
    check_idle,
    check_known,
    move_or_show,
    read_layout,
    render_moves,
    size_text,
)
from barnabas.cli.numbers import int32
from barnabas.cli.output import Output, Table, counted

if TYPE_CHECKING:
    from barnabas.client.admin import Admin


def list_brokers(admin: "Admin", options: argparse.Namespace) -> list[dict[str, object]]:
    from barnabas.client.balancing import loads

    controller = admin.describe_cluster().controller
    layout = read_layout(admin)
    held = loads(layout.partitions, [each.node.id for each in layout.brokers], {})
    return [
        {
            "broker": each.node.id,
            "address": each.node.address,
            "rack": each.node.rack,
            "state": "fenced" if each.is_fenced else "running",
            "controller": controller is not None and controller.id == each.node.id,
            "replicas": held[each.node.id].replicas,
            "preferred_leaders": held[each.node.id].leaders,
            "bytes": held[each.node.id].size,
        }
        for each in layout.brokers
    ]


def render_brokers(options: argparse.Namespace, rows: list[dict[str, object]]) -> Output:
    headers = ["BROKER", "ADDRESS", "RACK", "STATE", "CONTROLLER", "REPLICAS", "PREFERRED-LEADERS", "SIZE"]
    shown = [[*list(row.values())[:-1], size_text(int(str(row["bytes"])))] for row in rows]
    return Output(rows, [Table(headers, shown)])


def drain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", type=int32)
    add_move_arguments(parser)


def drain(admin: "Admin", options: argparse.Namespace) -> Moves:
    from barnabas.client.balancing import TooFewBrokersError, plan_moves

    layout = read_layout(admin)
    check_known([options.broker], layout)
    check_idle(layout)
    try:
        plan = plan_moves(layout.partitions, layout.racks, leaving=[options.broker], only_leaving=True)
    except TooFewBrokersError as error:
        raise Refused(f"broker {options.broker} cannot be drained: {error}") from error
    return move_or_show(admin, options, layout, plan)


def decommission_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", type=int32)


def decommission(admin: "Admin", options: argparse.Namespace) -> int:
    """Only a broker that is drained and stopped is taken out: a running one would register again."""
    layout = read_layout(admin)
    broker: int = options.broker
    check_known([broker], layout)
    held = [key for key, placed in layout.partitions.items() if broker in placed.replicas]
    if held:
        raise Refused(
            f"broker {broker} still holds {counted(len(held), 'replica')}:"
            f" run `barnabas broker drain {broker} --execute`"
        )
    if any(each.node.id == broker and not each.is_fenced for each in all_brokers(admin)):
        raise Refused(f"broker {broker} is running: stop it first")
    admin.unregister_broker(broker)
    return broker


def render_decommissioned(options: argparse.Namespace, broker: int) -> Output:
    return Output({"broker": broker, "decommissioned": True}, [f"broker {broker} is no longer part of the cluster"])


VERBS = (
    Command("list", "list brokers with what they hold", no_arguments, with_admin(list_brokers), render_brokers),
    Command(
        "drain",
        "move all replicas of a broker to the others",
        drain_arguments,
        with_admin(drain),
        render_moves,
        description="Move all replicas of a broker to the others. Shows the moves; --execute carries them out.",
    ),
    Command(
        "decommission",
        "take a drained and stopped broker out of the cluster",
        decommission_arguments,
        with_admin(decommission),
        render_decommissioned,
    ),
)

main = noun_main("broker", "Brokers of a cluster.", VERBS)

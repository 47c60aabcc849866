"""`kafka-cluster.sh`: the cluster's id and its brokers; taking a broker out of it for good."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused
from barnabas.cli.kafka.flags import integer
from barnabas.cli.kafka.subcommands import admin_of_options, tool_main, with_admin

if TYPE_CHECKING:
    from barnabas.client.admin import Admin


def config_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", "-c", metavar="FILE", dest="command_config", default=argparse.SUPPRESS)


def unregister_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--id", "-i", type=integer, required=True, help="the broker")
    config_argument(parser)


def endpoints_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--include-fenced-brokers", action="store_true", help="brokers that serve nobody too")
    config_argument(parser)


def print_cluster_id(admin: Admin, options: argparse.Namespace) -> None:
    cluster_id = admin.describe_cluster().cluster_id
    missing = "No cluster ID found. The Kafka version is probably too old."
    print(f"Cluster ID: {cluster_id}" if cluster_id else missing)


def unregister(admin: Admin, options: argparse.Namespace) -> None:
    from barnabas.errors import ErrorCode, KafkaError

    try:
        admin.unregister_broker(options.id)
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        print("The target cluster does not support the broker unregistration API.")
    else:
        print(f"Broker {options.id} is no longer registered.")


def list_endpoints(options: argparse.Namespace) -> None:
    if options.include_fenced_brokers and options.bootstrap_controller:
        raise Refused("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    with admin_of_options(options) as admin:
        brokers = admin.describe_cluster(include_fenced_brokers=options.include_fenced_brokers).brokers
    host_width = max((len(each.node.host) for each in brokers), default=0)
    rack_width = max([10, *(len(each.node.rack or "") for each in brokers)])
    line = f"%-10s %-{max(host_width, 1)}s %-10s %-{rack_width}s %-10s %-15s"
    print(line % ("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"))
    for each in brokers:
        node, state = each.node, "fenced" if each.is_fenced else "unfenced"
        print(line % (node.id, node.host, node.port, node.rack or "null", state, "broker"))


main = tool_main(
    "kafka-cluster.sh",
    "The Kafka cluster tool.",
    (
        Command(
            "cluster-id", "Get information about the ID of a cluster.", config_argument, with_admin(print_cluster_id)
        ),
        Command("unregister", "Unregister a broker.", unregister_arguments, with_admin(unregister)),
        Command("list-endpoints", "List endpoints", endpoints_arguments, list_endpoints),
    ),
)

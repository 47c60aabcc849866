"""`kafka-cluster.sh`: the cluster's id and its brokers; taking a broker out of it for good."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from barnabas.cli.kafka.flags import integer
from barnabas.cli.kafka.subcommands import Failed, Parser, admin_of_options, run, subcommand, tool_parser


def main(arguments: Sequence[str] | None = None) -> int:
    return run(_parser(), arguments, _run)


def _parser() -> Parser:
    parser, commands = tool_parser("kafka-cluster.sh", "The Kafka cluster tool.")
    about = subcommand(commands, "cluster-id", "Get information about the ID of a cluster.")
    unregister = subcommand(commands, "unregister", "Unregister a broker.")
    unregister.add_argument("--id", "-i", type=integer, required=True, help="the broker")
    endpoints = subcommand(commands, "list-endpoints", "List endpoints")
    endpoints.add_argument("--include-fenced-brokers", action="store_true", help="brokers that serve nobody too")
    for each in (about, unregister, endpoints):
        each.add_argument("--config", "-c", metavar="FILE", dest="command_config", default=argparse.SUPPRESS)
    return parser


def _run(options: argparse.Namespace) -> None:
    from barnabas.errors import ErrorCode, KafkaError

    if options.command == "list-endpoints" and options.include_fenced_brokers and options.bootstrap_controller:
        raise Failed("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    with admin_of_options(options) as admin:
        if options.command == "cluster-id":
            cluster_id = admin.describe_cluster().cluster_id
            told = f"Cluster ID: {cluster_id}" if cluster_id else None
            print(told or "No cluster ID found. The Kafka version is probably too old.")
        elif options.command == "unregister":
            try:
                admin.unregister_broker(options.id)
            except KafkaError as error:
                if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                    raise
                print("The target cluster does not support the broker unregistration API.")
            else:
                print(f"Broker {options.id} is no longer registered.")
        else:
            brokers = admin.describe_cluster(include_fenced_brokers=options.include_fenced_brokers).brokers
            _print_endpoints(
                [(each.node.id, each.node.host, each.node.port, each.node.rack, each.is_fenced) for each in brokers]
            )


def _print_endpoints(rows: list[tuple[int, str, int, str | None, bool]]) -> None:
    host_width = max((len(host) for _, host, _, _, _ in rows), default=0)
    rack_width = max([10, *(len(rack or "") for _, _, _, rack, _ in rows)])
    line = f"%-10s %-{max(host_width, 1)}s %-10s %-{rack_width}s %-10s %-15s"
    print(line % ("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"))
    for broker_id, host, port, rack, fenced in rows:
        print(line % (broker_id, host, port, rack or "null", "fenced" if fenced else "unfenced", "broker"))

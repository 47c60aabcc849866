"""`kafka-e2e-latency.sh`: how long a record takes from the producer to the consumer. Prints EndToEndLatency's lines.

The five values by their places, or by KIP-1147's flags.
"""

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.command import Refused
from barnabas.cli.exit_status import FAILED
from barnabas.cli.kafka.failures import FailureReport, reported
from barnabas.cli.kafka.flags import BOOTSTRAP_SERVER, COMMAND_CONFIG, COMMAND_PROPERTY, Flag, Options, Tool, WrongUse

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

PLACES = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size", "command-config")
TOOL = Tool(
    "kafka-e2e-latency.sh",
    "This tool measures end-to-end latency in Kafka by producing messages and timing their reception."
    " Its values may stand in this order without their flags: broker_list topic num_messages producer_acks"
    " message_size_bytes [properties_file].",
    (
        BOOTSTRAP_SERVER,
        COMMAND_CONFIG,
        COMMAND_PROPERTY,
        Flag("topic", "The topic to use; created if it is not there (required).", "TOPIC"),
        Flag("num-records", "How many records (required).", "N", int),
        Flag("producer-acks", "Who must have a record: 1 or all (required).", "ACKS"),
        Flag("record-size", "Bytes of a record (required).", "BYTES", int),
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and not words[0].startswith("-"):
        if len(words) not in (5, 6):
            print(
                "USAGE: kafka-e2e-latency.sh broker_list topic num_messages producer_acks message_size_bytes"
                " [optional] properties_file",
                file=sys.stderr,
            )
            return FAILED
        words = [word for name, value in zip(PLACES, words) if value for word in (f"--{name}", value)]
    return TOOL.run(words, check, CALL)


def check(options: Options) -> None:
    options.require(*PLACES[:5])
    if options.value("producer-acks") not in ("1", "all"):
        raise WrongUse("Latency testing requires synchronous acknowledgement. Please use 1 or all")


def measure_latency(options: Options) -> None:
    from barnabas.cli.data.latency_load import RoundTripError, measure, result_lines
    from barnabas.cli.kafka.connection import admin_of, client_config, consumer_of, producer_of

    config = client_config(options)
    topic = options.value("topic")
    reading = {
        "group.id": f"test-group-{time.time_ns() // 1_000_000}",
        "enable.auto.commit": "false",
        "auto.offset.reset": "latest",
        "fetch.max.wait.ms": "0",
    }
    writing = {"linger.ms": "0", "acks": options.value("producer-acks")}
    with admin_of(config) as admin:
        _create(admin, topic)
    with consumer_of({**config, **reading}) as consumer, producer_of({**config, **writing}) as to:
        count, size = options.value("num-records"), options.value("record-size")
        try:
            taken = measure(to, consumer, topic, count, size, lambda line: print(line, flush=True))
        except RoundTripError as error:
            raise Refused(str(error)) from None
        print("\n".join(result_lines(taken)))
        consumer.commit()


def _create(admin: "Admin", topic: str) -> None:
    if topic not in admin.list_topics(include_internal=True):
        print(f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1')
        admin.create_topic(topic, partitions=1, replication_factor=1)


CALL = reported(measure_latency, FailureReport(with_exception=True, also=(Refused,)))

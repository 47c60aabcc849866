"""`kafka-verifiable-producer.sh`: numbers 0, 1, 2 ... to a topic, and a line of JSON about each of them.

Used by system tests. SIGTERM and Ctrl-C: what was sent is waited for, then shutdown_complete and tool_data.
"""

import time
from functools import partial
from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import BOOTSTRAP_SERVER, COMMAND_CONFIG, COMMAND_PROPERTY, Flag, Options, Tool, refuse

if TYPE_CHECKING:
    from barnabas.cli.kafka.json_events import JsonEvents
    from barnabas.client.producer import Producer
    from barnabas.client.producer.fast_path import Delivery
    from barnabas.stop_signals import StopRequest

TOOL = Tool(
    "kafka-verifiable-producer.sh",
    "This tool produces increasing integers to the specified topic and prints JSON metadata to stdout on each"
    ' "send" request, making externally visible which messages have been acked and which have not.',
    (
        BOOTSTRAP_SERVER,
        Flag("topic", "The topic to produce to (required).", "TOPIC"),
        Flag("max-messages", "How many; -1 is until it is stopped.", "N", int, default=-1),
        Flag("throughput", "Records per second, roughly; -1 is no limit.", "N", int, default=-1),
        Flag("acks", "Who must have a record: 0, 1 or -1.", "ACKS", int, default=-1),
        Flag("message-create-time", "Timestamp of the first record, in ms.", "MS", int, default=-1),
        Flag("value-prefix", "Put this number and a dot before each value.", "N", int),
        Flag("repeating-keys", "Keys 0, 1 ... up to this number, then again from 0.", "N", int),
        COMMAND_CONFIG,
        COMMAND_PROPERTY,
    ),
)


def check(options: Options) -> None:
    for name in ("topic", "bootstrap-server"):
        if not options.has(name):
            refuse(f"argument --{name} is required")
    if options.value("acks") not in (0, 1, -1):
        refuse(f"argument --acks: invalid choice: '{options.value('acks')}' (choose from {{0,1,-1}})")


def produce(options: Options) -> int:
    from barnabas.cli.kafka.connection import kafka_exception, producer_of
    from barnabas.cli.kafka.json_events import JsonEvents
    from barnabas.client.errors import ConfigError
    from barnabas.stop_signals import StopRequest

    events = JsonEvents()
    numbers = _Numbers(options, events)
    started = time.monotonic()
    with StopRequest() as stop:
        try:
            with producer_of(_config(options)) as producer:
                events.emit("startup_complete")
                _send(options, numbers, producer, stop)
        except ConfigError as error:
            refuse(kafka_exception(error))
        except KeyboardInterrupt:
            pass  # the second one: what is on its way is given up
        events.emit("shutdown_complete")
        rate = numbers.acked / max(time.monotonic() - started, 0.001)
        target = options.value("throughput")
        events.emit("tool_data", sent=numbers.sent, acked=numbers.acked, target_throughput=target, avg_throughput=rate)
        return stop.status


def _send(options: Options, numbers: "_Numbers", producer: "Producer", stop: "StopRequest") -> None:
    started = time.monotonic()
    limit, throughput = options.value("max-messages"), options.value("throughput")
    while not stop.requested and (limit < 0 or numbers.sent < limit):
        numbers.send_next(producer)
        ahead = numbers.sent / throughput - (time.monotonic() - started) if throughput > 0 else 0
        if ahead > 0:
            time.sleep(ahead)


class _Numbers:
    """Sends one number after the other and reports the outcomes."""

    def __init__(self, options: Options, events: "JsonEvents") -> None:
        self._topic = options.value("topic")
        self._prefix = options.value("value-prefix")
        self._keys = options.value("repeating-keys")
        self._create_time = options.value("message-create-time")
        self._started_ms = _now_ms()
        self._events = events
        self.sent = 0
        self.acked = 0

    def send_next(self, producer: "Producer") -> None:
        from barnabas.errors import KafkaError

        value = str(self.sent) if self._prefix is None else f"{self._prefix}.{self.sent}"
        key = None if self._keys is None else str(self.sent % self._keys)
        timestamp = None
        if self._create_time != -1:
            timestamp = self._create_time
            self._create_time += _now_ms() - self._started_ms
        self.sent += 1
        try:
            producer.send(
                self._topic,
                value.encode(),
                None if key is None else key.encode(),
                timestamp=timestamp,
                on_delivery=partial(self._on_delivery, key, value),
            )
        except KafkaError as error:
            self._fail(key, value, error)

    def _on_delivery(self, key: str | None, value: str, delivery: "Delivery") -> None:
        error = delivery.exception(0)
        if error is not None:
            self._fail(key, value, error)
            return
        self.acked += 1
        topic, partition, offset, _ = delivery.result(0)
        self._events.emit(
            "producer_send_success", key=key, value=value, offset=offset, topic=topic, partition=partition
        )

    def _fail(self, key: str | None, value: str, error: Exception) -> None:
        from barnabas.cli.kafka.connection import exception_name, kafka_text
        from barnabas.errors import KafkaError

        assert isinstance(error, KafkaError)
        self._events.emit(
            "producer_send_error",
            topic=self._topic,
            key=key,
            value=value,
            exception=f"class {exception_name(error)}",
            message=kafka_text(error),
        )


def _config(options: Options) -> dict[str, str]:
    """As in Kafka properties override the flags, and nothing is retried unless they say so."""
    from barnabas.cli.kafka.connection import client_config

    return {"acks": str(options.value("acks")), "retries": "0", **client_config(options)}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


main = TOOL.main(check, produce)

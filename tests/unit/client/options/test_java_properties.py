"""A properties file of the Java client: its class names, and the life of what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from barnabas import Consumer, Producer, aio, serializers
from barnabas.client.errors import ConfigError
from barnabas.client.options import AdminOptions, ConsumerOptions, ProducerOptions

JAVA = "org.apache.kafka.common.serialization."
KINDS = ("Integer", "Long", "Short", "Float", "Double", "String", "UUID", "ByteBuffer", "Void", "Boolean")
SERVERS = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_serializers(kind: str) -> None:
    made = ProducerOptions.from_config({**SERVERS, "key.serializer": f"{JAVA}{kind}Serializer"})
    assert type(made.key_serializer) is getattr(serializers, f"{kind}Serializer")
    read = ConsumerOptions.from_config({**SERVERS, "value.deserializer": f"{JAVA}{kind}Deserializer"})
    assert type(read.value_deserializer) is getattr(serializers, f"{kind}Deserializer")


@pytest.mark.parametrize("kind", ["ByteArray", "Bytes"])
def test_bytes_need_no_function(kind: str) -> None:
    for given in (f"{JAVA}{kind}Serializer", getattr(serializers, f"{kind}Serializer")):
        assert ProducerOptions.from_config({**SERVERS, "value.serializer": given}).value_serializer is None
    given = f"{JAVA}{kind}Deserializer"
    assert ConsumerOptions.from_config({**SERVERS, "value.deserializer": given}).value_deserializer is None


def test_partitioners_and_assignors() -> None:
    producer = "org.apache.kafka.clients.producer."
    made = ProducerOptions.from_config({**SERVERS, "partitioner.class": producer + "RoundRobinPartitioner"})
    assert made.partitioner_class == "round-robin"
    made = ProducerOptions.from_config({**SERVERS, "partitioner.class": producer + "internals.DefaultPartitioner"})
    assert made.partitioner_class is None
    with pytest.raises(ConfigError, match=r"partitioner\.ignore\.keys"):
        ProducerOptions.from_config({**SERVERS, "partitioner.class": producer + "UniformStickyPartitioner"})
    consumer = "org.apache.kafka.clients.consumer."
    names = ",".join(
        consumer + name
        for name in ("CooperativeStickyAssignor", "RangeAssignor", "RoundRobinAssignor", "StickyAssignor")
    )
    read = ConsumerOptions.from_config({**SERVERS, "partition.assignment.strategy": names})
    assert read.partition_assignment_strategy == ("cooperative-sticky", "range", "roundrobin", "sticky")


@pytest.mark.parametrize("name", ["com.example.MySerializer", JAVA + "StringDeserializer"])
def test_other_classes_are_refused_and_those_there_are_named(name: str) -> None:
    with pytest.raises(ConfigError, match="IntegerSerializer, LongSerializer"):
        ProducerOptions.from_config({**SERVERS, "value.serializer": name})


FOR_JAVA_ALONE = {
    "metric.reporters": "com.example.Reporter",
    "auto.include.jmx.reporter": "true",
    "interceptor.classes": "com.example.Audit,io.example.Trace",
    "security.providers": "com.example.Provider",
    "sasl.kerberos.service.name": "kafka",
}


def test_what_has_no_meaning_here_is_ignored_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    for_consumers = {"max.poll.records": "7", "value.deserializer": "com.example.Avro"}
    made = ProducerOptions.from_config({**SERVERS, **FOR_JAVA_ALONE, **for_consumers, "acks": "1"})
    assert (made.acks, made.interceptor_classes) == (1, ())
    (warning,) = caplog.records
    assert all(name in warning.getMessage() for name in (*FOR_JAVA_ALONE, *for_consumers))
    assert "acks" not in warning.getMessage() and warning.name == "barnabas.client"
    assert ConsumerOptions.from_config({**SERVERS, **FOR_JAVA_ALONE, "acks": "1"}).max_poll_records == 500
    AdminOptions.from_config({**SERVERS, **FOR_JAVA_ALONE, "acks": "1", **for_consumers})


def test_a_typo_and_what_would_be_given_up_are_refused() -> None:
    given_up = {"ssl.engine.factory.class": "a.B", "sasl.login.callback.handler.class": "a.B"}
    with pytest.raises(ConfigError) as raised:
        ProducerOptions.from_config({**SERVERS, **given_up, "linger.m": "5", "max.poll.record": "7"})
    assert [fault.split(":")[0] for fault in raised.value.faults] == [*given_up, "linger.m", "max.poll.record"]


def test_a_python_interceptor_in_a_config_is_used() -> None:
    class Audit:
        def on_send(self, record: Any) -> Any:
            return record

    made = ProducerOptions.from_config({**SERVERS, "interceptor.classes": [Audit]})
    assert [type(each) for each in made.interceptor_classes] == [Audit]


def test_a_function_that_is_a_type_stays_one() -> None:
    assert ConsumerOptions.of("h:1", value_deserializer=int).value_deserializer is int


class Plugin:
    """An interceptor, a partitioner, an assignor: `configure(configs)`."""

    name = "mine"

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def configure(self, configs: Mapping[str, Any]) -> None:
        self.calls.append(("configure", configs["client.id"]))

    def close(self) -> None:
        self.calls.append("close")

    def on_send(self, record: Any) -> Any:
        return record

    def on_consume(self, records: Any) -> Any:
        return records

    def assign(self, counts: Any, members: Any) -> Any:
        return {}

    def __call__(self, *_: Any) -> int:
        return 0


class Coder:
    """A serializer: `configure(configs, is_key)`."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        self.calls.append(("configure", configs["client.id"], is_key))

    def close(self) -> None:
        self.calls.append("close")
        raise OSError("logged, and no reason for the others to stay open")

    def __call__(self, value: Any) -> Any:
        return value


PLAIN = [("configure", "c"), "close"]
AS_KEY, AS_VALUE = [[("configure", "c", is_key), "close"] for is_key in (True, False)]


def test_a_producer_configures_and_closes_what_is_the_users() -> None:
    interceptor, partitioner, key, value = Plugin(), Plugin(), Coder(), Coder()
    with Producer(
        "127.0.0.1:1",
        client_id="c",
        interceptor_classes=[interceptor],
        partitioner_class=partitioner,
        key_serializer=key,
        value_serializer=value,
    ) as producer:
        assert interceptor.calls == PLAIN[:1] and key.calls == AS_KEY[:1]
    producer.close()
    assert (interceptor.calls, partitioner.calls, key.calls, value.calls) == (PLAIN, PLAIN, AS_KEY, AS_VALUE)


def test_a_consumer_configures_and_closes_what_is_the_users() -> None:
    interceptor, assignor, key, value = Plugin(), Plugin(), Coder(), Coder()
    with Consumer(
        "127.0.0.1:1",
        client_id="c",
        interceptor_classes=[interceptor],
        partition_assignment_strategy=[assignor],
        key_deserializer=key,
        value_deserializer=value,
    ) as consumer:
        assert interceptor.calls == PLAIN[:1]
    consumer.close()
    assert (interceptor.calls, assignor.calls, key.calls, value.calls) == (PLAIN, PLAIN, AS_KEY, AS_VALUE)


@pytest.mark.parametrize("kind", [Producer, aio.Producer, Consumer, aio.Consumer])
def test_one_that_cannot_be_configured_is_a_fault_of_the_options(kind: Any) -> None:
    class Broken(Plugin):
        def configure(self, configs: Mapping[str, Any]) -> None:
            raise KeyError("my.setting")

    with pytest.raises(ConfigError, match=r"interceptor_classes: Broken.configure\(\) failed: KeyError"):
        kind("127.0.0.1:1", interceptor_classes=[Broken])


def test_an_encoding_of_a_properties_file() -> None:
    config = {**SERVERS, "value.serializer": JAVA + "StringSerializer", "value.serializer.encoding": "UTF-16"}
    with Producer.from_config(config) as producer:
        serializer = producer._core.core.options.value_serializer
        assert serializer is not None and serializer("A") == b"\xfe\xff\x00A"
    with pytest.raises(ConfigError, match="value_serializer: StringSerializer"):
        Producer.from_config({**config, "value.serializer.encoding": "no-such"})

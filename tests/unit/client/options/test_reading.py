"""What happens with what people type: all faults at once, the nearest name, types, rules between options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.client.errors import ConfigError
from barnabas.client.options import AdminOptions, ConsumerOptions, ProducerOptions
from barnabas.client.options.consumer import reset_duration_ms
from barnabas.errors import ErrorCode, KafkaError


def faults(table: type[Any], **options: object) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as raised:
        table.of("localhost:9092", **options)
    return raised.value.faults


def test_the_example_everybody_types() -> None:
    options = ProducerOptions.of("localhost:9092", acks="all", linger_ms=5, compression_type="lz4")
    assert options.bootstrap_servers == ("localhost:9092",)
    assert (options.acks, options.linger_ms, options.compression_type) == (-1, 5, "lz4")
    assert options.given == {"bootstrap_servers", "acks", "linger_ms", "compression_type"}


def test_kafkas_own_names_with_text_for_values() -> None:
    options = ConsumerOptions.from_config(
        {"bootstrap.servers": "a:1, b:2", "group.id": "g", "max.poll.records": "7", "enable.auto.commit": "false"}
    )
    assert options.bootstrap_servers == ("a:1", "b:2")
    assert (options.group_id, options.max_poll_records, options.enable_auto_commit) == ("g", 7, False)
    assert ConsumerOptions.from_config({"bootstrap.servers": ["a:1"], "max.poll.records": 7}).max_poll_records == 7


def test_all_faults_are_named_at_once() -> None:
    found = faults(
        ProducerOptions,
        lingerms=1,
        acks="2",
        batch_size="x",
        metric_reporters="a.B",
        compression_type="zip",
        retries=-1,
    )
    assert found == (
        "lingerms: unknown option, did you mean linger_ms?",
        "acks: '2' is not allowed, it must be all, 0 or 1",
        "batch_size: 'x' is not allowed, it must be a whole number",
        "metric_reporters: not supported here, the client's counters are read in Python, and its log is the logger"
        " barnabas.client",
        "compression_type: 'zip' is not allowed, it must be one of: none, gzip, snappy, lz4, zstd",
        "retries: -1 is not allowed, it must be between 0 and 2147483647",
    )


def test_the_error_is_what_one_would_catch() -> None:
    with pytest.raises(ValueError) as raised:
        AdminOptions.of("localhost")
    assert isinstance(raised.value, KafkaError)
    assert raised.value.code == ErrorCode.INVALID_CONFIG
    assert not raised.value.retriable
    assert "bootstrap_servers: 'localhost' is not host:port" in str(raised.value)


@pytest.mark.parametrize(
    ("spelled", "hint"),
    [
        ("lingerms", "did you mean linger_ms?"),
        ("linger.sm", "did you mean linger.ms?"),
        ("max_inflight_requests_per_connection", "did you mean max_in_flight_requests_per_connection?"),
        ("queue.buffering.max.ms", "here it is linger.ms"),
        ("ssl_cafile", "here it is ssl_truststore_location"),
        ("sasl_plain_username", "here it is sasl_username"),
        ("ssl_certfile", "ssl.keystore.location (one PEM file"),
        ("error_cb", "errors are raised by the calls"),
    ],
)
def test_a_name_that_is_not_quite_right(spelled: str, hint: str) -> None:
    assert hint in faults(ProducerOptions, **{spelled: 1})[0]


def test_a_name_like_no_other_gets_no_hint() -> None:
    assert faults(ProducerOptions, zzzzzzzz=1) == ("zzzzzzzz: unknown option",)


def test_an_option_of_another_client_is_unknown() -> None:
    assert "unknown option" in faults(ProducerOptions, group_id="g")[0]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("linger_ms", "5", "whole number"),
        ("linger_ms", 5.0, "whole number"),
        ("linger_ms", True, "whole number"),
        ("linger_ms", 1 << 63, "whole number from"),
        ("batch_size", 1 << 31, "whole number from"),
        ("linger_ms", None, "whole number"),
        ("enable_idempotence", "true", "True or False"),
        ("enable_idempotence", 1, "True or False"),
        ("client_id", 5, "text"),
        ("bootstrap_servers", 5, "list of text"),
        ("key_serializer", "json", "must be a function"),
        ("interceptor_classes", "a.b.C", "Python objects"),
        ("partitioner_class", "mine", "must be a function, or one of"),
        ("security_protocol", 3, "one of"),
        ("transactional_id", "", "not empty"),
        ("acks", True, "all, 0 or 1"),
        ("enable_metrics_push", "maybe", "True or False"),
        ("ssl_truststore_type", "JKS", "PEM"),
    ],
)
def test_wrong_types_and_values(option: str, value: object, words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ProducerOptions.of(**{"bootstrap_servers": "h:1", option: value})
    assert any(fault.startswith(f"{option}: ") and words in fault for fault in raised.value.faults), raised.value.faults


class Sees:
    def on_send(self, record: object) -> object:
        return record

    def on_commit(self, offsets: object, error: object) -> None:
        return


class Demanding(Sees):
    def __init__(self, needed: int) -> None:
        self.needed = needed


@pytest.mark.parametrize("kind", [ProducerOptions, ConsumerOptions])
def test_interceptors_are_objects_or_classes_to_make_them_of(kind: type[Any]) -> None:
    given = Sees()
    made = kind.of("h:1", interceptor_classes=[given, Sees]).interceptor_classes
    assert made[0] is given
    assert type(made[1]) is Sees


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([object()], "object has no on_"),
        ([Demanding], "Demanding() cannot be made: "),
        ([None], "NoneType has no on_"),
        (Sees(), "a list"),
        ([lambda record: record], "function has no on_"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "methods"),
    [(ProducerOptions, "on_send and no on_acknowledgement"), (ConsumerOptions, "on_consume and no on_commit")],
)
def test_what_is_no_interceptor(kind: type[Any], methods: str, given: object, words: str) -> None:
    (fault,) = faults(kind, interceptor_classes=given)
    assert fault.startswith("interceptor_classes: ") and words in fault, fault
    assert methods in fault or "has no" not in fault


@pytest.mark.parametrize("option", ["ssl_truststore_location", "ssl_keystore_location"])
def test_a_file_that_is_not_there_is_reported_at_once(option: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    assert faults(AdminOptions, security_protocol="SSL", **{option: str(missing)}) == (
        f"{option}: {missing}: No such file or directory",
    )
    assert "Is a directory" in faults(AdminOptions, security_protocol="SSL", **{option: str(tmp_path)})[0]
    missing.write_bytes(b"")
    AdminOptions.of("h:1", security_protocol="SSL", **{option: str(missing)})  # what is in it is looked at later


def test_a_secret_is_in_no_text() -> None:
    found = faults(AdminOptions, sasl_password=b"hunter2", sasl_jaas_config="hunter2", security_protocol="SASL_SSL")
    assert "hunter2" not in " ".join(found)
    options = AdminOptions.of(
        "h:1", security_protocol="sasl_ssl", sasl_mechanism="plain", sasl_username="u", sasl_password="hunter2"
    )
    assert "hunter2" not in repr(options)
    assert (options.security_protocol, options.sasl_mechanism) == ("SASL_SSL", "PLAIN")


@pytest.mark.parametrize("address", ["h:9092", "127.0.0.1:1", "[::1]:9092", "[fe80::1%eth0]:1", "PLAINTEXT://h:9092"])
def test_addresses(address: str) -> None:
    assert AdminOptions.of(address).bootstrap_servers == (address,)


@pytest.mark.parametrize("address", ["h", "h:", ":9092", "h:0", "h:65536", "::1:9092", "h:x", "h 1:9092", "[::1]"])
def test_bad_addresses(address: str) -> None:
    with pytest.raises(ConfigError, match="is not host:port"):
        AdminOptions.of(address)


def test_no_address_at_all() -> None:
    with pytest.raises(ConfigError, match="bootstrap_servers: missing"):
        AdminOptions.of()
    with pytest.raises(ConfigError, match="at least one host:port"):
        AdminOptions.of("")
    with pytest.raises(ConfigError, match="given twice"):
        AdminOptions.of("h:1", bootstrap_servers="h:2")
    with pytest.raises(ConfigError, match="given twice"):
        AdminOptions.from_config({"bootstrap.servers": "h:1", "client.id": "a", "client_id": "b"})


# --- rules between options ---


def test_idempotence_gives_way_only_if_it_was_not_asked_for() -> None:
    assert ProducerOptions.of("h:1").enable_idempotence
    assert not ProducerOptions.of("h:1", acks=1).enable_idempotence
    assert not ProducerOptions.of("h:1", retries=0).enable_idempotence
    assert "acks: must be all" in faults(ProducerOptions, acks=1, enable_idempotence=True)[0]
    assert "at most 5" in faults(ProducerOptions, max_in_flight_requests_per_connection=6)[0]
    assert ProducerOptions.of("h:1", max_in_flight_requests_per_connection=6, enable_idempotence=False)
    assert "transactional_id: needs" in faults(ProducerOptions, transactional_id="t", acks=1)[0]


def test_a_delivery_has_time_for_one_request() -> None:
    assert "at least linger_ms + request_timeout_ms" in faults(ProducerOptions, delivery_timeout_ms=1000)[0]
    assert ProducerOptions.of("h:1", request_timeout_ms=200_000).delivery_timeout_ms == 200_005


def test_a_buffer_that_no_batch_fits_into() -> None:
    (fault,) = faults(ProducerOptions, buffer_memory=16_383)
    assert fault == "buffer_memory: must be at least batch_size (16384), or no batch fits into it"
    assert "batch_size (40000000)" in faults(ProducerOptions, batch_size=40_000_000)[0]
    assert ProducerOptions.of("h:1", buffer_memory=16_384).buffer_memory == 16_384
    assert ProducerOptions.of("h:1", buffer_memory=1000, batch_size=1000).batch_size == 1000


def test_groups() -> None:
    assert not ConsumerOptions.of("h:1").enable_auto_commit
    assert ConsumerOptions.of("h:1", group_id="g").enable_auto_commit
    assert "needs a group_id" in faults(ConsumerOptions, enable_auto_commit=True)[0]
    assert "less than session_timeout_ms" in faults(ConsumerOptions, group_id="g", session_timeout_ms=2000)[0]
    assert "needs group_protocol" in faults(ConsumerOptions, group_id="g", group_remote_assignor="uniform")[0]
    assert (
        "leave it out" in faults(ConsumerOptions, group_id="g", group_protocol="consumer", session_timeout_ms=9999)[0]
    )


def test_where_to_begin() -> None:
    assert ConsumerOptions.of("h:1", auto_offset_reset="EARLIEST").auto_offset_reset == "earliest"
    options = ConsumerOptions.of("h:1", auto_offset_reset="by_duration:p1dt2h3m4.5s")
    assert reset_duration_ms(options.auto_offset_reset) == 93_784_500
    assert reset_duration_ms("latest") is None
    for bad in ("by_duration:P", "by_duration:PT", "smallest", "by_duration:1D"):
        assert "auto_offset_reset" in faults(ConsumerOptions, auto_offset_reset=bad)[0]


def test_security_options_that_would_do_nothing_are_faults() -> None:
    assert "without effect unless security_protocol is SASL" in faults(AdminOptions, sasl_username="u")[0]
    assert "without effect unless security_protocol is SSL" in faults(AdminOptions, ssl_truststore_location="x")[0]
    assert "GSSAPI is not offered" in faults(AdminOptions, security_protocol="SASL_SSL")[0]
    assert "both are needed" in faults(AdminOptions, security_protocol="SASL_SSL", sasl_mechanism="PLAIN")[0]


def test_longest_pauses() -> None:
    assert "retry_backoff_max_ms (5) is less than" in faults(AdminOptions, retry_backoff_max_ms=5)[0]
    assert AdminOptions.of("h:1", retry_backoff_ms=5000)


# --- what is Python ---


def test_names_of_java_classes_that_have_a_twin_here() -> None:
    kafka = "org.apache.kafka."
    producer = ProducerOptions.from_config(
        {
            "bootstrap.servers": "h:1",
            "key.serializer": kafka + "common.serialization.StringSerializer",
            "value.serializer": kafka + "common.serialization.ByteArraySerializer",
            "partitioner.class": kafka + "clients.producer.RoundRobinPartitioner",
        }
    )
    assert producer.key_serializer is not None
    assert producer.key_serializer("é") == "é".encode() and producer.key_serializer(None) is None
    assert producer.value_serializer is None
    assert producer.partitioner_class == "round-robin"
    consumer = ConsumerOptions.from_config(
        {
            "bootstrap.servers": "h:1",
            "value.deserializer": kafka + "common.serialization.StringDeserializer",
            "partition.assignment.strategy": kafka + "clients.consumer.StickyAssignor",
        }
    )
    assert consumer.value_deserializer is not None and consumer.value_deserializer(b"\xc3\xa9") == "é"
    assert consumer.partition_assignment_strategy == ("sticky",)


def test_assignors() -> None:
    class Mine:
        name = "mine"

        def assign(self) -> None: ...

    mine = Mine()
    assert ConsumerOptions.of("h:1", partition_assignment_strategy=mine).partition_assignment_strategy == (mine,)
    assert ConsumerOptions.of("h:1", partition_assignment_strategy=["range", mine])
    assert "none twice" in faults(ConsumerOptions, partition_assignment_strategy=["range", "range"])[0]
    assert "must be out of" in faults(ConsumerOptions, partition_assignment_strategy="best")[0]


def test_options_do_not_change() -> None:
    options = AdminOptions.of("h:1")
    with pytest.raises(AttributeError):
        options.client_id = "other"  # type: ignore[misc]
    assert not hasattr(options, "__dict__")

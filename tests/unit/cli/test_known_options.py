"""One properties file for all kinds of clients: each takes its own out of it."""

from __future__ import annotations

from barnabas.cli.known_options import known_options
from barnabas.client.options import AdminOptions, ConsumerOptions, ProducerOptions

SHARED = {
    "client.id": "mine",
    "group.id": "g",
    "linger.ms": "5",
    "key.serializer": "com.example.Avro",
    "value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
}


def test_options_of_other_kinds_are_left_out_silently() -> None:
    told: list[str] = []
    assert list(known_options(AdminOptions, SHARED, warn=told.append)) == ["client.id"]
    assert list(known_options(ConsumerOptions, SHARED, warn=told.append)) == ["client.id", "group.id"]
    assert list(known_options(ProducerOptions, SHARED, warn=told.append)) == ["client.id", "linger.ms"]
    assert told == []


def test_what_no_client_has_is_reported_with_the_nearest_name() -> None:
    told: list[str] = []
    config = {"retry.backof.ms": "1", "schema.registry.url": "x", "message.timeout.ms": "1", "debug": "all"}
    assert known_options(ProducerOptions, config, "a.properties", told.append) == {}
    assert told == [
        "a.properties: retry.backof.ms: no client has this option, left out (did you mean retry.backoff.ms?)",
        "a.properties: schema.registry.url: no client has this option, left out",
        "a.properties: message.timeout.ms: no client has this option, left out (here it is delivery.timeout.ms)",
        "a.properties: debug: no client has this option, left out (set the level of the logger barnabas.client)",
    ]


def test_what_a_client_refuses_it_refuses_itself() -> None:
    config = {"sasl.kerberos.service.name": "kafka", "bootstrap_servers": "a:1"}
    taken = known_options(ConsumerOptions, config)
    assert taken == {"sasl.kerberos.service.name": "kafka", "bootstrap.servers": "a:1"}

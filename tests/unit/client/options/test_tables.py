"""The tables against Kafka's own: every option of 4.1 is taken or refused, with Kafka's default where there is a reason
for none, and the TypedDicts say the same as the tables."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from barnabas.client.options import (
    AdminKwargs,
    AdminOptions,
    ConsumerKwargs,
    ConsumerOptions,
    ProducerKwargs,
    ProducerOptions,
)
from barnabas.client.options.option import Option

TABLES = [ProducerOptions, ConsumerOptions, AdminOptions]

# Name and default as Apache Kafka 4.1.0 has them (ProducerConfig, ConsumerConfig, AdminClientConfig).
COMMON = """bootstrap.servers client.dns.lookup=use_all_dns_ips client.id enable.metrics.push metadata.max.age.ms=300000
    metadata.recovery.rebootstrap.trigger.ms=300000 metadata.recovery.strategy=rebootstrap metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms receive.buffer.bytes
    reconnect.backoff.max.ms=1000 reconnect.backoff.ms=50 request.timeout.ms=30000 retry.backoff.max.ms=1000
    retry.backoff.ms=100 sasl.client.callback.handler.class sasl.jaas.config=null sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
    security.protocol=PLAINTEXT security.providers send.buffer.bytes socket.connection.setup.timeout.max.ms=30000
    socket.connection.setup.timeout.ms=10000 ssl.cipher.suites ssl.enabled.protocols=TLSv1.2,TLSv1.3
    ssl.endpoint.identification.algorithm=https ssl.engine.factory.class ssl.key.password=null
    ssl.keymanager.algorithm ssl.keystore.certificate.chain=null ssl.keystore.key=null ssl.keystore.location=null
    ssl.keystore.password ssl.keystore.type ssl.protocol=TLSv1.3 ssl.provider ssl.secure.random.implementation
    ssl.trustmanager.algorithm ssl.truststore.certificates=null ssl.truststore.location=null ssl.truststore.password
    ssl.truststore.type"""
KAFKA = {
    ProducerOptions: COMMON
    + """ acks=-1 batch.size=16384 buffer.memory=33554432 compression.gzip.level=-1 compression.lz4.level=9
    compression.type=none compression.zstd.level=3 connections.max.idle.ms=540000 delivery.timeout.ms=120000
    enable.idempotence=true interceptor.classes key.serializer linger.ms=5 max.block.ms=60000
    max.in.flight.requests.per.connection=5 max.request.size=1048576 metadata.max.idle.ms=300000
    partitioner.adaptive.partitioning.enable=true partitioner.availability.timeout.ms=0 partitioner.class=null
    partitioner.ignore.keys=false retries=2147483647 transaction.timeout.ms=60000
    transaction.two.phase.commit.enable=false transactional.id=null value.serializer""",
    ConsumerOptions: COMMON
    + """ allow.auto.create.topics auto.commit.interval.ms=5000 auto.offset.reset=latest check.crcs=true
    client.rack connections.max.idle.ms=540000 default.api.timeout.ms=60000 enable.auto.commit=true
    exclude.internal.topics=true fetch.max.bytes=52428800 fetch.max.wait.ms=500 fetch.min.bytes=1 group.id=null
    group.instance.id=null group.protocol=classic group.remote.assignor=null heartbeat.interval.ms=3000
    interceptor.classes internal.leave.group.on.close internal.throw.on.fetch.stable.offset.unsupported
    isolation.level=read_uncommitted key.deserializer max.partition.fetch.bytes=1048576 max.poll.interval.ms=300000
    max.poll.records=500 partition.assignment.strategy=range,cooperative-sticky session.timeout.ms=45000
    share.acknowledgement.mode value.deserializer""",
    AdminOptions: COMMON
    + """ bootstrap.controllers connections.max.idle.ms=300000 default.api.timeout.ms=60000 retries=2147483647""",
}
OWN = {"sasl.username", "sasl.password", "sasl.oauthbearer.token.callback", "sasl.scram.token.auth"} | {
    f"{which}{kind}.encoding" for which in ("key.", "value.", "") for kind in ("serializer", "deserializer")
}
"""What Kafka says in sasl.jaas.config only, and options of its StringSerializer."""


def kafka_defaults(table: type[Any]) -> dict[str, str | None]:
    """Name -> default as text; None where ours differs or there is none to compare."""
    return {name: default or None for name, _, default in (item.partition("=") for item in KAFKA[table].split())}


@pytest.mark.parametrize("table", TABLES)
def test_every_option_of_kafka_is_known(table: type[Any]) -> None:
    known = set(table.settings) | set(table.refused)
    assert known - OWN == set(kafka_defaults(table))
    assert not set(table.settings) & set(table.refused)


@pytest.mark.parametrize("table", TABLES)
def test_the_defaults_are_kafkas(table: type[Any]) -> None:
    wanted = {name: default for name, default in kafka_defaults(table).items() if default is not None}
    ours = {name: table.settings[name].text(table.settings[name].default) or "null" for name in wanted}
    assert ours == wanted


@pytest.mark.parametrize("table", TABLES)
def test_every_option_has_a_name_a_doc_and_a_default_that_passes_its_own_check(table: type[Any]) -> None:
    for name, option in table.settings.items():
        assert isinstance(option, Option)
        assert option.name == name
        assert option.doc.endswith("."), name
        if option.default is not None:
            assert option.value(option.default, from_text=False) == option.default, name


@pytest.mark.parametrize(
    ("table", "kwargs"),
    [(ProducerOptions, ProducerKwargs), (ConsumerOptions, ConsumerKwargs), (AdminOptions, AdminKwargs)],
)
def test_editors_know_the_same_options(table: type[Any], kwargs: type[Any]) -> None:
    fields = {option.field for option in table.settings.values()}
    assert set(get_type_hints(kwargs)) == fields - {"bootstrap_servers"}


@pytest.mark.parametrize("table", TABLES)
def test_what_is_refused_says_what_to_do(table: type[Any]) -> None:
    for name, advice in table.refused.items():
        assert len(advice) > 10, name

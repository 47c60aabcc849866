"""Options of the Spark source and sink: the official connector's names, every fault at once."""

import pytest

from barnabas.client.errors import ConfigError
from barnabas.spark.offsets import (
    FROM_EARLIEST,
    FROM_LATEST,
    OffsetSpec,
    parse_assignment,
    parse_offsets,
    position_of,
    read_position,
)
from barnabas.spark.options import read_sink_options, read_source_options, with_group
from barnabas.spark.writing import producer_options
from barnabas.types import TopicPartition

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def faults(options: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        read_source_options(options)
    return caught.value.faults


def test_all_options_of_the_official_connector() -> None:
    options = read_source_options(
        {
            "kafka.bootstrap.servers": "a:1,b:2",
            "kafka.isolation.level": "read_committed",
            "subscribePattern": "dwd_.*",
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "100",
            "minOffsetsPerTrigger": "10",
            "maxTriggerDelay": "2m",
            "minPartitions": "8",
            "maxRecordsPerPartition": "1000",
            "failOnDataLoss": "false",
            "includeHeaders": "true",
            "groupId": "g",
            "kafkaConsumer.pollTimeoutMs": "512",
            "fetchOffset.numRetries": "5",
            "fetchOffset.retryIntervalMs": "10",
        }
    )
    assert options.client == {"bootstrap.servers": "a:1,b:2", "isolation.level": "read_committed"}
    assert options.subscribe_pattern == "dwd_.*" and options.starting == FROM_EARLIEST
    assert (options.max_offsets_per_trigger, options.min_offsets_per_trigger) == (100, 10)
    assert options.max_trigger_delay_ms == 120_000 and options.min_partitions == 8
    assert options.max_records_per_partition == 1000
    assert not options.fail_on_data_loss and options.include_headers and options.group_id == "g"
    assert (options.poll_timeout_ms, options.offset_retries, options.offset_retry_interval_ms) == (512, 5, 10)


def test_names_are_case_insensitive_as_in_spark() -> None:
    options = read_source_options({"KAFKA.BOOTSTRAP.SERVERS": "a:1", "SUBSCRIBE": "x, y", "startingoffsets": "latest"})
    assert options.subscribe == ("x", "y") and options.starting == FROM_LATEST
    assert options.client == {"bootstrap.servers": "a:1"}


def test_every_fault_is_named() -> None:
    found = faults(
        {"subscibe": "x", "failOnDataLoss": "maybe", "minPartitions": "0", "kafka.auto.offset.reset": "latest"}
    )
    assert found == (
        "subscibe: unknown option, did you mean subscribe?",
        "failOnDataLoss: 'maybe' is not allowed, it must be true or false",
        "minPartitions: '0' is not allowed, it must be a positive integer",
        "kafka.bootstrap.servers: is required, as host:port,...",
        "one of subscribe, subscribePattern or assign is required",
        "kafka.auto.offset.reset: use startingOffsets",
    )


@pytest.mark.parametrize(
    ("extra", "fault"),
    [
        ({"assign": '{"a":[0]}'}, "exclude each other"),
        ({"subscribePattern": "("}, "not a regular expression"),
        ({"startingOffsets": "soon"}, 'it must be earliest or latest or JSON like {"orders": {"0": 23}}'),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "below -2"),
        ({"endingOffsets": "earliest"}, "it must be latest or JSON"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "cannot be the end of a read"),
        ({"startingTimestamp": "yesterday"}, "milliseconds since 1970"),
        ({"startingOffsetsByTimestamp": '{"orders": 1}'}, "JSON like"),
        ({"maxTriggerDelay": "soon"}, "a duration such as"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "greater than maxOffsetsPerTrigger"),
        ({"path": "/tmp/x"}, "not files"),
    ],
)
def test_faults(extra: dict[str, str], fault: str) -> None:
    assert any(fault in each for each in faults(BASE | extra))


def test_precedence_of_starts_is_the_official_one() -> None:
    times = {"startingTimestamp": "5", "startingOffsetsByTimestamp": '{"orders":{"0":7}}', "startingOffsets": "latest"}
    assert read_source_options(BASE | times).starting == OffsetSpec("timestamps", 5)
    del times["startingTimestamp"]
    late = {"startingOffsetsByTimestampStrategy": "latest"}
    expected = OffsetSpec("timestamps", None, {TopicPartition("orders", 0): 7}, "latest")
    assert read_source_options(BASE | times | late).starting == expected


def test_offsets_and_assignments() -> None:
    spec = parse_offsets('{"orders": {"0": 23, "1": -2}}', may_be=("earliest", "latest"))
    assert spec.by_partition == {TopicPartition("orders", 0): 23, TopicPartition("orders", 1): -2}
    assert parse_assignment('{"a": [1, 0, 1]}') == {"a": (0, 1)}
    for text in ("[]", "{}", '{"a": []}', '{"a": [-1]}', '{"a": [true]}', "nonsense"):
        with pytest.raises(ValueError, match="JSON like"):
            parse_assignment(text)


def test_positions_in_a_checkpoint() -> None:
    offsets = {TopicPartition("b", 0): 1, TopicPartition("a", 10): 2, TopicPartition("a", 9): 3}
    position = position_of(offsets, {"a": "ida", "b": "idb"})
    assert position == {"a": {"topicId": "ida", "9": 3, "10": 2}, "b": {"topicId": "idb", "0": 1}}
    assert read_position(position) == (offsets, {"a": "ida", "b": "idb"})
    for foreign in ({"offset": 5}, {"a": {"0": "x"}}, {"a": {"zero": 1}}):
        with pytest.raises(ValueError, match="not written by this source"):
            read_position(foreign)  # type: ignore[arg-type]


def test_sink() -> None:
    sink = read_sink_options({"kafka.bootstrap.servers": "a:1", "topic": "t", "delivery": "at-least-once"})
    assert sink.topic == "t" and not sink.exactly_once and sink.client == {"bootstrap.servers": "a:1"}
    assert read_sink_options({"kafka.bootstrap.servers": "a:1"}).exactly_once
    with pytest.raises(ConfigError) as caught:
        read_sink_options({"delivery": "twice", "kafka.transactional.id": "x", "topik": "t"})
    assert len(caught.value.faults) == 4


def test_the_group_of_the_consumers() -> None:
    """None by default; with a prefix each query has its own; kafka.group.id wins over a prefix."""
    assert "group.id" not in with_group(read_source_options(BASE)).client
    prefixed = read_source_options({**BASE, "groupIdPrefix": "team"})
    first, second = (with_group(prefixed).client["group.id"] for _ in range(2))
    assert first.startswith("team-") and second.startswith("team-") and first != second
    fixed = read_source_options({**BASE, "groupIdPrefix": "team", "kafka.group.id": "mine"})
    assert with_group(fixed).client["group.id"] == "mine"
    assert with_group(fixed).group_id is None, "nothing is committed there"


TRUST = "kafka.ssl.truststore.location"
KEY = "kafka.ssl.keystore.location"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {TRUST: "/x/trust.jks"},
            (f"{TRUST}: a JKS store", "`keytool -list -rfc -keystore /x/trust.jks > /x/trust.pem`"),
        ),
        (
            {TRUST: "/x/trust", "kafka.ssl.truststore.type": "pkcs12"},
            ("kafka.ssl.truststore.type: a PKCS12 store", "-keystore /x/trust > /x/trust.pem`"),
        ),
        ({KEY: "/x/me.p12"}, (f"{KEY}: a PKCS12 store", "with `openssl pkcs12 -in /x/me.p12 -nodes -out /x/me.pem`")),
        (
            {KEY: "/x/me.jks"},
            ("`keytool -importkeystore -srckeystore /x/me.jks -destkeystore /x/me.p12", "openssl pkcs12 -in /x/me.p12"),
        ),
    ],
)
def test_stores_of_java_are_refused_with_the_way_out(given: dict[str, str], words: tuple[str, ...]) -> None:
    (fault,) = faults({**BASE, **given})
    assert all(each in fault for each in words), fault
    with pytest.raises(ConfigError) as caught:
        read_sink_options({"kafka.bootstrap.servers": "a:1", "topic": "t", **given})
    assert caught.value.faults == (fault,)


def test_pem_is_taken() -> None:
    given = {"kafka.ssl.truststore.location": "/x/trust.pem", "kafka.ssl.keystore.type": "PEM"}
    assert read_source_options({**BASE, **given}).client["ssl.truststore.location"] == "/x/trust.pem"


def test_batches_of_the_sink_fill_while_the_sender_is_busy() -> None:
    """A batch size is a bound once it is given, so the sink gives none of its own."""
    base = {"kafka.bootstrap.servers": "localhost:9092", "topic": "orders"}
    assert "batch_size" not in producer_options(read_sink_options(base)).given
    chosen = producer_options(read_sink_options({**base, "kafka.batch.size": "50000"}))
    assert chosen.batch_size == 50_000
    assert "batch_size" in chosen.given

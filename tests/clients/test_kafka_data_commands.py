"""kafka-console-producer.sh and kafka-console-consumer.sh: Apache Kafka's and ours, on the same broker."""

from __future__ import annotations

import struct

import pytest
from confluent import make_topic
from confluent_kafka.admin import AdminClient
from data_commands import Done, kafkas, ours

from barnabas import Consumer, Producer
from barnabas.server.java_hash import partition_for

pytestmark = pytest.mark.java

Written = list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]]


def written(bootstrap: str, topic: str) -> Written:
    with Consumer(bootstrap) as consumer:
        partitions = [(topic, each.partition) for each in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = sum(consumer.end_offsets(partitions).values())
        records: list = []
        while len(records) < ends:
            records += consumer.poll(1.0)
    return [(record.key, record.value, list(record.headers)) for record in records]


CASES = {
    "lines": ([], "one\r\ntwo\n\nümläut\rnot UTF-8: \udcff\nlast without end", 6),
    "keys, headers and null": (
        ["--property", "parse.key=true", "--property", "parse.headers=true", "--property", "null.marker=NULL"],
        "a:1,b:2\tkey\tvalue\nNULL\tNULL\tNULL\nh:NULL\tk\tv\tw\n:\t\t\n",
        4,
    ),
    "separators of one's own, errors ignored": (
        [
            *("--property", "parse.key=true", "--property", "key.separator=--", "--property", "parse.headers=true"),
            *("--property", "headers.delimiter=|", "--property", "headers.separator=;"),
            *("--property", "headers.key.separator==", "--property", "ignore.error=true"),
        ],
        "h=1;i=2;|k--v--w\nno marks at all\nh|k--v\nk--v\n",
        4,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_console_producer(bootstrap: str, admin: AdminClient, new_name: str, case: str) -> None:
    words, lines, count = CASES[case]
    topics = [make_topic(admin, f"{new_name[:200]}.{who}", 1) for who in ("kafka", "ours")]
    for run, topic in zip((kafkas, ours), topics, strict=True):
        done = run("console_producer", "--bootstrap-server", bootstrap, "--topic", topic, *words, stdin=lines)
        assert (done.status, done.out) == (0, ""), done.err
    expected, actual = (written(bootstrap, topic) for topic in topics)
    assert actual == expected and len(actual) == count


@pytest.mark.parametrize(
    "words",
    [
        ["--property", "parse.key=true"],
        ["--property", "parse.headers=true", "--property", "headers.delimiter=:"],
    ],
)
def test_console_producer_that_fails(bootstrap: str, topic: str, words: list[str]) -> None:
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, *words]
    expected, actual = (run("console_producer", *arguments, stdin="no mark\n") for run in (kafkas, ours))
    assert (actual.status, actual.out) == (expected.status, expected.out) == (1, "")
    assert f"KafkaException: {actual.err.splitlines()[0]}" in expected.err


@pytest.fixture(scope="module")
def full_topic(bootstrap: str, admin: AdminClient) -> str:
    """A partition with keys, values, headers, null, and bytes that are not text."""
    topic = make_topic(admin, "data-commands.console", 1)
    with Producer(bootstrap) as producer:
        for key, value, headers in (
            (b"k", b"v", [("h", b"1"), ("i", None)]),
            (None, b"no key", None),
            (b"tombstone", None, [("h", b"")]),
            (None, None, None),
            ("ü".encode(), b"\xff\x00bytes\\", [("ä", "ö".encode())]),
        ):
            producer.send(topic, value, key, headers=headers, timestamp=1_700_000_000_000)
    return topic


ALL = [
    word
    for name in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
    for word in ("--property", f"print.{name}=true")
]
READ = ["--partition", "0", "--offset", "earliest", "--max-messages"]
FORMATTER = "org.apache.kafka.tools.consumer."
CONSUMER_CASES = {
    "values": [*READ, "5"],
    "everything": [*READ, "5", *ALL],
    "separators": [
        *(*READ, "5", *ALL, "--property", "key.separator=|", "--property", "line.separator=;\n"),
        *("--property", "headers.separator=&", "--property", "null.literal=<null>"),
    ],
    "no value": [*READ, "2", "--property", "print.value=false", "--property", "print.key=true"],
    "nothing": [*READ, "2", "--property", "print.value=false"],
    "no operation": [*READ, "3", "--formatter", f"{FORMATTER}NoOpMessageFormatter"],
    "logging": [*READ, "3", "--formatter", f"{FORMATTER}LoggingMessageFormatter", "--property", "print.key=true"],
    "an offset": ["--partition", "0", "--offset", "3", "--max-messages", "1", "--property", "print.offset=true"],
    "printable bytes": [*READ, "5", "--value-deserializer", "org.apache.kafka.common.serialization.BytesDeserializer"],
    "an error skipped": [
        *(*READ, "5", "--skip-message-on-error"),
        *("--value-deserializer", "org.apache.kafka.common.serialization.ShortDeserializer"),
    ],
    "an error": [*READ, "5", "--value-deserializer", "org.apache.kafka.common.serialization.LongDeserializer"],
    "a time limit": ["--from-beginning", "--timeout-ms", "3000", "--group", "data-commands.group"],
}


def comparable(done: Done) -> tuple[int, str, list[str]]:
    return done.status, done.out, [line for line in done.err.splitlines() if line.startswith("Processed")]


@pytest.mark.parametrize("case", CONSUMER_CASES)
def test_console_consumer(bootstrap: str, full_topic: str, case: str) -> None:
    words = CONSUMER_CASES[case]
    if "--group" in words:
        kafka_words, our_words = ([*words[:-1], f"{words[-1]}.{who}"] for who in ("kafka", "ours"))
    else:
        kafka_words = our_words = words
    common = ["--bootstrap-server", bootstrap, "--topic", full_topic]
    expected = kafkas("console_consumer", *common, *kafka_words)
    actual = ours("console_consumer", *common, *our_words)
    assert comparable(actual) == comparable(expected)
    assert len(comparable(actual)[2]) == 1


NUMBERS = {
    "Integer": (">i", [0, -1, 2**31 - 1]),
    "Long": (">q", [-(2**63), 12]),
    "Short": (">h", [-3, 300]),
    "Double": (">d", [0.0, 1.0, -2.5, 0.001, 0.0009, 1e7, 9999999.0, 1.5e300, 123.456, 1e-10, float("inf")]),
    "Float": (">f", [0.0, 1.0, 3.14159, 1e10, 0.1, 16777216.0]),
}


def test_deserializers(bootstrap: str, admin: AdminClient, new_name: str) -> None:
    topics = {}
    with Producer(bootstrap) as producer:
        for name, (layout, values) in NUMBERS.items():
            topics[name] = make_topic(admin, f"{new_name}.{name}", 1)
            for value in values:
                producer.send(topics[name], struct.pack(layout, value))
    for name, topic in topics.items():
        words = ["--bootstrap-server", bootstrap, "--topic", topic, *READ, str(len(NUMBERS[name][1]))]
        words += ["--value-deserializer", f"org.apache.kafka.common.serialization.{name}Deserializer"]
        expected, actual = (run("console_consumer", *words) for run in (kafkas, ours))
        assert comparable(actual) == comparable(expected), name


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--topic", "t", "--include", "t"],
        ["--topic", "t", "--offset", "1"],
        ["--topic", "t", "--partition", "0", "--offset", "-1"],
        ["--topic", "t", "--partition", "0", "--group", "g"],
        ["--topic", "t", "--from-beginning", "--consumer-property", "auto.offset.reset=latest"],
        ["--topic", "t", "--group", "a", "--consumer-property", "group.id=a", "--partition", "0"],
    ],
)
def test_console_consumer_wrong_use(bootstrap: str, words: list[str]) -> None:
    expected, actual = (run("console_consumer", "--bootstrap-server", bootstrap, *words) for run in (kafkas, ours))
    assert (actual.status, actual.out) == (expected.status, expected.out) == (1, "")
    assert actual.err.splitlines()[0].rstrip() == expected.err.splitlines()[0].rstrip()


@pytest.mark.parametrize(
    ("formatter", "topic"),
    [
        ("OffsetsMessageFormatter", "__consumer_offsets"),
        ("GroupMetadataMessageFormatter", "__consumer_offsets"),
        ("TransactionLogMessageFormatter", "__transaction_state"),
    ],
)
def test_formatters_of_the_coordinators_topics(bootstrap: str, full_topic: str, formatter: str, topic: str) -> None:
    name = f"data-commands.{formatter}"
    with Consumer(bootstrap, group_id=name, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([full_topic])
        assert consumer.poll(30.0)
        consumer.commit()
    with Producer(bootstrap, transactional_id=name) as producer, producer.transaction():
        producer.send(full_topic, b"in a transaction")
    with Consumer(bootstrap) as consumer:
        partition = partition_for(name, len(consumer.partitions_for(topic)))
        count = consumer.end_offsets([(topic, partition)])[(topic, partition)]
    words = [
        *("--bootstrap-server", bootstrap, "--topic", topic, "--partition", str(partition), "--offset", "earliest"),
        *("--max-messages", str(count), "--formatter", FORMATTER + formatter),
    ]
    expected, actual = kafkas("console_consumer", *words), ours("console_consumer", *words)
    assert comparable(actual) == comparable(expected)
    assert actual.out.count('{"key":{"type":') >= 1 and name in actual.out

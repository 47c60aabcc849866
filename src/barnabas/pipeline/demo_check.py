"""The final check of the demo: the DWD, DIM and dirty topics must be exactly what the rules make of the ODS topics.

`expected_rows` reads every ODS record and splits it again, in plain Python without Spark; `found_rows` reads every
row that the pipeline wrote, both with read_committed. `check` compares them as multisets by topic (missing, duplicate
and unexpected rows) and, if these are equal, the order of the rows of each key.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.pipeline.changes import split_change
from barnabas.pipeline.demo_reading import read_all
from barnabas.pipeline.events import EventSplitter
from barnabas.pipeline.job import SHANGHAI_MS
from barnabas.pipeline.ods_records import DIRTY_TOPIC, DirtyRecordError, OutputRow
from barnabas.pipeline.routing import Routing
from barnabas.pipeline.split import CHANGE_TOPIC, LOG_TOPIC
from barnabas.pipeline.visits import Visits
from barnabas.records.codec import ConsumerRecord
from barnabas.types import TopicPartition

_EXAMPLES: Final = 3

Headers = tuple[tuple[str, bytes | None], ...]


class Row(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    origin: TopicPartition
    """Where it was read, or the record it was made of."""
    offset: int

    @property
    def content(self) -> int:
        """A 64-bit digest represents a row, to bound memory."""
        return hash((self.key, self.value, self.headers))


Rows = Callable[[], Iterable[Row]]
"""Can be iterated more than once."""


@dataclass(slots=True)
class TopicCheck:
    topic: str
    expected: int
    found: int
    missing: int = 0
    twice: int = 0
    strange: int = 0
    """Rows that no ODS record explains."""
    disordered: int = 0
    """Keys whose rows are in another order."""
    examples: list[str] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        return not (self.missing or self.twice or self.strange or self.disordered)

    @property
    def words(self) -> str:
        parts = (
            f"{self.missing:,} missing" if self.missing else "",
            f"{self.twice:,} duplicate" if self.twice else "",
            f"{self.strange:,} unexpected" if self.strange else "",
            f"{self.disordered:,} keys in another order" if self.disordered else "",
        )
        return ", ".join(filter(None, parts))


class _Tally:
    """One side of the comparison."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.contents: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.orders: dict[tuple[str, bytes], tuple[TopicPartition, int]] = {}
        """By topic and key, of all its rows so far: where they came from, and a digest that depends on their order."""
        self.scattered: set[tuple[str, bytes]] = set()
        """Keys with rows from several partitions, which have no order."""
        for row in rows:
            self._add(row)

    def _add(self, row: Row) -> None:
        content = row.content
        self.contents[row.topic][content] += 1
        if row.key is None:
            return
        name = (row.topic, row.key)
        origin, digest = self.orders.get(name, (row.origin, 0))
        if origin != row.origin:
            self.scattered.add(name)
        self.orders[name] = (origin, hash((digest, content)))


def check(expected: Rows, found: Rows, topics: Iterable[str]) -> list[TopicCheck]:
    """One result per topic, in the order of `topics`; topics that only one side has come after them."""
    wanted, there = _Tally(expected()), _Tally(found())
    others = sorted({*wanted.contents, *there.contents} - set(topics))
    results = {topic: _compare(topic, wanted, there) for topic in (*topics, *others)}
    _count_disordered(wanted, there, results)
    if not all(each.is_ok for each in results.values()):
        _find_examples(wanted, there, expected, found, results)
    return list(results.values())


def _compare(topic: str, wanted: _Tally, there: _Tally) -> TopicCheck:
    before, after = wanted.contents[topic], there.contents[topic]
    surplus = after - before
    strange = sum(count for content, count in surplus.items() if content not in before)
    return TopicCheck(
        topic,
        expected=before.total(),
        found=after.total(),
        missing=(before - after).total(),
        twice=surplus.total() - strange,
        strange=strange,
    )


def _count_disordered(wanted: _Tally, there: _Tally, results: dict[str, TopicCheck]) -> None:
    equal = {topic for topic, result in results.items() if result.is_ok}
    for name, (_, digest) in wanted.orders.items():
        if name[0] in equal and name not in wanted.scattered and there.orders[name][1] != digest:
            results[name[0]].disordered += 1


def _find_examples(wanted: _Tally, there: _Tally, expected: Rows, found: Rows, results: dict[str, TopicCheck]) -> None:
    """Iterates over everything again; only needed after a failure."""
    sides = ((wanted, there, expected, "missing: from"), (there, wanted, found, "unexpected:"))
    for one, other, rows, word in sides:
        left = {topic: one.contents[topic] - other.contents[topic] for topic in results}
        for row in rows():
            examples = results[row.topic].examples
            if left[row.topic][row.content] > 0 and len(examples) < _EXAMPLES:
                left[row.topic][row.content] -= 1
                key = "none" if row.key is None else row.key.decode(errors="replace")
                examples.append(f"{word} {row.origin.topic}-{row.origin.partition}@{row.offset}, key {key}")


def expected_rows(bootstrap: str, routing: Routing, utc_offset_ms: int = SHANGHAI_MS) -> Iterator[Row]:
    """What the rules make of all ODS records. Each partition has its own devices, as in the pipeline."""
    splitters: dict[TopicPartition, EventSplitter] = {}
    for record in read_all(bootstrap, (LOG_TOPIC, CHANGE_TOPIC)):
        origin = TopicPartition(record.topic, record.partition)
        headers: Headers = ()
        try:
            if record.topic == LOG_TOPIC:
                if origin not in splitters:
                    splitters[origin] = EventSplitter(Visits({}, utc_offset_ms).repair)
                rows = splitters[origin].split(record.value)
            else:
                rows = split_change(record.value, routing)
        except DirtyRecordError as error:
            rows = [OutputRow(DIRTY_TOPIC, record.key, record.value)]
            headers = _dirty_headers(str(error), record)
        for row in rows:
            yield Row(row.topic, row.key, row.value, headers, origin, record.offset)


def _dirty_headers(reason: str, record: ConsumerRecord) -> Headers:
    fields = {"reason": reason, "topic": record.topic, "partition": record.partition, "offset": record.offset}
    return tuple((name, str(value).encode()) for name, value in fields.items())


def found_rows(bootstrap: str, topics: Iterable[str]) -> Iterator[Row]:
    for record in read_all(bootstrap, topics):
        origin = TopicPartition(record.topic, record.partition)
        yield Row(record.topic, record.key, record.value, tuple(record.headers), origin, record.offset)

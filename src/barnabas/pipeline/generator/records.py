"""One stream of generated records for both ODS topics. The same options and seed give the same records."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from barnabas.pipeline.generator.changes import FORMATS, ChangeFormat, Shop, write
from barnabas.pipeline.generator.events import EventMaker, Generation

LOG_TOPIC: Final = "ods_base_log"
CHANGE_TOPIC: Final = "ods_base_db"
_CHANGE_SHARE: Final = 0.1
_DEFAULT_START_MS: Final = 1_683_276_840_000


class GeneratedRecord(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    seed: int = 1
    generations: tuple[Generation, ...] = ("A", "B")
    formats: tuple[ChangeFormat, ...] = FORMATS
    devices: int = 10_000
    dirty: float = 0.0
    """Share of malformed records."""
    duplicates: float = 0.0
    """Share of records that are sent a second time, byte for byte."""
    start_ms: int = _DEFAULT_START_MS
    step_ms: float = 1.0
    """Event time that passes from one record to the next."""
    change_share: float = _CHANGE_SHARE


def generate(options: GeneratorOptions) -> Iterator[GeneratedRecord]:
    """Endless: the dimensions first, then events and changes mixed."""
    random = Random(options.seed)
    makers = [EventMaker(random, generation, options.devices) for generation in options.generations]
    shop = Shop(random)
    chance = random.random
    formats = options.formats
    for change in shop.dimensions(options.start_ms):
        yield GeneratedRecord(CHANGE_TOPIC, change.key, write(change, random.choice(formats)), change.timestamp)
    number = 0
    while True:
        now = options.start_ms + int(number * options.step_ms)
        if chance() < options.change_share:
            changes = shop.step(now)
            made = [
                GeneratedRecord(CHANGE_TOPIC, each.key, write(each, random.choice(formats)), now) for each in changes
            ]
        else:
            maker = makers[0] if len(makers) == 1 else random.choice(makers)
            made = [GeneratedRecord(LOG_TOPIC, *maker.event(now), now)]
        for record in made:
            number += 1
            yield record
            if options.duplicates and chance() < options.duplicates:
                yield record
            if options.dirty and chance() < options.dirty:
                yield _spoil(record, random)


def _spoil(record: GeneratedRecord, random: Random) -> GeneratedRecord:
    """Something that a faulty producer might send instead of this record."""
    value = record.value or b""
    spoilt = random.choice((value[: len(value) // 2], b"\xff\xfe" + value, b"", b"[]", b"{}", b'"text"', b"42", None))
    return record._replace(value=spoilt)

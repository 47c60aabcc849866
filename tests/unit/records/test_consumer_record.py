"""ConsumerRecord of both twins, the hash of keys, and the choice between the twins."""

import gc
import inspect
import os
import pickle
import subprocess
import sys
import weakref
from types import ModuleType
from typing import Any

import pytest

from barnabas.records import TimestampType, _pure
from barnabas.records import codec as chosen


def test_fields_and_defaults(codec: ModuleType) -> None:
    record = codec.ConsumerRecord("t", 1, 2)
    assert (record.topic, record.partition, record.offset, record.timestamp) == ("t", 1, 2, -1)
    assert (record.key, record.value, record.headers, record.leader_epoch) == (None, None, (), None)
    assert (record.serialized_key_size, record.serialized_value_size) == (-1, -1)
    assert record.timestamp_type is TimestampType.CREATE_TIME
    record = codec.ConsumerRecord(
        "t", 1, 2, 3, TimestampType.LOG_APPEND_TIME, b"key", b"value", (("h", None),), leader_epoch=6
    )
    assert (record.serialized_key_size, record.serialized_value_size, record.leader_epoch) == (3, 5, 6)
    assert record.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert repr(record) == (
        "ConsumerRecord(topic='t', partition=1, offset=2, timestamp=3, timestamp_type=LOG_APPEND_TIME, key=b'key', "
        "value=b'value', headers=(('h', None),), leader_epoch=6)"
    )


def test_equality(codec: ModuleType) -> None:
    fields = ("t", 1, 2, 3, TimestampType.CREATE_TIME, b"k", b"v", (("h", b""),), 4)
    record = codec.ConsumerRecord(*fields)
    assert record == codec.ConsumerRecord(*fields)
    others = ("u", 9, 9, 9, TimestampType.LOG_APPEND_TIME, b"l", None, (), None)
    for index, other in enumerate(others):
        assert record != codec.ConsumerRecord(*fields[:index], other, *fields[index + 1 :])
    assert record != fields
    with pytest.raises(TypeError):
        hash(record)


def test_deserialized_keeps_the_rest(codec: ModuleType) -> None:
    record = codec.ConsumerRecord("t", 1, 2, 3, TimestampType.LOG_APPEND_TIME, b"12", b"3456", (("h", b""),), 4)
    made = record.deserialized(12, {"n": 3456})
    assert (made.key, made.value) == (12, {"n": 3456})
    assert made.deserialized(b"12", b"3456") == record
    assert (made.serialized_key_size, made.serialized_value_size) == (2, 4)


def test_pickle(codec: ModuleType) -> None:
    record = codec.ConsumerRecord("t", 1, 2, 3, TimestampType.LOG_APPEND_TIME, b"12", None, (("h", b""),), 4)
    restored = pickle.loads(pickle.dumps(record.deserialized("text", [1])))
    assert type(restored) is chosen.ConsumerRecord
    assert (restored.key, restored.value, restored.serialized_key_size) == ("text", [1], 2)
    assert type(record)(*record.__reduce__()[1]) == record


class Order:
    record: object = None


def test_a_value_that_knows_its_record_is_collected(codec: ModuleType) -> None:
    order = Order()
    record = codec.RecordReader(bytes(_one_record(codec)), "t", 0).take(1)[0].deserialized(None, order)
    order.record = record
    gone = weakref.ref(order)
    del order, record
    gc.collect()
    assert gone() is None


def _one_record(codec: ModuleType) -> memoryview:
    buffer = codec.BatchBuffer(100)
    buffer.append(1, b"k", b"v")
    view: memoryview = buffer.finish()
    return view


@pytest.mark.parametrize(
    ("key", "hashed"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536),
     (b"a-little-bit-longer-string", -1486304829), (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
     (b"abc", 479470107), (b"", 275646681)],
)  # fmt: skip
def test_murmur2_gives_kafkas_own_examples(codec: ModuleType, key: bytes, hashed: int) -> None:
    for kind in (bytes, bytearray, memoryview):
        assert codec.murmur2(kind(key)) == hashed
        assert codec.partition_for_key(kind(key), 12) == (hashed & 0x7FFF_FFFF) % 12


@pytest.mark.parametrize("key", ["text", 5, None])
def test_a_key_is_bytes(codec: ModuleType, key: Any) -> None:
    with pytest.raises(TypeError):
        codec.murmur2(key)
    with pytest.raises(TypeError):
        codec.partition_for_key(key, 3)


def test_a_topic_has_partitions(codec: ModuleType) -> None:
    for partitions in (0, -1):
        with pytest.raises(ValueError, match=f"{partitions} partitions"):
            codec.partition_for_key(b"k", partitions)


@pytest.mark.parametrize("wanted", ["1", "0"])
def test_the_environment_chooses(wanted: str) -> None:
    code = "from barnabas.records import codec; print(codec.NATIVE, codec.BatchBuffer.__module__)"
    environment = os.environ | {"BARNABAS_PURE": wanted}
    printed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    if wanted == "1":
        assert printed == ["False", "barnabas.records._pure.batch_buffer"]
    else:
        assert (printed[0] == "True") == ("_native" in printed[1])


def test_the_twins_have_the_same_signatures() -> None:
    native = pytest.importorskip("barnabas.records._native", reason="the compiled codec is not built")
    assert native.__all__ == _pure.__all__
    for name in ("BatchBuffer", "ConsumerRecord", "RecordReader", "ArrowReader"):
        twins = [getattr(module, name) for module in (native, _pure)]
        methods = [
            member for member in dir(twins[0]) if not member.startswith("_") and callable(getattr(twins[0], member))
        ]
        assert methods
        for method in methods:
            names = [list(inspect.signature(getattr(twin, method)).parameters) for twin in twins]
            assert names[0] == names[1], f"{name}.{method}"

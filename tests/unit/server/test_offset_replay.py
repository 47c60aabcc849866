"""A shard that takes offset commits as they stand in the log comes to the same as one that decodes every record."""

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.config.broker import BrokerConfig
from barnabas.machines.group.classic.group import ClassicGroup
from barnabas.machines.group.settings import GroupSettings
from barnabas.machines.group.shard import GroupShard
from barnabas.protocol.messages.group_metadata_record import GroupMetadataKey
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.versioned import encode_record_key, encode_versioned
from barnabas.records import BatchBuilder, read_header
from barnabas.server.group_coordinator import CODEC

int64s = st.integers(-(2**63), 2**63 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
names = st.sampled_from(["", "g", "group", "ünïcode"])

keys = st.builds(OffsetCommitKey, group=names, topic=names, partition=st.one_of(st.integers(0, 2), int32s))
values = st.builds(
    OffsetCommitValue,
    offset=int64s,
    leader_epoch=int32s,
    metadata=st.sampled_from(["", "", "", "note", "m" * 200]),
    commit_timestamp=int64s,
    topic_id=st.sampled_from([bytes(16), b"\x01" * 16]),
)
encoded_values = st.builds(encode_versioned, values, st.sampled_from([0, 2, 3, 3, 4, 4, 4]))


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Some bytes cut off, added, or changed."""
    data = bytearray(draw(whole))
    how = draw(st.sampled_from(["as it is", "as it is", "shorter", "longer", "changed"]))
    if how == "shorter":
        del data[draw(st.integers(0, len(data))) :]
    elif how == "longer":
        data += draw(st.binary(min_size=1, max_size=20))
    elif how == "changed" and data:
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


commits = st.tuples(damaged(keys.map(encode_record_key)), st.one_of(st.none(), damaged(encoded_values)))
removals_of_groups = st.tuples(names.map(lambda name: encode_record_key(GroupMetadataKey(group=name))), st.none())
batches = st.tuples(st.booleans(), st.lists(st.one_of(commits, commits, commits, removals_of_groups), max_size=8))


def new_shard() -> GroupShard:
    return GroupShard(GroupSettings.of(BrokerConfig()), random.Random(0))


def state(shard: GroupShard) -> object:
    shard.offsets.check()
    groups = sorted((group.group_id, since(group)) for group in shard.registry)
    return groups, {group_id: shard.offsets.of_group(group_id) for group_id in sorted(shard.offsets.group_ids())}


def since(group: object) -> int:
    assert isinstance(group, ClassicGroup)
    return group.state_timestamp


PLAIN = encode_versioned(OffsetCommitValue(offset=5, metadata="", commit_timestamp=6), 4)
KEY = encode_record_key(OffsetCommitKey(group="g", topic="t", partition=1))
OTHER = encode_record_key(OffsetCommitKey(group="g", topic="t", partition=2))


OLDER = encode_versioned(OffsetCommitValue(offset=5, metadata="", commit_timestamp=6), 3)
ALMOST = [
    (KEY, OLDER[:15] + b"\1" + OLDER[16:]),  # metadata where there is no room for it
    (KEY, PLAIN[:14] + b"\2" + PLAIN[15:]),
    (KEY, PLAIN[:-1] + b"\1"),  # a tagged field that is missing
    (KEY[:-4] + b"?" + KEY[-4:], PLAIN),
    (b"\0\2" + KEY[2:], PLAIN),
]


@given(st.lists(batches, max_size=6))
@settings(max_examples=120)
@example([(False, ALMOST)])
@example([(False, [(KEY, PLAIN), (KEY, None), (OTHER, PLAIN)])])
@example([(False, [(KEY, PLAIN)]), (True, [(KEY, PLAIN)]), (False, [(OTHER, PLAIN)])])
def test_both_ways_lead_to_the_same(log: list[tuple[bool, list[tuple[bytes, bytes | None]]]]) -> None:
    quick, plain = new_shard(), new_shard()
    for number, (transactional, records) in enumerate(log):
        builder = BatchBuilder(producer_id=7, producer_epoch=0, transactional=True) if transactional else BatchBuilder()
        for key, value in records:
            builder.append(1000 + number, key, value)
        batch = builder.build()
        header = read_header(batch)
        for _ in CODEC.apply_batch(batch, header, quick):
            pass
        for decoded_key, decoded_value, context in CODEC.decode_batch(batch, header):
            plain.apply(decoded_key, decoded_value, context)
        if number % 3 == 2:
            quick.apply_marker(7, 0, True)
            plain.apply_marker(7, 0, True)
    assert state(quick) == state(plain)


def test_what_is_usual_is_not_decoded() -> None:
    """Or the test above would show nothing."""
    topic_id = encode_versioned(OffsetCommitValue(offset=5, metadata="", commit_timestamp=6, topic_id=b"\x01" * 16), 4)
    older = encode_versioned(OffsetCommitValue(offset=5, leader_epoch=3, metadata="", commit_timestamp=6), 3)
    for value in (PLAIN, older, topic_id):
        shard = new_shard()
        assert shard.apply_encoded(KEY, value, 0, 0)
        assert shard.offsets.get("g", "t", 1) is not None

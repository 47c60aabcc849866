"""Offsets against a model: a history of commits, transactions and deletions gives what a plain replay would give."""

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.machines.coordinator import ApplyContext
from barnabas.machines.group.offsets import Offsets
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue

GROUPS, TOPICS, PARTITIONS, PRODUCERS = ("g", "h"), ("t", "u"), (0, 1), (7, 8)
Place = tuple[str, str, int]

places = st.tuples(st.sampled_from(GROUPS), st.sampled_from(TOPICS), st.sampled_from(PARTITIONS))
steps = st.one_of(
    st.tuples(st.just("commit"), places, st.just(-1)),
    st.tuples(st.just("commit"), places, st.sampled_from(PRODUCERS)),
    st.tuples(st.just("delete"), places, st.just(-1)),
    st.tuples(st.sampled_from(("end", "abort")), st.just(("", "", 0)), st.sampled_from(PRODUCERS)),
)


class Model:
    """Every pending commit with its place in the log; nothing clever."""

    def __init__(self) -> None:
        self.committed: dict[Place, int] = {}
        self.pending: list[tuple[int, Place, int]] = []

    def play(self, number: int, what: str, place: Place, producer_id: int) -> None:
        if what == "delete":
            self.committed.pop(place, None)
            self.pending = [each for each in self.pending if each[1] != place]
        elif what == "commit" and producer_id == -1:
            self.committed[place] = number
        elif what == "commit":
            self.pending.append((producer_id, place, number))
        else:
            mine = [each for each in self.pending if each[0] == producer_id]
            self.pending = [each for each in self.pending if each[0] != producer_id]
            for _, pending_place, pending_number in mine if what == "end" else ():
                self.committed[pending_place] = max(pending_number, self.committed.get(pending_place, -1))


@given(st.lists(steps, max_size=40))
@settings(max_examples=60)
def test_offsets_are_those_of_the_model(history: list[tuple[str, Place, int]]) -> None:
    offsets, model = Offsets(), Model()
    for number, (what, place, producer_id) in enumerate(history):
        if what in ("end", "abort"):
            offsets.apply_marker(producer_id, what == "end")
        else:
            key = OffsetCommitKey(group=place[0], topic=place[1], partition=place[2])
            value = None if what == "delete" else OffsetCommitValue(offset=number, metadata="", commit_timestamp=0)
            offsets.apply(key, value, ApplyContext(number, 0, producer_id, 0, producer_id != -1))
        model.play(number, what, place, producer_id)
        offsets.check()
    for group_id in GROUPS:
        pending = [place for _, place, _ in model.pending if place[0] == group_id]
        assert offsets.has_open_transactions(group_id) == bool(pending)
        known = [place for place in model.committed if place[0] == group_id]
        assert sorted(offsets.partitions_of(group_id)) == sorted({place[1:] for place in known + pending})
        for topic in TOPICS:
            for partition in PARTITIONS:
                offset = offsets.get(group_id, topic, partition)
                assert (offset and offset.offset) == model.committed.get((group_id, topic, partition))
                assert offsets.is_pending(group_id, topic, partition) == ((group_id, topic, partition) in pending)

"""The log of MQTT sessions: who has a session is decided by its order alone, whoever appends."""

from dataclasses import replace
from random import Random

import pytest

from barnabas.machines.mqtt.session import (
    NEVER,
    Delivery,
    Intent,
    Session,
    StoredSubscription,
    StoredWill,
    decode_session,
    encode_intent,
    encode_session,
    intent_key,
    session_key,
)
from barnabas.machines.mqtt.table import Applied, Due, Duty, SessionTable

SESSION = Session(
    client_id="c",
    generation=5,
    nonce="n",
    user="User:ann",
    host="127.0.0.1",
    node_id=1,
    broker_epoch=7,
    expiry_seconds=60,
    will=StoredWill(b"\x30\x00", 10),
    subscriptions={"a/+": StoredSubscription(1, True, False, 2, 9), "$share/g/x": StoredSubscription(2)},
    topic_ids={"a.b": "00ff"},
    positions={("a.b", 0): 3, ("a.b", 11): 4},
    acknowledged={("a.b", 0): [5, 6]},
    deliveries=[Delivery(17, "a.b", 0, 3, 5)],
)
LIVE = {1: 7, 2: 9}


def put(table: SessionTable, session: Session) -> Applied:
    return table.apply(session_key(session.client_id), encode_session(session))[0]


def intent(packet_id: int, group: int, *, generation: int = 5, producer_id: int = 100) -> Intent:
    return Intent(packet_id, generation, producer_id, packet_id, "a.b", 0, group)


def put_intent(table: SessionTable, each: Intent) -> Applied:
    return table.apply(intent_key("c", each.packet_id), encode_intent(each))[0]


def test_a_session_comes_back_as_it_was_written() -> None:
    assert decode_session("c", encode_session(SESSION)) == SESSION


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b'{"v":2}', b"\xff", encode_session(SESSION)[:-1]])
def test_a_record_that_cannot_be_read_is_a_value_error(data: bytes) -> None:
    table = SessionTable()
    for key in (session_key("c"), intent_key("c", 1)):
        with pytest.raises(ValueError):
            table.apply(key, data)


def test_of_two_claims_at_once_the_first_one_counts() -> None:
    table = SessionTable()
    assert put(table, SESSION) is Applied.TAKEN
    assert put(table, replace(SESSION, nonce="other")) is Applied.IGNORED
    assert put(table, replace(SESSION, expiry_seconds=1)) is Applied.UPDATED
    assert put(table, replace(SESSION, nonce="other", generation=6)) is Applied.TAKEN
    assert put(table, SESSION) is Applied.IGNORED
    assert table.sessions["c"].nonce == "other"


def test_an_intent_of_an_owner_before_does_not_count() -> None:
    table = SessionTable()
    put(table, SESSION)
    assert put_intent(table, intent(1, 1)) is Applied.UPDATED
    put(table, replace(SESSION, nonce="other", generation=6))
    assert put_intent(table, intent(2, 1)) is Applied.IGNORED
    assert table.has_intent("c", intent(1, 1)) and not table.has_intent("c", intent(2, 1))
    assert table.packet_ids("c") == [1]


def test_all_groups_but_the_last_are_stored_for_certain() -> None:
    table = SessionTable()
    put(table, SESSION)
    for each in (
        intent(1, 1),
        intent(2, 1),
        intent(3, 2),
        intent(4, 3, producer_id=200),
        intent(5, 4, producer_id=200),
    ):
        put_intent(table, each)
    stored, unsure = table.intents("c")
    assert stored == {1, 2, 4} and unsure.keys() == {3, 5}
    table.apply(intent_key("c", 3), None)
    table.apply(session_key("c"), None)
    assert table.intents("c") == (set(), {}) and not table.sessions


def test_what_the_leader_has_to_see_to() -> None:
    table = SessionTable()
    ended = {"connected": False, "ended_ms": 1000}
    sessions = {
        "here": replace(SESSION, client_id="here"),
        "restarted": replace(SESSION, client_id="restarted", broker_epoch=6),
        "gone": replace(SESSION, client_id="gone", node_id=3),
        "will": replace(SESSION, client_id="will", **ended),
        "over": replace(SESSION, client_id="over", will=None, **ended),
        "kept": replace(SESSION, client_id="kept", will=None, expiry_seconds=NEVER, **ended),
    }
    for each in sessions.values():
        put(table, each)

    def due(now_ms: int) -> set[tuple[Duty, str]]:
        return {(each.duty, each.session.client_id) for each in table.due(now_ms, LIVE)}

    now = {(Duty.MARK_ENDED, "restarted"), (Duty.MARK_ENDED, "gone")}
    assert due(10_999) == now
    assert due(11_000) == now | {(Duty.PUBLISH_WILL, "will")}
    assert due(61_000) == now | {(Duty.PUBLISH_WILL, "will"), (Duty.REMOVE, "over")}
    assert isinstance(next(table.due(0, LIVE)), Due)


@pytest.mark.parametrize("seed", range(20))
def test_all_who_read_the_log_agree_also_from_a_compacted_one(seed: int) -> None:
    """The owner and whoever follows see one state; compaction may only keep what was not ignored."""
    random = Random(seed)
    log: list[tuple[bytes, bytes | None]] = []
    table = SessionTable()
    for _ in range(200):
        generation, nonce = random.randrange(1, 8), random.choice("ab")
        if random.random() < 0.5:
            record = session_key("c"), encode_session(replace(SESSION, generation=generation, nonce=nonce))
        else:
            packet_id = random.randrange(3)
            each = intent(packet_id, random.randrange(4), generation=generation)
            record = intent_key("c", packet_id), encode_intent(each) if random.random() < 0.6 else None
        if table.apply(*record)[0] is not Applied.IGNORED:
            log.append(record)
    compacted = SessionTable()
    last = {key: index for index, (key, _) in enumerate(log)}
    for index, (key, value) in enumerate(log):
        if last[key] == index:
            compacted.apply(key, value)
    assert compacted.sessions == table.sessions
    assert compacted.packet_ids("c") == table.packet_ids("c") or set(compacted.packet_ids("c")) == set(
        table.packet_ids("c")
    )

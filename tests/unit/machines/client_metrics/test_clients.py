"""Kafka's rules for clients that push metrics: who may ask and push when, and what is kept of whom."""

import pytest

from barnabas.errors import ErrorCode
from barnabas.machines.client_metrics import clients as clients_module
from barnabas.machines.client_metrics.clients import LINGER_MS, Client, Clients
from barnabas.machines.client_metrics.subscription import DEFAULT_INTERVAL_MS, Subscription
from barnabas.protocol.otlp_metrics import Point, PointKind, PushedMetrics

ID, OTHER_ID = b"i" * 16, b"o" * 16
ATTRIBUTES = {
    "client_id": "app-1",
    "client_software_name": "kafka-java",
    "client_software_version": "4.1.0",
    "client_source_address": "10.0.0.9",
    "client_source_port": "5000",
}
PUSHED = PushedMetrics({}, [Point("org.apache.kafka.x", PointKind.GAUGE, {}, 1)])


def clients_with(**config: str) -> Clients:
    clients = Clients(bytes.hex)
    clients.subscribe([Subscription.of({"interval.ms": "1000", "metrics": "*"} | config)])
    return clients


def known(clients: Clients, now_ms: int = 0, instance_id: bytes = ID, connection: str = "c") -> Client:
    return clients.client(instance_id, connection, ATTRIBUTES, "User:a", now_ms)


def pushed(clients: Clients, now_ms: int, subscription: int | None = None, *, terminating: bool = False) -> ErrorCode:
    client = known(clients, now_ms)
    wanted = client.wanted.subscription_id if subscription is None else subscription
    return clients.check_push(client, wanted, 4, terminating, now_ms)


def test_subscriptions_are_taken_together() -> None:
    clients = Clients(bytes.hex)
    clients.subscribe(
        [
            Subscription.of({"metrics": "org.apache.kafka.producer.,a", "interval.ms": "5000"}),
            Subscription.of({"metrics": "b,a", "interval.ms": "2000", "match": "client_id=app-.*"}),
            Subscription.of({"metrics": "*", "interval.ms": "100", "match": "client_id=app"}),
        ]
    )
    wanted = known(clients).wanted
    assert wanted[1:] == (("a", "b", "org.apache.kafka.producer."), 2000)
    assert known(clients, instance_id=OTHER_ID).wanted.subscription_id != wanted.subscription_id


def test_a_star_stands_for_all_and_without_a_subscription_nothing_is_asked_for() -> None:
    clients = clients_with(metrics="a,*")
    before = known(clients).wanted
    assert before.metrics == ("*",)
    clients.subscribe([])
    after = known(clients).wanted
    assert after[1:] == ((), DEFAULT_INTERVAL_MS)
    assert after.subscription_id != before.subscription_id


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_id=app-[0-9],client_source_address=10.*", True),
        ("client_id=app-[0-9],client_source_address=11.*", False),
        ("client_id=app", False),
        ("client_instance_id=" + ID.hex(), True),
        ("client_software_name=kafka-java,client_software_version=4\\..*,client_source_port=5.*", True),
    ],
)
def test_every_pattern_must_match_as_a_whole(match: str, matches: bool) -> None:
    assert (known(clients_with(match=match)).wanted.metrics == ("*",)) is matches


def test_a_client_may_ask_once_per_interval() -> None:
    clients = clients_with()
    assert clients.may_ask(known(clients), 0)
    assert not clients.may_ask(known(clients), 899)
    assert clients.throttled == 1
    assert clients.may_ask(known(clients), 900)


def test_after_a_question_a_push_may_come_at_once_then_once_per_interval() -> None:
    clients = clients_with()
    clients.may_ask(known(clients), 0)
    assert pushed(clients, 10) is ErrorCode.NONE
    assert pushed(clients, 909) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert not clients.may_ask(known(clients), 909), "a push counts for questions too"
    assert pushed(clients, 910) is ErrorCode.NONE


def test_a_changed_subscription_is_asked_for_without_waiting() -> None:
    clients = clients_with()
    clients.may_ask(known(clients), 0)
    old = known(clients).wanted.subscription_id
    clients.subscribe([])
    assert pushed(clients, 10, old) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert clients.unknown_subscriptions == 1
    assert clients.may_ask(known(clients), 11)
    assert pushed(clients, 12) is ErrorCode.NONE


def test_an_unknown_compression_is_refused_and_may_be_asked_about() -> None:
    clients = clients_with()
    client = known(clients)
    error = clients.check_push(client, client.wanted.subscription_id, 9, False, 0)
    assert error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert clients.may_ask(client, 1)


def test_the_last_push_may_come_early_and_is_the_last() -> None:
    clients = clients_with()
    assert pushed(clients, 0) is ErrorCode.NONE
    assert pushed(clients, 1, terminating=True) is ErrorCode.NONE
    assert pushed(clients, 5000) is ErrorCode.INVALID_REQUEST


def test_values_go_with_the_connection_but_the_last_ones_stay_a_minute() -> None:
    clients = clients_with()
    clients.take(known(clients), PUSHED, 0)
    clients.on_closed("another")
    assert (len(clients), clients.series.count) == (1, 1)
    clients.on_closed("c")
    assert (len(clients), clients.series.count) == (0, 0)

    assert pushed(clients, 0, terminating=True) is ErrorCode.NONE
    clients.take(known(clients), PUSHED, 0)
    clients.on_closed("c")
    clients.expire(LINGER_MS - 1)
    assert clients.series.count == 1
    clients.expire(LINGER_MS)
    assert (len(clients), clients.series.count) == (0, 0)


def test_a_client_that_has_connected_again_outlives_its_old_connection() -> None:
    clients = clients_with()
    clients.take(known(clients, connection="old"), PUSHED, 0)
    known(clients, connection="new")
    clients.on_closed("old")
    assert (len(clients), clients.series.count) == (1, 1)
    clients.on_closed("new")
    assert len(clients) == 0


def test_a_client_without_a_word_is_forgotten_after_three_intervals() -> None:
    clients = clients_with(**{"interval.ms": "100000"})
    clients.take(known(clients, 0), PUSHED, 0)
    clients.expire(299_999)
    assert len(clients) == 1
    clients.expire(300_000)
    assert (len(clients), clients.series.count) == (0, 0)


def test_a_push_that_is_still_looked_into_when_its_client_leaves_is_dropped() -> None:
    clients = clients_with()
    client = known(clients)
    clients.on_closed("c")
    clients.take(client, PUSHED, 0)
    assert clients.series.count == 0


def test_the_id_of_somebody_else_gives_nothing_of_theirs() -> None:
    clients = clients_with()
    clients.take(known(clients), PUSHED, 0)
    taken = clients.client(ID, "c2", ATTRIBUTES, "User:mallory", 1)
    assert (taken.series.values, clients.series.count) == ({}, 0)


def test_of_too_many_clients_the_most_silent_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients_module, "CLIENTS", 2)
    clients = clients_with()
    for number in (1, 2, 1, 3):
        clients.take(known(clients, 0, bytes([number]) * 16, f"c{number}"), PUSHED, 0)
    assert [client.instance_id[0] for client in clients] == [1, 3]
    assert clients.series.count == 2


def test_one_connection_has_one_client() -> None:
    clients = clients_with()
    for number in range(10):
        known(clients, 0, bytes([number + 1]) * 16)
    assert len(clients) == 1


def test_of_what_a_client_says_of_itself_little_is_kept() -> None:
    """One push may unpack to megabytes, and there may be thousands of clients."""
    clients = clients_with()
    client = known(clients)
    said = {"group_id": "g" * 1_000_000, "client_rack": "r1", "other": "x" * 1_000_000}
    clients.take(client, PushedMetrics(said, []), 0)
    assert client.resource == {"group_id": "g" * 256, "client_rack": "r1"}

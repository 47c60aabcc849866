"""Which quota holds for whom, what is charged, and for how long a client is throttled."""

import itertools
import random

import pytest

from barnabas.clock import ManualClock
from barnabas.config.broker import BrokerConfig
from barnabas.machines.quota import ClientRate, TokenBucket
from barnabas.metadata.image import EntityPart, QuotaEntity
from barnabas.server.client_quotas import EXPIRY_MS, SWEEP_INTERVAL_MS, ClientQuotas, Limits

ABSENT = "absent"


def entity(user: str | None = ABSENT, client_id: str | None = ABSENT) -> QuotaEntity:
    parts = (EntityPart("client-id", client_id), EntityPart("user", user))
    return tuple(part for part in parts if part.name != ABSENT)


PRECEDENCE = (
    entity("u", "c"),
    entity("u", None),
    entity("u"),
    entity(None, "c"),
    entity(None, None),
    entity(None),
    entity(client_id="c"),
    entity(client_id=None),
)


def quotas(clock: ManualClock | None = None, **settings: str) -> ClientQuotas:
    given = {"node.id": "1", "log.dirs": "unused"} | {key.replace("_", "."): value for key, value in settings.items()}
    return ClientQuotas(BrokerConfig.parse(given), clock or ManualClock())


def limits_of(source: ClientQuotas, user: str = "u", client_id: str = "c") -> Limits:
    found = source.find(user, client_id)
    assert found is not None
    return found


def test_the_most_specific_quota_holds() -> None:
    source = quotas()
    for chosen in itertools.product((False, True), repeat=8):
        there = [number for number, is_there in enumerate(chosen, 1) if is_there]
        source.on_quotas({PRECEDENCE[number - 1]: {"producer_byte_rate": float(number)} for number in there})
        found = source.find("u", "c")
        produce = None if found is None else found.produce
        assert (None if produce is None else produce.per_second) == min(there, default=None), there


def test_without_a_client_id_only_quotas_of_users_hold() -> None:
    source = quotas()
    source.on_quotas({each: {"producer_byte_rate": float(number)} for number, each in enumerate(PRECEDENCE, 1)})
    produce = limits_of(source, client_id="").produce
    assert produce is not None and produce.per_second == 3.0
    source.on_quotas({entity(client_id=None): {"producer_byte_rate": 1.0}})
    assert source.find("u", "") is None


def test_who_shares_a_quota() -> None:
    source = quotas()
    source.on_quotas({entity("u"): {"producer_byte_rate": 100.0}, entity(client_id=None): {"producer_byte_rate": 7.0}})
    first, second = limits_of(source, "u", "one").produce, limits_of(source, "u", "two").produce
    assert first is not None and second is not None
    assert first.charge(1000) == 0 and second.charge(100) > 0, "one user, two client ids"
    other = limits_of(source, "v", "one").produce
    assert other is not None and other.charge(70) == 0, "a default is for each client id by itself"
    same = limits_of(source, "w", "one").produce
    assert same is not None and same.charge(7) > 0, "one client id, two users"


def test_quotas_of_one_kind_may_come_from_other_entities_than_those_of_another() -> None:
    source = quotas()
    source.on_quotas({entity("u", "c"): {"consumer_byte_rate": 5.0}, entity(None): {"request_percentage": 50.0}})
    limits = limits_of(source)
    assert limits.produce is None and limits.mutations is None
    assert limits.fetch is not None and limits.fetch.per_second == 5.0
    assert limits.request_time is not None and limits.request_time.per_second == 50.0


def test_a_change_holds_at_once_and_what_was_used_stays_counted() -> None:
    clock = ManualClock()
    source = quotas(clock)
    source.on_quotas({entity("u"): {"producer_byte_rate": 1000.0}})
    produce = limits_of(source).produce
    assert produce is not None and produce.charge(10_000) == 0 and produce.charge(1000) == 1000
    source.on_quotas({entity("u"): {"producer_byte_rate": 500.0}})
    produce = limits_of(source).produce
    assert produce is not None and produce.charge(0) == 12_000
    source.on_quotas({})
    assert source.find("u", "c") is None and not source.enabled


def test_throttle_times_of_request_time_are_bounded_by_a_window() -> None:
    source = quotas(quota_window_size_seconds="2")
    source.on_quotas({entity("u"): {"request_percentage": 1.0, "producer_byte_rate": 1.0}})
    limits = limits_of(source)
    assert limits.request_time is not None and limits.request_time.charge(1e6) == 2000
    assert limits.produce is not None and limits.produce.charge(100) == 80_000


def test_an_endless_rate_is_no_limit() -> None:
    source = quotas()
    source.on_quotas(
        {entity("u"): {"controller_mutation_rate": float("inf")}, entity(None): {"producer_byte_rate": 1.0}}
    )
    limits = limits_of(source)
    assert limits.mutations is None and limits.produce is not None


def test_meters_that_nobody_uses_are_dropped() -> None:
    clock = ManualClock()
    source = quotas(clock)
    source.on_quotas({entity(client_id=None): {"producer_byte_rate": 1.0, "controller_mutation_rate": 1.0}})
    for number in range(12_000):
        source.find("u", f"c{number}")
    assert len(source._used_ms) == 24_000 and len(source._found) <= 10_000
    for _ in range(EXPIRY_MS // SWEEP_INTERVAL_MS + 1):
        clock.advance(SWEEP_INTERVAL_MS)
        source.find("u", "c1")
    assert len(source._used_ms) == 2 and len(source._rates) == len(source._buckets) == 1


def test_connections_of_an_address() -> None:
    clock = ManualClock()
    source = quotas(clock)
    assert source.throttle_address("10.0.0.1") == 0
    one, rest = (EntityPart("ip", "10.0.0.1"),), (EntityPart("ip", None),)
    source.on_quotas({one: {"connection_creation_rate": 2.0}, rest: {"connection_creation_rate": 1.0}})
    assert not source.enabled, "requests go the usual way"
    assert [source.throttle_address("10.0.0.1") for _ in range(22)] == [0] * 20 + [500] * 2
    assert [source.throttle_address("10.0.0.2") for _ in range(11)] == [0] * 10 + [1000]
    clock.advance(500)
    assert source.throttle_address("10.0.0.1") == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_client_that_pauses_as_told_keeps_its_rate(seed: int) -> None:
    """Within 5 % from the end of the first burst on."""
    chance, rate, now_ms = random.Random(seed), ClientRate(11, 1000), 0
    sent, counted_from_ms = 0, 0
    while now_ms < 200_000:
        amount = chance.randint(1, 300)
        rate.record(amount, now_ms)
        throttle_ms = rate.throttle_ms(1000.0, now_ms)
        if counted_from_ms:
            sent += amount
        elif throttle_ms:
            counted_from_ms = now_ms + throttle_ms
        now_ms += throttle_ms + chance.randint(0, 3)
    assert sent * 1000 / (now_ms - counted_from_ms) == pytest.approx(1000, rel=0.05)


def test_a_throttle_time_is_what_brings_the_rate_back() -> None:
    rate = ClientRate(11, 1000)
    rate.record(20_000, 0)
    assert rate.throttle_ms(1000.0, 0) == 10_000, "20,000 in 10 s are twice as much as allowed"
    rate.record(-20_000, 0)
    assert rate.throttle_ms(1000.0, 0) == 0


def test_a_bucket_is_full_at_first_and_refills() -> None:
    bucket = TokenBucket(11.0, 5000)
    bucket.take(22, 2.0, 5000)
    assert bucket.throttle_ms(2.0, 5000) == 0, "just empty"
    bucket.take(5, 2.0, 5000)
    assert bucket.throttle_ms(2.0, 5000) == 2500
    assert bucket.throttle_ms(2.0, 7499) > 0 == bucket.throttle_ms(2.0, 7500)
    bucket.take(22, 2.0, 100_000)
    assert bucket.throttle_ms(2.0, 100_000) == 0, "no more than a burst is saved up"

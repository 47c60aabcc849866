"""What clients may use up: quotas of the image, and a meter for each client that has one.

`dispatch` asks `find` for each request while `enabled`, and charges what a request has used through the `Limits` it
gets; clients without a quota get None and go the usual way. Which quota holds is Kafka's order of eight: user and
client id, user and default client id, user, default user and client id, both defaults, default user, client id, default
client id. A quota of a user is shared by its client ids, one of a client id by its users. Meters that nobody used for
an hour are dropped.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from barnabas.clock import Clock
from barnabas.config.broker import BrokerConfig
from barnabas.machines.controller.quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from barnabas.machines.quota import ClientRate, TokenBucket
from barnabas.metadata.image import EntityPart, QuotaEntity

EXPIRY_MS = 3_600_000
SWEEP_INTERVAL_MS = 60_000
REMEMBERED_CLIENTS = 10_000

Meter = TypeVar("Meter", ClientRate, TokenBucket)
MeterKey = tuple[str, str, str]
"""Quota, user and client id; what plays no part is empty."""


class RateLimit:
    """A quota and what its clients have used of it. `longest_ms` bounds a pause, if given."""

    __slots__ = ("_clock", "_longest_ms", "_meter", "per_second")

    def __init__(self, clock: Clock, meter: ClientRate, per_second: float, longest_ms: int | None = None) -> None:
        self._clock = clock
        self._meter = meter
        self.per_second = per_second
        self._longest_ms = longest_ms

    @property
    def burst(self) -> float:
        """More than this at once always exceeds the quota."""
        return self.per_second * self._meter.burst_seconds

    def charge(self, amount: float) -> int:
        """Returns for how many milliseconds the client is throttled."""
        now_ms = self._clock.monotonic_ms()
        self._meter.record(amount, now_ms)
        throttle_ms = self._meter.throttle_ms(self.per_second, now_ms)
        return throttle_ms if self._longest_ms is None else min(throttle_ms, self._longest_ms)

    def take_back(self, amount: float) -> None:
        self._meter.record(-amount, self._clock.monotonic_ms())


class MutationLimit:
    __slots__ = ("_bucket", "_clock", "per_second")

    def __init__(self, clock: Clock, bucket: TokenBucket, per_second: float) -> None:
        self._clock = clock
        self._bucket = bucket
        self.per_second = per_second

    def throttle_ms(self) -> int:
        return self._bucket.throttle_ms(self.per_second, self._clock.monotonic_ms())

    def take(self, count: int) -> None:
        self._bucket.take(count, self.per_second, self._clock.monotonic_ms())


class Limits(NamedTuple):
    """The quotas of one client."""

    produce: RateLimit | None
    fetch: RateLimit | None
    request_time: RateLimit | None
    mutations: MutationLimit | None


class ClientQuotas:
    def __init__(self, config: BrokerConfig, clock: Clock, stopwatch: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.stopwatch = stopwatch
        """Seconds, for the time that requests take; only used for clients with a quota on it."""
        self._windows = config.quota_window_num, config.quota_window_size_seconds * 1000
        self._burst_seconds = float(config.controller_quota_window_num * config.controller_quota_window_size_seconds)
        self._quotas: Mapping[QuotaEntity, Mapping[str, float]] = {}
        self._rates: dict[MeterKey, ClientRate] = {}
        self._buckets: dict[MeterKey, TokenBucket] = {}
        self._used_ms: dict[MeterKey, int] = {}
        self._found: dict[tuple[str, str], Limits | None] = {}
        self._swept_ms = clock.monotonic_ms()
        self.enabled = False
        """Whether there is a quota of any user or client id."""
        self.limits_addresses = False

    def on_quotas(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Other quotas hold from now on; what was used so far stays counted."""
        self._quotas = quotas
        self._found.clear()
        self.limits_addresses = any(entity[0].type == IP for entity in quotas)
        self.enabled = any(entity[0].type != IP for entity in quotas)

    def find(self, user: str, client_id: str) -> Limits | None:
        """The quotas that a client has; None if it has none."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._swept_ms >= SWEEP_INTERVAL_MS:
            self._sweep(now_ms)
        client = user, client_id
        try:
            return self._found[client]
        except KeyError:
            pass
        if len(self._found) >= REMEMBERED_CLIENTS:
            self._found.clear()
        limits = self._found[client] = self._look_up(user, client_id, now_ms)
        return limits

    def throttle_address(self, address: str) -> int:
        """Counts a new connection; if its address has too many, returns for how many milliseconds it is held back."""
        if not self.limits_addresses:
            return 0
        for name in (address, None):
            rate = self._quotas.get((EntityPart(IP, name),), {}).get(CONNECTION_CREATION_RATE)
            if rate is not None:
                now_ms = self._clock.monotonic_ms()
                if now_ms - self._swept_ms >= SWEEP_INTERVAL_MS:
                    self._sweep(now_ms)
                limit = self._rate_limit((IP, address, ""), rate, now_ms, self._windows[1])
                throttle_ms = limit.charge(1)
                if throttle_ms:
                    limit.take_back(1)
                return throttle_ms
        return 0

    def _look_up(self, user: str, client_id: str, now_ms: int) -> Limits | None:
        produce = self._quota_of(PRODUCER_BYTE_RATE, user, client_id)
        fetch = self._quota_of(CONSUMER_BYTE_RATE, user, client_id)
        request_time = self._quota_of(REQUEST_PERCENTAGE, user, client_id)
        mutations = self._quota_of(CONTROLLER_MUTATION_RATE, user, client_id)
        limits = Limits(
            None if produce is None else self._rate_limit(*produce, now_ms),
            None if fetch is None else self._rate_limit(*fetch, now_ms),
            None if request_time is None else self._rate_limit(*request_time, now_ms, self._windows[1]),
            None if mutations is None else self._mutation_limit(*mutations, now_ms),
        )
        return None if limits == (None, None, None, None) else limits

    def _quota_of(self, quota: str, user: str, client_id: str) -> tuple[MeterKey, float] | None:
        """By whom it is counted, and the limit."""
        for entity_user in (user, None):
            if client_id:
                for entity_client in (client_id, None):
                    parts = (EntityPart(CLIENT_ID, entity_client), EntityPart(USER, entity_user))
                    value = self._quotas.get(parts, {}).get(quota)
                    if value is not None:
                        return ((quota, user, client_id), value) if value < math.inf else None
            value = self._quotas.get((EntityPart(USER, entity_user),), {}).get(quota)
            if value is not None:
                return ((quota, user, ""), value) if value < math.inf else None
        for entity_client in (client_id, None) if client_id else ():
            value = self._quotas.get((EntityPart(CLIENT_ID, entity_client),), {}).get(quota)
            if value is not None:
                return ((quota, "", client_id), value) if value < math.inf else None
        return None

    def _rate_limit(self, key: MeterKey, per_second: float, now_ms: int, longest_ms: int | None = None) -> RateLimit:
        self._used_ms[key] = now_ms
        if key not in self._rates:
            self._rates[key] = ClientRate(*self._windows)
        return RateLimit(self._clock, self._rates[key], per_second, longest_ms)

    def _mutation_limit(self, key: MeterKey, per_second: float, now_ms: int) -> MutationLimit:
        self._used_ms[key] = now_ms
        if key not in self._buckets:
            self._buckets[key] = TokenBucket(self._burst_seconds, now_ms)
        return MutationLimit(self._clock, self._buckets[key], per_second)

    def _sweep(self, now_ms: int) -> None:
        """Whoever comes after this is looked up again, so a key that is not used stays as old as it is."""
        self._swept_ms = now_ms
        self._found.clear()
        for key in [key for key, used_ms in self._used_ms.items() if now_ms - used_ms >= EXPIRY_MS]:
            del self._used_ms[key]
            self._rates.pop(key, None)
            self._buckets.pop(key, None)

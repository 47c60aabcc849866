"""Refreshing metadata: from which node, for which topics, and once for all that need it at the same time.

A round is one Metadata request. A refresh requested while a round is in flight joins the next one, so a hundred
partitions that lose their leader cost two requests. Known brokers are asked first, the least busy before the others;
where none responds, the bootstrap servers are asked again (KIP-899).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection

from barnabas.client.background import as_failure
from barnabas.client.errors import UnreachableError, error_for
from barnabas.client.metadata import MetadataCache
from barnabas.client.options.common import CommonOptions
from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

logger = logging.getLogger(__name__)
Send = Callable[[int, MetadataRequest], Awaitable[MetadataResponse]]


class Round:
    """Those who wait for one request, and what they want to know."""

    __slots__ = ("all_topics", "done", "followed", "topics")

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.followed = False
        self.all_topics = False
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class MetadataUpdates:
    """`candidates(known)` gives the nodes to ask, best first; `send` asks one of them."""

    def __init__(
        self,
        options: CommonOptions,
        clock: Clock,
        cache: MetadataCache,
        candidates: Callable[[bool], list[int]],
        send: Send,
        on_updated: Callable[[int], None],
        topic_expiry_ms: int | None,
    ) -> None:
        self._options = options
        self._clock = clock
        self._cache = cache
        self._candidates = candidates
        self._send = send
        self._on_updated = on_updated
        self._topic_expiry_ms = topic_expiry_ms
        self._last_used_ms: dict[str, int] = {}
        self._follows_all = False
        self._waiting: dict[bool, Round] = {}
        self._task: asyncio.Task[None] | None = None
        self._failing_since_ms: int | None = None
        self.last_update_ms: int | None = None

    # --- which topics ---

    def touch(self, topics: Collection[str]) -> None:
        """These are in use: they are asked for in every refresh."""
        now_ms = self._clock.monotonic_ms()
        for topic in topics:
            self._last_used_ms[topic] = now_ms

    def follow(self, topics: Collection[str] | None) -> None:
        """From now on these topics, and no others, are kept up to date; None is all topics of the cluster."""
        self._follows_all = topics is None
        kept = frozenset(topics or ())
        for name in [name for name in self._last_used_ms if name not in kept]:
            del self._last_used_ms[name]
        self.touch(kept)

    # --- asking ---

    async def refresh(self, topics: Collection[str] | None, allow_auto_topic_creation: bool) -> None:
        """One request from now on, shared with others. Raises the failure of the last node that was asked."""
        waiting = self._waiting.get(allow_auto_topic_creation)
        if waiting is None:
            waiting = self._waiting[allow_auto_topic_creation] = Round()
        if topics is None:
            waiting.all_topics = True
        elif topics:
            waiting.topics.update(topics)
            self.touch(topics)
        else:
            waiting.followed = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        await asyncio.shield(waiting.done)

    async def refresh_when_old(self) -> None:
        """Runs as long as the client: asks again when metadata.max.age.ms has passed since the last response."""
        max_age_ms = self._options.metadata_max_age_ms
        while True:
            age_ms = 0 if self.last_update_ms is None else self._clock.monotonic_ms() - self.last_update_ms
            await asyncio.sleep(max(max_age_ms - age_ms, self._options.retry_backoff_ms, 10) / 1000)
            if self.last_update_ms is None or self._clock.monotonic_ms() - self.last_update_ms < max_age_ms:
                continue
            try:
                await self.refresh((), False)
            except Exception as error:
                logger.warning("the metadata could not be refreshed: %s", as_failure("refreshing metadata", error))

    async def close(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        # Refreshes requested in the same turn of the loop share the round.
        await asyncio.sleep(0)
        while self._waiting:
            allow = next(iter(self._waiting))
            round_ = self._waiting.pop(allow)
            round_.done.add_done_callback(_retrieve)
            try:
                await self._refresh_from_any(round_, allow)
            except asyncio.CancelledError:
                round_.done.cancel()
                raise
            except Exception as error:
                if not round_.done.done():
                    round_.done.set_exception(as_failure("refreshing metadata", error))
            else:
                if not round_.done.done():
                    round_.done.set_result(None)

    async def _refresh_from_any(self, round_: Round, allow: bool) -> None:
        request, all_topics = self._request(round_, allow)
        failures: list[KafkaError] = []
        for known in (True, False):
            if known and self._gives_up_known():
                continue
            for node_id in self._candidates(known):
                try:
                    response = await self._send(node_id, request)
                    if response.error_code:
                        raise error_for(response.error_code)
                    self._take(node_id, response, round_, all_topics)
                    return
                except KafkaError as error:
                    failures.append(error)
                    if error.code == ErrorCode.REBOOTSTRAP_REQUIRED:
                        break
                    if not error.retriable:
                        raise
        if self._failing_since_ms is None:
            self._failing_since_ms = self._clock.monotonic_ms()
        raise _all_failed(failures)

    def _gives_up_known(self) -> bool:
        """Whether nothing was learnt from the known brokers for so long that only the bootstrap servers are asked."""
        if self._failing_since_ms is None or self._options.metadata_recovery_strategy == "none":
            return False
        failing_ms = self._clock.monotonic_ms() - self._failing_since_ms
        return failing_ms >= self._options.metadata_recovery_rebootstrap_trigger_ms

    def _request(self, round_: Round, allow: bool) -> tuple[MetadataRequest, bool]:
        if round_.all_topics or (round_.followed and self._follows_all):
            return MetadataRequest(topics=None, allow_auto_topic_creation=False), True
        names = set(round_.topics)
        if round_.followed:
            self._expire_topics()
            names.update(self._last_used_ms)
        topics = [MetadataRequestTopic(name=name) for name in sorted(names)]
        return MetadataRequest(topics=topics, allow_auto_topic_creation=allow), False

    def _take(self, node_id: int, response: MetadataResponse, round_: Round, all_topics: bool) -> None:
        known_id = self._cache.cluster_id
        if known_id is not None and response.cluster_id is not None and response.cluster_id != known_id:
            logger.warning("the cluster id was %s and is %s now: is it still the same?", known_id, response.cluster_id)
        if not response.brokers:
            raise UnreachableError("the cluster", "it has no brokers at present")
        try:
            self._cache.update(response, all_topics=all_topics)
        except ProtocolError as error:
            raise UnreachableError("the cluster", str(error)) from error
        self._failing_since_ms = None
        if round_.followed or all_topics or self.last_update_ms is None:
            self.last_update_ms = self._clock.monotonic_ms()
        self._on_updated(node_id)

    def _expire_topics(self) -> None:
        if self._topic_expiry_ms is None:
            return
        horizon_ms = self._clock.monotonic_ms() - self._topic_expiry_ms
        expired = [name for name, used_ms in self._last_used_ms.items() if used_ms < horizon_ms]
        for name in expired:
            del self._last_used_ms[name]
        if expired:
            self._cache.forget(expired)


def _all_failed(failures: list[KafkaError]) -> KafkaError:
    if len(failures) == 1:
        return failures[0]
    unreachable = {error.address: error.why for error in failures if isinstance(error, UnreachableError)}
    if len(unreachable) < 2:
        return failures[-1] if failures else UnreachableError("the cluster", "no broker is known")
    return UnreachableError(
        "no broker responds", "; ".join(f"{address}: {why}" for address, why in unreachable.items())
    )


def _retrieve(done: "asyncio.Future[None]") -> None:
    if not done.cancelled():
        done.exception()

"""Topics whose leaders the sender has to ask for again, no more often than retry.backoff.ms. On the I/O thread."""

import logging
from collections.abc import Callable, Iterable

from barnabas.client.background import Background
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.batch_queues import NEVER_MS
from barnabas.client.producer.produce_client import ProduceClient
from barnabas.errors import KafkaError

logger = logging.getLogger(__name__)


class WantedMetadata:
    """Refreshes metadata of the topics that the sender needs."""

    def __init__(
        self,
        options: ProducerOptions,
        client: ProduceClient,
        background: Background,
        *,
        on_done: Callable[[], None],
    ) -> None:
        """`on_done` is called after every response, good or not."""
        self._pause_ms = max(1, options.retry_backoff_ms)
        self._client = client
        self._background = background
        self._on_done = on_done
        self._topics: set[str] = set()
        self._not_before_ms = 0
        self.last_error = ""
        """Why the last attempt failed, if it did."""

    def want(self, topics: Iterable[str]) -> None:
        self._topics.update(topics)

    def next_check_ms(self) -> int:
        return self._not_before_ms if self._topics else NEVER_MS

    def maybe_refresh(self, now_ms: int) -> None:
        if self._topics and now_ms >= self._not_before_ms:
            topics, self._topics = self._topics, set()
            self._not_before_ms = now_ms + self._pause_ms
            self._background.start("refreshing metadata", self._ask(topics), self._on_failure)

    async def _ask(self, topics: set[str]) -> None:
        try:
            await self._client.refresh_metadata(topics)
            self.last_error = ""
        except KafkaError as error:
            logger.info("metadata of %s: %s", ", ".join(sorted(topics)), error.message)
            self.last_error = error.message
        self._on_done()

    def _on_failure(self, error: KafkaError) -> None:
        """The next turn of the sender asks again, after a pause."""
        self.last_error = error.message
        self._on_done()

"""A whole broker on the test's own loop, with handlers called as the dispatcher calls them, without sockets between."""

import inspect
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.machines.controller.commands import NewTopic
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.headers import RequestHeader
from barnabas.server.broker import Broker, make_parts
from barnabas.server.request import RequestContext

QUICK = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "node.id": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}


class HandlerCalls:
    """Use as an async context manager. `call` takes the request over the wire's bytes and back, in every sense."""

    def __init__(self, directory: Path, *, store: MemoryStore | None = None, **settings: str) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        config = BrokerConfig.parse(QUICK | {"log.dirs": str(directory)} | given)
        self._config, self._store = config, store or MemoryStore()
        self.rest = Mock()
        """Called when a connection is told to rest."""
        self.pauses: list[str] = []
        """When the connection stopped reading for a long request, and when it went on."""

    async def __aenter__(self) -> "HandlerCalls":
        self.broker = Broker(make_parts(self._config, store=self._store))
        await self.broker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.broker.stop()

    async def make_topic(self, name: str, partitions: int = 2) -> bytes:
        """Gives the topic id."""
        (result,) = await self.broker.controller.create_topics([NewTopic(name, partitions, 1)])
        assert result.error is ErrorCode.NONE, result
        return self.broker.cluster.image.topics[name].topic_id

    async def call(self, request: Any, version: int | None = None) -> Any:
        """The response as a client reads it: encoded in that version and decoded again."""
        response = self.start(request, version)
        if inspect.isawaitable(response):
            response = await response
        return self._as_read(response, self._version(request, version))

    def start(self, request: Any, version: int | None = None) -> Any:
        """The response, or what is to be awaited for it."""
        version = self._version(request, version)
        row = self.broker.dispatcher.table[self._api_key(request)]
        assert row.min_version <= version <= row.max_version
        context = self.context(self._api_key(request), version)
        decoded, _ = decode(type(request), version, encode(request, version))
        self._as_read(row.fail(context, decoded, ErrorCode.REQUEST_TIMED_OUT), version)
        decoded, _ = decode(type(request), version, encode(request, version))
        return row.handle(context, decoded)

    def context(self, api_key: ApiKey, version: int) -> RequestContext:
        listener = SimpleNamespace(name="PLAINTEXT")
        connection = cast(
            Any,
            SimpleNamespace(
                listener=listener,
                peer_host="10.0.0.9",
                session=None,
                rest=self.rest,
                pause_reading=lambda: None,
                resume_reading=lambda: None,
                pause_for_long_request=partial(self.pauses.append, "pause"),
                resume_after_long_request=partial(self.pauses.append, "resume"),
            ),
        )
        return RequestContext(self.broker, connection, RequestHeader(api_key, version, 0, "tester", 0))

    def versions(self, request: type[Any]) -> range:
        row = self.broker.dispatcher.table[self._api_key(request)]
        return range(row.min_version, row.max_version + 1)

    def _api_key(self, request: Any) -> ApiKey:
        return ApiKey(request.__schema__.api_key)

    def _version(self, request: Any, version: int | None) -> int:
        return self.broker.dispatcher.table[self._api_key(request)].max_version if version is None else version

    def _as_read(self, response: Any, version: int) -> Any:
        return decode(type(response), version, encode(response, version))[0]

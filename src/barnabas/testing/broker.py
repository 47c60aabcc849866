"""The real broker on a loop of its own in a background thread: metadata in memory, logs in a temporary folder."""

import asyncio
import difflib
import re
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, TypeVar

from barnabas.client.admin import Admin
from barnabas.client.consumer import Consumer, ConsumerRecord
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.protocol.api import ApiKey
from barnabas.server.broker import Broker as ServerBroker
from barnabas.server.broker import make_parts
from barnabas.server.process import new_event_loop
from barnabas.server.request_faults import RequestFault
from barnabas.types import TopicPartition

T = TypeVar("T")
DEFAULTS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "node.id": "0",
    # A test should not wait three seconds for members that may still come.
    "group.initial.rebalance.delay.ms": "0",
}


class Broker:
    """`settings` are Kafka's broker settings by their dotted names; `data_dir` keeps the logs.

    They have Kafka's defaults, but for `group.initial.rebalance.delay.ms`, which is 0: a new group is ready at once.
    Metadata lives in memory: topics are known as long as this object, across stop and start. So is the port: a client
    finds the broker again after a restart.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, *, data_dir: str | Path | None = None) -> None:
        self._settings = {name: _text(value) for name, value in (settings or {}).items()}
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._server: ServerBroker | None = None
        self._metadata = MemoryStore()
        self._port = 0

    @property
    def bootstrap(self) -> str:
        """host:port, for any client's bootstrap.servers."""
        return self._running().address

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    def start(self) -> "Broker":
        if self._server is not None:
            raise RuntimeError("the broker runs already")
        if self._data_dir is None and self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="barnabas-", ignore_cleanup_errors=True)
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="barnabas-broker", daemon=True)
        self._thread.start()
        try:
            self._server = self._on_loop(self._start)
            self._port = self.port
        except BaseException:
            self._end_loop()
            self._remove_temporary()
            raise
        return self

    def stop(self) -> None:
        """Stops cleanly. A broker with a data_dir may be started again with all it had."""
        server, self._server = self._server, None
        if server is None:
            return
        self._on_loop(server.stop)
        self._end_loop()
        self._remove_temporary()

    def fault(
        self,
        api: str,
        *,
        error: str | ErrorCode | None = None,
        delay_ms: int = 0,
        drop_answer: bool = False,
        close: bool = False,
        count: int | None = 1,
    ) -> None:
        """Makes the next `count` requests of an API ("Produce", "Fetch", ...) go wrong; None means all from now on.

        error: not carried out, the response has that code. delay_ms: the response is that much later. drop_answer:
        carried out, but the connection closes instead of a response. close: not carried out, the connection closes.
        """
        if not (error or delay_ms or drop_answer or close):
            raise ValueError("a fault needs one of error, delay_ms, drop_answer, close")
        code = _error_code(error) if isinstance(error, str) else error
        fault = RequestFault(_api_key(api), code, delay_ms, drop_answer, close, count)
        faults = self._running().request_faults
        self._call(lambda: faults.add(fault))

    def clear_faults(self) -> None:
        self._call(self._running().request_faults.clear)

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None) -> None:
        """A topic with these settings; raises `TopicExistsError` if there is one."""
        with Admin(self.bootstrap) as admin:
            admin.create_topic(name, partitions=partitions, config=dict(config or {}))

    def records(self, topic: str, *, committed: bool = False) -> list[ConsumerRecord]:
        """All that the topic has at this moment, partition by partition, each in the order of its offsets.

        `committed`: without records of transactions that are open or aborted.
        """
        isolation: Literal["read_committed", "read_uncommitted"] = "read_committed" if committed else "read_uncommitted"
        with Consumer(self.bootstrap, isolation_level=isolation, max_poll_records=10_000) as consumer:
            partitions = [TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
            consumer.assign(partitions)
            consumer.seek_to_beginning()
            ends = consumer.end_offsets(partitions)
            found: list[ConsumerRecord] = []
            # By position and not by what came: the last offsets may be those of control records.
            while any(consumer.position(each) < ends[each] for each in partitions):
                found += consumer.poll(1.0)
        found.sort(key=lambda record: (record.partition, record.offset))
        return [each for each in found if each.offset < ends[TopicPartition(topic, each.partition)]]

    def __enter__(self) -> "Broker":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    async def _start(self) -> ServerBroker:
        directory = self._data_dir or Path(self._temporary.name if self._temporary else "")
        given = {**DEFAULTS, "log.dirs": str(directory), **self._settings}
        given["listeners"] = re.sub(r":0$", f":{self._port}", given["listeners"])
        server = ServerBroker(make_parts(BrokerConfig.parse(given), store=self._metadata))
        await server.start()
        return server

    def _running(self) -> ServerBroker:
        if self._server is None:
            raise RuntimeError("the broker does not run: use it as a context manager, or call start()")
        return self._server

    def _on_loop(self, work: Callable[[], Any]) -> Any:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()

    def _call(self, work: Callable[[], None]) -> None:
        async def run() -> None:
            work()

        self._on_loop(run)

    def _end_loop(self) -> None:
        assert self._loop is not None and self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _api_key(name: str) -> ApiKey:
    """`Produce`, `ListOffsets` and PRODUCE, LIST_OFFSETS alike."""
    spelled = name if name.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
    try:
        return ApiKey[spelled]
    except KeyError:
        names = {key.name: "".join(each.title() for each in key.name.split("_")) for key in ApiKey}
        near = [names[each] for each in difflib.get_close_matches(spelled, names)]
        raise ValueError(f"there is no API called {name!r}{_meant(near)}") from None


def _error_code(name: str) -> ErrorCode:
    try:
        return ErrorCode[name.upper()]
    except KeyError:
        near = difflib.get_close_matches(name.upper(), ErrorCode.__members__, n=5, cutoff=0.4)
        raise ValueError(f"there is no error code called {name!r}{_meant(near)}") from None


def _meant(near: list[str]) -> str:
    return f", did you mean {' or '.join(near)}?" if near else ""

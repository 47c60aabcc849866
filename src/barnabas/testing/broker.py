"""The real broker on a loop of its own in a background thread: metadata in memory, logs in a temporary folder."""

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from barnabas.server.broker import Broker as ServerBroker
from barnabas.storage.meta_properties import META_PROPERTIES
from barnabas.testing.network import BreakableNetwork
from barnabas.testing.request_faults import request_fault
from barnabas.testing.security import Security
from barnabas.testing.server_thread import ServerThread
from barnabas.testing.topics import all_records, create_topic

if TYPE_CHECKING:
    from barnabas.client.consumer import ConsumerRecord

DEFAULTS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "node.id": "0",
    # A test should not wait three seconds for members that may still come.
    "group.initial.rebalance.delay.ms": "0",
}


class Broker:
    """`settings` are Kafka's broker settings by their dotted names; `data_dir` keeps the logs.

    `listeners` are security protocols ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), each on a port of its own,
    with throw-away certificates; `users` are names with passwords, who log in by PLAIN and SCRAM. `client_options`
    gives the options of a client that is one of them. TLS needs the package cryptography (`barnabas[tls-tools]`).

    They have Kafka's defaults, but for `group.initial.rebalance.delay.ms`, which is 0: a new group is ready at once.
    Metadata lives in memory: topics are known as long as this object, across stop and start. So is the port: a client
    finds the broker again after a restart.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        listeners: Sequence[str] | None = None,
        users: Mapping[str, str] | None = None,
        data_dir: str | Path | None = None,
        tree: MemoryTree | None = None,
        security: Security | None = None,
    ) -> None:
        """`tree` and `security` are those of a cluster that this broker is one of; `Cluster` gives them."""
        self._security = security
        self._owns_security = security is None
        if security is None and (listeners is not None or users is not None):
            self._security = Security(["SASL_SSL"] if listeners is None else listeners, users)
        self._settings = {name: _text(value) for name, value in (settings or {}).items()}
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._folder_properties: bytes | None = None
        self._thread: ServerThread | None = None
        self._tree = MemoryTree() if tree is None else tree
        self._network = BreakableNetwork()
        self._ports: dict[str, int] = {}
        """By listener: the ports of the last start, which the next one takes again."""

    @property
    def mqtt_port(self) -> int:
        """The port of its MQTT listener, if `listeners` has one called MQTT."""
        return int(self._running().address_of("MQTT").rpartition(":")[2])

    @property
    def bootstrap(self) -> str:
        """host:port, for any client's bootstrap.servers."""
        return self._running().address

    @property
    def port(self) -> int:
        """The port of its address."""
        return int(self.bootstrap.rpartition(":")[2])

    def address_of(self, listener: str) -> str:
        """host:port of one of its listeners, by name."""
        return self._running().address_of(listener)

    @property
    def authority_file(self) -> str:
        """PEM file with what a client must trust (ssl.ca.location, ssl.truststore.location), where TLS is used."""
        if self._security is None:
            raise RuntimeError("no listener of the broker uses TLS")
        return self._security.authority_file

    def client_options(
        self, user: str | None = None, *, mechanism: str = "SCRAM-SHA-512", listener: str | None = None
    ) -> dict[str, str]:
        """What our own clients are given besides the address: as that user (or the first one), on that listener (or the
        first one). On an SSL listener a user is a client certificate, made here."""
        return {} if self._security is None else self._security.client_options(user, mechanism, listener)

    @property
    def metrics_address(self) -> tuple[str, int]:
        """Host and port of /metrics, for a broker with a `metrics.listener` such as 127.0.0.1:0."""
        address = self._running().metrics.address
        if address is None:
            raise RuntimeError("the broker has no metrics.listener")
        return address

    @property
    def is_running(self) -> bool:
        """Whether it was started and neither stopped nor killed."""
        return self._thread is not None

    def start(self) -> "Broker":
        """Starts it; returns when clients can connect. On the same port as before, if it ran before."""
        if self._thread is not None:
            raise RuntimeError("the broker runs already")
        if self._data_dir is None and self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="barnabas-", ignore_cleanup_errors=True)
            if self._folder_properties is not None:
                Path(self._temporary.name, META_PROPERTIES).write_bytes(self._folder_properties)
        try:
            if self._security is not None:
                self._security.add_users(self._tree)
            self._thread = ServerThread(self._config(), MemoryStore(self._tree), self._network)
            self._ports = self._thread.broker.ports
        except BaseException:
            self._remove_temporary()
            raise
        return self

    def stop(self) -> None:
        """Stops cleanly. A broker with a data_dir may be started again with all it had."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()
            if self._temporary is not None and (properties := Path(self._temporary.name, META_PROPERTIES)).exists():
                # The next folder is empty too, but has the same id: else its partitions would be given up as lost.
                self._folder_properties = properties.read_bytes()
            self._remove_temporary()
            if self._security is not None and self._owns_security:
                self._security.close()

    def kill(self) -> None:
        """As by kill -9: nothing is finished or flushed, clients find their connections gone. `start` recovers."""
        thread, self._thread = self._thread, None
        if thread is None:
            raise RuntimeError("the broker does not run")
        thread.kill()

    def cut_off(self, others: "Iterable[Broker]") -> None:
        """No connection from here to those brokers, until the next call says otherwise."""
        self._network.cut(frozenset(port for each in others for port in each._ports.values()))

    def when_image(self, condition: Callable[[ClusterImage], bool]) -> "Future[None]":
        """Done as soon as the cluster, as this broker sees it, meets the condition."""
        if self._thread is None:
            raise RuntimeError("the broker does not run")
        return self._thread.when_image(condition)

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
        fault = request_fault(api, error, delay_ms, drop_answer, close, count)
        faults = self._running().request_faults
        self._call(lambda: faults.add(fault))

    def clear_faults(self) -> None:
        """No more requests fail on purpose."""
        self._call(self._running().request_faults.clear)

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None) -> None:
        """A topic with these settings; raises `TopicExistsError` if there is one."""
        create_topic(self.bootstrap, name, partitions, None, config, self.client_options())

    def records(self, topic: str, *, committed: bool = False) -> "list[ConsumerRecord]":
        """All that the topic has at this moment, partition by partition, each in the order of its offsets.

        `committed`: without records of transactions that are open or aborted.
        """
        return all_records(self.bootstrap, topic, committed=committed, options=self.client_options())

    def __enter__(self) -> "Broker":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _config(self) -> BrokerConfig:
        directory = self._data_dir or Path(self._temporary.name if self._temporary else "")
        own = self._settings if self._security is None else self._security.settings(self._settings)
        given = {**DEFAULTS, "log.dirs": str(directory), **own}
        if self._security is not None and "authorizer.class.name" in given:
            given["super.users"] = ";".join(filter(None, (given.get("super.users"), *self._security.brokers)))
        given["listeners"] = ",".join(self._with_port(each.strip()) for each in given["listeners"].split(","))
        return BrokerConfig.parse(given)

    def _with_port(self, listener: str) -> str:
        name = listener.partition("://")[0].upper()
        return re.sub(r":0$", f":{self._ports.get(name, 0)}", listener)

    def _running(self) -> ServerBroker:
        if self._thread is None:
            raise RuntimeError("the broker does not run: use it as a context manager, or call start()")
        return self._thread.broker

    def _call(self, work: Callable[[], None]) -> None:
        if self._thread is not None:
            self._thread.call(work)

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""The broker: what it is made of, and the order in which it starts and stops.

Start: log directories are locked -> sockets are bound, so that the ports are known -> the metadata store is opened,
which knows the topics' settings -> logs are opened (threads) -> the cluster is joined, and its image makes the replicas
-> a new store takes in what lies in the directories (`adoption.py`) -> connections are accepted -> housekeeping. Stop
goes the other way round, and ends with a clean shutdown marker, so that the next start need not scan. No state outside
of this object: several brokers may live in one process.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from barnabas.clock import Clock, Random, SystemClock
from barnabas.config.broker import BrokerConfig
from barnabas.errors import KafkaError, StorageError
from barnabas.machines.controller.topics import TopicDefaults
from barnabas.machines.fetch_session import FetchSessionCache
from barnabas.metadata.image import BrokerEndpoint, ClusterImage, Delta
from barnabas.metadata.store import MetadataStore, MetadataStoreError
from barnabas.metadata.stores.sqlite import SqliteStore
from barnabas.net.server import Server
from barnabas.net.settings import Listener, NetworkSettings, descriptors_for_connections
from barnabas.net.timers import Timers
from barnabas.server.adoption import adopt_folders
from barnabas.server.cluster import Cluster, InconsistentClusterIdError
from barnabas.server.compaction import Compaction
from barnabas.server.dispatch import Dispatcher
from barnabas.server.flusher import Flusher
from barnabas.server.group_coordinator import GroupCoordinator
from barnabas.server.handlers import HANDLERS
from barnabas.server.housekeeping import Housekeeping
from barnabas.server.producer_ids import ProducerIds
from barnabas.server.purgatory import FetchPurgatory
from barnabas.server.record_work import RecordWork
from barnabas.server.replicas import MAX_REPLICATION_FACTOR, Replicas
from barnabas.server.request_faults import RequestFaults
from barnabas.server.settings import Settings
from barnabas.server.transaction_coordinator import TransactionCoordinator
from barnabas.storage.disk_reserve import RESERVE_BYTES, DiskReserve
from barnabas.storage.files import Files
from barnabas.storage.log import Log
from barnabas.storage.log_directories import LogDirectories
from barnabas.storage.log_directory import LogDirectory
from barnabas.transport.channel import Network
from barnabas.transport.system import SystemNetwork

logger = logging.getLogger(__name__)

METADATA_FILE = "barnabas-metadata.sqlite"


class StartError(Exception):
    """The broker cannot start; the text says why and what to do."""


class Broker:
    def __init__(
        self,
        config: BrokerConfig,
        *,
        metadata_file: str | Path | None = None,
        store: MetadataStore | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        network: Network | None = None,
        files: Files | None = None,
    ) -> None:
        self.settings = Settings(config)
        self.clock = clock or SystemClock()
        self._random = random or Random()
        self._metadata_file = metadata_file
        self._store = store
        self._network: Network = network or SystemNetwork()
        self._files = files or Files()
        self.request_faults = RequestFaults()
        self.dispatcher = Dispatcher(self, HANDLERS)
        self.fetch_sessions = FetchSessionCache(config.max_incremental_fetch_session_cache_slots, 120_000, self._random)
        self.log_directories: LogDirectories
        self.cluster: Cluster
        self.replicas: Replicas
        self.timers: Timers
        self.fetch_purgatory: FetchPurgatory
        self.groups: GroupCoordinator
        self.transactions: TransactionCoordinator
        self.producer_ids: ProducerIds
        self.housekeeping: Housekeeping
        self.compaction: Compaction
        self._reserves: list[DiskReserve] = []
        self._server: Server
        self.record_work: RecordWork
        self._executor: ThreadPoolExecutor

    @property
    def config(self) -> BrokerConfig:
        return self.settings.config

    @property
    def node_id(self) -> int:
        return self.settings.static.node_id

    @property
    def address(self) -> str:
        """host:port of the first listener."""
        host, port = next(iter(self._server.addresses.values()))
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def data_directories(self) -> list[str]:
        return [directory.path for directory in self.log_directories.directories]

    async def start(self) -> None:
        """Raises StartError with everything let go of again."""
        loop = asyncio.get_running_loop()
        self.timers = Timers(loop, self.clock)
        self._executor = ThreadPoolExecutor(max_workers=4, thread_name_prefix="barnabas-io")
        self.record_work = RecordWork()
        self.fetch_purgatory = FetchPurgatory(loop, self.timers)
        flusher = Flusher(loop, self._executor)
        try:
            self._open_directories()
            self._make_reserves()
            self._release_reserves()
            self.replicas = Replicas(
                self.node_id,
                self.log_directories,
                self.fetch_purgatory,
                flusher,
                self.settings.topic_config,
                self.clock,
            )
            self._make_coordinators()
            await self._bind()
            await self._join_cluster()
        except BaseException:
            await self._give_up()
            raise
        self._fill_reserves()
        self.housekeeping = Housekeeping(
            lambda: self.config, self.clock, self.replicas, self.log_directories, flusher, self._executor
        )
        self.housekeeping.on_file_removal = self._fill_reserves
        self.housekeeping.start()
        self.compaction = Compaction(self.config, self.clock, self.replicas)
        self.replicas.on_log_deleted = self.compaction.cleaner.on_deleted
        self.compaction.start()
        self._server.serve()

    async def stop(self) -> None:
        """Answers what is in progress, leaves the cluster, flushes and closes every log.

        What fails is logged in a line, and the rest is done all the same: above all the logs are closed.
        """
        self.fetch_purgatory.finish_all()
        await _stopped("the transaction coordinator", self.transactions.stop())
        await _stopped("the group coordinator", self.groups.stop())
        await _stopped("requests", self.dispatcher.drain())
        await _stopped("the listeners", self._server.stop())
        await _stopped("housekeeping", self.housekeeping.stop())
        await _stopped("compaction", self.compaction.stop())
        self._release_reserves()
        epoch = self.cluster.broker_epoch
        await _stopped("the membership", self.cluster.stop())
        loop = asyncio.get_running_loop()
        await _stopped("the logs", loop.run_in_executor(self._executor, self.log_directories.shutdown, epoch))
        self._fill_reserves()
        self.timers.close()
        self.record_work.close()
        self._executor.shutdown()

    def _open_directories(self) -> None:
        loop = asyncio.get_running_loop()
        config = self.settings.static

        def on_offline(_directory: LogDirectory, _error: StorageError) -> None:
            # May come from a flush thread.
            loop.call_soon_threadsafe(self._on_directory_offline)

        self.log_directories = LogDirectories(
            config.log_directories,
            files=self._files,
            producer_id_expiration_ms=config.producer_id_expiration_ms,
            on_offline=on_offline,
            on_roll=self._flush_closed_segment,
        )
        try:
            self.log_directories.acquire()
            self.log_directories.check_node(self.node_id)
        except StorageError as error:
            raise StartError(str(error)) from error

    def _make_reserves(self) -> None:
        """Room for a stop and a start on a full disk; where the metadata file is, for as much again as that has."""
        metadata = os.path.abspath(self._metadata_path())
        sizes = {each.path: RESERVE_BYTES for each in self.log_directories.directories if not each.is_offline}
        if self._store is None and os.path.exists(metadata):
            folder = os.path.dirname(metadata)
            sizes[folder] = sizes.get(folder, RESERVE_BYTES) + 2 * os.path.getsize(metadata)
        name = f"barnabas-reserve-{self.node_id}"
        self._reserves = [DiskReserve(Files(), os.path.join(path, name), size) for path, size in sizes.items()]

    def _release_reserves(self) -> None:
        for reserve in self._reserves:
            reserve.release_if_short()

    def _fill_reserves(self) -> None:
        for reserve in self._reserves:
            reserve.fill()

    def _metadata_path(self) -> str | Path:
        return self._metadata_file or os.path.join(self.data_directories[0], METADATA_FILE)

    async def _load_logs(self, image: ClusterImage) -> None:
        """Recovery must know which topics are compacted: a gap in their offsets is no damage."""
        if self.settings.on_image(image):
            self._on_settings_changed()
        try:
            self.log_directories.identify(self.node_id, image.cluster_id)
            await asyncio.get_running_loop().run_in_executor(self._executor, self._load_logs_with, image)
        except StorageError as error:
            raise StartError(str(error)) from error

    def _load_logs_with(self, image: ClusterImage) -> None:
        self.log_directories.load(
            lambda topic: self.settings.topic_config(image, topic),
            self.clock.now_ms(),
            threads_per_directory=self.config.num_recovery_threads_per_data_dir,
        )

    def _flush_closed_segment(self, log: Log) -> None:
        """A segment was rolled: what is closed goes to the disk, so that recovery need not scan it."""
        asyncio.get_running_loop().run_in_executor(self._executor, self._flush_up_to, log, log.active.base_offset)

    def _flush_up_to(self, log: Log, offset: int) -> None:
        try:
            log.flush(offset)
        except StorageError as error:
            logger.error("%s", error)  # its directory is offline by now

    def _make_coordinators(self) -> None:
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self.groups = GroupCoordinator(
            self.settings.static,
            replicas=self.replicas,
            clock=self.clock,
            timers=self.timers,
            executor=self._executor,
            random=self._random,
        )
        self.transactions = TransactionCoordinator(
            self.settings.static,
            replicas=self.replicas,
            groups=self.groups,
            producer_ids=self.producer_ids,
            image=lambda: self.cluster.image,
            clock=self.clock,
            timers=self.timers,
            executor=self._executor,
        )

    async def _allocate_producer_ids(self) -> range:
        return await self.cluster.allocate_producer_id_block()

    async def _bind(self) -> None:
        listeners = [
            Listener(name=each.name, host=each.host, port=each.port) for each in self.settings.static.bound_listeners()
        ]
        self._server = Server(
            self.dispatcher,
            listeners,
            self._network_settings(),
            clock=self.clock,
            timers=self.timers,
            network=self._network,
        )
        try:
            await self._server.bind()
        except OSError as error:
            addresses = ", ".join(f"{each.host}:{each.port}" for each in listeners)
            raise StartError(f"cannot listen on {addresses}: {error.strerror}") from error

    async def _join_cluster(self) -> None:
        config = self.settings.static
        store = self._store
        if store is None:
            store = SqliteStore(self._metadata_path())
        self.cluster = Cluster(
            store,
            broker_id=self.node_id,
            endpoints=self._endpoints(),
            rules=self.settings.rules,
            rack=config.broker_rack,
            cluster_id=self.log_directories.cluster_id,
            defaults=_topic_defaults(config),
            clock=self.clock,
            random=self._random,
        )
        self.cluster.listeners.append(self._on_delta)
        self.cluster.before_joining = self._load_logs
        try:
            await self.cluster.start()
        except (InconsistentClusterIdError, MetadataStoreError, KafkaError, OSError) as error:
            raise StartError(str(error)) from error
        try:
            await adopt_folders(self.cluster, self.log_directories, config, self._executor)
        except KafkaError as error:
            await self.cluster.stop()
            raise StartError(str(error)) from error

    def _on_delta(self, delta: Delta) -> None:
        if self.settings.on_image(delta.image):
            self._on_settings_changed()
            self.replicas.update_all_configs(delta.image)
        self.replicas.on_delta(delta)
        self.groups.on_delta(delta)
        self.transactions.on_delta(delta)

    def _on_directory_offline(self) -> None:
        if hasattr(self, "replicas"):
            self.replicas.on_directory_offline()

    def _on_settings_changed(self) -> None:
        config = self.settings.config
        self._server.reconfigure(self._network_settings())
        if hasattr(self, "compaction"):
            self.compaction.on_config(config)
        if hasattr(self, "cluster"):
            self.cluster.defaults = _topic_defaults(config)

    def _network_settings(self) -> NetworkSettings:
        config = self.settings.config
        return NetworkSettings(
            socket_request_max_bytes=config.socket_request_max_bytes,
            socket_send_buffer_bytes=config.socket_send_buffer_bytes,
            same_host_send_buffer_bytes=(
                config.socket_send_buffer_bytes if "socket.send.buffer.bytes" in config.given else -1
            ),
            socket_receive_buffer_bytes=config.socket_receive_buffer_bytes,
            socket_listen_backlog_size=config.socket_listen_backlog_size,
            max_connections=config.max_connections,
            max_connections_per_ip=config.max_connections_per_ip,
            max_connections_per_ip_overrides=config.connection_overrides(),
            max_descriptors=descriptors_for_connections(),
            connections_max_idle_ms=config.connections_max_idle_ms,
            queued_max_request_bytes=config.queued_max_request_bytes,
        )

    def _endpoints(self) -> list[BrokerEndpoint]:
        """What clients are told: an empty host becomes this machine's name, port 0 the port that was bound."""
        bound = self._server.addresses
        endpoints = []
        for each in self.settings.static.published_listeners():
            port = each.port or bound[each.name][1]
            endpoints.append(BrokerEndpoint(each.name, each.host or self._network.own_name(), port, each.protocol))
        return endpoints

    async def _give_up(self) -> None:
        if hasattr(self, "transactions"):
            await self.transactions.stop()
            await self.groups.stop()
        if hasattr(self, "_server"):
            await self._server.stop(0)
        self._fill_reserves()
        self.log_directories.release()
        self.timers.close()
        self.record_work.close()
        self._executor.shutdown(wait=False)


async def _stopped(what: str, stopping: Awaitable[object]) -> None:
    try:
        await stopping
    except Exception as error:
        logger.error("stopping %s: %s: %s", what, type(error).__name__, error)


def _topic_defaults(config: BrokerConfig) -> TopicDefaults:
    return TopicDefaults(config.num_partitions, config.default_replication_factor, MAX_REPLICATION_FACTOR)

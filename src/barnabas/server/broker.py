"""The broker: the order in which its parts start and stop.

Start: log directories are locked -> sockets are bound, so that the ports are known -> the metadata store is opened,
which knows the topics' settings -> logs are opened (threads) -> the cluster is joined, and its image makes the replicas
-> a new store takes in what lies in the directories (`adoption.py`) -> connections are accepted -> housekeeping. Stop
goes the other way round, and ends with a clean shutdown marker, so that the next start need not scan. No state outside
of this object: several brokers may live in one process.
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence

from barnabas.config.broker import BrokerConfig
from barnabas.config.faults import ConfigFaults
from barnabas.config.listeners import MQTT, MQTT_PROTOCOLS
from barnabas.errors import KafkaError, StorageError
from barnabas.metadata.image import BrokerEndpoint, ClusterImage, Delta
from barnabas.metadata.registry import UnknownStoreError
from barnabas.metadata.store import MetadataStoreError
from barnabas.net.connection import Connection
from barnabas.net.server import Server
from barnabas.net.settings import UNLIMITED, Listener, ListenerLimits, NetworkSettings, descriptors_for_connections
from barnabas.server.adoption import adopt_folders
from barnabas.server.broker_parts import BrokerParts, make_parts, topic_defaults
from barnabas.server.client_quotas import ClientQuotas
from barnabas.server.cluster_membership import InconsistentClusterIdError
from barnabas.server.controlled_shutdown import hand_over_leaders
from barnabas.server.delegation_tokens import DelegationTokens
from barnabas.server.dispatch import Dispatcher
from barnabas.server.handlers import HANDLERS
from barnabas.server.joining import why_not_to_join
from barnabas.server.listener_kinds import Gateway, mqtt_gateway
from barnabas.server.listener_security import ListenerSecurity
from barnabas.server.metrics.elections import ElectionCounter
from barnabas.server.metrics.endpoint import MetricsEndpoint
from barnabas.server.scram_users import users_of
from barnabas.server.stray_logs import StrayCheck
from barnabas.types import NodeId

__all__ = ["Broker", "BrokerParts", "StartError", "UnknownStoreError", "make_parts"]

logger = logging.getLogger(__name__)

STARTING, RUNNING, LEAVING = 1, 3, 6
"""States of a broker, by Kafka's numbers."""


NO_USERS = (
    "nobody could log in: all listeners demand SCRAM, and there are no users yet. Make the first one while no broker"
    " runs: barnabas user create NAME --data-dir DIR (or --config server.properties, or --metadata LOCATION)"
)


class StartError(Exception):
    """The broker cannot start; the text says why and what to do."""


class Broker:
    """Made once from its parts, on the loop that it runs on. Started and stopped once: a restart is another broker."""

    def __init__(self, parts: BrokerParts) -> None:
        # Attributes of their own, since handlers read them for each request.
        self.settings = parts.settings
        self.clock = parts.clock
        self.timers = parts.timers
        self.links = parts.links
        self.forwarding = parts.forwarding
        self._controller_channel = parts.controller_channel
        self.record_work = parts.record_work
        self.client_metrics = parts.client_metrics
        self.request_faults = parts.request_faults
        self.client_quotas = ClientQuotas(self.config, self.clock)
        self.fetch_sessions = parts.fetch_sessions
        self.fetch_purgatory = parts.fetch_purgatory
        self.log_directories = parts.log_directories
        self.replicas = parts.replicas
        self.cluster = parts.cluster
        self.controller = parts.controller
        self.isr_changes = parts.isr_changes
        self.followers = parts.followers
        self.auto_topic_creation = parts.auto_topic_creation
        self.producer_ids = parts.producer_ids
        self.groups = parts.groups
        self.transactions = parts.transactions
        self.delayed = parts.delayed
        self.authorizer = parts.authorizer
        self.tokens = DelegationTokens(self.config.delegation_token_secret_key, lambda: self.cluster.image, self.clock)
        self.housekeeping = parts.housekeeping
        self.compaction = parts.compaction
        self.directory_moves = parts.directory_moves
        self._network = parts.network
        self._liveness = parts.liveness
        self._leader_balancing = parts.leader_balancing
        self._token_expiry = parts.token_expiry
        self._executor = parts.executor
        self._reserves = parts.reserves
        self.dispatcher = Dispatcher(self, HANDLERS)
        static = self.settings.static
        self.inter_broker_listener = static.inter_broker_listener
        self._mqtt = mqtt_gateway(self, static.bound_listeners())
        self._security = {
            each.name: ListenerSecurity(
                each, static, self.dispatcher, self.timers, self.clock, lambda: self.cluster.image, self.tokens
            )
            for each in static.bound_listeners()
            if each.protocol != MQTT
        }
        self._listeners = [
            Listener(
                name=each.name,
                host=each.host,
                port=each.port,
                connect=self._mqtt.connect,
                security=self._security.get(each.name),
            )
            if self._mqtt is not None and each.protocol in MQTT_PROTOCOLS
            else Listener(
                name=each.name,
                host=each.host,
                port=each.port,
                first_frame_max_bytes=self._security[each.name].first_frame_max_bytes,
                security=self._security[each.name],
            )
            for each in static.bound_listeners()
        ]
        self._server = Server(
            self.dispatcher,
            self._listeners,
            _network_settings(self.config),
            clock=self.clock,
            timers=self.timers,
            network=self._network,
        )
        self._server.throttle_address = self.client_quotas.throttle_address
        self.cluster.listeners.append(self._on_delta)
        self.state = STARTING
        self.elections = ElectionCounter()
        self.metrics = MetricsEndpoint(self, self._network, self._executor)

    @property
    def config(self) -> BrokerConfig:
        return self.settings.config

    @property
    def mqtt(self) -> Gateway | None:
        """What serves MQTT clients, if there is a listener for them."""
        return self._mqtt

    @property
    def node_id(self) -> NodeId:
        return NodeId(self.settings.static.node_id)

    @property
    def address(self) -> str:
        """host:port of the first listener for Kafka's clients."""
        return self.address_of(next(each.name for each in self._listeners if each.connect is None))

    def address_of(self, listener: str) -> str:
        host, port = self._server.addresses[listener]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def ports(self) -> dict[str, int]:
        """Of each listener, by its name."""
        return {name: port for name, (_, port) in self._server.addresses.items()}

    @property
    def connections(self) -> Sequence[Connection]:
        return self._server.connections

    @property
    def listener_names(self) -> list[str]:
        return [listener.name for listener in self._listeners]

    def loop_idle_ns(self) -> int | None:
        """How long the loop has waited for work so far; None if it does not count that."""
        idle_ns = getattr(getattr(asyncio.get_running_loop(), "_selector", None), "idle_ns", None)
        return idle_ns if isinstance(idle_ns, int) else None

    @property
    def data_directories(self) -> list[str]:
        return [directory.path for directory in self.log_directories.directories]

    async def start(self) -> None:
        """Raises StartError with everything released again."""
        try:
            self._load_certificates()
            self._lock_directories()
            self._reserves.open()
            self._reserves.release_if_short()
            await self._bind()
            await self._start_metrics()
            await self._join_cluster()
        except BaseException:
            await self._give_up()
            raise
        self._reserves.fill()
        self.housekeeping.start()
        self._leader_balancing.start()
        self._token_expiry.start()
        self.compaction.start(self.config)
        self.directory_moves.start()
        self._server.serve()
        self.state = RUNNING

    async def stop(self) -> None:
        """Finishes requests in progress, leaves the cluster, flushes and closes every log.

        What fails is logged in one line and the rest is done all the same: above all the logs are closed.
        """
        self.state = LEAVING
        if self.config.controlled_shutdown_enable:
            await _stopped("leadership", hand_over_leaders(self.cluster, self.controller))
        self.cluster.leave()
        self.fetch_purgatory.finish_all()
        await _stopped("delayed messages", self.delayed.stop())
        await _stopped("the transaction coordinator", self.transactions.stop())
        await _stopped("the group coordinator", self.groups.stop())
        self._controller_channel.stop()
        await _stopped("requests", self.dispatcher.drain())
        await _stopped("the listeners", self._server.stop())
        await _stopped("the metrics", self.metrics.stop())
        if self._mqtt is not None:
            await _stopped("MQTT", self._mqtt.stop())
        await _stopped("the balancing of leaders", self._leader_balancing.stop())
        await _stopped("the expiry of tokens", self._token_expiry.stop())
        await _stopped("the watch over other brokers", self._liveness.stop())
        await _stopped("housekeeping", self.housekeeping.stop())
        await _stopped("compaction", self.compaction.stop())
        await _stopped("moves between log directories", self.directory_moves.stop())
        self._reserves.release_if_short()
        epoch = self.cluster.broker_epoch
        await _stopped("the creation of topics", self.auto_topic_creation.stop())
        await _stopped("copying from leaders", self.followers.stop())
        await _stopped("changes of in-sync replicas", self.isr_changes.stop())
        await _stopped("the membership", self.cluster.stop())
        self.links.close()
        loop = asyncio.get_running_loop()
        await _stopped("the logs", loop.run_in_executor(self._executor, self.log_directories.shutdown, epoch))
        self._reserves.fill()
        self.timers.close()
        self.record_work.close()
        self._executor.shutdown()

    def abandon(self) -> None:
        """End the threads and release the locks, with nothing finished, as if the process had been killed.

        For brokers in a test's process. The loop has stopped, and `compaction` with it.
        """
        self._executor.shutdown(cancel_futures=True)
        self.directory_moves.abandon()
        self.record_work.close()
        self.cluster.abandon()
        self.log_directories.release()

    async def _give_up(self) -> None:
        await self._liveness.stop()
        await self.delayed.stop()
        await self.auto_topic_creation.stop()
        await self.directory_moves.stop()
        await self.transactions.stop()
        await self.groups.stop()
        await self._server.stop(0)
        if self._mqtt is not None:
            await self._mqtt.stop()
        await self.metrics.stop()
        self.links.close()
        self._reserves.fill()
        self.log_directories.release()
        self.timers.close()
        self.record_work.close()
        self._executor.shutdown(wait=False)

    def _lock_directories(self) -> None:
        try:
            self.log_directories.acquire(needed=self._reserves.metadata_folder)
            self.log_directories.check_node(self.node_id)
        except StorageError as error:
            raise StartError(str(error)) from error

    def _load_certificates(self) -> None:
        faults: list[str] = []
        for security in self._security.values():
            try:
                security.load()
            except ConfigFaults as found:
                faults += found.faults
            except ValueError as fault:
                faults.append(f"listener {security.name}: ssl.principal.mapping.rules {fault}")
        if self.links.security is not None:
            own = self._security.get(self.inter_broker_listener)
            try:
                self.links.security.load(None if own is None else own.tls_context())
            except ConfigFaults as found:
                faults += found.faults
        if faults:
            raise StartError("; ".join(dict.fromkeys(faults)))

    async def _bind(self) -> None:
        try:
            await self._server.bind()
        except OSError as error:
            addresses = ", ".join(f"{each.host}:{each.port}" for each in self._listeners)
            raise StartError(f"cannot listen on {addresses}: {error.strerror}") from error

    async def _start_metrics(self) -> None:
        address = self.settings.static.monitoring.address
        if address is not None:
            try:
                await self.metrics.start(address)
            except OSError as error:
                raise StartError(
                    f"cannot listen on {address.host}:{address.port} (metrics.listener): {error.strerror}"
                ) from error

    async def _join_cluster(self) -> None:
        config = self.settings.static
        try:
            await self.cluster.start(
                self._endpoints(),
                rack=config.broker_rack,
                cluster_id=self.log_directories.cluster_id,
                before_joining=self._load_logs,
                directories=self.log_directories.epochs,
            )
        except (InconsistentClusterIdError, MetadataStoreError, KafkaError, OSError) as error:
            raise StartError(str(error)) from error
        try:
            await adopt_folders(self.cluster, self.controller, self.log_directories, config, self._executor)
        except KafkaError as error:
            await self.cluster.stop()
            raise StartError(str(error)) from error
        if all(each.needs_scram_users for each in self._security.values()) and not users_of(self.cluster.image):
            await self.cluster.stop()
            raise StartError(NO_USERS)

    def _endpoints(self) -> list[BrokerEndpoint]:
        """What clients connect to: an empty host becomes this machine's name, port 0 the port that was bound."""
        bound = self._server.addresses
        endpoints = []
        for each in self.settings.static.published_listeners():
            port = each.port or bound[each.name][1]
            endpoints.append(BrokerEndpoint(each.name, each.host or self._network.own_name(), port, each.protocol))
        return endpoints

    async def _load_logs(self, image: ClusterImage) -> None:
        """Recovery must know which topics are compacted: a gap in their offsets is no damage."""
        if self.settings.on_image(image):
            self._on_settings_changed()
        if fault := await why_not_to_join(self.links, self.config, image):
            raise StartError(f"this broker cannot join the cluster: {fault}")
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
            is_replicated=lambda each: (found := image.partition(*each)) is not None and len(found.replicas) > 1,
            is_stray=StrayCheck(image, self.node_id).is_stray,
        )

    def _on_delta(self, delta: Delta) -> None:
        if delta.quotas_changed:
            self.client_quotas.on_quotas(delta.image.client_quotas)
        if self.settings.on_image(delta.image):
            self._on_settings_changed()
            self.replicas.update_all_configs(delta.image)
        if self.authorizer is not None:
            self.authorizer.on_delta(delta)
        self.tokens.on_delta(delta)
        self.elections.on_delta(delta, is_controller=self.cluster.is_controller)
        self.client_metrics.on_delta(delta)
        self.links.on_delta(delta)
        self._liveness.on_delta(delta)
        self._controller_channel.on_delta(delta)
        self.replicas.on_delta(delta)
        self.followers.on_delta(delta)
        self.groups.on_delta(delta)
        self.transactions.on_delta(delta)
        self.delayed.on_delta(delta)
        if self._mqtt is not None:
            self._mqtt.on_delta(delta)

    def _on_settings_changed(self) -> None:
        self._server.reconfigure(_network_settings(self.config))
        for security in self._security.values():
            security.reconfigure(self.config)
        if self.links.security is not None:
            self.links.security.reconfigure(self.config)
        self.compaction.on_config(self.config)
        self.cluster.defaults = topic_defaults(self.config)
        quotas = self.settings.quotas
        self.replicas.leader_throttle.set_rate(quotas.leader_replication_throttled_rate)
        self.replicas.follower_throttle.set_rate(quotas.follower_replication_throttled_rate)
        self.directory_moves.throttle.set_rate(quotas.replica_alter_log_dirs_io_max_bytes_per_second)


async def _stopped(what: str, stopping: Awaitable[object]) -> None:
    try:
        await stopping
    except Exception as error:
        logger.error("stopping %s: %s: %s", what, type(error).__name__, error)


def _network_settings(config: BrokerConfig) -> NetworkSettings:
    return NetworkSettings(
        socket_request_max_bytes=config.socket_request_max_bytes,
        socket_send_buffer_bytes=config.socket_send_buffer_bytes,
        same_host_send_buffer_bytes=(
            config.socket_send_buffer_bytes if "socket.send.buffer.bytes" in config.given else -1
        ),
        socket_receive_buffer_bytes=config.socket_receive_buffer_bytes,
        socket_listen_backlog_size=config.socket_listen_backlog_size,
        max_connections=config.max_connections,
        max_connection_creation_rate=config.max_connection_creation_rate,
        listener_limits={each.name: _listener_limits(config, each.name) for each in config.static.bound_listeners()},
        inter_broker_listener=config.inter_broker_listener,
        quota_window_num=config.quota_window_num,
        quota_window_size_seconds=config.quota_window_size_seconds,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_per_ip_overrides=config.connection_overrides(),
        max_descriptors=descriptors_for_connections(),
        connections_max_idle_ms=config.connections_max_idle_ms,
        queued_max_request_bytes=config.queued_max_request_bytes,
    )


def _listener_limits(config: BrokerConfig, listener: str) -> ListenerLimits:
    count = config.listener_limit(listener, "max.connections")
    rate = config.listener_limit(listener, "max.connection.creation.rate")
    return ListenerLimits(
        max_connections=UNLIMITED if count is None else count,
        max_connection_creation_rate=UNLIMITED if rate is None else rate,
    )

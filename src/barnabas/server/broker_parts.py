"""The parts of a broker, made together before anything is opened.

`make_parts` connects them and does no I/O: no file, socket or store is touched, and no thread is started. So a broker
always has all of its parts, whatever fails in its start. It must be called on the loop that the broker will run on.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from barnabas.clock import Clock, Random, SystemClock
from barnabas.config.broker import BrokerConfig
from barnabas.errors import StorageError
from barnabas.machines.controller.topics import TopicDefaults
from barnabas.machines.fetch_session import FetchSessionCache
from barnabas.metadata.engine_options import EngineOptions
from barnabas.metadata.registry import default_location, file_at, store_at
from barnabas.metadata.store import MetadataStore
from barnabas.net.timers import Timers
from barnabas.server.authorizer import Authorizer
from barnabas.server.auto_topic_creation import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    AutoTopicCreation,
)
from barnabas.server.broker_links import BrokerLinks
from barnabas.server.client_metrics import ClientMetrics
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.server.compaction import Compaction
from barnabas.server.controller_channel import ControllerChannel
from barnabas.server.controller_client import ControllerClient
from barnabas.server.delayed import DelayedMessages
from barnabas.server.directory_moves import DirectoryMoves
from barnabas.server.disk_reserves import DiskReserves
from barnabas.server.flusher import Flusher
from barnabas.server.followers import Followers
from barnabas.server.forwarding import Forwarding
from barnabas.server.group_coordinator import GroupCoordinator
from barnabas.server.housekeeping import Housekeeping
from barnabas.server.isr_changes import IsrChanges
from barnabas.server.leader_balancing import LeaderBalancing
from barnabas.server.link_security import LinkSecurity
from barnabas.server.liveness import Liveness
from barnabas.server.producer_ids import ProducerIds
from barnabas.server.purgatory import FetchPurgatory
from barnabas.server.record_work import RecordWork
from barnabas.server.replicas import Replicas
from barnabas.server.request_faults import RequestFaults
from barnabas.server.settings import Settings
from barnabas.server.token_expiry import TokenExpiry
from barnabas.server.transaction_coordinator import TransactionCoordinator
from barnabas.storage.files import Files
from barnabas.storage.log import Log
from barnabas.storage.log_directories import LogDirectories
from barnabas.storage.log_directory import LogDirectory
from barnabas.transport.channel import Network
from barnabas.transport.system import SystemNetwork
from barnabas.types import NodeId

logger = logging.getLogger(__name__)

IO_THREADS = 4
FETCH_SESSION_EVICTION_MS = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerParts:
    settings: Settings
    clock: Clock
    network: Network
    links: BrokerLinks
    forwarding: Forwarding
    controller_channel: ControllerChannel
    timers: Timers
    executor: ThreadPoolExecutor
    record_work: RecordWork
    client_metrics: ClientMetrics
    request_faults: RequestFaults
    fetch_sessions: FetchSessionCache
    fetch_purgatory: FetchPurgatory
    log_directories: LogDirectories
    reserves: DiskReserves
    replicas: Replicas
    cluster: ClusterMembership
    controller: ControllerClient
    liveness: Liveness
    leader_balancing: LeaderBalancing
    token_expiry: TokenExpiry
    isr_changes: IsrChanges
    followers: Followers
    auto_topic_creation: AutoTopicCreation
    producer_ids: ProducerIds
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    delayed: DelayedMessages
    authorizer: Authorizer | None
    housekeeping: Housekeeping
    compaction: Compaction
    directory_moves: DirectoryMoves


def make_parts(
    config: BrokerConfig,
    *,
    metadata: str | Path | None = None,
    store: MetadataStore | None = None,
    clock: Clock | None = None,
    random: Random | None = None,
    network: Network | None = None,
    files: Files | None = None,
) -> BrokerParts:
    """`metadata` is a location of `metadata/registry`, by default that of the settings, or else a file in the first log
    directory. `store` overrides it.

    Raises UnknownStoreError for a location that names no store.
    """
    loop = asyncio.get_running_loop()
    settings, node_id = Settings(config), NodeId(config.node_id)
    clock, random, network = clock or SystemClock(), random or Random(), network or SystemNetwork()
    timers = Timers(loop, clock)
    executor = ThreadPoolExecutor(max_workers=IO_THREADS, thread_name_prefix="barnabas-io")
    flusher = Flusher(loop, executor)
    fetch_purgatory = FetchPurgatory(loop, timers)

    def on_offline(_directory: LogDirectory, _error: StorageError) -> None:
        # May be called by a flush thread.
        loop.call_soon_threadsafe(replicas.on_directory_offline)
        loop.call_soon_threadsafe(directory_moves.on_directory_offline)

    def on_roll(log: Log) -> None:
        # What is closed goes to the disk, so that recovery need not scan it.
        loop.run_in_executor(executor, _flush_up_to, log, log.active.base_offset)

    log_directories = LogDirectories(
        config.log_directories,
        files=files or Files(),
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        on_offline=on_offline,
        on_roll=on_roll,
    )
    engine = config.metadata_engine
    metadata = metadata or default_location(engine, log_directories.directories[0].path)
    reserves = DiskReserves(node_id, log_directories, file_at(metadata) if store is None else None)
    replicas = Replicas(
        node_id,
        log_directories,
        fetch_purgatory,
        flusher,
        settings.topic_config,
        clock,
        timers,
        config.replica_lag_time_max_ms,
        throttle_windows=(config.replication_quota_window_num, config.replication_quota_window_size_seconds * 1000),
    )
    cluster = ClusterMembership(
        store or store_at(metadata, EngineOptions.of(engine)),
        broker_id=node_id,
        rules=settings.rules,
        defaults=topic_defaults(config),
        clock=clock,
        random=random,
        registration_timeout_ms=config.initial_broker_registration_timeout_ms,
    )
    links = BrokerLinks(
        network,
        random,
        node_id,
        lambda: cluster.image,
        listener=config.inter_broker_listener,
        security=LinkSecurity(config, clock),
        timeout_ms=config.replica_socket_timeout_ms,
        receive_buffer_bytes=(
            config.replica_socket_receive_buffer_bytes if "replica.socket.receive.buffer.bytes" in config.given else -1
        ),
    )
    channel = ControllerChannel(node_id, links, lambda: cluster.image, clock)
    controller = ControllerClient(cluster, channel, config.request_timeout_ms)
    isr_changes = IsrChanges(controller.alter_partition, node_id, lambda: cluster.broker_epoch)
    replicas.on_isr_proposed = isr_changes.propose
    followers = Followers(
        node_id,
        links,
        replicas,
        log_directories,
        config=lambda: settings.config,
        clock=clock,
        timers=timers,
        executor=executor,
        broker_epoch=lambda: cluster.broker_epoch,
    )
    producer_ids = ProducerIds(controller.allocate_producer_id_block)
    groups = GroupCoordinator(config, replicas=replicas, clock=clock, timers=timers, executor=executor, random=random)
    transactions = TransactionCoordinator(
        config,
        replicas=replicas,
        groups=groups,
        producer_ids=producer_ids,
        image=lambda: cluster.image,
        links=links,
        clock=clock,
        timers=timers,
        executor=executor,
    )
    record_work = RecordWork()
    client_metrics = ClientMetrics(settings, clock, random, record_work)
    delayed = DelayedMessages(
        node_id, replicas, links, lambda: cluster.image, settings.topic_config, clock, record_work
    )
    housekeeping = Housekeeping(lambda: settings.config, clock, replicas, log_directories, flusher, executor)
    housekeeping.on_file_removal = reserves.fill
    compaction = Compaction(clock, replicas)
    directory_moves = DirectoryMoves(
        log_directories,
        replicas,
        compaction,
        clock,
        timers,
        max(1, config.num_replica_alter_log_dirs_threads or len(config.log_directories)),
        lambda: settings.config.replica_fetch_backoff_ms,
        throttle_windows=(
            config.alter_log_dirs_replication_quota_window_num,
            config.alter_log_dirs_replication_quota_window_size_seconds * 1000,
        ),
    )

    def on_log_deleted(log: Log) -> None:
        directory_moves.on_deleted(log)
        compaction.on_log_deleted(log)

    replicas.on_log_deleted = on_log_deleted
    return BrokerParts(
        settings=settings,
        clock=clock,
        network=network,
        links=links,
        forwarding=Forwarding(channel),
        controller_channel=channel,
        timers=timers,
        executor=executor,
        record_work=record_work,
        client_metrics=client_metrics,
        request_faults=RequestFaults(),
        fetch_sessions=FetchSessionCache(
            config.max_incremental_fetch_session_cache_slots, FETCH_SESSION_EVICTION_MS, random
        ),
        fetch_purgatory=fetch_purgatory,
        log_directories=log_directories,
        reserves=reserves,
        replicas=replicas,
        cluster=cluster,
        controller=controller,
        liveness=Liveness(node_id, links, cluster.remove_broker),
        leader_balancing=LeaderBalancing(lambda: settings.config, cluster, controller),
        token_expiry=TokenExpiry(lambda: settings.config, cluster, controller, clock),
        isr_changes=isr_changes,
        followers=followers,
        auto_topic_creation=AutoTopicCreation(controller.create_topics_anywhere),
        producer_ids=producer_ids,
        groups=groups,
        transactions=transactions,
        delayed=delayed,
        authorizer=_authorizer(config, clock),
        housekeeping=housekeeping,
        compaction=compaction,
        directory_moves=directory_moves,
    )


def _authorizer(config: BrokerConfig, clock: Clock) -> Authorizer | None:
    """None if nothing is to be protected; `config/rules.py` has refused classes that are not known."""
    if not config.authorizer_class_name:
        return None
    authorization = config.authorization
    return Authorizer(
        clock,
        super_users=authorization.super_user_names,
        allow_if_no_acl=authorization.allow_everyone_if_no_acl_found,
    )


def topic_defaults(config: BrokerConfig) -> TopicDefaults:
    return TopicDefaults(
        config.num_partitions,
        config.default_replication_factor,
        internal_replication_factors=(
            (GROUP_METADATA_TOPIC, config.offsets_topic_replication_factor),
            (TRANSACTION_STATE_TOPIC, config.transaction_state_log_replication_factor),
        ),
    )


def _flush_up_to(log: Log, offset: int) -> None:
    try:
        log.flush(offset)
    except StorageError as error:
        logger.error("%s", error)  # its directory is offline by now

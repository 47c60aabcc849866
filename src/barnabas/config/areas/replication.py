"""Who this broker is, replication, leadership and the purgatories."""

from barnabas.config.areas.effect import EXACT_TIMERS, NO_MOVES, NO_PEERS, NO_PLUGINS, NO_QUORUM
from barnabas.config.checks import at_least, each_of
from barnabas.config.setting import CLUSTER_WIDE, HIGH, boolean, int32, int64, string, string_list
from barnabas.config.table import SettingsTable, settings_area


@settings_area
class ReplicationSettings(SettingsTable):
    __slots__ = ()

    auto_leader_rebalance_enable: bool = boolean(
        True, "Whether leadership goes back to preferred replicas by itself.", importance=HIGH, no_effect=NO_PEERS
    )
    broker_heartbeat_interval_ms: int = int32(
        2000, "How often the broker tells the controller that it is alive.", no_effect=NO_QUORUM
    )
    broker_id: int = int32(-1, "Older name of node.id; -1 is not given.", importance=HIGH)
    broker_rack: str | None = string(None, "Rack of this broker, for placing replicas apart.")
    broker_session_timeout_ms: int = int32(
        9000, "Silence after which the controller takes the broker for dead.", no_effect=NO_QUORUM
    )
    controlled_shutdown_enable: bool = boolean(
        True, "Whether leadership is handed over before a stop.", no_effect=NO_PEERS
    )
    controller_socket_timeout_ms: int = int32(
        30_000, "Time-out of sockets from the controller to brokers.", no_effect=NO_PEERS
    )
    delete_records_purgatory_purge_interval_requests: int = int32(
        1, "Requests after which finished DeleteRecords waits are dropped.", no_effect=EXACT_TIMERS
    )
    fetch_purgatory_purge_interval_requests: int = int32(
        1000, "Requests after which finished fetch waits are dropped.", no_effect=EXACT_TIMERS
    )
    initial_broker_registration_timeout_ms: int = int32(
        60_000, "Time in which the first registration with the controller must succeed.", no_effect=NO_QUORUM
    )
    leader_imbalance_check_interval_seconds: int = int64(
        300, "How often to look whether preferred replicas lead.", at_least(1), importance=HIGH, no_effect=NO_PEERS
    )
    node_id: int = int32(0, "Id of this broker in its cluster.", at_least(0), importance=HIGH)
    num_replica_alter_log_dirs_threads: int | None = int32(
        None, "Threads that move replicas between log directories.", importance=HIGH, no_effect=NO_MOVES
    )
    num_replica_fetchers: int = int32(
        1, "Fetchers per source broker.", importance=HIGH, update=CLUSTER_WIDE, no_effect=NO_PEERS
    )
    process_roles: tuple[str, ...] = string_list(
        ("broker", "controller"),
        "Roles of the process; every broker here may be elected controller.",
        each_of("broker", "controller"),
        importance=HIGH,
        no_effect=NO_QUORUM,
    )
    producer_purgatory_purge_interval_requests: int = int32(
        1000, "Requests after which finished produce waits are dropped.", no_effect=EXACT_TIMERS
    )
    replica_fetch_backoff_ms: int = int32(
        1000, "Pause of a replica fetcher after an error.", at_least(0), no_effect=NO_PEERS
    )
    replica_fetch_max_bytes: int = int32(
        1_048_576, "Bytes per partition that a replica asks for in a fetch.", at_least(0), no_effect=NO_PEERS
    )
    replica_fetch_min_bytes: int = int32(
        1, "Bytes for which a replica's fetch waits.", importance=HIGH, no_effect=NO_PEERS
    )
    replica_fetch_response_max_bytes: int = int32(
        10_485_760, "Bytes that a replica asks for in a whole fetch.", at_least(0), no_effect=NO_PEERS
    )
    replica_fetch_wait_max_ms: int = int32(
        500, "Longest wait of a replica's fetch.", importance=HIGH, no_effect=NO_PEERS
    )
    replica_high_watermark_checkpoint_interval_ms: int = int64(
        5000, "How often the high watermarks are written to disk.", importance=HIGH
    )
    replica_lag_time_max_ms: int = int64(
        30_000,
        "Time after which a follower that did not catch up leaves the in-sync replicas.",
        importance=HIGH,
        no_effect=NO_PEERS,
    )
    replica_selector_class: str | None = string(
        None, "Class that picks the replica a consumer should read from.", no_effect=NO_PLUGINS
    )
    replica_socket_receive_buffer_bytes: int = int32(
        65_536, "Receive buffer of a replica fetcher's socket.", importance=HIGH, no_effect=NO_PEERS
    )
    replica_socket_timeout_ms: int = int32(
        30_000, "Time-out of a replica fetcher's socket.", importance=HIGH, no_effect=NO_PEERS
    )
    unclean_leader_election_enable: bool = boolean(
        False,
        "Whether a replica that is not in sync may lead when no other is left.",
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    unclean_leader_election_interval_ms: int = int64(
        300_000,
        "How often to look for partitions that need an unclean election.",
        at_least(1),
        internal=True,
        no_effect=NO_PEERS,
    )

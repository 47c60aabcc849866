"""Broker identity, replication, leadership and purgatories."""

from barnabas.config.areas.effect import EXACT_TIMERS, NO_PEERS, NO_QUORUM, ONE_FETCHER
from barnabas.config.checks import at_least, each_of, either, one_of
from barnabas.config.setting import CLUSTER_WIDE, HIGH, boolean, int32, int64, string, string_list
from barnabas.config.table import SettingsTable, settings_area

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"


@settings_area
class ReplicationSettings(SettingsTable):
    __slots__ = ()

    auto_leader_rebalance_enable: bool = boolean(
        True, "Whether leadership is automatically returned to preferred replicas.", importance=HIGH
    )
    broker_heartbeat_interval_ms: int = int32(
        2000, "Interval of broker heartbeats to the controller.", no_effect=NO_QUORUM
    )
    broker_id: int = int32(-1, "Former name of node.id; -1 means not set.", importance=HIGH)
    broker_rack: str | None = string(None, "Rack of this broker, for rack-aware replica placement.")
    broker_session_timeout_ms: int = int32(
        9000, "Time without a heartbeat after which the controller fences the broker.", no_effect=NO_QUORUM
    )
    controlled_shutdown_enable: bool = boolean(True, "Whether leadership is moved away before shutdown.")
    controller_socket_timeout_ms: int = int32(
        30_000, "Timeout of sockets from the controller to brokers.", no_effect=NO_PEERS
    )
    delete_records_purgatory_purge_interval_requests: int = int32(
        1, "Number of requests after which the DeleteRecords purgatory is purged.", no_effect=EXACT_TIMERS
    )
    fetch_purgatory_purge_interval_requests: int = int32(
        1000, "Number of requests after which the fetch purgatory is purged.", no_effect=EXACT_TIMERS
    )
    initial_broker_registration_timeout_ms: int = int32(
        60_000, "How long a start waits for a controller that accepts the broker."
    )
    leader_imbalance_check_interval_seconds: int = int64(
        300, "Interval between checks for leader imbalance.", at_least(1), importance=HIGH
    )
    node_id: int = int32(0, "Id of this broker in its cluster.", at_least(0), importance=HIGH)
    num_replica_alter_log_dirs_threads: int | None = int32(
        None,
        "Number of replicas that are moved between log directories at the same time; by default one per log directory.",
        importance=HIGH,
    )
    num_replica_fetchers: int = int32(
        1, "Number of fetcher threads per source broker.", importance=HIGH, update=CLUSTER_WIDE, no_effect=ONE_FETCHER
    )
    process_roles: tuple[str, ...] = string_list(
        ("broker", "controller"),
        "Roles of the process; every broker here may be elected controller.",
        each_of("broker", "controller"),
        importance=HIGH,
        no_effect=NO_QUORUM,
    )
    producer_purgatory_purge_interval_requests: int = int32(
        1000, "Number of requests after which the produce purgatory is purged.", no_effect=EXACT_TIMERS
    )
    replica_fetch_backoff_ms: int = int32(
        1000,
        "Delay of a replica fetcher after an error.",
        at_least(0),
    )
    replica_fetch_max_bytes: int = int32(
        1_048_576,
        "Maximum number of bytes per partition in a replica fetch.",
        at_least(0),
    )
    replica_fetch_min_bytes: int = int32(
        1,
        "Minimum number of bytes in a replica fetch response.",
        importance=HIGH,
    )
    replica_fetch_response_max_bytes: int = int32(
        10_485_760,
        "Maximum number of bytes in a replica fetch response.",
        at_least(0),
    )
    replica_fetch_wait_max_ms: int = int32(
        500,
        "Maximum wait of a replica's fetch.",
        importance=HIGH,
    )
    replica_high_watermark_checkpoint_interval_ms: int = int64(
        5000, "How often the high watermarks are written to disk.", importance=HIGH
    )
    replica_lag_time_max_ms: int = int64(
        30_000,
        "Time after which a follower that has not caught up is removed from the ISR.",
        importance=HIGH,
    )
    replica_selector_class: str | None = string(
        None,
        "How the replica that a consumer reads from is selected: by rack, or always the leader.",
        either(one_of(RACK_AWARE_SELECTOR, LEADER_SELECTOR), None),
    )
    replica_socket_receive_buffer_bytes: int = int32(
        65_536,
        "Receive buffer of a replica fetcher's socket; left to the system unless it is given.",
        importance=HIGH,
    )
    replica_socket_timeout_ms: int = int32(
        30_000,
        "Timeout of a replica fetcher's socket.",
        importance=HIGH,
    )
    unclean_leader_election_enable: bool = boolean(
        False,
        "Whether a replica outside the ISR may become leader as a last resort; records may be lost.",
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    unclean_leader_election_interval_ms: int = int64(
        300_000,
        "Interval between checks for partitions that need an unclean election.",
        at_least(1),
        internal=True,
        no_effect=NO_PEERS,
    )

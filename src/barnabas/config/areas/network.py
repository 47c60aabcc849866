"""Listeners, connections, request queues and the topics a client may make."""

from barnabas.config.areas.effect import (
    BY_BYTES,
    NO_JVM,
    NO_PEERS,
    NO_PLUGINS,
    NO_QUORUM,
    NO_RATE,
    NO_SECURITY,
    ONE_LOOP,
    RELEASED_ONLY,
)
from barnabas.config.checks import at_least, one_of
from barnabas.config.setting import (
    CLUSTER_WIDE,
    HIGH,
    INT32_MAX,
    INT64_MAX,
    LOW,
    PER_BROKER,
    boolean,
    class_name,
    int32,
    int64,
    string,
)
from barnabas.config.table import SettingsTable, settings_area


@settings_area
class NetworkSettings(SettingsTable):
    __slots__ = ()

    advertised_listeners: str | None = string(
        None, "Addresses that clients are told to use; the listeners' own where left out.", importance=HIGH
    )
    authorizer_class_name: str = string("", "Class that decides who may do what.", importance=LOW, no_effect=NO_PLUGINS)
    background_threads: int = int32(
        10, "Threads for background work.", at_least(1), importance=HIGH, update=CLUSTER_WIDE, no_effect=ONE_LOOP
    )
    client_quota_callback_class: str | None = class_name(
        None, "Class that works out client quotas.", importance=LOW, no_effect=NO_PLUGINS
    )
    connection_failed_authentication_delay_ms: int = int32(
        100,
        "How long a connection that failed to authenticate is kept before it is closed.",
        at_least(0),
        importance=LOW,
        no_effect=NO_SECURITY,
    )
    connections_max_idle_ms: int = int64(600_000, "Idle time after which a connection is closed; -1 is never.")
    connections_max_reauth_ms: int = int64(
        0, "Session length after which a SASL client must authenticate again.", no_effect=NO_SECURITY
    )
    early_start_listeners: str | None = string(
        None, "Listeners that start before the authorizer is ready.", importance=HIGH, no_effect=NO_SECURITY
    )
    fetch_max_bytes: int = int32(57_671_680, "Bytes returned at most for one fetch request.", at_least(1024))
    inter_broker_listener_name: str | None = string(
        None, "Listener that brokers use among themselves.", no_effect=NO_PEERS
    )
    # Kafka lets a running broker change these two; here the sockets are bound once.
    listener_security_protocol_map: str = string(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Security protocol of each listener name.",
        importance=LOW,
    )
    listeners: str = string(
        "PLAINTEXT://:9092",
        "Addresses to listen on, as NAME://host:port; an empty host is all interfaces, port 0 any free port.",
        importance=HIGH,
    )
    max_connection_creation_rate: int = int32(
        INT32_MAX, "New connections per second that are accepted.", at_least(0), update=CLUSTER_WIDE, no_effect=NO_RATE
    )
    max_connections_per_ip_overrides: str = string(
        "", "Exceptions to max.connections.per.ip, as host:count,host:count.", update=CLUSTER_WIDE
    )
    max_connections_per_ip: int = int32(
        INT32_MAX, "Connections that are open at once from one address.", at_least(0), update=CLUSTER_WIDE
    )
    max_connections: int = int32(INT32_MAX, "Connections that are open at once.", at_least(0), update=CLUSTER_WIDE)
    max_incremental_fetch_session_cache_slots: int = int32(
        1000, "Incremental fetch sessions that are remembered.", at_least(0)
    )
    max_request_partition_size_limit: int = int32(
        2000, "Partitions listed at most in one DescribeTopicPartitions response.", at_least(1)
    )
    num_io_threads: int = int32(
        8, "Threads that answer requests.", at_least(1), importance=HIGH, update=CLUSTER_WIDE, no_effect=ONE_LOOP
    )
    num_network_threads: int = int32(
        3, "Threads that serve sockets.", at_least(1), importance=HIGH, update=CLUSTER_WIDE, no_effect=ONE_LOOP
    )
    principal_builder_class: str = class_name(
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "Class that makes a principal out of a connection.",
        update=PER_BROKER,
        no_effect=NO_PLUGINS,
    )
    queued_max_request_bytes: int = int64(
        -1, "Bytes of requests in progress after which reading from clients pauses; -1 is the built-in budget."
    )
    queued_max_requests: int = int32(
        500,
        "Requests in progress on the broker after which reading from clients pauses.",
        at_least(1),
        importance=HIGH,
        no_effect=BY_BYTES,
    )
    request_timeout_ms: int = int32(
        30_000, "Time a broker waits for the answer to a request of its own.", importance=HIGH, no_effect=NO_PEERS
    )
    security_inter_broker_protocol: str = string(
        "PLAINTEXT",
        "Security protocol among brokers, where inter.broker.listener.name is not given.",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        no_effect=NO_PEERS,
    )
    security_providers: str | None = string(None, "Java security providers.", importance=LOW, no_effect=NO_JVM)
    server_max_startup_time_ms: int = int64(
        INT64_MAX, "Longest time that the start may take.", at_least(0), internal=True, no_effect=NO_QUORUM
    )
    socket_connection_setup_timeout_max_ms: int = int64(
        30_000, "Largest time-out for setting up a connection to another broker.", no_effect=NO_PEERS
    )
    socket_connection_setup_timeout_ms: int = int64(
        10_000, "First time-out for setting up a connection to another broker.", no_effect=NO_PEERS
    )
    socket_listen_backlog_size: int = int32(50, "Connections that may wait to be accepted.", at_least(1))
    socket_receive_buffer_bytes: int = int32(
        102_400, "Size of a socket's receive buffer; -1 leaves it to the system.", importance=HIGH
    )
    socket_request_max_bytes: int = int32(104_857_600, "Largest request that is read.", at_least(1), importance=HIGH)
    socket_send_buffer_bytes: int = int32(
        102_400,
        "Size of a socket's send buffer; -1 leaves it to the system. Left at its default, it is left to the system for"
        " connections within this machine.",
        importance=HIGH,
    )
    unstable_api_versions_enable: bool = boolean(
        False,
        "Whether versions of APIs still in development are served.",
        importance=HIGH,
        internal=True,
        no_effect=RELEASED_ONLY,
    )
    unstable_feature_versions_enable: bool = boolean(
        False,
        "Whether feature levels still in development may be used.",
        importance=HIGH,
        internal=True,
        no_effect=RELEASED_ONLY,
    )

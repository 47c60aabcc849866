"""Listeners, connections and request queues."""

from barnabas.config.areas.effect import (
    BY_BYTES,
    NO_AUTHORIZER,
    NO_JVM,
    NO_PEERS,
    NO_PLUGINS,
    NO_QUORUM,
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
        None, "Addresses published to clients; defaults to listeners.", importance=HIGH
    )
    authorizer_class_name: str = string(
        "", "Authorizer class: one of Kafka's own, which both mean the one of this broker.", importance=LOW
    )
    background_threads: int = int32(
        10,
        "Number of threads for background tasks.",
        at_least(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        no_effect=ONE_LOOP,
    )
    client_quota_callback_class: str | None = class_name(
        None, "Class that computes client quotas.", importance=LOW, no_effect=NO_PLUGINS
    )
    connection_failed_authentication_delay_ms: int = int32(
        100,
        "How long closing a connection is delayed after failed authentication.",
        at_least(0),
        importance=LOW,
    )
    connections_max_idle_ms: int = int64(600_000, "Idle time after which a connection is closed; -1 disables it.")
    connections_max_reauth_ms: int = int64(0, "Time after which a SASL client must reauthenticate; 0 disables it.")
    early_start_listeners: str | None = string(
        None, "Listeners that start before the authorizer is ready.", importance=HIGH, no_effect=NO_AUTHORIZER
    )
    fetch_max_bytes: int = int32(57_671_680, "Maximum number of bytes returned for a fetch request.", at_least(1024))
    inter_broker_listener_name: str | None = string(None, "Listener for communication between brokers.")
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
        INT32_MAX, "Maximum rate of new connections per second.", at_least(0), update=CLUSTER_WIDE
    )
    max_connections_per_ip_overrides: str = string(
        "", "Overrides of max.connections.per.ip, as host:count,host:count.", update=CLUSTER_WIDE
    )
    max_connections_per_ip: int = int32(
        INT32_MAX, "Maximum number of connections per IP address.", at_least(0), update=CLUSTER_WIDE
    )
    max_connections: int = int32(INT32_MAX, "Maximum number of connections.", at_least(0), update=CLUSTER_WIDE)
    max_incremental_fetch_session_cache_slots: int = int32(
        1000, "Maximum number of cached incremental fetch sessions.", at_least(0)
    )
    max_request_partition_size_limit: int = int32(
        2000, "Maximum number of partitions in a DescribeTopicPartitions response.", at_least(1)
    )
    num_io_threads: int = int32(
        8,
        "Number of threads that process requests.",
        at_least(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        no_effect=ONE_LOOP,
    )
    num_network_threads: int = int32(
        3,
        "Number of threads that handle sockets.",
        at_least(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        no_effect=ONE_LOOP,
    )
    principal_builder_class: str = class_name(
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "Class that derives the principal of a connection.",
        update=PER_BROKER,
        no_effect=NO_PLUGINS,
    )
    queued_max_request_bytes: int = int64(
        -1, "Bytes of requests in progress at which the broker stops reading from clients; -1 is the built-in limit."
    )
    queued_max_requests: int = int32(
        500,
        "Number of requests in progress at which the broker stops reading from clients.",
        at_least(1),
        importance=HIGH,
        no_effect=BY_BYTES,
    )
    request_timeout_ms: int = int32(
        30_000, "How long a broker waits for the response to its own requests.", importance=HIGH
    )
    security_inter_broker_protocol: str = string(
        "PLAINTEXT",
        "Security protocol between brokers, if inter.broker.listener.name is not set.",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    security_providers: str | None = string(None, "Java security providers.", importance=LOW, no_effect=NO_JVM)
    server_max_startup_time_ms: int = int64(
        INT64_MAX, "Maximum time for startup.", at_least(0), internal=True, no_effect=NO_QUORUM
    )
    socket_connection_setup_timeout_max_ms: int = int64(
        30_000, "How long a client may take for its TLS handshake and to authenticate.", at_least(1)
    )
    socket_connection_setup_timeout_ms: int = int64(
        10_000, "Initial connection setup timeout to other brokers.", no_effect=NO_PEERS
    )
    socket_listen_backlog_size: int = int32(50, "Maximum number of pending connections per socket.", at_least(1))
    socket_receive_buffer_bytes: int = int32(
        102_400, "Size of a socket's receive buffer; -1 uses the system's default.", importance=HIGH
    )
    socket_request_max_bytes: int = int32(104_857_600, "Maximum size of a request.", at_least(1), importance=HIGH)
    socket_send_buffer_bytes: int = int32(
        102_400,
        "Size of a socket's send buffer; -1 uses the system's default. Unless set, the system's default is also used"
        " for connections within this host.",
        importance=HIGH,
    )
    unstable_api_versions_enable: bool = boolean(
        False,
        "Whether API versions in development are served.",
        importance=HIGH,
        internal=True,
        no_effect=RELEASED_ONLY,
    )
    unstable_feature_versions_enable: bool = boolean(
        False,
        "Whether feature levels in development may be used.",
        importance=HIGH,
        internal=True,
        no_effect=RELEASED_ONLY,
    )

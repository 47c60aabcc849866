"""The tables once more as TypedDicts, so that editors and type checkers know what a constructor takes.

bootstrap_servers is left out: it is the constructors' first argument. A test compares these with the tables.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict

from barnabas.client.options.plugins import Deserializer, Partitioner, Serializer

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Assignor = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]


class CommonKwargs(TypedDict, total=False):
    """Keyword arguments that all clients take."""

    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
    client_id: str
    connections_max_idle_ms: int
    enable_metrics_push: bool
    metadata_max_age_ms: int
    metadata_recovery_rebootstrap_trigger_ms: int
    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    receive_buffer_bytes: int
    reconnect_backoff_max_ms: int
    reconnect_backoff_ms: int
    request_timeout_ms: int
    retry_backoff_max_ms: int
    retry_backoff_ms: int
    sasl_jaas_config: str
    sasl_mechanism: SaslMechanism
    sasl_oauthbearer_client_credentials_client_id: str
    sasl_oauthbearer_client_credentials_client_secret: str
    sasl_oauthbearer_scope: str
    sasl_oauthbearer_token_callback: Callable[[], str]
    sasl_oauthbearer_token_endpoint_url: str
    sasl_password: str
    sasl_scram_token_auth: bool
    sasl_username: str
    security_protocol: SecurityProtocol
    send_buffer_bytes: int
    socket_connection_setup_timeout_max_ms: int
    socket_connection_setup_timeout_ms: int
    ssl_cipher_suites: str | Sequence[str]
    ssl_enabled_protocols: str | Sequence[str]
    ssl_endpoint_identification_algorithm: Literal["https", ""]
    ssl_key_password: str
    ssl_keystore_certificate_chain: str
    ssl_keystore_key: str
    ssl_keystore_location: str
    ssl_keystore_type: Literal["PEM"]
    ssl_protocol: Literal["TLSv1.2", "TLSv1.3"]
    ssl_truststore_certificates: str
    ssl_truststore_location: str
    ssl_truststore_type: Literal["PEM"]


class ProducerKwargs(CommonKwargs, total=False):
    """Keyword arguments of `Producer`. docs/client-options.md describes each."""

    acks: Literal["all", "0", "1", -1, 0, 1]
    batch_size: int
    buffer_memory: int
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: Codec
    compression_zstd_level: int
    delivery_timeout_ms: int
    enable_idempotence: bool
    interceptor_classes: Sequence[Any]
    key_serializer: Serializer | None
    key_serializer_encoding: str | None
    linger_ms: int
    max_block_ms: int
    max_in_flight_requests_per_connection: int
    max_request_size: int
    metadata_max_idle_ms: int
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: int
    partitioner_class: Partitioner | str | None
    partitioner_ignore_keys: bool
    retries: int
    serializer_encoding: str | None
    transaction_timeout_ms: int
    transaction_two_phase_commit_enable: bool
    transactional_id: str | None
    value_serializer: Serializer | None
    value_serializer_encoding: str | None


class ConsumerKwargs(CommonKwargs, total=False):
    """Keyword arguments of `Consumer`. docs/client-options.md describes each."""

    allow_auto_create_topics: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    check_crcs: bool
    client_rack: str
    default_api_timeout_ms: int
    deserializer_encoding: str | None
    enable_auto_commit: bool
    exclude_internal_topics: bool
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    group_id: str | None
    group_instance_id: str | None
    group_protocol: Literal["classic", "consumer"]
    group_remote_assignor: str | None
    heartbeat_interval_ms: int
    interceptor_classes: Sequence[Any]
    isolation_level: Literal["read_committed", "read_uncommitted"]
    key_deserializer: Deserializer | None
    key_deserializer_encoding: str | None
    max_partition_fetch_bytes: int
    max_poll_interval_ms: int
    max_poll_records: int
    partition_assignment_strategy: Assignor | Sequence[Any]
    session_timeout_ms: int
    value_deserializer: Deserializer | None
    value_deserializer_encoding: str | None


class AdminKwargs(CommonKwargs, total=False):
    """Keyword arguments of `Admin`. docs/client-options.md describes each."""

    default_api_timeout_ms: int
    retries: int

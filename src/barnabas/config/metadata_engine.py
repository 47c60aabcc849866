"""Settings of the engine that keeps the metadata: Kafka's own for ZooKeeper (Kafka 2 and 3), and ours for any engine.

Kafka 4.1 has none of them, so DescribeConfigs does not list them. `BrokerConfig.parse` reads them from the same file;
`metadata/engine_options.py` makes of them what a store is given.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.config.checks import Check, at_least, one_of
from barnabas.config.faults import Fault, read_values
from barnabas.config.setting import HIGH, LOW, boolean, int32, password, string, string_list
from barnabas.config.table import SettingsTable, settings_table

SYSTEM_TLS: Final = "the versions and ciphers of the system's OpenSSL are used"
ONE_CONNECTION: Final = "requests are sent as they come"
NO_MIGRATION: Final = "there is no KRaft quorum to migrate to"
NETTY: Final = "there is no Java runtime"
PEM_HAS_NONE: Final = "a PEM file of certificates has no password"
_FALSE: Final = Check("false: certificates are not checked for revocation", lambda value: value is False)
_PEM: Final = one_of("PEM")


@settings_table
class MetadataEngineConfig(SettingsTable):
    barnabas_metadata: str | None = string(
        None, "Where metadata is kept: etcd://..., zookeeper://..., sqlite:FILE or a file.", importance=HIGH
    )
    barnabas_metadata_connection_timeout_ms: int = int32(
        15_000, "How long a start waits for the metadata engine.", at_least(1)
    )
    barnabas_metadata_password: str | None = password(None, "Password for the metadata engine.")
    barnabas_metadata_request_timeout_ms: int = int32(
        6_000, "How long one call of the metadata engine may take, other nodes of it included.", at_least(100)
    )
    barnabas_metadata_session_timeout_ms: int = int32(
        2_500,
        "How long a broker may be silent before others take over. etcd counts whole seconds, two or more.",
        at_least(1000),
        importance=HIGH,
    )
    barnabas_metadata_ssl_ca_location: str | None = string(
        None, "PEM file of the authorities that the metadata engine's certificates are checked with."
    )
    barnabas_metadata_ssl_certificate_location: str | None = string(
        None, "PEM file with this broker's certificate for the metadata engine, and its key if that is not elsewhere."
    )
    barnabas_metadata_ssl_enable: bool = boolean(False, "Whether the metadata engine is reached by TLS.")
    barnabas_metadata_ssl_key_location: str | None = string(None, "PEM file with the certificate's key.")
    barnabas_metadata_ssl_key_password: str | None = password(None, "Password of that key.")
    barnabas_metadata_transaction_max_operations: int | None = int32(
        None, "Largest transaction of the metadata engine (etcd's --max-txn-ops).", at_least(16), importance=LOW
    )
    barnabas_metadata_username: str | None = string(None, "User name for the metadata engine.")
    broker_id_generation_enable: bool = boolean(
        True, "Whether a broker of a cluster gets an id if node.id is -1 or not given."
    )
    reserved_broker_max_id: int = int32(1000, "Generated ids are above this one.", at_least(0))

    zookeeper_clientCnxnSocket: str | None = string(None, "Java class of the connection.", no_effect=NETTY)
    zookeeper_connect: str | None = string(
        None, "ZooKeeper's servers as host:port,host:port/chroot: the metadata is kept there.", importance=HIGH
    )
    zookeeper_connection_timeout_ms: int | None = int32(
        None, "How long a start waits for ZooKeeper; the session timeout if it is not set.", at_least(1)
    )
    zookeeper_max_in_flight_requests: int = int32(10, "Requests under way.", at_least(1), no_effect=ONE_CONNECTION)
    zookeeper_metadata_migration_enable: bool = boolean(
        False, "Whether the metadata moves to KRaft.", no_effect=NO_MIGRATION
    )
    zookeeper_session_timeout_ms: int | None = int32(
        None, "How long a broker may be silent before others take over (Kafka's default is 18000).", at_least(1)
    )
    zookeeper_set_acl: bool = boolean(False, "Whether only this broker's login may change what it creates.")
    zookeeper_ssl_cipher_suites: tuple[str, ...] = string_list((), "Ciphers.", no_effect=SYSTEM_TLS)
    zookeeper_ssl_client_enable: bool = boolean(False, "Whether ZooKeeper is reached by TLS.")
    zookeeper_ssl_crl_enable: bool = boolean(False, "Whether revocation lists are checked.", _FALSE)
    zookeeper_ssl_enabled_protocols: tuple[str, ...] = string_list((), "Versions of TLS.", no_effect=SYSTEM_TLS)
    zookeeper_ssl_endpoint_identification_algorithm: str = string(
        "HTTPS", "Whether the server's name is checked: HTTPS, or empty for no check.", one_of("HTTPS", "https", "")
    )
    zookeeper_ssl_keystore_location: str | None = string(None, "File with this broker's certificate and key.")
    zookeeper_ssl_keystore_password: str | None = password(None, "Password of the key.")
    zookeeper_ssl_keystore_type: str | None = string(None, "Format of the file.", _PEM)
    zookeeper_ssl_ocsp_enable: bool = boolean(False, "Whether revocation is asked for.", _FALSE)
    zookeeper_ssl_protocol: str = string("TLSv1.2", "Version of TLS.", no_effect=SYSTEM_TLS)
    zookeeper_ssl_truststore_location: str | None = string(None, "File with the authorities to trust.")
    zookeeper_ssl_truststore_password: str | None = password(None, "Password of the file.", no_effect=PEM_HAS_NONE)
    zookeeper_ssl_truststore_type: str | None = string(None, "Format of the file.", _PEM)

    @property
    def location(self) -> str | None:
        """As of `--metadata`; None if the settings say nothing about it."""
        if self.barnabas_metadata is not None:
            return self.barnabas_metadata
        return None if self.zookeeper_connect is None else f"zookeeper://{self.zookeeper_connect}"


def read_engine_config(given: Mapping[str, str]) -> tuple[MetadataEngineConfig, list[str]]:
    """What is given of these settings, and their faults."""
    values, faults = read_values(MetadataEngineConfig.settings, given)
    if "barnabas.metadata" in given and "zookeeper.connect" in given:
        faults.append(Fault("barnabas.metadata", "zookeeper.connect is given too, and only one of them can be"))
    for name in ("keystore", "truststore"):
        file, kind = f"zookeeper.ssl.{name}.location", f"zookeeper.ssl.{name}.type"
        if given.get(file) and kind not in given:
            faults.append(Fault(file, f"only files in PEM format can be read: convert it, and set {kind}=PEM"))
    return MetadataEngineConfig(**values), faults

"""TLS: keys and certificates are PEM, in files or as text."""

from barnabas.config.areas.effect import ANY_CERTIFICATE, NO_JVM, PEM_HAS_NONE
from barnabas.config.checks import one_of
from barnabas.config.setting import LOW, PER_BROKER, boolean, class_name, password, string, string_list
from barnabas.config.table import SettingsTable, settings_area


@settings_area
class SslSettings(SettingsTable):
    __slots__ = ()

    ssl_allow_dn_changes: bool = boolean(
        False, "Whether a new certificate may name another subject.", importance=LOW, no_effect=ANY_CERTIFICATE
    )
    ssl_allow_san_changes: bool = boolean(
        False, "Whether a new certificate may name other hosts.", importance=LOW, no_effect=ANY_CERTIFICATE
    )
    ssl_cipher_suites: tuple[str, ...] = string_list((), "Enabled cipher suites; all if empty.", update=PER_BROKER)
    ssl_client_auth: str = string(
        "none",
        "Whether clients must present a certificate.",
        one_of("required", "requested", "none"),
        update=PER_BROKER,
    )
    ssl_enabled_protocols: tuple[str, ...] = string_list(
        ("TLSv1.2", "TLSv1.3"), "Enabled TLS versions.", update=PER_BROKER
    )
    ssl_endpoint_identification_algorithm: str = string(
        "https",
        "How a peer's host name is checked against its certificate.",
        importance=LOW,
        update=PER_BROKER,
    )
    ssl_engine_factory_class: str | None = class_name(
        None, "TLS engine factory class.", importance=LOW, update=PER_BROKER, no_effect=NO_JVM
    )
    ssl_key_password: str | None = password(None, "Password of the private key.", update=PER_BROKER)
    ssl_keymanager_algorithm: str = string(
        "SunX509", "Algorithm of the key manager.", update=PER_BROKER, no_effect=NO_JVM
    )
    ssl_keystore_certificate_chain: str | None = password(None, "Certificates as PEM text.", update=PER_BROKER)
    ssl_keystore_key: str | None = password(None, "Private key as PEM text.", update=PER_BROKER)
    ssl_keystore_location: str | None = string(None, "File with the private key and certificates.", update=PER_BROKER)
    ssl_keystore_password: str | None = password(
        None, "Password of the key store file.", update=PER_BROKER, no_effect=PEM_HAS_NONE
    )
    ssl_keystore_type: str = string("JKS", "Format of the key store file.", update=PER_BROKER)
    ssl_principal_mapping_rules: str = string(
        "DEFAULT", "Rules that shorten a certificate's subject to a user name.", importance=LOW
    )
    ssl_protocol: str = string("TLSv1.3", "Preferred TLS version.", update=PER_BROKER)
    ssl_provider: str | None = string(None, "Security provider for TLS.", update=PER_BROKER, no_effect=NO_JVM)
    ssl_secure_random_implementation: str | None = string(
        None, "Random number generator for TLS.", importance=LOW, update=PER_BROKER, no_effect=NO_JVM
    )
    ssl_trustmanager_algorithm: str = string(
        "PKIX", "Algorithm of the trust manager.", update=PER_BROKER, no_effect=NO_JVM
    )
    ssl_truststore_certificates: str | None = password(None, "Trusted certificates as PEM text.", update=PER_BROKER)
    ssl_truststore_location: str | None = string(None, "File with trusted certificates.", update=PER_BROKER)
    ssl_truststore_password: str | None = password(
        None, "Password of the trust store file.", update=PER_BROKER, no_effect=PEM_HAS_NONE
    )
    ssl_truststore_type: str = string("JKS", "Format of the trust store file.", update=PER_BROKER)

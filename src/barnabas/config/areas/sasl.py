"""SASL and delegation tokens."""

from barnabas.config.areas.effect import (
    NO_ASSERTIONS,
    NO_KERBEROS,
    NO_PLUGINS,
    NO_QUORUM,
    OWN_TOKENS,
)
from barnabas.config.checks import at_least, between, one_of_any_case
from barnabas.config.setting import (
    HIGH,
    LOW,
    PER_BROKER,
    boolean,
    class_name,
    double,
    int16,
    int32,
    int64,
    password,
    string,
    string_list,
)
from barnabas.config.table import SettingsTable, settings_area


@settings_area
class SaslSettings(SettingsTable):
    __slots__ = ()

    delegation_token_expiry_check_interval_ms: int = int64(
        3_600_000, "Interval between checks for expired tokens.", at_least(1), importance=LOW
    )
    delegation_token_expiry_time_ms: int = int64(86_400_000, "Time until a token must be renewed.", at_least(1))
    delegation_token_max_lifetime_ms: int = int64(
        604_800_000, "Time after which a token cannot be renewed.", at_least(1)
    )
    delegation_token_secret_key: str | None = password(None, "Secret that signs tokens, equal on all brokers.")
    sasl_client_callback_handler_class: str | None = class_name(
        None, "SASL client callback handler class.", no_effect=NO_PLUGINS
    )
    sasl_enabled_mechanisms: tuple[str, ...] = string_list(("GSSAPI",), "Enabled SASL mechanisms.", update=PER_BROKER)
    sasl_jaas_config: str | None = password(None, "JAAS login context.", update=PER_BROKER)
    sasl_kerberos_kinit_cmd: str = string(
        "/usr/bin/kinit", "Path of the kinit command.", update=PER_BROKER, no_effect=NO_KERBEROS
    )
    sasl_kerberos_min_time_before_relogin: int = int64(
        60_000, "Minimum time between two Kerberos logins.", update=PER_BROKER, no_effect=NO_KERBEROS
    )
    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = string_list(
        ("DEFAULT",), "Rules that shorten Kerberos principals to user names.", update=PER_BROKER, no_effect=NO_KERBEROS
    )
    sasl_kerberos_service_name: str | None = string(
        None, "Kerberos principal that brokers run as.", update=PER_BROKER, no_effect=NO_KERBEROS
    )
    sasl_kerberos_ticket_renew_jitter: float = double(
        0.05, "Jitter of the ticket renewal time.", update=PER_BROKER, no_effect=NO_KERBEROS
    )
    sasl_kerberos_ticket_renew_window_factor: float = double(
        0.8, "Fraction of a ticket's lifetime after which it is renewed.", update=PER_BROKER, no_effect=NO_KERBEROS
    )
    sasl_login_callback_handler_class: str | None = class_name(
        None, "SASL login callback handler class.", no_effect=NO_PLUGINS
    )
    sasl_login_class: str | None = class_name(None, "SASL login class.", no_effect=NO_PLUGINS)
    sasl_login_connect_timeout_ms: int | None = int32(
        None, "Timeout for connecting to the identity provider.", importance=LOW, no_effect=OWN_TOKENS
    )
    sasl_login_read_timeout_ms: int | None = int32(
        None, "Timeout for reading from the identity provider.", importance=LOW, no_effect=OWN_TOKENS
    )
    sasl_login_refresh_buffer_seconds: int = int16(
        300,
        "Minimum time left before expiry when a credential is refreshed.",
        update=PER_BROKER,
        no_effect=OWN_TOKENS,
    )
    sasl_login_refresh_min_period_seconds: int = int16(
        60, "Minimum time between two refreshes.", update=PER_BROKER, no_effect=OWN_TOKENS
    )
    sasl_login_refresh_window_factor: float = double(
        0.8,
        "Fraction of a credential's lifetime after which it is refreshed.",
        update=PER_BROKER,
        no_effect=OWN_TOKENS,
    )
    sasl_login_refresh_window_jitter: float = double(
        0.05, "Jitter of the refresh time.", update=PER_BROKER, no_effect=OWN_TOKENS
    )
    sasl_login_retry_backoff_max_ms: int = int64(
        10_000, "Maximum delay between login attempts.", importance=LOW, no_effect=OWN_TOKENS
    )
    sasl_login_retry_backoff_ms: int = int64(
        100, "Initial delay between login attempts.", importance=LOW, no_effect=OWN_TOKENS
    )
    sasl_mechanism_controller_protocol: str = string(
        "GSSAPI", "SASL mechanism for connections to controllers.", importance=HIGH, no_effect=NO_QUORUM
    )
    sasl_mechanism_inter_broker_protocol: str = string("GSSAPI", "SASL mechanism between brokers.", update=PER_BROKER)
    sasl_oauthbearer_assertion_algorithm: str = string(
        "RS256", "Algorithm that signs an assertion.", one_of_any_case("ES256", "RS256"), no_effect=NO_ASSERTIONS
    )
    sasl_oauthbearer_assertion_claim_aud: str | None = string(
        None, "Audience named in an assertion.", no_effect=NO_ASSERTIONS
    )
    sasl_oauthbearer_assertion_claim_exp_seconds: int = int32(
        300, "Seconds until an assertion expires.", between(0, 86_400), importance=LOW, no_effect=NO_ASSERTIONS
    )
    sasl_oauthbearer_assertion_claim_iss: str | None = string(
        None, "Issuer named in an assertion.", no_effect=NO_ASSERTIONS
    )
    sasl_oauthbearer_assertion_claim_jti_include: bool = boolean(
        False, "Whether an assertion carries a unique id.", no_effect=NO_ASSERTIONS
    )
    sasl_oauthbearer_assertion_claim_nbf_seconds: int = int32(
        60,
        "Seconds before now from which an assertion is valid.",
        between(0, 3600),
        importance=LOW,
        no_effect=NO_ASSERTIONS,
    )
    sasl_oauthbearer_assertion_claim_sub: str | None = string(
        None, "Subject named in an assertion.", no_effect=NO_ASSERTIONS
    )
    sasl_oauthbearer_assertion_file: str | None = string(
        None, "File with a ready-made assertion.", no_effect=NO_ASSERTIONS
    )
    sasl_oauthbearer_assertion_private_key_file: str | None = string(
        None, "File with the key that signs assertions.", no_effect=NO_ASSERTIONS
    )
    sasl_oauthbearer_assertion_private_key_passphrase: str | None = password(
        None, "Passphrase of that key.", no_effect=NO_ASSERTIONS
    )
    sasl_oauthbearer_assertion_template_file: str | None = string(
        None, "File with the fixed parts of an assertion.", no_effect=NO_ASSERTIONS
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = string(
        None, "Client id for the client-credentials grant."
    )
    sasl_oauthbearer_client_credentials_client_secret: str | None = password(
        None, "Client secret for the client-credentials grant."
    )
    sasl_oauthbearer_clock_skew_seconds: int = int32(30, "Allowed clock skew.", importance=LOW)
    sasl_oauthbearer_expected_audience: tuple[str, ...] | None = string_list(
        None, "Expected audiences; a token must have one of them.", importance=LOW
    )
    sasl_oauthbearer_expected_issuer: str | None = string(None, "Expected issuer of tokens.", importance=LOW)
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = int64(
        3_600_000, "How often the identity provider's keys are fetched.", importance=LOW
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = int64(
        10_000, "Maximum delay between attempts to fetch them.", importance=LOW
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = int64(
        100, "Initial delay between attempts to fetch them.", importance=LOW
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = string(None, "Address of the identity provider's keys.")
    sasl_oauthbearer_jwt_retriever_class: str = class_name(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "JWT retriever class.",
        no_effect=NO_PLUGINS,
    )
    sasl_oauthbearer_jwt_validator_class: str = class_name(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        "JWT validator class.",
        no_effect=NO_PLUGINS,
    )
    sasl_oauthbearer_scope_claim_name: str = string("scope", "Name of the claim that holds the scope.", importance=LOW)
    sasl_oauthbearer_scope: str | None = string(None, "Scope requested for a token.")
    sasl_oauthbearer_sub_claim_name: str = string("sub", "Name of the claim that holds the subject.", importance=LOW)
    sasl_oauthbearer_token_endpoint_url: str | None = string(None, "Address that issues tokens.")
    sasl_server_callback_handler_class: str | None = class_name(
        None, "Class that checks tokens of OAUTHBEARER: one of Kafka's two, by its name."
    )
    sasl_server_max_receive_size: int = int32(524_288, "Maximum size of a message before authentication.")

"""TLS and SASL options. Keys and certificates are PEM, as files or as text; what only a JVM can do is refused."""

from collections.abc import Callable, Iterator
from typing import Any

from barnabas.client.options.option import HIGH, LOW, choice, flag, python, secret, text, texts
from barnabas.client.options.reading import OptionsTable
from barnabas.client.sasl.jaas import Credentials, parse_jaas
from barnabas.config.checks import Check, each_of
from barnabas.config.jaas import parse_entry
from barnabas.config.table import settings_area
from barnabas.config.urls import url_fault
from barnabas.transport.token_source import TokenClient

PEM_ONLY = Check(
    "PEM (turn a JKS or PKCS12 store into PEM with `keytool -importkeystore` and `openssl pkcs12`)",
    lambda value: value.upper() == "PEM",
)
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def _to_callback(given: Any) -> Callable[[], str]:
    if not callable(given):
        raise ValueError("must be a function without arguments that returns a token")
    found: Callable[[], str] = given
    return found


@settings_area
class SecurityOptions(OptionsTable):
    """Options of TLS and SASL."""

    __slots__ = ()

    given: frozenset[str]

    security_protocol: str = choice(
        "PLAINTEXT", "How brokers are spoken to.", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
    )
    sasl_mechanism: str | None = choice(None, "How this client shows who it is.", *MECHANISMS)
    sasl_username: str | None = text(None, "User name, for PLAIN and SCRAM.")
    sasl_password: str | None = secret(None, "Password, for PLAIN and SCRAM.")
    sasl_scram_token_auth: bool = flag(
        False, "Whether user name and password are the id and the HMAC of a delegation token (SCRAM only)."
    )
    sasl_jaas_config: str | None = secret(
        None, "User name and password in the form of a JAAS entry, as Java's clients have it."
    )
    sasl_oauthbearer_token_callback: Callable[[], str] | None = python(
        None, "Function that returns a token for OAUTHBEARER; it is called in a thread.", _to_callback
    )
    sasl_oauthbearer_token_endpoint_url: str | None = text(
        None, "Where a token is asked for with client id and secret (https://), or a file that holds one (file://)."
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = text(None, "Client id at the identity provider.")
    sasl_oauthbearer_client_credentials_client_secret: str | None = secret(None, "Its secret.")
    sasl_oauthbearer_scope: str | None = text(None, "Scope that is asked for with a token.")
    ssl_truststore_location: str | None = text(
        None, "PEM file with the certificates that are trusted; the system's own where left out.", importance=HIGH
    )
    ssl_truststore_certificates: str | None = secret(None, "The same as text.", importance=HIGH)
    ssl_truststore_type: str = text("PEM", "Format of that file: PEM.", PEM_ONLY)
    ssl_keystore_location: str | None = text(
        None, "PEM file with this client's private key and certificates, if it must show one.", importance=HIGH
    )
    ssl_keystore_key: str | None = secret(None, "Private key as PEM text.", importance=HIGH)
    ssl_keystore_certificate_chain: str | None = secret(None, "Certificates as PEM text.", importance=HIGH)
    ssl_keystore_type: str = text("PEM", "Format of that file: PEM.", PEM_ONLY)
    ssl_key_password: str | None = secret(None, "Password of the private key.", importance=HIGH)
    ssl_endpoint_identification_algorithm: str = text(
        "https",
        "How the broker's name is checked against its certificate; empty switches the check off.",
        Check("https, or empty", lambda value: value.lower() in ("https", "")),
        importance=LOW,
    )
    ssl_enabled_protocols: tuple[str, ...] = texts(
        ("TLSv1.2", "TLSv1.3"), "TLS versions that may be used.", each_of("TLSv1.2", "TLSv1.3")
    )
    ssl_protocol: str = choice("TLSv1.3", "Newest TLS version that may be used.", "TLSv1.2", "TLSv1.3")
    ssl_cipher_suites: tuple[str, ...] = texts(
        (), "Cipher suites for TLSv1.2 by OpenSSL's names; empty leaves the choice to the interpreter.", importance=LOW
    )

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    def credentials(self) -> Credentials:
        """From either form. Raises ValueError on a JAAS entry that cannot be read."""
        if self.sasl_jaas_config is not None:
            return parse_jaas(self.sasl_jaas_config)
        return Credentials(self.sasl_username or "", self.sasl_password or "", self.sasl_scram_token_auth)

    def oauth_client(self) -> TokenClient:
        """From the options, or from the JAAS entry as older clients have it. Raises ValueError."""
        entry = {} if self.sasl_jaas_config is None else parse_entry(self.sasl_jaas_config).options
        return TokenClient(
            self.sasl_oauthbearer_client_credentials_client_id or entry.get("clientId", ""),
            self.sasl_oauthbearer_client_credentials_client_secret or entry.get("clientSecret", ""),
            self.sasl_oauthbearer_scope or entry.get("scope", ""),
            entry.get("ssl.truststore.location"),
        )


def sasl_faults(options: SecurityOptions) -> Iterator[str]:
    named = sorted(name for name in options.given if name.startswith("sasl_"))
    if not options.uses_sasl:
        if named:
            yield f"{', '.join(named)}: without effect unless security_protocol is SASL_SSL or SASL_PLAINTEXT"
        return
    if options.sasl_mechanism is None:
        yield f"sasl_mechanism: missing, one of: {', '.join(MECHANISMS)} (Kafka's default GSSAPI is not offered)"
    if options.sasl_mechanism == "OAUTHBEARER":
        yield from _oauth_faults(options)
        return
    if options.sasl_scram_token_auth and options.sasl_mechanism == "PLAIN":
        yield "sasl_scram_token_auth: delegation tokens are for SCRAM-SHA-256 and SCRAM-SHA-512"
    if options.sasl_jaas_config is not None:
        if options.sasl_scram_token_auth:
            yield 'sasl_scram_token_auth: write tokenauth="true" into sasl_jaas_config instead'
        if options.sasl_username is not None or options.sasl_password is not None:
            yield "sasl_jaas_config and sasl_username/sasl_password exclude each other"
        try:
            parse_jaas(options.sasl_jaas_config)
        except ValueError as fault:
            yield f"sasl_jaas_config: {fault}"
    elif not options.sasl_username or options.sasl_password is None:
        yield "sasl_username and sasl_password: both are needed for SASL"


def _oauth_faults(options: SecurityOptions) -> Iterator[str]:
    url = options.sasl_oauthbearer_token_endpoint_url
    if (url is None) == (options.sasl_oauthbearer_token_callback is None):
        yield "OAUTHBEARER needs sasl_oauthbearer_token_callback or sasl_oauthbearer_token_endpoint_url, and only one"
    if options.sasl_username is not None or options.sasl_password is not None:
        yield "sasl_username and sasl_password: not for OAUTHBEARER"
    if url is None:
        return
    if (fault := url_fault(url)) is not None:
        yield f"sasl_oauthbearer_token_endpoint_url: {fault}"
    try:
        client = options.oauth_client()
    except ValueError as unreadable:
        yield f"sasl_jaas_config: {unreadable}"
        return
    if not url.startswith("file:") and not (client.client_id and client.secret):
        yield (
            "sasl_oauthbearer_client_credentials_client_id and sasl_oauthbearer_client_credentials_client_secret: both"
            " are needed to ask for a token"
        )


def tls_faults(options: SecurityOptions) -> Iterator[str]:
    named = sorted(name for name in options.given if name.startswith("ssl_"))
    if named and not options.uses_tls:
        yield f"{', '.join(named)}: without effect unless security_protocol is SSL or SASL_SSL"
        return
    if options.ssl_truststore_location is not None and options.ssl_truststore_certificates is not None:
        yield "ssl_truststore_location and ssl_truststore_certificates exclude each other"
    if (options.ssl_keystore_key is None) != (options.ssl_keystore_certificate_chain is None):
        yield "ssl_keystore_key and ssl_keystore_certificate_chain: one is of no use without the other"
    if options.ssl_keystore_location is not None and options.ssl_keystore_key is not None:
        yield "ssl_keystore_location and ssl_keystore_key exclude each other"
    if not options.ssl_enabled_protocols:
        yield "ssl_enabled_protocols: at least one version is needed"
    for name, path in (
        ("ssl_truststore_location", options.ssl_truststore_location),
        ("ssl_keystore_location", options.ssl_keystore_location),
    ):
        if path is not None and (fault := _unreadable(path)) is not None:
            yield f"{name}: {path}: {fault}"


def _unreadable(path: str) -> str | None:
    """Reported now rather than by the first call that connects; its contents are checked when it is used."""
    try:
        with open(path, "rb"):
            return None
    except OSError as error:
        return error.strerror or str(error)

"""What a listener with TLS or SASL must have: where anything is missing, the broker does not start."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.config.faults import Fault
from barnabas.config.inter_broker import inter_broker_rules
from barnabas.config.jaas import JaasEntry, parse_entry
from barnabas.config.listeners import MQTT_PROTOCOLS
from barnabas.config.oauth import OAUTHBEARER, oauth_rules

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
CONVERT = "only PEM can be read: turn it into PEM with `keytool -importkeystore` and `openssl pkcs12`, and set {}=PEM"


def security_rules(config: "BrokerConfig") -> Iterator[str]:
    """Nothing is opened here; files are read by the server."""
    try:
        bound = config.bound_listeners()
    except ValueError:
        return
    for listener in bound:
        if listener.protocol in ("SSL", "SASL_SSL", "MQTTS"):
            yield from _tls(config.for_listener(listener.name), listener.name)
        if listener.protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
            yield from _sasl(config, listener.name)
        if listener.protocol in MQTT_PROTOCOLS:
            yield from _mqtt(config, listener.name)
    yield from inter_broker_rules(config)


def plain_users(config: "BrokerConfig", listener: str) -> dict[str, str]:
    """Name -> password of those who may log in by PLAIN."""
    entry = _plain_entry(config, listener)
    return {} if entry is None else entry.users


def _plain_entry(config: "BrokerConfig", listener: str) -> JaasEntry | None:
    """Raises ValueError."""
    text = config.for_listener(listener, "PLAIN").sasl_jaas_config
    return None if text is None else parse_entry(text)


def _tls(config: "BrokerConfig", name: str) -> Iterator[str]:
    where = f"listener {name}: "
    if config.ssl_keystore_location is None and config.ssl_keystore_key is None:
        yield Fault(
            "ssl.keystore.location",
            f"{where}missing, a PEM file with the private key and its certificates (or ssl.keystore.key and"
            " ssl.keystore.certificate.chain)",
        )
    elif config.ssl_keystore_type.upper() != "PEM":
        yield Fault("ssl.keystore.type", f"{where}{CONVERT.format('ssl.keystore.type')}")
    if config.ssl_keystore_location is not None and config.ssl_keystore_key is not None:
        yield Fault("ssl.keystore.key", f"{where}ssl.keystore.location is given too, and only one of them can be")
    if config.ssl_keystore_key is not None and config.ssl_keystore_certificate_chain is None:
        yield Fault("ssl.keystore.certificate.chain", f"{where}missing, ssl.keystore.key is of no use without it")
    has_trust = config.ssl_truststore_location is not None or config.ssl_truststore_certificates is not None
    if config.ssl_client_auth != "none" and not has_trust:
        yield Fault(
            "ssl.truststore.location",
            f"{where}missing, ssl.client.auth={config.ssl_client_auth} needs the certificates of the authorities that"
            " sign the clients'",
        )
    if has_trust and config.ssl_truststore_type.upper() != "PEM":
        yield Fault("ssl.truststore.type", f"{where}{CONVERT.format('ssl.truststore.type')}")


def _mqtt(config: "BrokerConfig", name: str) -> Iterator[str]:
    """Users of PLAIN may log in with their passwords; there need not be any."""
    try:
        plain_users(config, name)
    except ValueError as fault:
        yield Fault(f"listener.name.{name.lower()}.plain.sasl.jaas.config", str(fault))


def _sasl(config: "BrokerConfig", name: str) -> Iterator[str]:
    where = f"listener {name}: "
    enabled = tuple(each.upper() for each in config.for_listener(name).sasl_enabled_mechanisms)
    unknown = [each for each in enabled if each not in MECHANISMS]
    if unknown or not enabled:
        yield Fault(
            "sasl.enabled.mechanisms",
            f"{where}{', '.join(unknown) or 'none'} cannot be offered, only: {', '.join(MECHANISMS)}",
        )
    if OAUTHBEARER in enabled:
        yield from oauth_rules(config, name)
    if "PLAIN" not in enabled:
        return
    setting = f"listener.name.{name.lower()}.plain.sasl.jaas.config"
    try:
        entry = _plain_entry(config, name)
    except ValueError as fault:
        yield Fault(setting, str(fault))
        return
    if entry is None or not entry.users:
        yield Fault(
            setting,
            f"{where}no users for PLAIN: PlainLoginModule required"
            ' user_NAME="password" (one such option for each user);',
        )
    elif entry.module != "PlainLoginModule":
        yield Fault(setting, f"{where}must name PlainLoginModule")

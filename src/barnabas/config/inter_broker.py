"""How brokers log in to each other: the listener that they use among themselves, and their own credentials on it.

As in Kafka the credentials are in the JAAS configuration of that listener and mechanism, beside the users of PLAIN:

    listener.name.NAME.scram-sha-512.sasl.jaas.config=ScramLoginModule required username="broker" password="...";
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.config.faults import Fault
from barnabas.config.jaas import parse_entry
from barnabas.config.listeners import Listener
from barnabas.config.oauth import LOGIN_MODULE, OAUTHBEARER
from barnabas.config.urls import file_of, url_fault

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig

MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    OAUTHBEARER: LOGIN_MODULE,
}
MECHANISM = "sasl.mechanism.inter.broker.protocol"


class BrokerLogin(NamedTuple):
    """Who this broker is to the others. By OAUTHBEARER: who asks the identity provider for a token."""

    mechanism: str
    username: str = ""
    password: str = ""
    token_url: str = ""
    scope: str = ""
    truststore: str | None = None

    def __repr__(self) -> str:
        return f"BrokerLogin({self.mechanism}, {self.username})"


def inter_broker_rules(config: "BrokerConfig") -> Iterator[str]:
    """Where the settings say how brokers reach each other, it must be possible."""
    try:
        listener = inter_broker_listener(config)
    except ValueError:
        return  # reported elsewhere
    if listener is not None and is_chosen(config):
        yield from _login_faults(config, listener)


def is_chosen(config: "BrokerConfig") -> bool:
    """Whether the settings say how brokers reach each other; else the first listener serves, as far as it does."""
    return config.names_inter_broker_listener or MECHANISM in config.given


def inter_broker_listener(config: "BrokerConfig") -> Listener | None:
    """None if no listener has the name. Raises ValueError."""
    name = config.inter_broker_listener
    return next((each for each in config.bound_listeners() if each.name == name), None)


def why_unusable(config: "BrokerConfig") -> str:
    """Why this broker cannot connect to others; empty if it can."""
    listener = inter_broker_listener(config)
    return "" if listener is None else "; ".join(_login_faults(config, listener))


def broker_login(config: "BrokerConfig") -> BrokerLogin | None:
    """None where brokers need no login. Of settings without faults."""
    listener = inter_broker_listener(config)
    if listener is None or not listener.protocol.startswith("SASL_"):
        return None
    mechanism = config.for_listener(listener.name).sasl_mechanism_inter_broker_protocol.upper()
    own = config.for_listener(listener.name, mechanism)
    if mechanism == OAUTHBEARER:
        return _token_login(own)
    options = parse_entry(own.sasl_jaas_config or "").options
    return BrokerLogin(mechanism, options["username"], options["password"])


def _token_login(own: "BrokerConfig") -> BrokerLogin:
    """From the settings, or from the JAAS entry, as in Kafka."""
    options = {} if own.sasl_jaas_config is None else parse_entry(own.sasl_jaas_config).options
    return BrokerLogin(
        OAUTHBEARER,
        own.sasl_oauthbearer_client_credentials_client_id or options.get("clientId", ""),
        own.sasl_oauthbearer_client_credentials_client_secret or options.get("clientSecret", ""),
        own.sasl_oauthbearer_token_endpoint_url or "",
        own.sasl_oauthbearer_scope or options.get("scope", ""),
        options.get("ssl.truststore.location"),
    )


def _login_faults(config: "BrokerConfig", listener: Listener) -> Iterator[str]:
    if not listener.protocol.startswith("SASL_"):
        return
    own = config.for_listener(listener.name)
    mechanism = own.sasl_mechanism_inter_broker_protocol.upper()
    where = f"listener {listener.name}: "
    if mechanism not in MODULES:
        yield Fault(MECHANISM, f"{where}brokers cannot log in by {mechanism}, only by: {', '.join(MODULES)}")
        return
    if mechanism not in (each.upper() for each in own.sasl_enabled_mechanisms):
        yield Fault(MECHANISM, f"{where}{mechanism} is not one of sasl.enabled.mechanisms")
    if mechanism == OAUTHBEARER:
        yield from _token_faults(config.for_listener(listener.name, mechanism), where)
        return
    setting = f"listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config"
    text = config.for_listener(listener.name, mechanism).sasl_jaas_config
    module = MODULES[mechanism]
    missing = f'{where}missing, brokers log in to each other as: {module} required username="..." password="...";'
    if text is None:
        yield Fault(setting, missing)
        return
    try:
        entry = parse_entry(text)
    except ValueError as fault:
        yield Fault(setting, str(fault))
        return
    if entry.module != module:
        yield Fault(setting, f"{where}must name {module}")
    elif not entry.options.get("username") or not entry.options.get("password"):
        yield Fault(setting, missing)


def _token_faults(own: "BrokerConfig", where: str) -> Iterator[str]:
    try:
        login = _token_login(own)
    except ValueError:
        return  # reported with the listener's settings
    setting = "sasl.oauthbearer.token.endpoint.url"
    if not login.token_url:
        yield Fault(setting, f"{where}missing, brokers get their tokens there (or from a file: URL)")
    elif (fault := url_fault(login.token_url)) is not None:
        yield Fault(setting, f"{where}{fault}")
    elif file_of(login.token_url) is None and not (login.username and login.password):
        yield Fault(
            "sasl.oauthbearer.client.credentials.client.id", f"{where}missing, with its secret: brokers ask for tokens"
        )

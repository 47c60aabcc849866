"""OAUTHBEARER on a listener: the settings that say whose tokens are taken. What is missing stops the start.

Tokens that nobody signed are taken only where `sasl.server.callback.handler.class` names Kafka's class for them; in
Kafka that is the default.
"""

import importlib.util
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.config.faults import Fault
from barnabas.config.jaas import parse_entry
from barnabas.config.urls import url_fault

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig

OAUTHBEARER = "OAUTHBEARER"
SIGNED = "OAuthBearerValidatorCallbackHandler"
UNSECURED = "OAuthBearerUnsecuredValidatorCallbackHandler"
LOGIN_MODULE = "OAuthBearerLoginModule"
INSTALL_HINT = "tokens are checked with PyJWT and cryptography: pip install 'barnabas[oauth]'"


class OauthConfig(NamedTuple):
    is_unsecured: bool
    jwks_url: str
    issuer: str
    audiences: tuple[str, ...]
    user_claim: str
    skew_ms: int
    refresh_ms: int
    backoff_ms: int
    backoff_max_ms: int
    truststore_location: str | None
    """Whom to trust at the address of the keys; the system's own authorities if None."""


def oauth_config(config: "BrokerConfig", listener: str) -> OauthConfig:
    """For a listener whose settings have no faults."""
    own = config.for_listener(listener, OAUTHBEARER)
    options = {} if own.sasl_jaas_config is None else parse_entry(own.sasl_jaas_config).options
    is_unsecured = _handler(own) == UNSECURED
    user_claim, skew_ms = own.sasl_oauthbearer_sub_claim_name, own.sasl_oauthbearer_clock_skew_seconds * 1000
    if is_unsecured:
        user_claim = options.get("unsecuredValidatorPrincipalClaimName", "sub")
        skew_ms = int(options.get("unsecuredValidatorAllowableClockSkewMs", "0"))
    return OauthConfig(
        is_unsecured,
        own.sasl_oauthbearer_jwks_endpoint_url or "",
        own.sasl_oauthbearer_expected_issuer or "",
        own.sasl_oauthbearer_expected_audience or (),
        user_claim,
        skew_ms,
        own.sasl_oauthbearer_jwks_endpoint_refresh_ms,
        own.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms,
        own.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms,
        options.get("ssl.truststore.location"),
    )


def oauth_rules(config: "BrokerConfig", listener: str) -> Iterator[str]:
    where = f"listener {listener}: "
    own = config.for_listener(listener, OAUTHBEARER)
    if _handler(own) not in (None, SIGNED, UNSECURED):
        yield Fault(
            "sasl.server.callback.handler.class",
            f"{where}Java classes cannot be loaded; {SIGNED} and {UNSECURED} are known by their names",
        )
    try:
        entry = None if own.sasl_jaas_config is None else parse_entry(own.sasl_jaas_config)
    except ValueError as fault:
        yield Fault(f"listener.name.{listener.lower()}.oauthbearer.sasl.jaas.config", str(fault))
        return
    if entry is not None and entry.module not in (LOGIN_MODULE, "PlainLoginModule"):
        yield Fault(f"listener.name.{listener.lower()}.oauthbearer.sasl.jaas.config", f"must name {LOGIN_MODULE}")
    skew = "0" if entry is None else entry.options.get("unsecuredValidatorAllowableClockSkewMs", "0")
    if not skew.isdecimal() or len(skew) > 12:
        yield Fault("unsecuredValidatorAllowableClockSkewMs", f"{where}must be a whole number")
    if _handler(own) == UNSECURED:
        return
    for name, value, what in (
        ("sasl.oauthbearer.jwks.endpoint.url", own.sasl_oauthbearer_jwks_endpoint_url, "the keys that sign tokens"),
        ("sasl.oauthbearer.expected.issuer", own.sasl_oauthbearer_expected_issuer, "who issues tokens"),
        ("sasl.oauthbearer.expected.audience", own.sasl_oauthbearer_expected_audience, "for whom tokens are issued"),
    ):
        if not value:
            yield Fault(name, f"{where}missing, OAUTHBEARER must know {what}")
    url = own.sasl_oauthbearer_jwks_endpoint_url
    if url and (fault_of_url := url_fault(url)) is not None:
        yield Fault("sasl.oauthbearer.jwks.endpoint.url", f"{where}{fault_of_url}")
    path = None if entry is None else entry.options.get("ssl.truststore.location")
    if path is not None and not os.access(path, os.R_OK):
        yield Fault("ssl.truststore.location", f"{where}{path} (of OAUTHBEARER) cannot be read")
    if any(importlib.util.find_spec(module) is None for module in ("jwt", "cryptography")):
        yield Fault("sasl.enabled.mechanisms", f"{where}{INSTALL_HINT}")


def _handler(config: "BrokerConfig") -> str | None:
    name = config.sasl_server_callback_handler_class
    return None if name is None else name.rpartition(".")[2]

"""How this broker connects to others: TLS with the certificate of its own listener, and a login as one of its users.

One for all links (`broker_links`). Certificates and credentials are those of the listener that brokers use among
themselves, and are read again when they have changed (`tls_contexts`). A broker that does not accept this one, or is
not accepted, is reported once, until a connection to it succeeds again; the links try again meanwhile.
"""

import logging
import secrets
import ssl

from barnabas.clock import Clock
from barnabas.config.broker import BrokerConfig
from barnabas.config.faults import ConfigFaults, Fault
from barnabas.config.inter_broker import BrokerLogin, broker_login, inter_broker_listener, is_chosen, why_unusable
from barnabas.config.oauth import OAUTHBEARER
from barnabas.machines.sasl.mechanism import ClientMechanism, SaslError
from barnabas.machines.sasl.oauth import OauthClient
from barnabas.machines.sasl.plain import PlainClient
from barnabas.machines.sasl.scram import ScramClient
from barnabas.server.link_check import certificate_fault
from barnabas.server.tls_contexts import TlsContexts
from barnabas.server.tls_files import link_context
from barnabas.transport.https import HttpError
from barnabas.transport.token_source import KeptToken, TokenClient, request_token

logger = logging.getLogger(__name__)


class LinkSecurity:
    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        listener = inter_broker_listener(config)
        self.listener = config.inter_broker_listener
        self.protocol = "PLAINTEXT" if listener is None else listener.protocol
        self.unusable = why_unusable(config)
        """Why there can be no connection; empty if there can."""
        self._config = config
        self._tls: TlsContexts | None = None
        if self.protocol.endswith("SSL"):
            own = config.for_listener(self.listener)
            self._tls = TlsContexts(
                "links to other brokers", own, lambda config: link_context(config, self.listener), clock
            )
        self._kept: tuple[BrokerLogin, KeptToken] | None = None
        self._denied: dict[str, set[str]] = {}
        """By address, what was reported. One cause shows in several ways: as an alert, or as a lost connection."""

    @property
    def is_chosen(self) -> bool:
        """Whether the settings say how brokers reach each other. A lone broker may leave that open."""
        return is_chosen(self._config)

    @property
    def is_plain(self) -> bool:
        """Whether connections are used as they are."""
        return self.protocol == "PLAINTEXT"

    def load(self, server: ssl.SSLContext | None = None) -> None:
        """`server` is the context of the same listener. Raises ConfigFaults."""
        if self._tls is None:
            return
        self._tls.load()
        if server is not None and self.is_chosen:
            client = link_context(self._config.for_listener(self.listener), self.listener)
            client.check_hostname = False
            if fault := certificate_fault(server, client):
                raise ConfigFaults([Fault("ssl.keystore", f"listener {self.listener}: {fault}")])

    def reconfigure(self, config: BrokerConfig) -> None:
        """The settings have changed while the broker runs."""
        self._config = config
        self.unusable = why_unusable(config)
        if self._tls is not None:
            self._tls.reconfigure(config.for_listener(self.listener))

    def tls_context(self) -> ssl.SSLContext | None:
        return None if self._tls is None else self._tls.current()

    async def mechanism(self) -> ClientMechanism | None:
        if self.unusable:  # a setting has changed since the link was made
            raise SaslError(self.unusable)
        login = broker_login(self._config)
        if login is None:
            return None
        if login.mechanism == OAUTHBEARER:
            return OauthClient(await self._token(login))
        if login.mechanism == "PLAIN":
            return PlainClient(login.username, login.password)
        return ScramClient(login.mechanism, login.username, login.password, secrets.token_urlsafe(24))

    async def _token(self, login: BrokerLogin) -> str:
        """One for all links, as long as it lasts. Raises SaslError."""
        if self._kept is None or self._kept[0] != login:
            client = TokenClient(login.username, login.password, login.scope, login.truststore)
            self._kept = login, KeptToken(lambda: request_token(login.token_url, client))
        try:
            return await self._kept[1].get()
        except (HttpError, OSError, ValueError) as error:
            raise SaslError(f"no token for OAUTHBEARER: {error}") from error

    def on_connected(self, address: str) -> None:
        if self._denied.pop(address, None) is not None:
            logger.info("%s: brokers accept each other again", address)

    def on_denied(self, address: str, why: str) -> None:
        reported = self._denied.setdefault(address, set())
        if why not in reported:
            reported.add(why)
            logger.error("no connection to another broker (%s): tried again, and not reported again", why)

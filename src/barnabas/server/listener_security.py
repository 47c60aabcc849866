"""What one listener demands: nothing, a TLS handshake, a login by SASL, or both.

Made by `Broker`, once per listener; the net layer calls it for every connection. Certificates are read again when a
file or the listener's settings have changed (`tls_contexts`).
"""

import logging
import secrets
import ssl
from collections.abc import Callable
from functools import partial

from barnabas.clock import Clock
from barnabas.config.broker import BrokerConfig
from barnabas.config.listeners import MQTTS, Listener
from barnabas.config.oauth import OAUTHBEARER, OauthConfig, oauth_config
from barnabas.config.security_rules import plain_users
from barnabas.machines.sasl.mechanism import ServerMechanism
from barnabas.machines.sasl.oauth import OauthServer
from barnabas.machines.sasl.plain import PlainServer
from barnabas.machines.sasl.scram import HASHES
from barnabas.machines.sasl.scram_server import ScramServer
from barnabas.metadata.image import ClusterImage
from barnabas.net.connection import Connection
from barnabas.net.context import RequestHandler
from barnabas.net.deferred import Deferred
from barnabas.net.timers import Timers
from barnabas.server.bearer_tokens import BearerTokens, bearer_tokens
from barnabas.server.certificate_principal import PrincipalRule, name_of, parse_rules
from barnabas.server.delegation_tokens import DelegationTokens
from barnabas.server.request import Principal
from barnabas.server.sasl_gate import SaslGate, SaslSettings
from barnabas.server.scram_users import credentials_of
from barnabas.server.sessions import ANONYMOUS_SESSION, Session
from barnabas.server.tls_contexts import TlsContexts
from barnabas.server.tls_files import server_context
from barnabas.transport.channel import Channel
from barnabas.transport.tls import TlsChannel

logger = logging.getLogger(__name__)


class ListenerSecurity:
    def __init__(
        self,
        listener: Listener,
        config: BrokerConfig,
        dispatcher: RequestHandler,
        timers: Timers,
        clock: Clock,
        image: Callable[[], ClusterImage],
        delegation_tokens: DelegationTokens,
    ) -> None:
        self.name = listener.name
        self._uses_tls = listener.protocol in ("SSL", "SASL_SSL", "MQTTS")
        self._is_mqtt = listener.protocol == MQTTS
        self._uses_sasl = listener.protocol in ("SASL_PLAINTEXT", "SASL_SSL")
        self._dispatcher = dispatcher
        self._timers = timers
        self._clock = clock
        self._config = config.for_listener(self.name)
        self._tls = TlsContexts(f"listener {self.name}", self._config, self._server_context, clock)
        self._rules: tuple[PrincipalRule, ...] = ()
        self._image = image
        self._delegation_tokens = delegation_tokens
        self._fake_key = secrets.token_bytes(32)
        self._tokens: tuple[OauthConfig, BearerTokens] | None = None
        self._sasl = self._sasl_settings(config)

    @property
    def needs_scram_users(self) -> bool:
        """Whether nobody can log in here without users in the metadata."""
        return self._is_mqtt or (
            self._uses_sasl and not any(name in ("PLAIN", OAUTHBEARER) for name in self._sasl.mechanisms)
        )

    @property
    def handshake_timeout_ms(self) -> int:
        return self._config.socket_connection_setup_timeout_max_ms

    @property
    def first_frame_max_bytes(self) -> int | None:
        """Before a login only small frames are taken."""
        return self._config.sasl_server_max_receive_size if self._uses_sasl else None

    def load(self) -> None:
        """Raises ConfigFaults."""
        if self._uses_tls:
            self._tls.load()

    def reconfigure(self, config: BrokerConfig) -> None:
        """The settings have changed while the broker runs."""
        self._sasl = self._sasl_settings(config)
        self._config = config.for_listener(self.name)
        if self._uses_tls:
            self._tls.reconfigure(self._config)

    def tls_context(self) -> ssl.SSLContext | None:
        return self._tls.current() if self._uses_tls else None

    def session_of(self, channel: Channel) -> Session | None:
        """As the client's certificate says; None if no rule of ssl.principal.mapping.rules matches it."""
        if isinstance(channel, TlsChannel) and not self._uses_sasl:
            certificate = channel.getpeercert()
            if certificate:
                name = name_of(certificate, self._rules)
                return None if name is None else Session(principal=Principal("User", name))
        return ANONYMOUS_SESSION

    def on_connected(self, connection: Connection, channel: Channel) -> None:
        session = self.session_of(channel)
        if session is None:
            logger.info("%r: no rule of ssl.principal.mapping.rules matches its certificate: closing", connection)
            connection.close()
            return
        if self._uses_sasl:
            connection.handler = SaslGate(connection, self._dispatcher, self._sasl, self._timers, self._clock)
        else:
            connection.session = session

    def _server_context(self, config: BrokerConfig) -> ssl.SSLContext:
        rules = parse_rules(config.ssl_principal_mapping_rules)
        context = server_context(config, self.name)
        self._rules = rules
        return context

    def _sasl_settings(self, config: BrokerConfig) -> SaslSettings:
        own = config.for_listener(self.name)
        mechanisms = tuple(name.upper() for name in own.sasl_enabled_mechanisms)
        users = plain_users(config, self.name) if self._uses_sasl else {}

        tokens = self._bearer_tokens(config) if self._uses_sasl and OAUTHBEARER in mechanisms else None

        def begin(mechanism: str) -> ServerMechanism:
            if mechanism == OAUTHBEARER and tokens is not None:
                return OauthServer(tokens.validate, self._on_token_refused)
            return PlainServer(users) if mechanism == "PLAIN" else self._scram(mechanism)

        def prepare(mechanism: str, message: bytes) -> Deferred[None] | None:
            if mechanism in HASHES:
                return self._delegation_tokens.prepare_login(mechanism, message)
            return tokens.prepare(message) if mechanism == OAUTHBEARER and tokens is not None else None

        return SaslSettings(
            mechanisms=mechanisms,
            begin=begin,
            prepare=prepare,
            session_ms={each: config.for_listener(self.name, each).connections_max_reauth_ms for each in mechanisms},
            failure_delay_ms=own.connection_failed_authentication_delay_ms,
            timeout_ms=own.socket_connection_setup_timeout_max_ms,
            first_frame_max_bytes=own.sasl_server_max_receive_size,
            frame_max_bytes=own.socket_request_max_bytes,
        )

    def _bearer_tokens(self, config: BrokerConfig) -> BearerTokens:
        """The same as before while the settings are, with the keys that it has read."""
        wanted = oauth_config(config, self.name)
        if self._tokens is None or self._tokens[0] != wanted:
            self._tokens = wanted, bearer_tokens(wanted, self._clock)
        return self._tokens[1]

    def _on_token_refused(self, why: str) -> None:
        logger.info("listener %s: a token is refused: %s", self.name, why)

    def _scram(self, mechanism: str) -> ScramServer:
        return ScramServer(
            mechanism,
            lambda user: credentials_of(self._image(), user).get(mechanism),
            partial(self._delegation_tokens.login, mechanism),
            secrets.token_urlsafe(24),
            self._fake_key,
        )

"""Options that Kafka's clients have and that would change nothing here.

As an argument one is a fault that says what to do. A properties file shared with Java may have those of
`IGNORED_IN_FILES`: without them the client does the same. The others would give up something that was asked for.
"""

from collections.abc import Mapping
from types import MappingProxyType

NO_METRICS = "the client's counters are read in Python, and its log is the logger barnabas.client"
JVM_ONLY = "it is about Java; leave it out, TLS is the Python interpreter's"
NO_ENGINE = "Java classes cannot be loaded; use the ssl_... options with PEM files"
NO_PLUGIN = "Java classes cannot be loaded; use sasl_mechanism PLAIN or SCRAM with sasl_username and sasl_password"
NO_KERBEROS = "Kerberos (GSSAPI) is not offered; use sasl_mechanism PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"
NO_OAUTH = "use sasl_oauthbearer_token_callback, or sasl_oauthbearer_token_endpoint_url with client credentials"

_GROUPS = {
    NO_METRICS: "metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms",
    JVM_ONLY: """security.providers ssl.keymanager.algorithm ssl.provider ssl.secure.random.implementation
        ssl.trustmanager.algorithm""",
    NO_ENGINE: "ssl.engine.factory.class",
    NO_PLUGIN: "sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class",
    NO_KERBEROS: """sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
        sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor""",
    NO_OAUTH: """sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
        sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
        sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.assertion.algorithm
        sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
        sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
        sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
        sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
        sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
        sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
        sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
        sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name""",
    "a PEM file has none; ssl_key_password is the key's": "ssl.keystore.password",
    "a PEM file has none": "ssl.truststore.password",
}
COMMON_REFUSED: Mapping[str, str] = MappingProxyType(
    {name: advice for advice, names in _GROUPS.items() for name in names.split()}
)
IGNORED_IN_FILES = frozenset(
    [
        *(name for advice in (NO_METRICS, JVM_ONLY, NO_KERBEROS, NO_OAUTH) for name in _GROUPS[advice].split()),
        "share.acknowledgement.mode",
        "internal.throw.on.fetch.stable.offset.unsupported",
        # Gone since Kafka 4.0, and still in many a properties file.
        "auto.include.jmx.reporter",
    ]
)
"""Kerberos is refused by its sasl.mechanism; for another mechanism its options mean nothing."""
CONSUMER_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **COMMON_REFUSED,
        "share.acknowledgement.mode": "share groups are not offered; use group_id",
        "internal.leave.group.on.close": "close the consumer with or without leaving its group",
        "internal.throw.on.fetch.stable.offset.unsupported": "leave it out",
    }
)
ADMIN_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **COMMON_REFUSED,
        "bootstrap.controllers": "give bootstrap_servers: brokers pass on what is for controllers",
    }
)

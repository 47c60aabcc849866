"""How brokers reach each other: what the settings must say, and what a lone broker may leave out."""

import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.config.faults import ConfigFaults
from barnabas.config.inter_broker import broker_login, why_unusable

SECRET = "secret-1199"
PLAIN = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
SCRAM = "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config"
USERS = f'PlainLoginModule required user_alice="{SECRET}"'
BASE = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    PLAIN: f"{USERS};",
}
NAMED = {**BASE, "inter.broker.listener.name": "SASL_PLAINTEXT"}
MECHANISM = "sasl.mechanism.inter.broker.protocol"


def faults_of(given: dict[str, str]) -> str:
    with pytest.raises(ConfigFaults) as found:
        BrokerConfig.parse(given)
    assert SECRET not in str(found.value)
    return str(found.value)


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({}, "cannot log in by GSSAPI"),
        ({MECHANISM: "PLAIN"}, f"{PLAIN}: listener SASL_PLAINTEXT: missing"),
        (
            {MECHANISM: "SCRAM-SHA-512", SCRAM: f'PlainLoginModule required username="b" password="{SECRET}";'},
            "must name",
        ),
        ({MECHANISM: "SCRAM-SHA-512"}, f"{SCRAM}: listener SASL_PLAINTEXT: missing"),
        ({MECHANISM: "SCRAM-SHA-512", SCRAM: f'ScramLoginModule "{SECRET}"'}, SCRAM),
        ({MECHANISM: "SCRAM-SHA-256"}, "SCRAM-SHA-256 is not one of sasl.enabled.mechanisms"),
    ],
)
def test_a_listener_that_is_named_must_be_usable(more: dict[str, str], fault: str) -> None:
    assert fault in faults_of({**NAMED, **more})


def test_tokens_need_an_address_and_a_client() -> None:
    oauth = {
        **NAMED,
        MECHANISM: "OAUTHBEARER",
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": "http://127.0.0.1:1/keys",
        "sasl.oauthbearer.expected.issuer": "i",
        "sasl.oauthbearer.expected.audience": "a",
    }
    url = "sasl.oauthbearer.token.endpoint.url"
    assert f"{url}: listener SASL_PLAINTEXT: missing" in faults_of(oauth)
    assert "client.id: listener SASL_PLAINTEXT: missing" in faults_of({**oauth, url: "http://127.0.0.1:1/token"})
    assert broker_login(BrokerConfig.parse({**oauth, url: "file:///tmp/token"})) is not None


def test_a_protocol_without_its_listener() -> None:
    assert "security.inter.broker.protocol: SSL is not advertised" in faults_of(
        {**BASE, "security.inter.broker.protocol": "SSL"}
    )


def test_a_lone_broker_need_not_say_how_it_would_reach_others() -> None:
    config = BrokerConfig.parse(BASE)
    assert config.inter_broker_listener == "SASL_PLAINTEXT" and "GSSAPI" in why_unusable(config)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_credentials_are_those_of_the_listener(mechanism: str) -> None:
    given = {
        **NAMED,
        MECHANISM: mechanism,
        PLAIN: f'{USERS} username="plain" password="{SECRET}";',
        SCRAM: f'ScramLoginModule required username="scram" password="{SECRET}";',
    }
    config = BrokerConfig.parse(given)
    login = broker_login(config)
    assert login is not None and (login.username, login.password) == (mechanism[:5].lower(), SECRET)
    assert SECRET not in repr(login) and not why_unusable(config)
    assert broker_login(BrokerConfig.parse({})) is None

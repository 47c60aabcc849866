"""Settings of the engine that keeps the metadata, and what a store is given of them."""

import pytest

from barnabas.config.broker import BrokerConfig, no_effect
from barnabas.config.faults import ConfigFaults
from barnabas.metadata.engine_options import EngineOptions, EngineTls


def options(**given: str) -> EngineOptions:
    config = BrokerConfig.parse({name.replace("_", "."): value for name, value in given.items()})
    return EngineOptions.of(config.metadata_engine)


def test_nothing_given() -> None:
    config = BrokerConfig.parse({})
    assert config.metadata_engine.location is None
    assert EngineOptions.of(config.metadata_engine) == EngineOptions()


def test_locations() -> None:
    given = {"zookeeper.connect": "a:1,b:2/kafka"}
    assert BrokerConfig.parse(given).metadata_engine.location == "zookeeper://a:1,b:2/kafka"
    given = {"barnabas.metadata": "etcd://a:1/kafka"}
    assert BrokerConfig.parse(given).metadata_engine.location == "etcd://a:1/kafka"
    with pytest.raises(ConfigFaults, match="only one of them"):
        BrokerConfig.parse(given | {"zookeeper.connect": "a:1"})


def test_kafkas_names_for_zookeeper_override_ours() -> None:
    found = options(
        zookeeper_session_timeout_ms="18000", barnabas_metadata_session_timeout_ms="3000", zookeeper_set_acl="true"
    )
    assert (found.session_timeout_ms, found.connect_timeout_ms, found.restrict_access) == (18_000, 18_000, True)
    assert options(zookeeper_connection_timeout_ms="7").connect_timeout_ms == 7
    assert options(barnabas_metadata_session_timeout_ms="3000").session_timeout_ms == 3000
    assert options(barnabas_metadata_transaction_max_operations="1024").multi_limit == 1024


def test_tls_and_login() -> None:
    found = options(
        barnabas_metadata_ssl_enable="true",
        barnabas_metadata_ssl_ca_location="ca.pem",
        barnabas_metadata_ssl_certificate_location="me.pem",
        barnabas_metadata_ssl_key_password="secret",
        barnabas_metadata_username="me",
        barnabas_metadata_password="word",
    )
    assert found.tls == EngineTls("ca.pem", "me.pem", None, "secret")
    assert (found.username, found.password) == ("me", "word")
    assert "secret" not in repr(found) and "word" not in repr(found)
    found = options(
        zookeeper_ssl_client_enable="true",
        zookeeper_ssl_truststore_location="ca.pem",
        zookeeper_ssl_truststore_type="PEM",
        zookeeper_ssl_keystore_location="store.pem",
        zookeeper_ssl_keystore_type="PEM",
        zookeeper_ssl_keystore_password="secret",
        zookeeper_ssl_endpoint_identification_algorithm="",
    )
    assert found.tls == EngineTls("ca.pem", "store.pem", "store.pem", "secret", verify_hostname=False)


@pytest.mark.parametrize(
    "given",
    [
        {"zookeeper.ssl.keystore.location": "store.jks"},
        {"zookeeper.ssl.keystore.location": "store.jks", "zookeeper.ssl.keystore.type": "JKS"},
        {"zookeeper.ssl.ocsp.enable": "true"},
        {"zookeeper.ssl.crl.enable": "true"},
        {"barnabas.metadata.session.timeout.ms": "10"},
    ],
)
def test_what_cannot_be_done_is_rejected(given: dict[str, str]) -> None:
    with pytest.raises(ConfigFaults):
        BrokerConfig.parse(given)


def test_what_has_no_effect_is_named() -> None:
    given = {"zookeeper.connect": "a:1", "zookeeper.max.in.flight.requests": "3"}
    [line] = no_effect(given)
    assert line.startswith("zookeeper.max.in.flight.requests: ")

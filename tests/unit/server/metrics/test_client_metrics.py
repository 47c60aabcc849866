"""Clients push to a real broker, over the wire (KIP-714), and `/metrics` shows what they pushed."""

from collections.abc import Iterator

import pytest
from eventually import eventually
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from raw_client import RawClient
from telemetry import Pusher, scraped, sent, series, subscribe_all

from barnabas import Admin
from barnabas.client.admin.types import ConfigResource, ConfigResourceType, ConfigSource
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.protocol.otlp_metrics import PointKind
from barnabas.records.compression import CompressionType, compress
from barnabas.testing import Broker

NAME = "org_apache_kafka_producer_record_send_total"
MAX_BYTES = 2000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"metrics.listener": "127.0.0.1:0", "telemetry.max.bytes": str(MAX_BYTES)}) as broker:
        subscribe_all(broker)
        yield broker


@pytest.fixture
def pusher(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Pusher]:
    with Pusher(broker.bootstrap, request.node.name) as pusher:
        pusher.subscribe()
        yield pusher


def of(broker: Broker, pusher: Pusher, name: str) -> list[tuple[dict[str, str], float]]:
    return [(labels, value) for labels, value in series(broker, name) if labels["client_id"] == pusher.client_id]


def push(pusher: Pusher, *points: object, codec: int = 0) -> ErrorCode:
    """As soon as the interval has passed."""
    while (error := pusher.push(points, codec)) == ErrorCode.THROTTLING_QUOTA_EXCEEDED:  # type: ignore[arg-type]
        pass
    return ErrorCode(error)


def test_a_client_is_told_what_to_push(broker: Broker) -> None:
    with Pusher(broker.bootstrap) as pusher:
        response = pusher.subscribe()
        assert (response.error_code, response.requested_metrics, response.push_interval_ms) == (0, ["*"], 100)
        assert (response.telemetry_max_bytes, response.delta_temporality) == (MAX_BYTES, True)
        assert response.accepted_compression_types == [4, 3, 1, 2]
        assert any(response.client_instance_id)
        assert pusher.twice(pusher.question())[1] == ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize("codec", list(CompressionType))
def test_values_are_shown_however_they_are_compressed(broker: Broker, pusher: Pusher, codec: int) -> None:
    assert push(pusher, sent(3, topic="t"), codec=codec) is ErrorCode.NONE
    assert push(pusher, sent(4, topic="t"), codec=codec) is ErrorCode.NONE
    ((labels, value),) = of(broker, pusher, NAME)
    assert value == 7
    assert (labels["topic"], len(labels["client_instance_id"])) == ("t", 22)


def test_who_pushes_is_shown(broker: Broker, pusher: Pusher) -> None:
    assert pusher.push([sent(1)], group_id="readers", client_rack="r1") == 0
    ((labels, value),) = of(broker, pusher, "kafka_client_info")
    del labels["client_instance_id"]
    assert value == 1
    assert labels == {
        "client_id": pusher.client_id,
        "software_name": "pusher",
        "software_version": "1.2",
        "address": "127.0.0.1",
        "principal": "User:ANONYMOUS",
        "client_rack": "r1",
        "group_id": "readers",
        "group_instance_id": "",
        "group_member_id": "",
        "transactional_id": "",
    }


def test_a_client_that_leaves_is_forgotten(broker: Broker) -> None:
    with Pusher(broker.bootstrap, "leaver") as leaver:
        leaver.subscribe()
        assert leaver.push([sent(1)]) == 0
        assert of(broker, leaver, NAME)
        assert of(broker, leaver, "kafka_client_info")
    eventually(lambda: not of(broker, leaver, "kafka_client_info") and not of(broker, leaver, NAME))


def test_errors_are_kafkas(broker: Broker, pusher: Pusher) -> None:
    assert pusher.push([sent(1)]) == ErrorCode.NONE
    assert pusher.twice(pusher.request([sent(1)]))[1] == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(pusher, sent(1), codec=9) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert pusher.subscribe().error_code == 0
    assert pusher.push(b"x" * (MAX_BYTES + 1)) == ErrorCode.TELEMETRY_TOO_LARGE
    eventually(lambda: pusher.push(b"\xff\xff\xff"), ErrorCode.INVALID_RECORD.__eq__)
    zipped = compress(CompressionType.ZSTD, bytes(8 * MAX_BYTES + 1))
    eventually(
        lambda: pusher.push(bytes(8 * MAX_BYTES + 1), CompressionType.ZSTD), ErrorCode.TELEMETRY_TOO_LARGE.__eq__
    )
    assert len(zipped) < MAX_BYTES
    known = pusher.instance_id
    pusher.instance_id = bytes(16)
    assert pusher.push([sent(1)]) == ErrorCode.INVALID_REQUEST
    pusher.instance_id = known
    pusher.subscription_id += 1
    eventually(lambda: pusher.push([sent(1)]), ErrorCode.UNKNOWN_SUBSCRIPTION_ID.__eq__)
    assert pusher.subscribe().error_code == 0, "at once"
    assert pusher.push([sent(1)], terminating=True) == 0
    assert pusher.push([sent(1)], terminating=True) == ErrorCode.INVALID_REQUEST
    ((_, errors),) = series(broker, "kafka_server_clientmetrics_clientmetricspluginerror_total")
    assert errors == 3


def test_a_hostile_client_cannot_break_the_text(broker: Broker) -> None:
    with Pusher(broker.bootstrap, 'evil"} 1\nkafka_brokers 99\n# {x="\\') as pusher:
        pusher.subscribe()
        points = [
            sent(5, name='kafka_brokers"} 5\n', kind=PointKind.GAUGE),
            sent(5, name="kafka_brokers", kind=PointKind.GAUGE),
            sent(1, **{'a"} 7\nb': 'v"\n} 9', "client_id": "somebody else"}),
            sent(1, name="org.apache.kafka.x"),
            sent(1, name="org.apache.kafka.x", kind=PointKind.GAUGE),
            sent(1, name="org.apache.kafka.x.created", kind=PointKind.GAUGE),
        ]
        assert pusher.push(points, group_id='g"\n') == 0
        assert series(broker, "kafka_brokers") == [({}, 1)]
        families = list(parse_open_metrics(scraped(broker, "application/openmetrics-text")))
        assert len({family.name for family in families}) == len(families)
        ((labels, _),) = of(broker, pusher, NAME)
        assert labels["a___7_b"] == 'v"\n} 9'


def test_a_changed_subscription_reaches_the_client(broker: Broker, pusher: Pusher) -> None:
    subscribe_all(broker, "more", interval_ms="200", metrics="a.,b.")
    with Admin(broker.bootstrap) as admin:
        assert admin.list_config_resources([ConfigResourceType.CLIENT_METRICS]) == [
            ConfigResource(ConfigResourceType.CLIENT_METRICS, "all"),
            ConfigResource(ConfigResourceType.CLIENT_METRICS, "more"),
        ]
        assert push(pusher, sent(1)) is ErrorCode.NONE, "it is asked for the same as before"
        resource = ConfigResource(ConfigResourceType.CLIENT_METRICS, "all")
        admin.alter_config(resource, {"interval.ms": "300"})
        assert push(pusher, sent(1)) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        response = pusher.subscribe()
        assert (response.error_code, response.push_interval_ms, response.requested_metrics) == (0, 200, ["*"])
        admin.alter_config(resource, {"interval.ms": "100"})
        more = ConfigResource(ConfigResourceType.CLIENT_METRICS, "more")
        admin.alter_config(more, delete=["interval.ms", "metrics"])
        assert more not in admin.list_config_resources([ConfigResourceType.CLIENT_METRICS])


def test_settings_of_a_subscription(broker: Broker) -> None:
    resource = ConfigResource(ConfigResourceType.CLIENT_METRICS, "all")
    with Admin(broker.bootstrap) as admin:
        shown = {each.name: (each.value, each.source) for each in admin.describe_config(resource).values()}
        set_here, default = ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG, ConfigSource.DEFAULT_CONFIG
        assert shown == {"interval.ms": ("100", set_here), "match": ("", default), "metrics": ("*", set_here)}
        for wrong in (
            {"interval.ms": "99"},
            {"interval.ms": "3600001"},
            {"match": "client_id"},
            {"match": "client_id=["},
            {"match": "foo=.*"},
            {"foo": "1"},
        ):
            with pytest.raises(KafkaError) as refused:
                admin.alter_config(resource, wrong)
            assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_without_metrics_the_apis_are_not_offered() -> None:
    with Broker() as broker, RawClient(broker.bootstrap) as client:
        listed = client.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4)
        keys = {each.api_key for each in listed.api_keys}
        assert not {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY} & keys
        response = client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16)), 0)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION

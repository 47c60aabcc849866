"""A client that asks for its subscription and pushes, request by request (KIP-714)."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterable
from typing import Any

from eventually import eventually
from prometheus_client.parser import text_string_to_metric_families
from raw_client import RawClient

from barnabas import Admin
from barnabas.client.admin.types import ConfigResource, ConfigResourceType
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.protocol.messages.push_telemetry import PushTelemetryRequest
from barnabas.protocol.otlp_metrics import Point, PointKind, encode_metrics
from barnabas.records.compression import CompressionType, compress
from barnabas.testing import Broker

SENT = "org.apache.kafka.producer.record.send.total"


class Pusher(RawClient):
    def __init__(self, bootstrap: str, client_id: str = "pusher") -> None:
        super().__init__(bootstrap)
        self.client_id = client_id
        self.ask(ApiVersionsRequest(client_software_name="pusher", client_software_version="1.2"), 4)
        self.instance_id = bytes(16)
        self.subscription_id = 0

    def subscribe(self) -> Any:
        response = self.ask(self.question(), 0)
        if not response.error_code:
            self.instance_id, self.subscription_id = response.client_instance_id, response.subscription_id
        return response

    def question(self) -> GetTelemetrySubscriptionsRequest:
        return GetTelemetrySubscriptionsRequest(client_instance_id=self.instance_id)

    def push(
        self,
        points: Iterable[Point] | bytes = (),
        codec: int = CompressionType.NONE,
        *,
        terminating: bool = False,
        **resource: str,
    ) -> int:
        return int(self.ask(self.request(points, codec, terminating=terminating, **resource), 0).error_code)

    def request(
        self,
        points: Iterable[Point] | bytes = (),
        codec: int = CompressionType.NONE,
        *,
        terminating: bool = False,
        **resource: str,
    ) -> PushTelemetryRequest:
        now_ns = time.time_ns()
        data = points if isinstance(points, bytes) else encode_metrics(resource, points, now_ns, now_ns)
        return PushTelemetryRequest(
            client_instance_id=self.instance_id,
            subscription_id=self.subscription_id,
            terminating=terminating,
            compression_type=codec,
            metrics=compress(CompressionType(codec), data) if codec in tuple(CompressionType) else data,
        )

    def twice(self, request: Any) -> list[int]:
        """The codes of two requests that follow each other at once, however slow the machine is."""
        self.post(request, 0)
        self.post(request, 0)
        return [self.answer(type(request), 0).error_code for _ in range(2)]


def sent(value: float, kind: PointKind = PointKind.INCREMENT, name: str = SENT, **attributes: str) -> Point:
    return Point(name, kind, attributes, value)


def subscribe_all(broker: Broker, name: str = "all", **config: str) -> None:
    """Makes a subscription, and waits until the broker has it."""
    settings = {"metrics": "*", "interval.ms": "100"} | {key.replace("_", "."): text for key, text in config.items()}
    with Admin(broker.bootstrap) as admin:
        admin.alter_config(ConfigResource(ConfigResourceType.CLIENT_METRICS, name), settings)


def scraped(broker: Broker, accept: str = "") -> str:
    host, port = broker.metrics_address
    connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request("GET", "/metrics", headers={"accept": accept})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def series(broker: Broker, name: str) -> list[tuple[dict[str, str], float]]:
    families = text_string_to_metric_families(scraped(broker))
    return [(each.labels, each.value) for family in families for each in family.samples if each.name == name]


def series_when_there(broker: Broker, name: str, timeout: float = 60) -> list[tuple[dict[str, str], float]]:
    return eventually(lambda: series(broker, name), timeout=timeout)

"""`PrometheusCollector`: the metrics of clients for the registry of prometheus_client, in the user's own process.

    from prometheus_client import REGISTRY, start_http_server

    collector = PrometheusCollector(producer, consumer, registry=REGISTRY)
    start_http_server(8000)

Names are those that a broker shows for clients that push: org_apache_kafka_producer_record_send_total.
"""

import math
import weakref
from collections.abc import Iterator
from typing import Any, Protocol

from barnabas.client.metrics.values import MetricName, Metrics


class HasMetrics(Protocol):
    """A producer, consumer or admin client, blocking or for asyncio."""

    def metrics(self) -> Metrics: ...


class PrometheusCollector:
    """Shows the metrics of clients that are added to it, for as long as they live. prometheus_client is imported here.

    Series have the client's `client_id` as a label; of clients with the same one, the second is called NAME-2.
    """

    def __init__(self, *clients: HasMetrics, registry: Any = None) -> None:
        """`registry`: where to register at once, such as `prometheus_client.REGISTRY`."""
        import prometheus_client.metrics_core  # only a process that shows metrics needs the package
        import prometheus_client.samples

        self._core = prometheus_client.metrics_core
        self._sample = prometheus_client.samples.Sample
        self._clients: list[weakref.ref[HasMetrics]] = []
        for client in clients:
            self.add(client)
        if registry is not None:
            registry.register(self)

    def add(self, client: HasMetrics) -> None:
        """Show this client too. It is not kept alive."""
        self._clients = [each for each in self._clients if each() is not None]
        self._clients.append(weakref.ref(client))

    def remove(self, client: HasMetrics) -> None:
        """Show this client no more."""
        self._clients = [each for each in self._clients if each() is not client]

    def describe(self) -> list[Any]:
        """Nothing is known before it is measured. For prometheus_client."""
        return []

    def collect(self) -> Iterator[Any]:
        """The families with their samples. For prometheus_client."""
        families: dict[str, Any] = {}
        names: set[str] = set()
        for reference in list(self._clients):
            client = reference()
            if client is None:
                continue
            metrics = client.metrics()
            client_id = _unused(metrics.client_id, names)
            for key, value in metrics.items():
                if not math.isnan(value):
                    self._add(families, key, client_id, value)
        yield from families.values()

    def _add(self, families: dict[str, Any], key: MetricName, client_id: str, value: float) -> None:
        name = key.telemetry_name.replace(".", "_")
        labels = {"client_id": client_id, **{tag.replace("-", "_"): text for tag, text in key.tags}}
        # A family has samples with one set of labels: those with tags stand beside the sums over them.
        family = families.get(name)
        if family is None:
            made = self._core.CounterMetricFamily if key.is_total else self._core.GaugeMetricFamily
            family = families[name] = made(name, f"{key.name} of {key.group}.", labels=list(labels))
        family.samples.append(self._sample(name, labels, value))


def _unused(client_id: str, names: set[str]) -> str:
    name, number = client_id, 1
    while name in names:
        number += 1
        name = f"{client_id}-{number}"
    names.add(name)
    return name

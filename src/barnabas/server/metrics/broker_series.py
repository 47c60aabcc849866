"""Series of the broker itself: traffic, requests, the loop, connections, the process."""

import time
from collections import Counter
from collections.abc import Generator
from typing import TYPE_CHECKING

from barnabas.server.metrics.durations import quantiles_ms, sum_of
from barnabas.server.metrics.exposition import Samples
from barnabas.server.metrics.process import ProcessFigures
from barnabas.server.metrics.requests import RequestMeter, error_name
from barnabas.server.metrics.table import TRAFFIC
from barnabas.server.metrics.traffic import TopicTraffic

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
IDLE_WINDOW_NS = 60_000_000_000


class LoopIdleness:
    """The share of the last minute or so that the loop has waited, from what its selector has counted."""

    def __init__(self, idle_ns: int, now_ns: int) -> None:
        self._samples = [(now_ns, idle_ns)]

    def share(self, idle_ns: int, now_ns: int) -> float:
        self._samples.append((now_ns, idle_ns))
        while len(self._samples) > 2 and self._samples[1][0] <= now_ns - IDLE_WINDOW_NS:
            del self._samples[0]
        since_ns, idle_then_ns = self._samples[0]
        return min(1.0, max(0.0, (idle_ns - idle_then_ns) / max(1, now_ns - since_ns)))


def add_traffic(samples: Samples, broker: "Broker") -> Generator[None, None, None]:
    table = broker.replicas.traffic
    _add_traffic(samples, table.total(), {})
    for topic, traffic in table:
        _add_traffic(samples, traffic, {"topic": topic})
        yield


def _add_traffic(samples: Samples, traffic: TopicTraffic, labels: dict[str, str]) -> None:
    for name, (field, _) in TRAFFIC.items():
        value = getattr(traffic, field)
        samples.put(f"kafka_server_brokertopicmetrics_{name}_total", value, labels)
        samples.put(f"kafka_server_brokertopicmetrics_{name}persec", value, labels)


def add_requests(samples: Samples, broker: "Broker") -> Generator[None, None, None]:
    now_ms = broker.clock.monotonic_ms()
    for meter in broker.dispatcher.meters:
        if meter.count:
            _add_meter(samples, meter, now_ms)
            yield


def _add_meter(samples: Samples, meter: RequestMeter, now_ms: int) -> None:
    prefix, labels = "kafka_network_requestmetrics_", {"request": meter.name}
    errors = {"NONE": max(0, meter.count - meter.failed)}
    errors |= {error_name(code): count for code, count in meter.errors.items()}
    for spelling in ("_total", "persec"):
        samples.put(f"{prefix}requests{spelling}", meter.count, labels)
        for error, count in errors.items():
            samples.put(f"{prefix}errors{spelling}", count, {**labels, "error": error})
    at_once, of_waiting, remote, waited = (
        each.recent(now_ms) for each in (meter.local, meter.local_of_waiting, meter.remote, meter.waited)
    )
    local_ns = meter.local.total_ns + meter.local_of_waiting.total_ns
    count = meter.local.count + meter.local_of_waiting.count
    finished = meter.local.count + meter.waited.count
    finished_ns = meter.local.total_ns + meter.waited.total_ns
    _add_times(samples, "totaltimems", labels, sum_of([at_once, waited]), 0, finished_ns, finished)
    _add_times(samples, "localtimems", labels, sum_of([at_once, of_waiting]), 0, local_ns, count)
    _add_times(samples, "remotetimems", labels, remote, sum(at_once), meter.remote.total_ns, finished)
    _add_times(samples, "requestqueuetimems", labels, [], meter.count, 0, meter.count)
    _add_times(samples, "responsequeuetimems", labels, [], meter.count, 0, meter.count)
    _add_times(samples, "responsesendtimems", labels, [], meter.count, 0, meter.count)


def _add_times(
    samples: Samples, name: str, labels: dict[str, str], counts: list[int], zeros: int, total_ns: int, count: int
) -> None:
    values = dict(zip(map(str, QUANTILES), quantiles_ms(counts, QUANTILES, zeros), strict=True))
    samples.summary(f"kafka_network_requestmetrics_{name}", labels, values, (total_ns / 1e6, count))


def add_broker(samples: Samples, broker: "Broker", idleness: LoopIdleness | None) -> None:
    replicas, prefix = broker.replicas, "kafka_server_replicamanager_"
    for spelling in ("_total", "persec"):
        samples.put(f"{prefix}isrshrinks{spelling}", replicas.isr_shrinks)
        samples.put(f"{prefix}isrexpands{spelling}", replicas.isr_expands)
    offline = sum(directory.is_offline for directory in broker.log_directories.directories)
    samples.put("kafka_log_logmanager_offlinelogdirectorycount", offline)
    idle_ns = broker.loop_idle_ns()
    if idleness is not None and idle_ns is not None:
        share = idleness.share(idle_ns, time.monotonic_ns())
        for spelling in ("avgidle_percent", "avgidlepercent"):
            samples.put(f"kafka_server_kafkarequesthandlerpool_requesthandler{spelling}", share)
            samples.put(f"kafka_network_socketserver_networkprocessor{spelling}", share)
    samples.put("kafka_server_fetchsessioncache_numincrementalfetchsessions", len(broker.fetch_sessions))
    counts = Counter(dict.fromkeys(broker.listener_names, 0))
    counts.update(connection.listener.name for connection in broker.connections)
    for name, count in counts.items():
        samples.put("kafka_server_socket_server_metrics_connection_count", count, {"listener": name})
        samples.put("kafka_server_socketservermetrics_connection_count", count, {"listener": name})
        samples.put("kafka_server_socketservermetrics_connections", count, {"listener": name})
    samples.put("kafka_server_kafkaserver_brokerstate", broker.state)


def add_mqtt(samples: Samples, broker: "Broker") -> None:
    """Zeros without an MQTT listener."""
    gateway = broker.mqtt
    samples.put("barnabas_mqtt_connections", gateway.connection_count if gateway else 0)
    samples.put("barnabas_mqtt_sessions", gateway.session_count if gateway else 0)
    samples.put("barnabas_mqtt_in_flight", gateway.in_flight_count if gateway else 0)
    samples.put("barnabas_mqtt_publishes_total", gateway.publish_count if gateway else 0)
    samples.put("barnabas_mqtt_deliveries_total", gateway.delivery_count if gateway else 0)


def add_delayed(samples: Samples, broker: "Broker") -> None:
    for topic, figures in broker.delayed.figures().items():
        labels = {"topic": topic}
        samples.put("barnabas_delayed_pending", figures.pending, labels)
        samples.put("barnabas_delayed_overdue_ms", figures.overdue_ms, labels)
        samples.put("barnabas_delayed_delivered_total", figures.delivered, labels)
        samples.put("barnabas_delayed_undeliverable_total", figures.undeliverable, labels)


def add_process(samples: Samples, figures: ProcessFigures | None) -> None:
    if figures is None:
        return
    samples.put("kafka_server_kafkaserver_linux_disk_read_bytes", figures.disk_read_bytes)
    samples.put("kafka_server_kafkaserver_linux_disk_write_bytes", figures.disk_write_bytes)
    samples.put("process_cpu_seconds_total", figures.cpu_seconds)
    samples.put("process_resident_memory_bytes", figures.resident_bytes)
    samples.put("process_virtual_memory_bytes", figures.virtual_bytes)
    samples.put("process_start_time_seconds", figures.start_seconds)
    samples.put("process_open_fds", figures.open_files)
    samples.put("process_max_fds", figures.max_files)

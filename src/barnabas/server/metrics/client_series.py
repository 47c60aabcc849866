"""Series of clients: who pushes to this broker, and the last values of each, under OpenTelemetry's names (KIP-714)."""

from collections.abc import Generator
from typing import TYPE_CHECKING

from barnabas.machines.client_metrics.clients import RESOURCE
from barnabas.server.metrics.exposition import Samples, label_text
from barnabas.server.metrics.table import Kind, Metric, Source
from barnabas.types import topic_id_text

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

SERIES_AT_ONCE = 500
PREFIX = "kafka_server_clientmetrics_"


def add_clients(samples: Samples, broker: "Broker") -> Generator[None, None, None]:
    if not broker.client_metrics.is_served:
        return
    clients = broker.client_metrics.current_clients()
    samples.put(PREFIX + "clientmetricsinstancecount", len(clients))
    samples.put(PREFIX + "clientmetricsunknownsubscriptionrequest_total", clients.unknown_subscriptions)
    samples.put(PREFIX + "clientmetricsthrottle_total", clients.throttled)
    samples.put(PREFIX + "clientmetricspluginexport_total", clients.pushes)
    samples.put(PREFIX + "clientmetricspluginerror_total", clients.failed_pushes)
    samples.put(PREFIX + "series", clients.series.count)
    samples.put(PREFIX + "dropped_total", clients.series.dropped)
    for family in clients.series.families():
        kind = Kind.COUNTER if family.is_counter else Kind.GAUGE
        help_text = f"{family.original}, as clients have pushed it."
        samples.declare(Metric(family.name, kind, (), help_text, Source.CLIENT))
    count = 0
    for client in clients:
        instance_id = topic_id_text(client.instance_id)
        attributes, resource = client.attributes, client.resource
        identity = {"client_id": attributes["client_id"], "client_instance_id": instance_id}
        info = {
            **identity,
            "software_name": attributes["client_software_name"],
            "software_version": attributes["client_software_version"],
            "address": attributes["client_source_address"],
            "principal": client.principal,
            **{name: resource.get(name, "") for name in RESOURCE},
        }
        samples.put("kafka_client_info", 1, {name: value[:256] for name, value in info.items()})
        head = label_text({name: value[:256] for name, value in identity.items()})[1:-1]
        for (name, labels), value in list(client.series.values.items()):
            text = f"{{{head},{labels}}}" if labels else f"{{{head}}}"
            lines = samples.of(name) if clients.series.family(name) else None
            if lines is not None:
                lines.append(f"{text} {value}")
            count += 1
            if not count % SERIES_AT_ONCE:
                yield
        yield

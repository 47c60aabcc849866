"""`--print-metrics`: a client's counters as Kafka's performance tools list them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.cli.data.java_text import fixed

if TYPE_CHECKING:
    from barnabas.client.metrics import Metrics


def metric_lines(client_id: str, metrics: "Metrics") -> Iterator[str]:
    """An empty line, a header, and a line for each metric, by group and name."""
    named = {}
    for key, value in metrics.items():
        tags = ", ".join(f"{tag}={text}" for tag, text in (("client-id", client_id), *key.tags))
        named[f"{key.group}:{key.name}:{{{tags}}}"] = value
    width = max(map(len, named), default=0)
    yield ""
    yield f"{'Metric Name':<{width}}   Value"
    for name in sorted(named):
        yield f"{name:<{width}} : {fixed(named[name], 3)}"

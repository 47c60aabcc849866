"""`--print-metrics`: a client's counters as Kafka's performance tools list them."""

from collections.abc import Iterator, Mapping

from barnabas.cli.data.java_text import fixed


def metric_lines(group: str, client_id: str, metrics: Mapping[str, float]) -> Iterator[str]:
    """An empty line, a header, and a line for each metric, by name."""
    named = {f"{group}:{name}:{{client-id={client_id}}}": value for name, value in metrics.items()}
    width = max(map(len, named), default=0)
    yield ""
    yield f"{'Metric Name':<{width}}   Value"
    for name in sorted(named):
        yield f"{name:<{width}} : {fixed(named[name], 3)}"

"""Samples to text: Prometheus 0.0.4, and OpenMetrics 1.0 for whoever accepts that.

Samples of a family must stand together, so sources add lines to the family's list, in any order, and `render` writes
the families in the order of the table, some thousand lines at a time.
"""

from collections.abc import Generator, Mapping

from barnabas.server.metrics.table import TABLE, Kind, Metric

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
LINES_AT_ONCE = 2000
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def escaped(value: str) -> str:
    return value.translate(_ESCAPES)


class Samples:
    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._more: dict[str, Metric] = {}

    def of(self, name: str) -> list[str]:
        """The lines of a family, each `{labels} value`, or ` value`. KeyError for a name that is not in the table."""
        lines = self._lines.get(name)
        if lines is None:
            row = self._more.get(name) or TABLE[name]
            lines = self._lines[row.name] = []
        return lines

    def declare(self, row: Metric) -> None:
        """A family that only this scrape has: what clients push. Its name must not be in the table."""
        self._more[row.name] = row

    def put(self, name: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        self.of(name).append(f"{label_text(labels or {})} {value}")

    def summary(
        self, name: str, labels: Mapping[str, str], quantiles: Mapping[str, float], sums: tuple[float, int]
    ) -> None:
        """`sums` are the total and the number of what was observed."""
        lines = self.of(name)
        for quantile, value in quantiles.items():
            lines.append(f"{label_text({**labels, 'quantile': quantile})} {value}")
        lines.append(f"_sum{label_text(labels)} {sums[0]}")
        lines.append(f"_count{label_text(labels)} {sums[1]}")

    def render(self, *, open_metrics: bool) -> Generator[None, None, list[bytes]]:
        parts: list[bytes] = []
        for name, row in (*TABLE.items(), *self._more.items()):
            lines = self._lines.get(name)
            if not lines:
                continue
            parts.append(_head(row, open_metrics).encode())
            for start in range(0, len(lines), LINES_AT_ONCE):
                text = f"\n{name}".join(lines[start : start + LINES_AT_ONCE])
                parts.append(f"{name}{text}\n".encode())
                yield
        if open_metrics:
            parts.append(b"# EOF\n")
        return parts


def label_text(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    inner = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
    return f"{{{inner}}}"


def _head(row: Metric, open_metrics: bool) -> str:
    name, kind, text = row.name, row.kind.value, row.help.replace("\\", r"\\").replace("\n", r"\n")
    if row.kind is Kind.COUNTER and not name.endswith("_total"):
        # Readers rename a counter that does not end in _total, so the other spelling has no type.
        kind = "unknown" if open_metrics else "untyped"
    elif open_metrics:
        name = name.removesuffix("_total")
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"

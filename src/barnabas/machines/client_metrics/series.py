"""The last values that clients have pushed, as series for Prometheus: bounded per client and in all.

Names become those that OpenTelemetry gives them for Prometheus: org.apache.kafka.producer.record.send.total is
org_apache_kafka_producer_record_send_total. Others are put behind `client_`, so that nobody can write into the
broker's own series. A name has one kind: the first client that pushes it decides.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.protocol.otlp_metrics import Point, PointKind

SERIES_PER_CLIENT = 2_000
SERIES = 50_000
FAMILIES = 1_000
LABELS = 8
LONGEST_NAME = 200
LONGEST_LABEL = 64
LONGEST_VALUE = 256
TAKEN_LABELS = frozenset(("client_id", "client_instance_id", "quantile", "le", "job", "instance"))
"""Of the broker, of Prometheus."""
OWN_PREFIX = "org_apache_kafka_"
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Family(NamedTuple):
    """All series of a name."""

    name: str
    is_counter: bool
    original: str
    """The client's name for it."""

    @property
    def claims(self) -> tuple[str, ...]:
        """What OpenMetrics takes for this family: no other one may have such a name."""
        base = self.name.removesuffix("_total")
        return (self.name, base, f"{base}_created") if self.is_counter else (self.name,)


Series = tuple[str, str]
"""Name of the family, and the labels as text."""


class ClientSeries:
    """Those of one client."""

    def __init__(self) -> None:
        self.values: dict[Series, float] = {}


class SeriesTable:
    def __init__(self) -> None:
        self._families: dict[str, Family] = {}
        self._claimed: set[str] = set()
        self._used: dict[str, int] = {}
        """Series per family: a name that nobody uses makes room for another one, and for another kind."""
        self.count = 0
        self.dropped = 0
        """Values that were pushed and are not kept: too many, no name, of another kind than before."""

    def family(self, name: str) -> Family | None:
        return self._families.get(name)

    def families(self) -> Iterator[Family]:
        return iter(list(self._families.values()))

    def take(self, client: ClientSeries, points: Iterable[Point]) -> None:
        for point in points:
            if not self._take(client, point):
                self.dropped += 1

    def _take(self, client: ClientSeries, point: Point) -> bool:
        name = family_name(point.name)
        is_counter = point.kind is not PointKind.GAUGE
        if not name or len(name) > LONGEST_NAME:
            return False
        if is_counter and not name.endswith("_total"):
            name += "_total"
        key = (name, label_text(point.attributes))
        known = client.values.get(key)
        if not math.isfinite(point.value):
            # A client's average over nothing: no value is what it says.
            if known is not None and not is_counter:
                self._forget(client, key)
            return True
        if is_counter and point.value < 0:
            return False
        if known is None and not self._open(client, Family(name, is_counter, point.name[:LONGEST_NAME])):
            return False
        if self._families[name].is_counter is not is_counter:
            return False
        client.values[key] = (known or 0) + point.value if point.kind is PointKind.INCREMENT else point.value
        return True

    def _open(self, client: ClientSeries, family: Family) -> bool:
        """Make room for one more series."""
        if len(client.values) >= SERIES_PER_CLIENT or self.count >= SERIES:
            return False
        known = self._families.get(family.name)
        if known is None:
            if len(self._families) >= FAMILIES or not self._claimed.isdisjoint(family.claims):
                return False
            self._families[family.name] = family
            self._claimed.update(family.claims)
        elif known.is_counter is not family.is_counter:
            return False
        self._used[family.name] = self._used.get(family.name, 0) + 1
        self.count += 1
        return True

    def _forget(self, client: ClientSeries, key: Series) -> None:
        del client.values[key]
        self.count -= 1
        self._used[key[0]] -= 1
        if not self._used[key[0]]:
            del self._used[key[0]]
            self._claimed.difference_update(self._families.pop(key[0]).claims)

    def forget(self, client: ClientSeries) -> None:
        """The client is gone."""
        for key in list(client.values):
            self._forget(client, key)


def family_name(text: str) -> str:
    """Empty for a name of nothing but dots."""
    name = _NOT_IN_NAMES.sub("_", text[: LONGEST_NAME + 1]).strip("_")
    if not name:
        return ""
    return name if name.startswith(OWN_PREFIX) else f"client_{name}"


def label_text(attributes: Mapping[str, str]) -> str:
    """In an order of their own, so that a client may change its."""
    labels: dict[str, str] = {}
    for name, value in sorted(attributes.items()):
        label = _NOT_IN_NAMES.sub("_", name[:LONGEST_LABEL]).strip("_")
        if not label or label[0].isdigit() or label in TAKEN_LABELS or label in labels or len(labels) >= LABELS:
            continue
        labels[label] = value[:LONGEST_VALUE]
    return ",".join(f'{label}="{value.translate(_ESCAPES)}"' for label, value in labels.items())

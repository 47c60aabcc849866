"""The last hour in memory: one value per series and 5 s. Zeros take no memory."""

import math
from array import array

from barnabas.console.view import ClusterView

STEP_SECONDS = 5
SLOTS = 720


def values_of(view: ClusterView) -> dict[str, float]:
    """Every series of a moment that is not zero. An age that is known only in part is left out."""
    values = {"cluster.rate": view.rate, "cluster.bytes": view.byte_rate, "cluster.lag": float(view.lag)}
    values |= {f"topic.rate/{name}": topic.rate for name, topic in view.topics.items() if topic.rate}
    values |= {f"topic.lag/{name}": float(topic.lag) for name, topic in view.topics.items() if topic.lag}
    values |= {f"group.lag/{name}": float(group.lag) for name, group in view.groups.items() if group.lag}
    values |= {f"group.seconds/{name}": group.lag_seconds for name, group in view.groups.items() if group.lag_seconds}
    return values


class RecentHistory:
    """Points by series name and slot of 5 s. A moment without a look at the cluster is a gap, not a zero."""

    def __init__(self) -> None:
        self._looked: dict[int, bool] = {}
        self._series: dict[str, dict[int, float]] = {}

    def record(self, now: float, values: dict[str, float]) -> None:
        slot = int(now // STEP_SECONDS)
        self._looked[slot] = True
        oldest = slot - SLOTS
        for name, value in values.items():
            if value:
                self._series.setdefault(name, {})[slot] = value
        for old in [each for each in self._looked if each <= oldest]:
            del self._looked[old]
            for name in [name for name, points in self._series.items() if points.pop(old, None) and not points]:
                del self._series[name]

    def read(self, name: str, now: float) -> tuple[list[int], "array[float]"]:
        """Times in seconds and values of the hour before `now`, NaN where nobody looked."""
        newest = int(now // STEP_SECONDS)
        points = self._series.get(name, {})
        slots = range(max(newest - SLOTS + 1, min(self._looked, default=newest)), newest + 1)
        values = (points.get(slot, 0.0) if slot in self._looked else math.nan for slot in slots)
        return [slot * STEP_SECONDS for slot in slots], array("d", values)

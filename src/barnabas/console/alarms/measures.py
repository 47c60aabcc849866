"""What a rule looks at: for each kind, the value of every subject. A larger value is worse. No I/O."""

from collections.abc import Callable, Iterator, Mapping

from barnabas.console.view import ClusterView

Measure = Callable[[ClusterView, float], Iterator[tuple[str, float]]]


class Measures:
    """Keeps what a single look does not show: since when something has not changed."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}
        self._lags: dict[str, int] = {}
        self.by_kind: Mapping[str, Measure] = {
            "lag": lambda view, now: ((name, float(group.lag)) for name, group in view.groups.items()),
            "time-lag": lambda view, now: (
                (name, group.lag_seconds_at_least)
                for name, group in view.groups.items()
                if group.lag_seconds_at_least is not None
            ),
            "lag-not-falling": self._lag_not_falling,
            "no-traffic": self._no_traffic,
            "consumer-gone": self._consumer_gone,
            "out-of-sync": lambda view, now: ((name, float(each.out_of_sync)) for name, each in view.topics.items()),
            "offline": lambda view, now: ((name, float(topic.offline)) for name, topic in view.topics.items()),
            "disk": _disk,
            "unreachable": lambda view, now: iter(
                [("cluster", 0.0 if view.error_since is None else now - view.error_since)]
            ),
        }

    def _seconds(self, kind: str, subject: str, holds: bool, now: float) -> float:
        """For how long it has held."""
        if not holds:
            self._since.pop((kind, subject), None)
            return 0.0
        return now - self._since.setdefault((kind, subject), now)

    def _lag_not_falling(self, view: ClusterView, now: float) -> Iterator[tuple[str, float]]:
        before, self._lags = self._lags, {name: group.lag for name, group in view.groups.items()}
        for name, lag in self._lags.items():
            has_fallen = lag == 0 or lag < before.get(name, lag)
            if has_fallen:
                self._seconds("lag-not-falling", name, False, now)
            yield name, self._seconds("lag-not-falling", name, lag > 0, now)

    def _no_traffic(self, view: ClusterView, now: float) -> Iterator[tuple[str, float]]:
        for name, topic in view.topics.items():
            if topic.measured_at and not topic.is_internal:
                yield name, self._seconds("no-traffic", name, topic.rate == 0, now)

    def _consumer_gone(self, view: ClusterView, now: float) -> Iterator[tuple[str, float]]:
        for name, group in view.groups.items():
            yield name, self._seconds("consumer-gone", name, group.members == 0 and group.lag > 0, now)


def _disk(view: ClusterView, now: float) -> Iterator[tuple[str, float]]:
    for broker, dirs in view.log_dirs.items():
        for directory in dirs.values():
            if directory.total_bytes and directory.usable_bytes is not None:
                yield f"broker {broker} {directory.path}", 100.0 * (1 - directory.usable_bytes / directory.total_bytes)

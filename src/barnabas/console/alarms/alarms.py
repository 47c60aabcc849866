"""Which alarms are on: pending, firing, over; with hysteresis, silence and history. No I/O of its own."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from barnabas.console.alarms.measures import Measures
from barnabas.console.alarms.rules import KINDS, Rule
from barnabas.console.view import ClusterView

KEPT_EVENTS = 1000


@dataclass(slots=True)
class Alarm:
    """A rule that holds for a subject. Nobody is told before `is_firing`."""

    rule: Rule
    subject: str
    value: float
    since: float
    is_firing: bool = False
    ended_at: float | None = None

    @property
    def text(self) -> str:
        return (
            f"{self.rule.name}: {self.subject}: {KINDS[self.rule.kind]}: {self.value:.0f} (limit {self.rule.above:g})"
        )


@dataclass(frozen=True, slots=True)
class AlarmEvent:
    """`event` is firing or resolved."""

    at: float
    rule: str
    subject: str
    event: str
    text: str


@dataclass(frozen=True, slots=True)
class Silence:
    """Nobody is told of this rule and subject until then; the page still shows it."""

    rule: str
    subject: str
    until: float


class Alarms:
    """`tell` gets what began or ended in one look and is not silenced."""

    def __init__(self, rules: tuple[Rule, ...], tell: Callable[[list[Alarm]], None]) -> None:
        self.rules = rules
        self.events: deque[AlarmEvent] = deque(maxlen=KEPT_EVENTS)
        self.on_event: Callable[[AlarmEvent], None] = self.events.append
        self._tell = tell
        self._measures = Measures()
        self._alarms: dict[tuple[str, str], Alarm] = {}
        self._silences: dict[tuple[str, str], Silence] = {}

    def evaluate(self, view: ClusterView, now: float | None = None) -> None:
        """While the cluster does not respond, what is known of it is old: only that rule is looked at."""
        now = time.time() if now is None else now
        changed = [
            alarm
            for rule in self.rules
            if view.collected_at or rule.kind == "unreachable"
            if view.error is None or rule.kind == "unreachable"
            for alarm in self._evaluate_rule(rule, view, now)
        ]
        for alarm in changed:
            event = "firing" if alarm.ended_at is None else "resolved"
            self.on_event(AlarmEvent(now, alarm.rule.name, alarm.subject, event, alarm.text))
        told = [alarm for alarm in changed if not self.is_silenced(alarm.rule.name, alarm.subject, now)]
        if told:
            self._tell(told)

    def _evaluate_rule(self, rule: Rule, view: ClusterView, now: float) -> list[Alarm]:
        changed = []
        seen = set()
        for subject, value in self._measures.by_kind[rule.kind](view, now):
            if not fnmatchcase(subject, rule.match):
                continue
            key = (rule.name, subject)
            seen.add(subject)
            alarm = self._alarms.get(key)
            if alarm is None and value > rule.above:
                alarm = self._alarms[key] = Alarm(rule, subject, value, now)
            if alarm is None:
                continue
            alarm.value = value
            limit = rule.clear_at if alarm.is_firing else rule.above
            if value <= limit:
                changed += self._end(alarm, now)
            elif not alarm.is_firing and now - alarm.since >= rule.for_seconds:
                alarm.is_firing = True
                changed.append(alarm)
        gone = [each for each in self._alarms.values() if each.rule is rule and each.subject not in seen]
        for alarm in gone:
            changed += self._end(alarm, now)
        return changed

    def _end(self, alarm: Alarm, now: float) -> list[Alarm]:
        del self._alarms[alarm.rule.name, alarm.subject]
        alarm.ended_at = now
        return [alarm] if alarm.is_firing else []

    @property
    def firing(self) -> list[Alarm]:
        return sorted((each for each in self._alarms.values() if each.is_firing), key=lambda each: each.since)

    # --- silence ---
    def silence(self, rule: str, subject: str, until: float) -> None:
        """An `until` that is over ends the silence."""
        self._silences[rule, subject] = Silence(rule, subject, until)

    def silences(self, now: float) -> list[Silence]:
        self._silences = {key: each for key, each in self._silences.items() if each.until > now}
        return list(self._silences.values())

    def is_silenced(self, rule: str, subject: str, now: float) -> bool:
        found = self._silences.get((rule, subject))
        return found is not None and found.until > now

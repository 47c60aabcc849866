"""The history of alarms in the console's file."""

from barnabas.console.alarms.alarms import KEPT_EVENTS, AlarmEvent
from barnabas.console.database import Database

KEEP_SECONDS = 90 * 86_400


class EventLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, event: AlarmEvent) -> None:
        with self._database.transaction() as connection:
            row = (event.at, event.rule, event.subject, event.event, event.text)
            connection.execute("INSERT INTO alarm_event VALUES (?, ?, ?, ?, ?)", row)
            connection.execute("DELETE FROM alarm_event WHERE at < ?", (event.at - KEEP_SECONDS,))

    def newest(self, count: int = KEPT_EVENTS) -> list[AlarmEvent]:
        """Oldest first."""
        with self._database.transaction() as connection:
            rows = connection.execute("SELECT * FROM alarm_event ORDER BY at DESC LIMIT ?", (count,)).fetchall()
        return [AlarmEvent(*row) for row in reversed(rows)]

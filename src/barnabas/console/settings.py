"""What a console is started with, beside its address and the options of its clients."""

from dataclasses import dataclass, field
from pathlib import Path

from barnabas.console.alarms.rules import AlarmSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """`history` is the SQLite file; without it an hour is kept in memory. `pipelines` are checkpoints to show."""

    read_only: bool = False
    history: Path | None = None
    pipelines: tuple[str, ...] = ()
    alarms: AlarmSettings = field(default_factory=AlarmSettings)

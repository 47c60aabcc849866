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
    users: Path | None = None
    """Password file of the console's own users. Neither this nor `cluster_login`: nobody has to log in."""
    cluster_login: bool = False
    """Users of the cluster log in, and act with connections of their own."""
    login_mechanism: str | None = None
    """By which they log in at the cluster; that of the console's own connection where left out."""
    host_names: tuple[str, ...] = ()
    """Further names under which browsers reach it."""
    certificate: Path | None = None
    private_key: Path | None = None
    """PEM files; with them the page is served by TLS."""
    trusted_proxy: str | None = None
    """Address of a proxy whose X-Forwarded-For and -Proto are believed."""

    @property
    def needs_login(self) -> bool:
        return self.users is not None or self.cluster_login

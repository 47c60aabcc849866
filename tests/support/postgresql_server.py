"""A PostgreSQL server of the tests' own: Debian's binaries, a data directory of its own, a free port on loopback."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
from eventually import eventually

USER = "barnabas"


def binaries() -> Path | None:
    """Where initdb and postgres are: the newest that Debian has, or what is on the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    return Path(on_path).resolve().parent if on_path else None


def why_no_postgresql() -> str | None:
    if binaries() is None:
        return "there is no PostgreSQL server here (apt-get install postgresql)"
    if os.getuid() == 0 and _account() is None:
        return "PostgreSQL does not run as root, and there is no user postgres to run it as"
    return None


class PostgresServer:
    def __init__(self) -> None:
        found = binaries()
        assert found is not None
        self._binaries = found
        # Not below the tests' own directory, which only its owner may enter.
        self._folder = Path(tempfile.mkdtemp(prefix="barnabas-postgresql-"))
        account = _account()
        self._as: dict[str, int] = {}
        if os.getuid() == 0 and account is not None:
            os.chown(self._folder, account.pw_uid, account.pw_gid)
            self._as = {"user": account.pw_uid, "group": account.pw_gid}
        self._port = _free_port()
        self._run("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        settings = f"-h 127.0.0.1 -p {self._port} -k {self._folder} -c fsync=off -c shared_buffers=16MB"
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", settings, "start")

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` is a crash, `fast` what an administrator does: it tells its clients."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    @contextlib.contextmanager
    def away(self, mode: str = "immediate") -> Iterator[None]:
        """Stopped, and whatever happens started again: other tests need it."""
        self.stop(mode)
        try:
            yield
        finally:
            self.start()

    def wait_for_lock(self, application: str) -> None:
        """Until a session of this name waits for what another one holds."""
        waiting = "SELECT FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
        with psycopg.connect(self.url, autocommit=True) as connection:
            eventually(lambda: connection.execute(waiting, (application,)).rowcount > 0, timeout=120)

    def remove(self) -> None:
        if (self._folder / "data" / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self._folder)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), "-D", str(self._folder / "data"), *arguments]
        log = self._folder / "commands.log"
        with log.open("ab") as output:
            # Into a file: the server inherits it, and a pipe would stay open.
            done = subprocess.run(
                command, check=False, stdout=output, stderr=output, cwd=self._folder, timeout=60, **self._as
            )
        assert done.returncode == 0, log.read_text()


def _account() -> pwd.struct_passwd | None:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port

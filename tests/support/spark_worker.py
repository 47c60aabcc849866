"""Spark drivers in processes of their own: one with the official Kafka connector, one with `format("barnabas")`.

Two versions of PySpark do not fit into one process. Each worker stays up, so that its JVM is warm, and takes commands
(see spark_program.py, which is what runs there).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build"
ENVIRONMENT = BUILD / "spark40"
JARS = BUILD / "spark-jars"
PROGRAM = Path(__file__).with_name("spark_program.py")
OFFICIAL = "kafka"
OURS = "barnabas"
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class SparkFailed(Exception):
    """What Spark raised in the worker, in its words."""


def why_no_official() -> str | None:
    """Installs the official connector when it is missing; why it cannot be had, or None when it is there."""
    if shutil.which("java") is None:
        return "java is not installed"
    script = ROOT / "tests" / "foreign" / "install_spark.sh"
    told = subprocess.run([script], check=False, capture_output=True, text=True).stdout
    return None if (BUILD / "spark.stamp").exists() else told.strip() or "Spark's official connector is not in .build"


class SparkWorker:
    def __init__(
        self, kind: str, directory: Path, settings: dict[str, str] | None = None, sources: Path = ROOT / "src"
    ) -> None:
        self.kind = kind
        self._sources = sources
        self._output = directory / f"spark-{kind}.out"
        self._process = self._start(directory, settings or {})
        self._answer()

    def _start(self, directory: Path, settings: dict[str, str]) -> subprocess.Popen[str]:
        python = str(ENVIRONMENT / "bin" / "python") if self.kind == OFFICIAL else sys.executable
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        environment |= {"PYSPARK_PYTHON": python, "PYTHONPATH": "" if self.kind == OFFICIAL else str(self._sources)}
        settings = settings | {"spark.local.dir": str(directory), "spark.sql.warehouse.dir": str(directory)}
        if self.kind == OFFICIAL:
            settings["spark.jars"] = ",".join(str(jar) for jar in sorted(JARS.glob("*.jar")))
        environment["SPARK_PROGRAM_SETTINGS"] = json.dumps(settings)
        with self._output.open("ab") as output:
            return subprocess.Popen(
                [python, str(PROGRAM), self.kind],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=environment,
                cwd=directory,
                text=True,
            )

    def ask(self, do: str, **command: Any) -> Any:
        """Raises SparkFailed with what Spark raised."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **command}, default=_text_of_bytes) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Spark ended:\n{self._output.read_text()[-3000:]}")
        response = json.loads(line)
        if "error" in response:
            raise SparkFailed(f"{response['kind']}: {response['error']}")
        return response["done"]

    def cpu_seconds(self) -> float:
        """Processor time of the driver, its JVM and all Python workers, also of those that ended."""
        parents: dict[int, int] = {}
        ticks: dict[int, int] = {}
        for file in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it ended meanwhile
                fields = file.read_text().rpartition(")")[2].split()
                pid = int(file.parent.name)
                parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
        mine, found = set(), {self._process.pid}
        while found:
            mine |= found
            found = {pid for pid, parent in parents.items() if parent in found}
        return sum(ticks.get(pid, 0) for pid in mine) / CLOCK_TICKS

    def stop(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _text_of_bytes(value: object) -> dict[str, str]:
    assert isinstance(value, bytes)
    return {"base64": base64.b64encode(value).decode()}

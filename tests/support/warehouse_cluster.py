"""A Spark standalone cluster on this machine: a master and workers, from the installed PySpark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

from eventually import eventually
from server_process import free_port
from warehouse_pipeline import SOURCES, kill_tree


class SparkCluster:
    """`workers` of one core each; all on loopback, on free ports."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        self.directory = directory
        self.master = f"spark://127.0.0.1:{free_port()}"
        self._number = workers
        self.processes: list[subprocess.Popen[bytes]] = []
        """The master, then the workers."""

    @property
    def worker_pids(self) -> list[int]:
        return [process.pid for process in self.processes[1:]]

    def start(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        host, port = self.master.removeprefix("spark://").split(":")
        place = ["--host", host, "--webui-port", "0"]
        self._launch("master", "org.apache.spark.deploy.master.Master", *place, "--port", port)
        eventually(lambda: "I have been elected leader" in self.log("master"), timeout=120)
        for number in range(self._number):
            work = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.directory / f"work{number}")]
            self._launch(f"worker{number}", "org.apache.spark.deploy.worker.Worker", *place, *work, self.master)
        for number in range(self._number):
            eventually(lambda: "Successfully registered" in self.log(f"worker{number}"), timeout=120)  # noqa: B023
        return self

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.out").read_text(errors="replace")

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Executors too, which are children of the workers."""
        for process in self.processes:
            kill_tree(process.pid)
            process.wait()

    def _launch(self, name: str, *command: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(self.directory / "local"),
            "PYSPARK_PYTHON": sys.executable,
            # What a worker starts inherits this.
            "PYTHONPATH": str(SOURCES),
        }
        with (self.directory / f"{name}.out").open("ab") as output:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), *command],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        self.processes.append(process)

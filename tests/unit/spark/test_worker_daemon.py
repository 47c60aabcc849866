"""What is in memory before Spark forks its workers."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from pathlib import Path
from barnabas.spark.worker_daemon import PRELOADED, preload
preload()
tasks = Path("/proc/self/task")
print(len(list(tasks.iterdir())) if tasks.exists() else threading.active_count())
print(set(PRELOADED) <= sys.modules.keys(), "pyarrow" in sys.modules, "numpy" in sys.modules)
"""


def test_the_clients_are_there_and_no_thread_is() -> None:
    pytest.importorskip("pyspark")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "True", "False", "False"]

"""`make demo` from beginning to end, and that nothing of it is left, however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.pipeline.java import why_no_java

ROOT = Path(__file__).resolve().parents[2]
MODULE = [sys.executable, "-m", "barnabas.pipeline.demo"]

pytestmark = pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java()))


class Demo:
    """A run of it, known by a word in the environment that everything it starts inherits."""

    def __init__(self, command: list[str], place: Path, **more: str) -> None:
        self._word = f"BARNABAS_DEMO_TEST={os.urandom(8).hex()}"
        self.place = place
        self._output = place / "demo.out"
        environment = {"PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(place), **dict([self._word.split("=")]), **more}
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def printed(self) -> str:
        return self._output.read_text(errors="replace")

    def wait_for(self, program: str) -> int:
        """The process id of something that it started."""
        while True:
            assert self.process.poll() is None, self.printed
            for pid, command in self.alive().items():
                if program in command:
                    return pid
            time.sleep(0.05)

    def alive(self) -> dict[int, str]:
        """Itself and whatever it started, wherever that is in the tree of processes."""
        found = {}
        for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
            try:
                if self._word.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return {pid: command for pid, command in found.items() if command}

    @property
    def left_files(self) -> list[Path]:
        return [path for path in self.place.iterdir() if path != self._output and "hsperfdata" not in path.name]


@pytest.fixture
def demos(tmp_path: Path) -> Iterator[list[Demo]]:
    started: list[Demo] = []
    yield started
    for demo in started:
        for pid in demo.alive():
            os.kill(pid, signal.SIGKILL)
        demo.process.wait()


CONSOLE = re.compile(r"console on (http://127\.0\.0\.1:\d+): open it in a browser\n")


def wait_for_console(demo: Demo) -> str:
    while "\n" not in demo.printed:
        assert demo.process.poll() is None, demo.printed
        time.sleep(0.05)
    found = CONSOLE.match(demo.printed)
    assert found is not None, "the first line says where the console is"
    return found[1]


@pytest.mark.timeout(900)
def test_it_ends_by_itself_with_a_check(tmp_path: Path, demos: list[Demo]) -> None:
    make = ["make", "--no-print-directory", "-o", ".venv/.installed", f"PY={sys.executable}", "demo", "DURATION=30"]
    demo = Demo(make, tmp_path)
    demos.append(demo)
    address = wait_for_console(demo)
    with urllib.request.urlopen(f"{address}/api/session", timeout=60) as response:
        assert json.load(response)["needsLogin"] is False
    assert demo.process.wait() == 0, demo.printed
    rows = dict(re.findall(r"^(\w+) +([\d,]+ +[\d,]+ +\w+)$", demo.printed, re.MULTILINE))
    for topic in ("dwd_page_log", "dwd_display_log", "dwd_order_info", "dim_user_info", "ods_dirty", "all"):
        expected, found, is_ok = rows[topic].split()
        assert (found, is_ok) == (expected, "yes") and expected != "0"
    assert "exact: nothing lost, no duplicates, keys in order" in demo.printed
    assert (demo.alive(), demo.left_files) == ({}, [])


def test_ctrl_c_while_spark_starts_leaves_nothing(tmp_path: Path, demos: list[Demo]) -> None:
    demo = Demo(MODULE, tmp_path)
    demos.append(demo)
    wait_for_console(demo)
    os.kill(demo.wait_for("barnabas console"), signal.SIGKILL)  # the demo goes on without
    demo.wait_for("org.apache.spark")
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait() == 0, demo.printed
    assert "is removed" in demo.printed and "was killed" not in demo.printed
    assert (demo.alive(), demo.left_files) == ({}, [])


def test_without_the_extra_it_says_what_is_missing_and_goes_on(tmp_path: Path, demos: list[Demo]) -> None:
    """A module of that name that cannot be imported stands in for one that is not installed."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "uvicorn.py").write_text("raise ModuleNotFoundError(\"No module named 'uvicorn'\", name='uvicorn')\n")
    demo = Demo(MODULE, tmp_path, PYTHONPATH=f"{ROOT / 'src'}{os.pathsep}{hidden}")
    demos.append(demo)
    while "\n" not in demo.printed:
        assert demo.process.poll() is None
        time.sleep(0.05)
    assert demo.printed.startswith("no console: the console needs uvicorn: pip install 'barnabas[console]'\n")
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait() == 0, demo.printed
    assert demo.alive() == {}


def test_a_broker_that_dies_ends_it_with_its_last_words(tmp_path: Path, demos: list[Demo]) -> None:
    demo = Demo([*MODULE, "--duration", "60"], tmp_path)
    demos.append(demo)
    demo.wait_for("pipeline run")
    # Only now: a first broker ends at once where port 9092 is taken.
    os.kill(demo.wait_for("barnabas server"), signal.SIGKILL)
    assert demo.process.wait() == 1, demo.printed
    assert "demo: the broker has exited with status -9; its last output:\n  " in demo.printed
    assert (demo.alive(), demo.left_files) == ({}, [])


def test_without_java_one_line_says_what_to_do(tmp_path: Path, demos: list[Demo]) -> None:
    demo = Demo(MODULE, tmp_path, JAVA_HOME=str(tmp_path / "nowhere"))
    demos.append(demo)
    assert demo.process.wait() == 1
    assert demo.printed.startswith("demo: Spark needs Java 17 or later") and demo.printed.count("\n") == 1

"""`make demo`: a broker, its web console, sample traffic and the pipeline on Spark, live in one terminal and a browser.

Runs `barnabas server`, `console`, `pipeline run` and `pipeline generate` as a user would, says first where the console
is, shows topics, rates and lag until Ctrl-C, and then stops and removes everything. With `--duration` the generator
stops after that time, the pipeline processes the rest, and the output is checked against the input (`demo_check`):
exit status 0 if it is exact, else 1.
"""

import argparse
import contextlib
import errno
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

from barnabas.child_process import ChildProcess, ProcessError
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.types import OffsetSpec
from barnabas.errors import KafkaError
from barnabas.pipeline.demo_check import TopicCheck, check, expected_rows, found_rows
from barnabas.pipeline.demo_reading import ReadingError, RecordCounter
from barnabas.pipeline.demo_sensors import FLEET, RULES, Sensors, free_port
from barnabas.pipeline.demo_table import Board
from barnabas.pipeline.java import why_no_java
from barnabas.pipeline.routing import Routing, parse_routing
from barnabas.pipeline.split import CHANGE_TOPIC, LOG_TOPIC
from barnabas.pipeline.warehouse import DEFAULT_ROUTING, ODS_PARTITIONS, topics
from barnabas.stop_signals import signals_held_back
from barnabas.terminal import table
from barnabas.types import TopicPartition

HOST: Final = "127.0.0.1"
PORT: Final = 9092
_NAME: Final = "barnabas-demo"
_READY: Final = re.compile(r" ready on (\S+) \(")
_CONSOLE_READY: Final = re.compile(r"console on (\S+)")
_CONSOLE_PORT: Final = 9080
_RUNS: Final = re.compile(f"pipeline {_NAME} runs")
_LOOK_S: Final = 0.1
_STUCK_S: Final = 180
"""Maximum time without progress while the pipeline is behind."""
_PATIENCE_S: Final = {"generator": 10.0, "pipeline": 60.0, "broker": 30.0, "console": 10.0}
_IN_USE: Final = os.strerror(errno.EADDRINUSE)
OK, FAILED, INTERRUPTED = 0, 1, 130


class DemoError(Exception):
    """The demo cannot continue; the text says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    reason = why_no_java()
    if reason is not None:
        print(f"demo: {reason}", file=sys.stderr)
        return FAILED
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        with _folder(options.data_dir) as folder, Demo(options, folder) as demo:
            return demo.run()
    except KeyboardInterrupt:
        # Ctrl-C is the normal end of a demo without --duration.
        return OK if options.duration is None else INTERRUPTED
    except (DemoError, ProcessError, ReadingError, KafkaError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m barnabas.pipeline.demo", description="The whole system, live.")
    parser.add_argument(
        "--duration", type=float, metavar="SECONDS", help="stop the traffic after this time, check the output and exit"
    )
    parser.add_argument("--rate", type=float, default=500, metavar="N", help="records per second (default 500)")
    parser.add_argument(
        "--dirty", type=float, default=0.01, metavar="SHARE", help="share of malformed records (default 0.01)"
    )
    parser.add_argument(
        "--duplicates", type=float, default=0.01, metavar="SHARE", help="share of records sent twice (default 0.01)"
    )
    parser.add_argument("--master", default="local[2]", help="Spark master (default local[2])")
    parser.add_argument("--data-dir", metavar="DIR", help="keep everything here (default: a temporary directory)")
    return parser


class Demo:
    """The processes of the demo. As a context manager it always stops all of them."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._routing: Routing = parse_routing(DEFAULT_ROUTING)
        self._topics = [plan.name for plan in topics(self._routing, with_sources=True)]
        self._processes: list[ChildProcess] = []
        self._bootstrap = ""
        """The broker's address, once it listens."""
        self._sensors: Sensors | None = None

    def __enter__(self) -> "Demo":
        return self

    def __exit__(self, *_: object) -> None:
        """Last started, first stopped. A second Ctrl-C does not interrupt it."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if self._sensors is not None:
            self._sensors.stop()
        while self._processes:
            self._stop(self._processes[-1])

    def run(self) -> int:
        broker, taken = self._start_broker()
        _say(self._start_console())
        if taken:
            _say(f"{HOST}:{PORT} is in use: this broker uses another port")
        _say(f"broker on {self._bootstrap}, data in {self._folder / 'broker'}")
        pipeline = self._start_pipeline()
        generator = self._start_generator()
        self._start_sensors()
        admin = Admin(self._bootstrap)
        with contextlib.closing(admin), RecordCounter(self._bootstrap, self._topics) as counter:
            try:
                self._watch([broker, pipeline], generator, admin, counter)
            finally:
                _say(f"{_input(counter.counts):,} records in, {_output(counter.counts):,} out")
        # Without the pipeline nothing changes any more, so the output is complete.
        self._stop(pipeline)
        return self._check()

    def _start_broker(self) -> tuple[ChildProcess, bool]:
        """On 9092, unless that is taken, and whether it is: the demo never touches another broker.

        Nothing is said yet, because the first line is where the console is.

        The broker itself finds out whether the port is free: a check before its start would be a race.
        """
        try:
            return self._start_broker_on(PORT), False
        except ProcessError as error:
            if _IN_USE not in str(error):
                raise
        self._stop(self._processes[-1])
        return self._start_broker_on(0), True

    def _start_broker_on(self, port: int) -> ChildProcess:
        """0: any free port."""
        data = self._folder / "broker"
        # The check needs every row of the dimensions, not only the newest.
        settings: tuple[str, ...] = ("--set", "log.cleaner.enable=false")
        self._mqtt_port = free_port(HOST)
        listeners = f"listeners=PLAINTEXT://{HOST}:{port},MQTT://{HOST}:{self._mqtt_port}"
        settings += ("--set", listeners, "--set", f"mqtt.topic.rules={RULES}")
        arguments = ["server", "--data-dir", str(data), *settings]
        broker = self._start("broker", arguments, signal.SIGTERM)
        self._wait_quietly(lambda: broker.has_printed(_READY))
        self._bootstrap = _READY.findall(broker.printed)[0]
        return broker

    def _start_console(self) -> str:
        """Where it is, or why there is none: the demo goes on without."""
        try:
            return self._start_console_on(_CONSOLE_PORT)
        except ProcessError as error:
            if _IN_USE not in str(error):
                return self._without_console()
        self._stop(self._processes[-1])
        try:
            return self._start_console_on(0)
        except ProcessError:
            return self._without_console()

    def _start_console_on(self, port: int) -> str:
        words = ["console", "-b", self._bootstrap, "--listen", f"{HOST}:{port}", "--until-stdin-ends"]
        console = self._start("console", words, signal.SIGTERM, holds_stdin=True)
        self._wait_quietly(lambda: console.has_printed(_CONSOLE_READY))
        return f"console on {_CONSOLE_READY.findall(console.printed)[0]}: open it in a browser"

    def _without_console(self) -> str:
        console = self._processes[-1]
        reason = console.printed.strip().rpartition("\n")[2].removeprefix("barnabas console: ")
        self._stop(console)
        return f"no console: {reason}"

    def _start_pipeline(self) -> ChildProcess:
        arguments = ["pipeline", "run", "-b", self._bootstrap, "--name", _NAME, "--master", self._options.master]
        arguments += ["--checkpoint", str(self._folder / "checkpoint")]
        settings = {
            "spark.local.dir": self._folder / "spark",
            "spark.sql.warehouse.dir": self._folder / "spark",
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
        }
        for name, value in settings.items():
            arguments += ["--conf", f"{name}={value}"]
        pipeline = self._start("pipeline", arguments, signal.SIGINT)
        self._wait("starting Spark and the pipeline (about 10 s)", lambda: pipeline.has_printed(_RUNS))
        _say(f"pipeline on Spark {self._options.master}")
        return pipeline

    def _start_generator(self) -> ChildProcess:
        options = self._options
        arguments = ["pipeline", "generate", "-b", self._bootstrap, "--rate", str(options.rate)]
        arguments += ["--dirty", str(options.dirty), "--duplicates", str(options.duplicates)]
        if options.duration is not None:
            arguments += ["--duration", str(options.duration)]
        generator = self._start("generator", arguments, signal.SIGINT)
        until = "until Ctrl-C" if options.duration is None else f"for {options.duration:g} s"
        shares = f"{options.dirty:.0%} dirty, {options.duplicates:.0%} duplicates"
        _say(f"generator: {options.rate:,.0f} records/s, {shares}, {until}")
        return generator

    def _start_sensors(self) -> None:
        self._sensors = Sensors(HOST, self._mqtt_port)
        self._sensors.start()
        _say(f"sensors: {FLEET} MQTT clients publish readings on {HOST}:{self._mqtt_port}")

    def _watch(
        self, servants: list[ChildProcess], generator: ChildProcess, admin: Admin, counter: RecordCounter
    ) -> None:
        """Shows progress until the generator is done and the pipeline has caught up."""
        board = Board(self._topics)
        started = moved = time.monotonic()
        duration = self._options.duration
        running = "Ctrl-C to stop" if duration is None else f"traffic for {duration:g} s"
        behind = -1
        try:
            while True:
                counter.count_for(1.0)
                for servant in servants:
                    servant.check_running(may_be_done=False)
                is_generated = generator.has_ended
                generator.check_running(may_be_done=True)
                if self._sensors is not None:
                    if is_generated:
                        self._sensors.stop()
                    if self._sensors.error is not None:
                        raise DemoError(f"the sensors cannot publish: {self._sensors.error}")
                lags = _lags(admin)
                now = time.monotonic()
                phase = "the pipeline processes the rest" if is_generated else running
                board.show(counter.counts, lags, f"{now - started:.0f} s, {phase}")
                if is_generated and not sum(lags.values()):
                    return
                if sum(lags.values()) != behind or not is_generated:
                    behind, moved = sum(lags.values()), now
                if now - moved > _STUCK_S:
                    raise DemoError(
                        f"the pipeline is {behind:,} records behind and has made no progress for {_STUCK_S} s"
                    )
        finally:
            board.finish()

    def _check(self) -> int:
        _say("checking: splitting every ODS record again and comparing with every record written")
        written = [topic for topic in self._topics if topic not in ODS_PARTITIONS]
        results = check(
            lambda: expected_rows(self._bootstrap, self._routing),
            lambda: found_rows(self._bootstrap, written),
            written,
        )
        for line in summary(results):
            _say(line)
        return OK if all(each.is_ok for each in results) else FAILED

    def _start(
        self, name: str, arguments: list[str], stop_signal: signal.Signals, *, holds_stdin: bool = False
    ) -> ChildProcess:
        with signals_held_back():  # a process that nobody knows of would be left behind
            process = ChildProcess(name, arguments, self._folder, stop_signal, holds_stdin=holds_stdin)
            self._processes.append(process)
        return process

    def _stop(self, process: ChildProcess) -> None:
        if not process.has_ended:
            _say(f"stopping the {process.name}")
        if process.stop(_PATIENCE_S[process.name]):
            _say(f"the {process.name} did not stop in time and was killed")
        self._processes.remove(process)

    def _wait_quietly(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            time.sleep(_LOOK_S)

    def _wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Prints every few seconds that it is still waiting."""
        started, reported = time.monotonic(), 0
        _say(f"{what} ...")
        while not is_so():
            for process in self._processes:
                if process.name != "console":  # the demo goes on without
                    process.check_running(may_be_done=False)
            time.sleep(_LOOK_S)
            seconds = int(time.monotonic() - started)
            if seconds >= reported + 5:
                reported = seconds
                _say(f"  {seconds} s")


def summary(results: Sequence[TopicCheck]) -> list[str]:
    """The table of the check, and what differs."""
    rows = [[each.topic, f"{each.expected:,}", f"{each.found:,}", "yes" if each.is_ok else "NO"] for each in results]
    expected, found = (sum(numbers) for numbers in zip(*((each.expected, each.found) for each in results)))
    wrong = [each for each in results if not each.is_ok]
    rows.append(["all", f"{expected:,}", f"{found:,}", "NO" if wrong else "yes"])
    lines = ["", *table(["TOPIC", "EXPECTED", "FOUND", "OK"], rows), ""]
    for each in wrong:
        lines.append(f"{each.topic}: {each.words}")
        lines += [f"  {example}" for example in each.examples]
    return [
        *lines,
        "the output is NOT correct" if wrong else "exact: nothing lost, no duplicates, keys in order",
    ]


def _lags(admin: Admin) -> dict[str, int]:
    """The pipeline's lag, by topic."""
    partitions = [TopicPartition(topic, each) for topic, count in ODS_PARTITIONS.items() for each in range(count)]
    done = admin.list_group_offsets(_NAME)
    ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    lags: Counter[str] = Counter({LOG_TOPIC: 0, CHANGE_TOPIC: 0})
    for tp in partitions:
        note = done.get(tp)
        lags[tp.topic] += max(0, ends[tp].offset - (0 if note is None else note.offset))
    return lags


def _input(counts: "Counter[str]") -> int:
    return sum(count for topic, count in counts.items() if topic in ODS_PARTITIONS)


def _output(counts: "Counter[str]") -> int:
    return counts.total() - _input(counts)


@contextlib.contextmanager
def _folder(given: str | None) -> Iterator[Path]:
    """A temporary folder is removed; one that the user named is kept."""
    if given is not None:
        Path(given).mkdir(parents=True, exist_ok=True)
        yield Path(given).absolute()
        return
    folder = Path(tempfile.mkdtemp(prefix="barnabas-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _say(f"everything is stopped, {folder} is removed")


def _interrupt(number: int, frame: FrameType | None) -> Any:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())

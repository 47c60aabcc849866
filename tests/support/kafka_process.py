"""Apache Kafka itself, from the jars that tests/foreign/install.sh fetched: its broker and its command-line tools.

The broker runs as `kafka-server-start.sh` would run it: KRaft, one node that is broker and controller, default
settings, 1 GB heap, G1 with the flags of `kafka-run-class.sh`. Tools are run by class name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from server_process import ServerProcess, free_port

ROOT = Path(__file__).resolve().parents[2]
JARS = ROOT / ".build" / "kafka"
CLASS_PATH = f"{JARS}/*"
CLUSTER_ID = "QmFybmFiYXNKdWRnZXMwMQ"

G1 = [
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
]
BROKER_JVM = ["-Xmx1G", "-Xms1G", *G1]
PERFORMANCE_TOOL_JVM = ["-Xmx512M", *G1]
# A tool that responds and ends is quickest without the optimising compiler.
SHORT_TOOL_JVM = ["-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
# A broker for tests that do not measure it, likewise.
QUICK_BROKER_JVM = ["-Xmx1G", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
# Classes that the first run of a tool, or the first broker, loaded, mapped by the next ones: half the start-up time.
CLASS_ARCHIVES = JARS.parent / "class-archives"
BROKER_CLASS_ARCHIVE = CLASS_ARCHIVES / "broker.jsa"

LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = {level}
rootLogger.appenderRef.console.ref = console
"""


def why_no_kafka() -> str | None:
    """Why Apache Kafka cannot be run here, or None when it can."""
    if shutil.which("java") is None:
        return "java is not installed"
    if not list(JARS.glob("kafka_2.13-*.jar")):
        return "Apache Kafka's jars are not in .build/kafka (tests/foreign/install.sh gets them)"
    return None


def kafka_version() -> str:
    return next(JARS.glob("kafka_2.13-*.jar")).stem.rpartition("-")[2]


class KafkaProcess(ServerProcess):
    """One Apache Kafka broker on free ports; `directory/data` is its log directory, formatted on the first start."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None):
        port, controller_port = free_port(), free_port()
        self.data = directory / "data"
        self.properties = directory / "server.properties"
        self.settings = self._settings(port, controller_port) | (settings or {})
        super().__init__([], directory, "127.0.0.1", port)

    def _jvm(self) -> list[str]:
        return BROKER_JVM

    def _settings(self, port: int, controller_port: int) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }

    def launch(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        CLASS_ARCHIVES.mkdir(exist_ok=True)
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        (self.directory / "log4j2.properties").write_text(LOGGING.format(level="warn"))
        if not (self.data / "meta.properties").exists():
            run_tool(
                "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self.properties)
            ).check_returncode()
        logging = f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}"
        self.command = ["java", *self._jvm(), logging, "-cp", CLASS_PATH, "kafka.Kafka", str(self.properties)]
        super().launch()


class QuickKafka(KafkaProcess):
    """The same broker for tests of what it does, not of how fast: it serves in a third of the time."""

    def _jvm(self) -> list[str]:
        if BROKER_CLASS_ARCHIVE.exists():
            return [*QUICK_BROKER_JVM, f"-XX:SharedArchiveFile={BROKER_CLASS_ARCHIVE}"]
        return [*QUICK_BROKER_JVM, f"-XX:ArchiveClassesAtExit={self._fresh_archive}"]

    @property
    def _fresh_archive(self) -> Path:
        return BROKER_CLASS_ARCHIVE.with_suffix(f".{self.port}")

    def stop(self, timeout: float = 60.0) -> int:
        status = super().stop(timeout)
        if self._fresh_archive.exists():
            self._fresh_archive.replace(BROKER_CLASS_ARCHIVE)
        return status


def class_archive(tool: str) -> Path:
    return CLASS_ARCHIVES / f"{tool.rpartition('.')[2]}.jsa"


def tool_command(
    tool: str, *arguments: str, jvm: list[str] = SHORT_TOOL_JVM, classes_like: str | None = None
) -> list[str]:
    """`classes_like` names a tool that needs the same classes, for one that nobody lets end by itself."""
    logging = JARS.parent / "tools-log4j2.properties"
    if not logging.exists():
        logging.write_text(LOGGING.format(level="error"))
    archive = class_archive(classes_like or tool)
    if jvm is SHORT_TOOL_JVM and archive.exists():
        jvm = [*jvm, f"-XX:SharedArchiveFile={archive}"]
    return ["java", *jvm, f"-Dlog4j2.configurationFile={logging}", "-cp", CLASS_PATH, tool, *arguments]


def run_tool(
    tool: str,
    *arguments: str,
    jvm: list[str] = SHORT_TOOL_JVM,
    stdin: str = "",
    timeout: float = 120.0,
    errors: str = "strict",
) -> subprocess.CompletedProcess[str]:
    """Run a tool by class name, e.g. `org.apache.kafka.tools.TopicCommand`; gives back its status and output.

    `errors` says what becomes of bytes that are not UTF-8, as in `bytes.decode`.
    """
    archive = class_archive(tool)
    fresh_archive = archive.with_suffix(f".{os.getpid()}")
    if jvm is SHORT_TOOL_JVM and not archive.exists():
        CLASS_ARCHIVES.mkdir(exist_ok=True)
        jvm = [*jvm, f"-XX:ArchiveClassesAtExit={fresh_archive}"]
    command = tool_command(tool, *arguments, jvm=jvm)
    done = subprocess.run(
        command, input=stdin, capture_output=True, encoding="utf-8", errors=errors, timeout=timeout, check=False
    )
    if fresh_archive.exists():
        fresh_archive.replace(archive)
    return done

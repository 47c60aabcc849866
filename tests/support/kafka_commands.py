"""Apache Kafka's commands and ours side by side: the same words, the same lines.

`KafkaTools` is one JVM that runs Kafka's commands (tests/foreign/java/ToolServer.java); ours run in this process.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import io
import subprocess
import threading
from typing import NamedTuple

from kafka_process import ROOT, tool_command

SERVER = ROOT / "tests" / "foreign" / "java" / "ToolServer.java"
# Name of the command, Kafka's class, our module.
COMMANDS = {
    "topics": ("org.apache.kafka.tools.TopicCommand", "topics"),
    "configs": ("kafka.admin.ConfigCommand", "configs"),
    "consumer-groups": ("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "consumer_groups"),
    "get-offsets": ("org.apache.kafka.tools.GetOffsetShell", "get_offsets"),
    "delete-records": ("org.apache.kafka.tools.DeleteRecordsCommand", "delete_records"),
    "log-dirs": ("org.apache.kafka.tools.LogDirsCommand", "log_dirs"),
    "leader-election": ("org.apache.kafka.tools.LeaderElectionCommand", "leader_election"),
    "reassign-partitions": ("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "reassign_partitions"),
    "acls": ("org.apache.kafka.tools.AclCommand", "acls"),
    "transactions": ("org.apache.kafka.tools.TransactionsCommand", "transactions"),
    "delegation-tokens": ("org.apache.kafka.tools.DelegationTokenCommand", "delegation_tokens"),
    "broker-api-versions": ("org.apache.kafka.tools.BrokerApiVersionsCommand", "broker_api_versions"),
    "metadata-quorum": ("org.apache.kafka.tools.MetadataQuorumCommand", "metadata_quorum"),
    "features": ("org.apache.kafka.tools.FeatureCommand", "features"),
    "cluster": ("org.apache.kafka.tools.ClusterTool", "cluster"),
    "storage": ("kafka.tools.StorageTool", "storage"),
    "client-metrics": ("org.apache.kafka.tools.ClientMetricsCommand", "client_metrics"),
    "groups": ("org.apache.kafka.tools.GroupsCommand", "groups"),
}


class Printed(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Blanks at the end of a line are padding of a table."""
        return [line.rstrip() for line in self.out.splitlines()]


class KafkaTools:
    """Apache Kafka's commands in one JVM; they are run one after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            tool_command(str(SERVER), classes_like="org.apache.kafka.tools.consumer.ConsoleConsumer"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._turn = threading.Lock()

    def run(self, command: str, *arguments: str) -> Printed:
        return self.run_class(COMMANDS[command][0], *arguments)

    def run_class(self, tool: str, *arguments: str, stdin: str = "") -> Printed:
        words = [stdin, tool, *arguments]
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._turn:
            self._process.stdin.write(" ".join("=" + base64.b64encode(word.encode()).decode() for word in words) + "\n")
            self._process.stdin.flush()
            response = self._process.stdout.readline()
        assert response, f"the JVM ended (status {self._process.poll()})"
        status, out, err = response.split()
        return Printed(int(status), *(base64.b64decode(each[1:]).decode() for each in (out, err)))

    def checked(self, tool: str, bootstrap: str, *arguments: str, stdin: str = "") -> str:
        """What a command prints that has to succeed."""
        done = self.run_class(tool, "--bootstrap-server", bootstrap, *arguments, stdin=stdin)
        assert done.status == 0, f"{tool} {arguments}\n{done.out}\n{done.err}"
        return done.out

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.terminate()
        self._process.wait(30)


def run_ours(command: str, *arguments: str) -> Printed:
    module = importlib.import_module(f"barnabas.cli.kafka.{COMMANDS[command][1]}")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = module.main(list(arguments))
        except SystemExit as ended:  # argparse
            status = int(ended.code or 0)
    return Printed(status, out.getvalue(), err.getvalue())


class SideBySide:
    """Both commands against one broker."""

    def __init__(self, tools: KafkaTools, bootstrap: str) -> None:
        self.tools = tools
        self.bootstrap = bootstrap

    def ours(self, command: str, *arguments: str) -> Printed:
        return run_ours(command, "--bootstrap-server", self.bootstrap, *arguments)

    def kafkas(self, command: str, *arguments: str) -> Printed:
        return self.tools.run(command, "--bootstrap-server", self.bootstrap, *arguments)

    def same(self, command: str, *arguments: str, any_order: bool = False) -> list[str]:
        """Status and lines of a command that changes nothing, or whose repetition says the same."""
        return compared(
            self.kafkas(command, *arguments), self.ours(command, *arguments), arguments, any_order=any_order
        )

    def same_of_twins(
        self, command: str, *arguments: str, kafkas: str, ours: str, any_order: bool = False
    ) -> list[str]:
        """For changes: in the arguments, TWIN stands for a name that each of both has of its own, of equal length."""
        assert len(kafkas) == len(ours), "tables have columns as wide as the names in them"
        theirs = self.kafkas(command, *(word.replace("TWIN", kafkas) for word in arguments))
        ourselves = self.ours(command, *(word.replace("TWIN", ours) for word in arguments))
        renamed = ourselves._replace(out=ourselves.out.replace(ours, kafkas))
        return compared(theirs, renamed, arguments, any_order=any_order)


def compared(kafkas: Printed, ours: Printed, arguments: tuple[str, ...], *, any_order: bool = False) -> list[str]:
    """With `any_order`, where Kafka's order is that of a hash table: then indentation does not count either."""
    expected, printed = (
        sorted(line.strip() for line in each.lines) if any_order else each.lines for each in (kafkas, ours)
    )
    told = f"{' '.join(arguments)}\nKafka on stderr: {kafkas.err}\nours on stderr: {ours.err}"
    assert printed == expected, told
    assert ours.status == kafkas.status, told
    return ours.lines

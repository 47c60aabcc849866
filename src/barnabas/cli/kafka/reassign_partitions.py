"""`kafka-reassign-partitions.sh`: moves partitions between brokers and log directories.

Plans and their JSON are in `reassignment_plan`, what is done with the cluster in `reassignment_actions`. As in Kafka, a
failure is reported on stdout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cli.command import Refused
from barnabas.cli.exit_status import FAILED
from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import CONNECTION, Flag, Options, Tool, refuse

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
REQUIRED = {
    "verify": ("reassignment-json-file",),
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
PERMITTED = {
    "verify": ("preserve-throttles",),
    "generate": ("disable-rack-aware",),
    "execute": ("additional", "throttle", "replica-alter-log-dirs-throttle", "timeout"),
    "cancel": ("bootstrap-controller", "preserve-throttles", "timeout"),
    "list": ("bootstrap-controller",),
}
ALWAYS = ("bootstrap-server", "command-config", "command-property")
NO_THROTTLE = -1
TOOL = Tool(
    "kafka-reassign-partitions.sh",
    "This tool helps to move topic partitions between replicas.",
    (
        *CONNECTION,
        Flag("bootstrap-controller", "Controllers to connect to, instead of brokers.", "HOST:PORT,..."),
        Flag("generate", "Propose an assignment for topics and brokers; nothing is changed."),
        Flag("execute", "Start the reassignment of a file."),
        Flag("verify", "Whether the reassignment of a file is done; if so, throttles are removed."),
        Flag("cancel", "Cancel the reassignment of a file."),
        Flag("list", "All reassignments that are going on."),
        Flag(
            "reassignment-json-file",
            'The plan: {"version": 1, "partitions": [{"topic": "foo", "partition": 1, "replicas": [1, 2, 3],'
            ' "log_dirs": ["dir1", "dir2", "any"]}]} (log_dirs may be left out)',
            "FILE",
        ),
        Flag("topics-to-move-json-file", 'Topics: {"topics": [{"topic": "foo"}], "version": 1}', "FILE"),
        Flag("broker-list", "The brokers to move to.", "ID,..."),
        Flag("disable-rack-aware", "Generate: ignore racks."),
        Flag("throttle", "Execute: at most so much between brokers.", "BYTES/S", int, default=NO_THROTTLE),
        Flag(
            "replica-alter-log-dirs-throttle",
            "Execute: at most so much between log directories.",
            "BYTES/S",
            int,
            default=NO_THROTTLE,
        ),
        Flag("timeout", "How long to wait for a move between log directories to begin.", "MS", int, default=10_000),
        Flag("additional", "Execute: although another reassignment is going on."),
        Flag("preserve-throttles", "Verify and cancel: leave throttles alone."),
    ),
)


def _check(options: Options) -> None:
    given = options.given_of(*ACTIONS)
    if len(given) != 1:
        refuse(f"Command must include exactly one action: {', '.join(f'--{action}' for action in ACTIONS)}")
    action = given[0]
    addresses = options.given_of("bootstrap-server", "bootstrap-controller")
    if len(addresses) == 2:
        refuse("Please don't specify both --bootstrap-server and --bootstrap-controller")
    if not addresses:
        refuse("Please specify either --bootstrap-server or --bootstrap-controller")
    options.require(*REQUIRED[action])
    for flag in options.order:
        if flag not in (action, *ALWAYS, *REQUIRED[action], *PERMITTED[action]):
            refuse(f'Option "[{flag}]" can\'t be used with action "[{action}]"')


def _run(admin: Admin, options: Options) -> int | None:
    from barnabas.cli.kafka.reassignment_actions import cancel, execute, generate, list_reassignments, verify

    actions = {
        "generate": generate,
        "execute": execute,
        "verify": verify,
        "cancel": cancel,
        "list": list_reassignments,
    }
    try:
        actions[options.given_of(*ACTIONS)[0]](admin, options)
    except Refused as error:
        print(error)
        return FAILED
    return None


FAILURE = FailureReport("Error: ", with_exception=True, on_stdout=True, also=(OSError, ValueError))
main = TOOL.main(_check, with_admin(_run, FAILURE))

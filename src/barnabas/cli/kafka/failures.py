"""How Kafka's commands connect, and how they report what the cluster refused: each in its own words, to the letter.

    main = TOOL.main(_check, with_admin(_run, FailureReport("Error while executing topic command : ", on_stdout=True)))

Nothing here imports the clients before a command runs: `--help` must not wait for them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.command import Refused
from barnabas.cli.exit_status import FAILED, Failure
from barnabas.cli.kafka.flags import Options, WrongUse

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

Call = Callable[[Options], int | None]


def plain_failure(error: Exception) -> Failure | None:
    """For tools that print no help about wrong use."""
    return Failure(str(error)) if isinstance(error, Refused | WrongUse) else None


class FailureReport(NamedTuple):
    prefix: str = ""
    with_exception: bool = False
    """Whether the name of Kafka's exception is printed before its text."""
    on_stdout: bool = False
    also: tuple[type[Exception], ...] = ()
    """Exceptions that are reported in the same way as the cluster's, with their own text."""
    status: int = FAILED

    def print(self, error: Exception) -> int:
        from barnabas.cli.kafka.connection import kafka_exception, kafka_text
        from barnabas.errors import KafkaError

        text = kafka_text(error)
        if self.with_exception:
            if isinstance(error, KafkaError) and not isinstance(error, self.also):
                text = kafka_exception(error)
            else:
                text = str(error)
        print(f"{self.prefix}{text}", file=sys.stdout if self.on_stdout else sys.stderr)
        return self.status


def reported(call: Call, report: FailureReport) -> Call:
    """The same call; what it raises is printed, and the status returned."""

    def work(options: Options) -> int | None:
        from barnabas.errors import KafkaError

        kinds: tuple[type[Exception], ...] = (KafkaError, *report.also)
        try:
            return call(options)
        except kinds as error:
            return report.print(error)

    return work


def with_admin(
    call: Callable[[Admin, Options], int | None],
    report: FailureReport,
    timeout_ms: Callable[[Options], int | None] = lambda _: None,
) -> Call:
    """The call with an admin client made from the flags, and closed after it."""

    def connected(options: Options) -> int | None:
        from barnabas.cli.kafka.connection import admin_client

        with admin_client(options, timeout_ms(options)) as admin:
            return call(admin, options)

    return reported(connected, report)

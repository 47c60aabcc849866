"""`kafka-acls.sh`: lists, adds and removes access rules.

As in Kafka, --producer and --consumer stand for the operations that such a client needs, and a failure is
reported on stdout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import CONNECTION, Flag, Options, Tool, refuse
from barnabas.cli.kafka.principals import check_principal

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

PATTERN_TYPES = ("ANY", "MATCH", "LITERAL", "PREFIXED")


def pattern_type(word: str) -> str:
    if word.upper() not in PATTERN_TYPES:
        raise ValueError(word)
    return word.upper()


TOOL = Tool(
    "kafka-acls.sh",
    "This tool helps to manage acls on kafka.",
    (
        *CONNECTION,
        Flag("bootstrap-controller", "Controllers to connect to, instead of brokers.", "HOST:PORT,..."),
        Flag("add", "Add rules."),
        Flag("remove", "Remove rules."),
        Flag("list", "List rules."),
        Flag("topic", "A topic; * for all (repeatable).", "TOPIC"),
        Flag("cluster", "The cluster itself."),
        Flag("group", "A consumer group; * for all (repeatable).", "GROUP"),
        Flag("transactional-id", "A transactional id; * for all (repeatable).", "ID"),
        Flag("delegation-token", "A delegation token; * for all (repeatable).", "TOKEN"),
        Flag("user-principal", "A user as a resource; * for all (repeatable).", "USER"),
        Flag(
            "resource-pattern-type",
            "How names are meant: literal, prefixed; to list and remove also any, match.",
            "TYPE",
            pattern_type,
            default="LITERAL",
        ),
        Flag("operation", "What is allowed or denied (repeatable).", "OPERATION", default="All"),
        Flag("allow-principal", "Who may, as User:name (repeatable).", "PRINCIPAL"),
        Flag("deny-principal", "Who may not (repeatable).", "PRINCIPAL"),
        Flag("allow-host", "From where they may (repeatable).", "HOST"),
        Flag("deny-host", "From where they may not (repeatable).", "HOST"),
        Flag("principal", "List: only rules of this principal (repeatable).", "PRINCIPAL"),
        Flag("producer", "What a producer needs for --topic, and --transactional-id."),
        Flag("consumer", "What a consumer needs for --topic and --group."),
        Flag("idempotent", "With --producer: idempotent writes (for brokers before 2.8)."),
        Flag("force", "Do not ask before removing."),
    ),
)


def _check(options: Options) -> None:
    given = options.given_of("bootstrap-server", "bootstrap-controller")
    if len(given) != 1:
        word = "Only one" if given else "One"
        refuse(f"{word} of --bootstrap-server or --bootstrap-controller must be specified")
    if len(options.given_of("add", "remove", "list")) != 1:
        refuse("Command must include exactly one action: --list, --add, --remove. ")
    options.forbid("list", "producer", "consumer", "allow-host", "allow-principal", "deny-host", "deny-principal")
    for client in ("producer", "consumer"):
        options.forbid(client, "operation", "deny-principal", "deny-host")
    if options.has("principal") and not options.has("list"):
        refuse("The --principal option is only available if --list is set")
    if options.has("producer") and not options.has("topic"):
        refuse("With --producer you must specify a --topic")
    if options.has("idempotent") and not options.has("producer"):
        refuse("The --idempotent option is only available if --producer is set")
    if options.has("consumer"):
        beyond = not options.has("producer") and options.given_of("cluster", "transactional-id")
        if len(options.given_of("topic", "group")) < 2 or beyond:
            refuse(
                "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option"
                " should be specified."
            )


def _run(admin: Admin, options: Options) -> None:
    from barnabas.cli.kafka.acls_service import add, list_rules, remove

    for flag in ("allow-principal", "deny-principal", "principal"):
        for principal in options.values(flag):
            check_principal(principal.strip())
    action = list_rules if options.has("list") else add if options.has("add") else remove
    action(admin, options)


FAILURE = FailureReport("Error while executing ACL command: ", with_exception=True, on_stdout=True, also=(ValueError,))
main = TOOL.main(_check, with_admin(_run, FAILURE))

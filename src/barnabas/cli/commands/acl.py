"""`barnabas acl`: who may do what: list, create, delete rules.

    barnabas acl create --allow-principal alice --operation read,describe --topic orders
    barnabas acl create --allow-principal alice --consumer --topic orders- --group app- --pattern prefixed
    barnabas acl delete --principal alice --topic orders

The words are those of Kafka's own command. A principal without a kind is a user: `alice` is `User:alice`. In list and
delete, what is left out matches everything; delete takes --all before it removes every rule.
"""

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, UsageError, noun_main, with_admin
from barnabas.cli.output import Output, Table, counted

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import AclBinding, AclFilter

OPERATIONS = (
    *("all", "read", "write", "create", "delete", "alter", "describe", "cluster-action", "describe-configs"),
    *("alter-configs", "idempotent-write", "create-tokens", "describe-tokens", "two-phase-commit"),
)
# option, resource type
RESOURCES = {
    "topic": "TOPIC",
    "group": "GROUP",
    "transactional_id": "TRANSACTIONAL_ID",
    "delegation_token": "DELEGATION_TOKEN",
    "user_principal": "USER",
}
CLUSTER_NAME = "kafka-cluster"
ANY_HOST = "*"
# What a program of that kind needs, by resource type, as Kafka's command grants it.
PRODUCER = {"TOPIC": ("WRITE", "DESCRIBE", "CREATE"), "TRANSACTIONAL_ID": ("WRITE", "DESCRIBE")}
CONSUMER = {"TOPIC": ("READ", "DESCRIBE"), "GROUP": ("READ",)}

Resource = tuple[str, str]


def _operations(word: str) -> list[str]:
    chosen = [each.strip().lower().replace("_", "-") for each in word.split(",")]
    unknown = [each for each in chosen if each not in OPERATIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no operation {unknown[0]!r}; there are {', '.join(OPERATIONS)}")
    return [each.replace("-", "_").upper() for each in chosen]


def _principal(word: str) -> str:
    return word if ":" in word else f"User:{word}"


def _add_resources(parser: argparse.ArgumentParser, patterns: Sequence[str]) -> None:
    group = parser.add_argument_group("resources (each repeatable)")
    for option in RESOURCES:
        group.add_argument(f"--{option.replace('_', '-')}", metavar="NAME", action="append", default=[])
    group.add_argument("--cluster", action="store_true", help="the cluster itself")
    group.add_argument(
        "--pattern",
        "--resource-pattern-type",
        choices=patterns,
        default=patterns[0],
        help=f"what the names stand for (default {patterns[0]})",
    )


def _add_operation(parser: argparse.ArgumentParser) -> None:
    known = ", ".join(OPERATIONS)
    parser.add_argument(
        "--operation", metavar="NAME,...", type=_operations, action="extend", default=[], help=f"{known}; repeatable"
    )


def _filter_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--principal", metavar="NAME", type=_principal, action="append", default=[], help="rules for alice; repeatable"
    )
    parser.add_argument("--host", metavar="ADDRESS", help="rules for that host")
    parser.add_argument("--permission", choices=("allow", "deny"))
    _add_operation(parser)
    # any: a rule of that very name; match: every rule that applies to the name
    _add_resources(parser, ("any", "match", "literal", "prefixed"))


def list_rules(admin: "Admin", options: argparse.Namespace) -> "set[AclBinding]":
    return {rule for each in _filters(options) for rule in admin.describe_acls(each)}


def create_arguments(parser: argparse.ArgumentParser) -> None:
    for word in ("allow", "deny"):
        parser.add_argument(
            f"--{word}-principal",
            metavar="NAME",
            type=_principal,
            action="append",
            default=[],
            help=f"whom to {word}: alice, User:alice, User:* is everybody; repeatable",
        )
        parser.add_argument(
            f"--{word}-host", metavar="ADDRESS", action="append", default=[], help="from where (default everywhere)"
        )
    _add_operation(parser)
    parser.add_argument("--producer", action="store_true", help="all that a producer needs for the topics named")
    parser.add_argument("--consumer", action="store_true", help="all that a consumer needs for the topics and groups")
    _add_resources(parser, ("literal", "prefixed"))


def create(admin: "Admin", options: argparse.Namespace) -> "Collection[AclBinding]":
    rules = _rules(options)
    admin.create_acls(rules)
    return rules


def render_created(options: argparse.Namespace, rules: "Collection[AclBinding]") -> Output:
    return render_rules(options, rules, f"created {counted(len(rules), 'rule')}")


def delete_arguments(parser: argparse.ArgumentParser) -> None:
    _filter_arguments(parser)
    parser.add_argument("--all", action="store_true", help="every rule there is")
    parser.add_argument("--dry-run", action="store_true", help="show what would be removed")


def delete(admin: "Admin", options: argparse.Namespace) -> "Mapping[AclFilter, Iterable[AclBinding]]":
    named = _resources(options) or options.principal or options.operation or options.host or options.permission
    if bool(named) == options.all:
        raise UsageError("say which rules: by principal, operation, resource, ..., or else --all")
    filters = _filters(options)
    return {each: admin.describe_acls(each) for each in filters} if options.dry_run else admin.delete_acls(filters)


def render_deleted(options: argparse.Namespace, deleted: "Mapping[AclFilter, Iterable[AclBinding]]") -> Output:
    found = {rule for rules in deleted.values() for rule in rules}
    line = f"{'would delete' if options.dry_run else 'deleted'} {counted(len(found), 'rule')}"
    return render_rules(options, found, line) if found else Output([], [line])


def _resources(options: argparse.Namespace) -> list[Resource]:
    named = [(kind, name) for option, kind in RESOURCES.items() for name in getattr(options, option)]
    return named + ([("CLUSTER", CLUSTER_NAME)] if options.cluster else [])


def _filters(options: argparse.Namespace) -> "list[AclFilter]":
    """One for each combination of what was named: a filter of the protocol takes one value per field."""
    from barnabas.client.admin.types import AclFilter, AclOperation, AclPermission, PatternType, ResourceType

    resources: Sequence[tuple[str, str | None]] = _resources(options) or [("ANY", None)]
    return [
        AclFilter(
            resource_type=ResourceType[kind],
            resource_name=name,
            pattern_type=PatternType[options.pattern.upper()],
            principal=principal,
            host=options.host,
            operation=AclOperation[operation],
            permission=AclPermission[(options.permission or "any").upper()],
        )
        for (kind, name), principal, operation in product(
            resources, options.principal or [None], options.operation or ["ANY"]
        )
    ]


def _rules(options: argparse.Namespace) -> "list[AclBinding]":
    from barnabas.client.admin.types import AclBinding, AclOperation, AclPermission, PatternType, ResourceType

    who = [
        *product(["ALLOW"], options.allow_principal, options.allow_host or [ANY_HOST]),
        *product(["DENY"], options.deny_principal, options.deny_host or [ANY_HOST]),
    ]
    if not who:
        raise UsageError("say for whom: --allow-principal or --deny-principal")
    rules = [
        AclBinding(
            resource_type=ResourceType[kind],
            resource_name=name,
            # The cluster is one thing, whatever the other names stand for.
            pattern_type=PatternType.LITERAL if kind == "CLUSTER" else PatternType[options.pattern.upper()],
            principal=principal,
            host=host,
            operation=AclOperation[operation],
            permission=AclPermission[permission],
        )
        for (kind, name), operation in _wanted(options)
        for permission, principal, host in who
    ]
    return list(dict.fromkeys(rules))


def _wanted(options: argparse.Namespace) -> list[tuple[Resource, str]]:
    resources = _resources(options)
    if not resources:
        raise UsageError("say on what: --topic, --group, --cluster, ...")
    wanted = list(product(resources, options.operation))
    for word, needs in (("producer", PRODUCER), ("consumer", CONSUMER)):
        if not getattr(options, word):
            continue
        if options.deny_principal:
            raise UsageError(f"--{word} is for --allow-principal; name the operations to deny")
        required = ("TOPIC",) if word == "producer" else ("TOPIC", "GROUP")
        missing = [kind for kind in required if all(kind != each for each, _ in resources)]
        if missing:
            raise UsageError(f"--{word} needs --{missing[0].lower()} too")
        wanted += [(each, operation) for each in resources for operation in needs.get(each[0], ())]
    if not wanted:
        raise UsageError("say what: --operation, --producer or --consumer")
    left = set(resources) - {resource for resource, _ in wanted}
    if left:
        kind, name = min(left)
        raise UsageError(f"nothing is said of {_word(kind)} {name}: name operations for it")
    return wanted


def render_rules(options: argparse.Namespace, rules: "Iterable[AclBinding]", *lines: str) -> Output:
    ordered = sorted(
        rules,
        key=lambda rule: (rule.resource_type, rule.resource_name, rule.principal, rule.operation, rule.permission),
    )
    rows = [
        (
            *(_word(rule.resource_type.name), rule.resource_name, _word(rule.pattern_type.name)),
            *(rule.principal, rule.host, _word(rule.operation.name), _word(rule.permission.name)),
        )
        for rule in ordered
    ]
    headers = ["RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"]
    return Output(ordered, [*lines, Table(headers, rows)])


def _word(name: str) -> str:
    return name.lower().replace("_", "-")


VERBS = (
    Command("list", "rules, all or those that match", _filter_arguments, with_admin(list_rules), render_rules),
    Command(
        "create",
        "add rules; one that is there already is fine",
        create_arguments,
        with_admin(create),
        render_created,
        partial=True,
    ),
    Command(
        "delete", "remove the rules that match", delete_arguments, with_admin(delete), render_deleted, partial=True
    ),
)

main = noun_main("acl", "Rules that say who may do what.", VERBS)

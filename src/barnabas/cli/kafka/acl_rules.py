"""The access rules that the flags of `kafka-acls.sh` mean: by resource, who may or may not do what from where."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from barnabas.cli.kafka.flags import Options, refuse
from barnabas.client.admin.types import AclBinding, AclFilter, AclOperation, AclPermission, PatternType, ResourceType

CLUSTER_NAME = "kafka-cluster"
ANYWHERE = "*"
O = AclOperation  # noqa: E741 - the table below is easier to read
SUPPORTED = {
    ResourceType.TOPIC: (
        *(O.DESCRIBE, O.WRITE, O.DELETE, O.ALTER_CONFIGS, O.CREATE),
        *(O.ALL, O.ALTER, O.READ, O.DESCRIBE_CONFIGS),
    ),
    ResourceType.GROUP: (O.DESCRIBE, O.DELETE, O.ALTER_CONFIGS, O.ALL, O.READ, O.DESCRIBE_CONFIGS),
    ResourceType.CLUSTER: (
        *(O.IDEMPOTENT_WRITE, O.DESCRIBE, O.CLUSTER_ACTION, O.ALTER_CONFIGS),
        *(O.CREATE, O.ALL, O.ALTER, O.DESCRIBE_CONFIGS),
    ),
    ResourceType.TRANSACTIONAL_ID: (O.DESCRIBE, O.WRITE, O.ALL, O.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (O.DESCRIBE, O.ALL),
    ResourceType.USER: (O.DESCRIBE_TOKENS, O.CREATE_TOKENS, O.ALL),
}
FLAGS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}


class Resource(NamedTuple):
    type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        return f"ResourcePattern(resourceType={self.type.name}, name={self.name}, patternType={self.pattern_type.name})"


class Entry(NamedTuple):
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


Rules = dict[Resource, list[Entry]]
CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)


def wanted_rules(options: Options) -> Rules:
    """For --add and --remove; a resource without entries means all of its rules."""
    if options.has("add") and options.value("resource-pattern-type") in ("ANY", "MATCH"):
        kind = options.value("resource-pattern-type")
        refuse(f"A '--resource-pattern-type' value of '{kind}' is not valid when adding acls.")
    resources = resource_filters(options)
    if not resources:
        refuse(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or"
            " --delegation-token <Delegation Token ID>"
        )
    rules: Rules = {}
    if not options.given_of("producer", "consumer"):
        operations = [_operation(each) for each in options.values("operation") or ["All"]]
        rules = {resource: _entries(options, operations) for resource in resources}
    if options.has("producer"):
        _add(rules, options, resources, ResourceType.TOPIC, (O.WRITE, O.DESCRIBE, O.CREATE))
        _add(rules, options, resources, ResourceType.TRANSACTIONAL_ID, (O.WRITE, O.DESCRIBE))
        if options.has("idempotent"):
            rules[CLUSTER] = _entries(options, [O.IDEMPOTENT_WRITE])
    if options.has("consumer"):
        _add(rules, options, resources, ResourceType.TOPIC, (O.READ, O.DESCRIBE))
        _add(rules, options, resources, ResourceType.GROUP, (O.READ,))
    if options.has("add") and not all(rules.values()):
        refuse("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    for resource, entries in rules.items():
        if any(entry.operation not in SUPPORTED[resource.type] for entry in entries):
            listed = ", ".join(operation.name for operation in SUPPORTED[resource.type])
            refuse(f"ResourceType {resource.type.name} only supports operations [{listed}]")
    return rules


def resource_filters(options: Options) -> list[Resource]:
    kind = PatternType[options.value("resource-pattern-type")]
    found = [Resource(FLAGS[flag], name.strip(), kind) for flag in FLAGS for name in options.values(flag)]
    if kind is PatternType.LITERAL and options.given_of("cluster", "idempotent"):
        found.append(CLUSTER)
    return found


def _add(
    rules: Rules, options: Options, resources: list[Resource], kind: ResourceType, operations: tuple[AclOperation, ...]
) -> None:
    for resource in resources:
        if resource.type is kind:
            known = rules.setdefault(resource, [])
            known += [entry for entry in _entries(options, list(operations)) if entry not in known]


def _entries(options: Options, operations: list[AclOperation]) -> list[Entry]:
    entries = []
    for word, permission in (("allow", AclPermission.ALLOW), ("deny", AclPermission.DENY)):
        principals = [each.strip() for each in options.values(f"{word}-principal")]
        hosts = [each.strip() for each in options.values(f"{word}-host")] or [ANYWHERE]
        entries += [Entry(who, host, what, permission) for who, what, host in product(principals, operations, hosts)]
    return entries


def _operation(text: str) -> AclOperation:
    """`DescribeConfigs`, `describe_configs`; what is not known is refused with those that are."""
    wanted = text.strip().replace("_", "").casefold()
    return next((each for each in AclOperation if each.name.replace("_", "").casefold() == wanted), O.UNKNOWN)


def entry_text(entry: Entry) -> str:
    return (
        f"(principal={entry.principal}, host={entry.host}, operation={entry.operation.name},"
        f" permissionType={entry.permission.name})"
    )


def entry_of(rule: AclBinding) -> Entry:
    return Entry(rule.principal, rule.host, rule.operation, rule.permission)


def binding(resource: Resource, entry: Entry) -> AclBinding:
    return AclBinding(
        resource_type=resource.type,
        resource_name=resource.name,
        pattern_type=resource.pattern_type,
        **entry._asdict(),
    )


def acl_filter(resource: Resource | None, entry: Entry | None) -> AclFilter:
    """None: whatever it is."""
    about = {} if entry is None else entry._asdict()
    if resource is None:
        return AclFilter(**about)
    return AclFilter(
        resource_type=resource.type, resource_name=resource.name, pattern_type=resource.pattern_type, **about
    )

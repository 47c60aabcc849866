"""Changes of access rules: functions over an image.

A rule that is there already is created again without a change, as in Kafka. The rules of one resource pattern are
written together, so what they take is limited: ZooKeeper's nodes have at most 1 MiB.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.acls import (
    CLUSTER_NAME,
    Acl,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    SecuredType,
)
from barnabas.machines.controller.commands import AclResult, CreateAcls, DeleteAcls, DeletedAcls
from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.controller.records import AclsSet

MAX_CHANGES: Final = 10_000
MAX_PATTERN_BYTES: Final = 256 * 1024
ENTRY_BYTES: Final = 80
"""What a rule takes in the store beside its principal and its host."""


class _Rules:
    """Those of one resource pattern, as a request changes them."""

    __slots__ = ("byte_count", "entries")

    def __init__(self, entries: Iterable[AclEntry]) -> None:
        self.entries = dict.fromkeys(entries)
        self.byte_count = sum(map(_byte_count, self.entries))

    def add(self, entry: AclEntry) -> bool:
        """Whether it was not there before."""
        if entry in self.entries:
            return False
        self.byte_count += _byte_count(entry)
        if self.byte_count > MAX_PATTERN_BYTES:
            self.byte_count -= _byte_count(entry)
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"The acls of one resource may take at most {MAX_PATTERN_BYTES} bytes."
            )
        self.entries[entry] = None
        return True


def decide_create_acls(image: ClusterImage, command: CreateAcls) -> tuple[tuple[AclsSet, ...], tuple[AclResult, ...]]:
    _check_count(len(command.acls))
    return added_acls(image, command.acls)


def added_acls(image: ClusterImage, acls: Iterable[Acl]) -> tuple[tuple[AclsSet, ...], tuple[AclResult, ...]]:
    rules: dict[ResourcePattern, _Rules] = {}
    changed: dict[ResourcePattern, None] = {}
    results: list[AclResult] = []
    for acl in acls:
        try:
            _check(acl)
            if acl.pattern not in rules:
                rules[acl.pattern] = _Rules(image.acls.get(acl.pattern, ()))
            if rules[acl.pattern].add(acl.entry):
                changed[acl.pattern] = None
            results.append(AclResult())
        except KafkaError as error:
            results.append(AclResult(error.code, error.message))
    return tuple(AclsSet(pattern, tuple(rules[pattern].entries)) for pattern in changed), tuple(results)


def decide_delete_acls(image: ClusterImage, command: DeleteAcls) -> tuple[tuple[AclsSet, ...], tuple[DeletedAcls, ...]]:
    """A rule that several filters match is in the result of each."""
    _check_count(len(command.filters))
    deleted: dict[ResourcePattern, set[AclEntry]] = {}
    results: list[DeletedAcls] = []
    for each in command.filters:
        found = tuple(matching_acls(image, each))
        results.append(DeletedAcls(found))
        for pattern, entry in found:
            deleted.setdefault(pattern, set()).add(entry)
    _check_count(sum(map(len, deleted.values())))
    records = tuple(
        AclsSet(pattern, tuple(entry for entry in image.acls[pattern] if entry not in gone))
        for pattern, gone in deleted.items()
    )
    return records, tuple(results)


def matching_acls(image: ClusterImage, wanted: AclFilter) -> Iterator[Acl]:
    patterns: Iterable[ResourcePattern] = image.acls
    if wanted.names_one_pattern:
        assert wanted.name is not None
        pattern = ResourcePattern(wanted.type, wanted.name, wanted.pattern_type)
        patterns = (pattern,) if pattern in image.acls else ()
    for pattern in patterns:
        if wanted.matches_pattern(pattern):
            yield from (Acl(pattern, entry) for entry in image.acls[pattern] if wanted.matches_entry(entry))


def _check_count(count: int) -> None:
    if count > MAX_CHANGES:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"Cannot change more than {MAX_CHANGES} acls in a single operation."
        )


def _byte_count(entry: AclEntry) -> int:
    return ENTRY_BYTES + len(entry.principal.encode()) + len(entry.host.encode())


def _check(acl: Acl) -> None:
    """With the codes of Kafka's controller, and its order."""
    (resource_type, name, pattern_type), (principal, host, operation, permission) = acl
    if resource_type is SecuredType.CLUSTER and name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise _invalid("Invalid empty resource name")
    if resource_type is SecuredType.ANY:
        raise _invalid(f"Invalid resourceType {resource_type.name}")
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {pattern_type.name}")
    if operation is Operation.ANY:
        raise _invalid(f"Invalid operation {operation.name}")
    if permission is Permission.ANY:
        raise _invalid(f"Invalid permissionType {permission.name}")
    if ":" not in principal:
        raise _invalid(
            f"Could not parse principal from `{principal}` (no colon is present separating the principal type from the"
            " principal name)"
        )
    if "/" in host:
        _check_network(host)


def _check_network(host: str) -> None:
    """A network that cannot be read would match nobody: a DENY for it would be an open door."""
    try:
        ipaddress.ip_network(host, strict=False)
    except ValueError:
        raise _invalid(f"Invalid host {host}: neither an address nor a network") from None


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)

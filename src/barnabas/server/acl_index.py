"""The access rules of an image, indexed so that those of one resource are found at once.

By kind of resource: literal names in a table, prefixes in another one that is asked once per length that any prefix
has, and within each the rules by principal. `authorizer.py` keeps it in step with the image.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.machines.controller.acls import (
    WILDCARD,
    Acl,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    SecuredType,
)

EVERYBODY = "User:*"
_IMPLY_DESCRIBE = frozenset(
    (Operation.ALL, Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
)
_IMPLY_DESCRIBE_CONFIGS = frozenset((Operation.ALL, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS))
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def address_of(host: str) -> Address | None:
    """An IPv4 address that came in as IPv6 is the IPv4 address, as in Kafka."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


class Client(NamedTuple):
    """Who asks, and from where."""

    principal: str
    host: str
    address: Address | None

    @classmethod
    def of(cls, principal: str, host: str) -> "Client":
        return cls(principal, host, address_of(host))


class Rule(NamedTuple):
    acl: Acl
    network: Network | None
    """The host as addresses; None if it is `*` or no address."""

    @classmethod
    def of(cls, pattern: ResourcePattern, entry: AclEntry) -> "Rule":
        try:
            return cls(Acl(pattern, entry), ipaddress.ip_network(entry.host, strict=False))
        except ValueError:
            return cls(Acl(pattern, entry), None)

    def is_from(self, client: Client) -> bool:
        host = self.acl.entry.host
        if host in (WILDCARD, client.host):
            return True
        network, address = self.network, client.address
        return network is not None and address is not None and address in network

    @property
    def denies(self) -> bool:
        return self.acl.entry.permission is Permission.DENY

    def covers(self, operation: Operation) -> bool:
        """Only an ALLOW implies more than it names."""
        given = self.acl.entry.operation
        if not self.denies and operation is Operation.DESCRIBE:
            return given in _IMPLY_DESCRIBE
        if not self.denies and operation is Operation.DESCRIBE_CONFIGS:
            return given in _IMPLY_DESCRIBE_CONFIGS
        return given is operation or given is Operation.ALL


Rules = dict[str, tuple[Rule, ...]]
"""By principal."""


class _Kind:
    """The rules for one kind of resource."""

    __slots__ = ("lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, Rules] = {}
        self.prefixed: dict[str, Rules] = {}
        self.lengths: tuple[int, ...] = ()

    def put(self, pattern: ResourcePattern, entries: Iterable[AclEntry]) -> None:
        table = self.literal if pattern.pattern_type is PatternType.LITERAL else self.prefixed
        by_principal: dict[str, list[Rule]] = {}
        for entry in entries:
            by_principal.setdefault(entry.principal, []).append(Rule.of(pattern, entry))
        if by_principal:
            table[pattern.name] = {principal: tuple(rules) for principal, rules in by_principal.items()}
        else:
            table.pop(pattern.name, None)

    def count_lengths(self) -> None:
        self.lengths = tuple(sorted({len(prefix) for prefix in self.prefixed}))

    def of(self, name: str) -> Iterator[Rules]:
        if (exact := self.literal.get(name)) is not None:
            yield exact
        for length in self.lengths:
            if length > len(name):
                break
            if (found := self.prefixed.get(name[:length])) is not None:
                yield found
        if name != WILDCARD and (everything := self.literal.get(WILDCARD)) is not None:
            yield everything

    def all(self) -> Iterator[Rules]:
        yield from self.literal.values()
        yield from self.prefixed.values()


class AclIndex:
    def __init__(self) -> None:
        self._kinds: dict[SecuredType, _Kind] = {each: _Kind() for each in SecuredType}

    def put(self, patterns: Iterable[tuple[ResourcePattern, Iterable[AclEntry]]]) -> None:
        """All rules of each of these patterns from now on."""
        touched: set[SecuredType] = set()
        for pattern, entries in patterns:
            self._kinds[pattern.type].put(pattern, entries)
            touched.add(pattern.type)
        for each in touched:
            self._kinds[each].count_lengths()

    def rules_of(self, resource_type: SecuredType, name: str) -> Iterator[Rules]:
        """Those of every pattern that matches the resource."""
        return self._kinds[resource_type].of(name)

    def all_for(self, resource_type: SecuredType, client: Client, operation: Operation) -> Iterator[Rule]:
        """The rules of a kind that name exactly this operation, or all, for the client."""
        for rules in self._kinds[resource_type].all():
            for principal in dict.fromkeys((client.principal, EVERYBODY)):
                for rule in rules.get(principal, ()):
                    if rule.acl.entry.operation in (operation, Operation.ALL) and rule.is_from(client):
                        yield rule

"""Where access rules lie in the store, and in which JSON: as Kafka keeps them in ZooKeeper.

    /kafka-acl/Topic/orders                          rules of a literal resource, `*` of all of a kind
    /kafka-acl-extended/prefixed/Group/app-          rules of all whose names begin so

Each node holds {"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read","host":"*"}]}.
What a path cannot hold of a name (a slash, a lone dot, control characters) is written as %XX: Kafka's would fail there.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, unquote

from barnabas.machines.controller.acls import (
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    SecuredType,
)
from barnabas.metadata.store import Node

LITERAL_ROOT: Final = "/kafka-acl"
PREFIXED_ROOT: Final = "/kafka-acl-extended/prefixed"
ROOTS: Final = {LITERAL_ROOT: PatternType.LITERAL, PREFIXED_ROOT: PatternType.PREFIXED}
_ROOT_OF: Final = {pattern_type: root for root, pattern_type in ROOTS.items()}
_PLAIN: Final = "!#$&'()*+,:;<=>?@[]^_`{|}~ -."


def _in_words(name: str) -> str:
    """READ -> Read, DESCRIBE_CONFIGS -> DescribeConfigs"""
    return "".join(word.capitalize() for word in name.split("_"))


_TYPES: Final = {_in_words(each.name): each for each in SecuredType}
_OPERATIONS: Final = {_in_words(each.name): each for each in Operation}
_PERMISSIONS: Final = {_in_words(each.name): each for each in Permission}


def acl_path(pattern: ResourcePattern) -> str:
    name = quote(pattern.name, safe=_PLAIN)
    if name in (".", ".."):
        name = name.replace(".", "%2E")
    return f"{_ROOT_OF[pattern.pattern_type]}/{_in_words(pattern.type.name)}/{name}"


def encode_acls(entries: Iterable[AclEntry]) -> bytes:
    acls = [
        {
            "principal": each.principal,
            "permissionType": _in_words(each.permission.name),
            "operation": _in_words(each.operation.name),
            "host": each.host,
        }
        for each in entries
    ]
    return json.dumps({"version": 1, "acls": acls}, separators=(",", ":")).encode()


def decode_acls(data: bytes) -> tuple[AclEntry, ...]:
    return tuple(
        AclEntry(each["principal"], each["host"], _OPERATIONS[each["operation"]], _PERMISSIONS[each["permissionType"]])
        for each in json.loads(data)["acls"]
    )


def read_acls(nodes: Mapping[str, Node]) -> dict[ResourcePattern, tuple[AclEntry, ...]]:
    """What is no rule (a folder of ZooKeeper's) has no data."""
    found = {}
    for path, node in sorted(nodes.items()):
        pattern = _pattern_of(path)
        if pattern is not None and node.data and (entries := decode_acls(node.data)):
            found[pattern] = entries
    return found


def _pattern_of(path: str) -> ResourcePattern | None:
    folder, _, name = path.rpartition("/")
    root, _, kind = folder.rpartition("/")
    if root not in ROOTS or kind not in _TYPES:
        return None
    return ResourcePattern(_TYPES[kind], unquote(name), ROOTS[root])

"""Access rules: all of them, or those that apply to one topic."""

from collections.abc import Iterable
from typing import Any, TypeVar

from starlette.requests import Request

from barnabas.client.admin.types import AclBinding, AclFilter, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.client.admin.types.enums import KafkaEnum
from barnabas.console.api.access import admin_of, body_of, if_offered, text_in
from barnabas.console.api.topics import find
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery, page_of

Enum = TypeVar("Enum", bound=KafkaEnum)
_FOR_FILTERS = {"UNKNOWN", "ANY", "MATCH"}
SORTS = {
    "name": lambda row: (row["resourceType"], row["resourceName"], row["principal"], row["operation"]),
    "principal": lambda row: row["principal"],
    "operation": lambda row: row["operation"],
    "permission": lambda row: row["permission"],
}


async def list_acls(console: Console, request: Request) -> Any:
    found, reason = await if_offered(admin_of(console, request).describe_acls())
    return {**page_of(map(_row, found or ()), request.query_params, _text, SORTS), "notOffered": reason, **_choices()}


async def list_topic_acls(console: Console, request: Request) -> Any:
    """Rules whose name or prefix the topic has, and those of all topics."""
    topic = find(console, request)
    wanted = AclFilter(resource_type=ResourceType.TOPIC, resource_name=topic.name, pattern_type=PatternType.MATCH)
    found, reason = await if_offered(admin_of(console, request).describe_acls(wanted))
    return {**page_of(map(_row, found or ()), request.query_params, _text, SORTS), "notOffered": reason, **_choices()}


async def create_acl(console: Console, request: Request) -> Any:
    rule = _binding(await body_of(request))
    await admin_of(console, request).create_acls([rule])
    console.audit("create rule", _text(_row(rule)))
    return {"ok": True}


async def delete_acl(console: Console, request: Request) -> Any:
    """Exactly the rule that was shown."""
    rule = _binding(await body_of(request))
    wanted = AclFilter(
        resource_type=rule.resource_type,
        resource_name=rule.resource_name,
        pattern_type=rule.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission=rule.permission,
    )
    removed = (await admin_of(console, request).delete_acls([wanted]))[wanted]
    if not removed:
        raise LookupError("there is no such rule any more")
    console.audit("delete rule", _text(_row(rule)))
    return {"ok": True}


def _binding(body: dict[str, Any]) -> AclBinding:
    return AclBinding(
        resource_type=_one_of(ResourceType, body, "resourceType"),
        resource_name=text_in(body, "resourceName"),
        pattern_type=_one_of(PatternType, body, "patternType"),
        principal=text_in(body, "principal"),
        host=text_in(body, "host"),
        operation=_one_of(AclOperation, body, "operation"),
        permission=_one_of(AclPermission, body, "permission"),
    )


def _one_of(kind: type[Enum], body: dict[str, Any], name: str) -> Enum:
    word = text_in(body, name)
    if word not in kind.__members__ or word in _FOR_FILTERS:
        raise BadQuery(f"{name} is one of {', '.join(_names(kind))}")
    return kind[word]


def _names(kind: Iterable[KafkaEnum]) -> list[str]:
    return [each.name for each in kind if each.name not in _FOR_FILTERS]


def _choices() -> dict[str, Any]:
    return {
        "resourceTypes": _names(ResourceType),
        "patternTypes": _names(PatternType),
        "operations": _names(AclOperation),
        "permissions": _names(AclPermission),
    }


def _row(rule: AclBinding) -> dict[str, Any]:
    return {
        "resourceType": rule.resource_type.name,
        "resourceName": rule.resource_name,
        "patternType": rule.pattern_type.name,
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation.name,
        "permission": rule.permission.name,
    }


def _text(row: dict[str, Any]) -> str:
    return " ".join(row.values())


ROUTES = (
    ("GET", "/acls", list_acls),
    ("POST", "/acls", create_acl),
    ("POST", "/acls/delete", delete_acl),
    ("GET", "/topics/{name}/acls", list_topic_acls),
)

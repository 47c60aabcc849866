"""Users with a SCRAM password, and quotas."""

import math
from typing import Any

from starlette.requests import Request

from barnabas.client.admin.types import QuotaEntity, ScramDeletion, ScramMechanism, ScramUpsertion
from barnabas.console.api.access import admin_of, body_of, if_offered, number_in, text_in
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery, page_of

MECHANISMS = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 16_384
QUOTAS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
_ENTITY = {"user": "user", "clientId": "client_id", "ip": "ip"}


async def list_users(console: Console, request: Request) -> Any:
    found, reason = await if_offered(admin_of(console, request).describe_user_scram_credentials())
    rows = [
        {"user": user, "mechanism": each.mechanism.name.replace("_", "-"), "iterations": each.iterations}
        for user, credentials in (found or {}).items()
        for each in credentials
    ]
    page = page_of(
        rows,
        request.query_params,
        lambda row: f"{row['user']} {row['mechanism']}",
        {"name": lambda row: (row["user"], row["mechanism"])},
    )
    return {**page, "notOffered": reason}


async def set_password(console: Console, request: Request) -> Any:
    """{"user", "password", "mechanism", "iterations"}: a new user, or a new password. It is hashed here."""
    body = await body_of(request)
    user, password = text_in(body, "user"), text_in(body, "password")
    mechanism, iterations = _mechanism(body), number_in(body, "iterations", LEAST_ITERATIONS, MOST_ITERATIONS)
    change = ScramUpsertion(user=user, password=password, mechanism=mechanism, iterations=iterations)
    await admin_of(console, request).alter_user_scram_credentials([change])
    console.audit("set password", f"{user} {mechanism.name}")
    return {"ok": True}


async def delete_user(console: Console, request: Request) -> Any:
    """{"user", "mechanism"}"""
    body = await body_of(request)
    user, mechanism = text_in(body, "user"), _mechanism(body)
    await admin_of(console, request).alter_user_scram_credentials([ScramDeletion(user=user, mechanism=mechanism)])
    console.audit("delete user", f"{user} {mechanism.name}")
    return {"ok": True}


def _mechanism(body: dict[str, Any]) -> ScramMechanism:
    mechanism = MECHANISMS.get(text_in(body, "mechanism"))
    if mechanism is None:
        raise BadQuery(f"mechanism is one of {', '.join(MECHANISMS)}")
    return mechanism


async def list_quotas(console: Console, request: Request) -> Any:
    """A row per user, client id or address; "" is the default of its kind, null plays no part."""
    found, reason = await if_offered(admin_of(console, request).describe_client_quotas())
    rows = [
        {"user": entity.user, "clientId": entity.client_id, "ip": entity.ip, "values": values}
        for entity, values in (found or {}).items()
        if values
    ]
    page = page_of(
        rows,
        request.query_params,
        lambda row: " ".join(str(row[part]) for part in _ENTITY if row[part] is not None),
        {"name": lambda row: tuple(row[part] or "" for part in _ENTITY)},
    )
    return {**page, "notOffered": reason, "names": QUOTAS}


async def change_quota(console: Console, request: Request) -> Any:
    """{"user", "clientId", "ip", "values": {name: number, or null to remove it}}"""
    body = await body_of(request)
    parts = {field: body.get(part) for part, field in _ENTITY.items()}
    if not any(part is not None for part in parts.values()):
        raise BadQuery("a quota is for a user, a client id or an address")
    if not all(part is None or isinstance(part, str) for part in parts.values()):
        raise BadQuery("names are texts")
    values = body.get("values")
    if not isinstance(values, dict) or not values or not all(map(_is_quota, values, values.values())):
        raise BadQuery(f"values are numbers above 0 of {', '.join(QUOTAS)}")
    entity = QuotaEntity(**parts)
    await admin_of(console, request).alter_client_quotas({entity: values})
    console.audit("set quota", f"{entity} {values}")
    return {"ok": True}


def _is_quota(name: str, value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return name in QUOTAS and (value is None or is_number)


ROUTES = (
    ("GET", "/users", list_users),
    ("POST", "/users", set_password),
    ("POST", "/users/delete", delete_user),
    ("GET", "/quotas", list_quotas),
    ("POST", "/quotas", change_quota),
)

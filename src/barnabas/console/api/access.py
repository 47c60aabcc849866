"""What every endpoint that changes something asks for: the admin client, and the parts of a request's body."""

from collections.abc import Awaitable
from typing import Any, TypeVar

from starlette.requests import Request

from barnabas.client.admin.aio import Admin
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

Value = TypeVar("Value")
MOST_NAMES = 100_000
_NOT_THERE = {ErrorCode.SECURITY_DISABLED, ErrorCode.UNSUPPORTED_VERSION}


def admin_of(console: Console, request: Request) -> Admin:
    """The client with the rights of whoever asks."""
    return console.clients.admin()


async def body_of(request: Request) -> dict[str, Any]:
    body = await request.json()
    if not isinstance(body, dict):
        raise BadQuery("the request has no object")
    return body


def text_in(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise BadQuery(f"{name} is missing")
    return value


def number_in(body: dict[str, Any], name: str, lowest: int = 0, highest: int = 2**63 - 1) -> int:
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise BadQuery(f"{name} must be a number from {lowest} to {highest}")
    return value


def partitions_in(body: dict[str, Any], name: str = "partitions") -> list[TopicPartition]:
    """[{"topic", "partition"}, ...]"""
    return [partition_in(row) for row in rows_in(body, name)]


def partition_in(row: dict[str, Any]) -> TopicPartition:
    return TopicPartition(text_in(row, "topic"), number_in(row, "partition", highest=2**31 - 1))


def rows_in(body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = body.get(name)
    if not isinstance(rows, list) or not rows or len(rows) > MOST_NAMES:
        raise BadQuery(f"{name} is missing")
    if not all(isinstance(row, dict) for row in rows):
        raise BadQuery(f"{name} is a list of objects")
    return rows


def numbers_in(body: dict[str, Any], name: str) -> list[int]:
    values = body.get(name)
    is_list = isinstance(values, list) and len(values) <= MOST_NAMES
    if not is_list or not all(isinstance(each, int) and not isinstance(each, bool) for each in values or ()):
        raise BadQuery(f"{name} is a list of numbers")
    return list(values or ())


async def if_offered(call: Awaitable[Value]) -> tuple[Value | None, str | None]:
    """What the cluster responds, or why it has no such thing: no authorizer, or too old."""
    try:
        return await call, None
    except KafkaError as error:
        if error.code in _NOT_THERE:
            return None, error.message
        raise

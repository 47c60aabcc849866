"""The classes of an API by its number: `heartbeat.HeartbeatRequest` for key 12.

For code that treats all APIs the same way (dispatch tables, tests, fuzzers). A message file and its classes are named
after the API, so no second table is needed; files are imported on first use.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from barnabas.protocol.api import ApiKey


def declared_apis() -> list[ApiKey]:
    """The APIs that have a message file."""
    return [key for key in ApiKey if find_spec(_module_name(key)) is not None]


def request_type(api_key: ApiKey) -> type[Any]:
    return _message_type(api_key, "Request")


def response_type(api_key: ApiKey) -> type[Any]:
    return _message_type(api_key, "Response")


@cache
def _message_type(api_key: ApiKey, direction: str) -> type[Any]:
    name = "".join(word.capitalize() for word in api_key.name.split("_")) + direction
    cls: type[Any] = getattr(import_module(_module_name(api_key)), name)
    return cls


def _module_name(api_key: ApiKey) -> str:
    return f"barnabas.protocol.messages.{api_key.name.lower()}"

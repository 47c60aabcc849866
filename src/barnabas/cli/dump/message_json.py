"""A message of the protocol as the JSON that Kafka's own converters write: camelCase names, base64 for bytes.

Tagged fields stand in it only when they differ from their default; every other field of the version always does.
"""

import base64
import json
from typing import Any

from barnabas.protocol.compiler import schema_of
from barnabas.protocol.schema import BYTES, UUID, Array, Kind, Primitive, default_of
from barnabas.types import topic_id_text


def message_tree(message: Any, version: int) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, declared in schema_of(message).fields.items():
        if not declared.exists_in(version):
            continue
        value = getattr(message, name)
        if declared.tag is not None and value == default_of(declared):
            continue
        tree[_camel_case(name)] = _node(value, declared.kind, version)
    return tree


def compact(tree: Any) -> str:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def _node(value: Any, kind: Kind, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_node(element, kind.element, version) for element in value]
    if kind is UUID:
        return topic_id_text(value)
    if kind is BYTES:
        return base64.b64encode(value).decode()
    return value if isinstance(kind, Primitive) else message_tree(value, version)


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)

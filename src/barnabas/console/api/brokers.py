"""Brokers: what each leads, holds and takes; its settings; taking one out for good."""

from collections.abc import Iterable
from typing import Any

from starlette.requests import Request

from barnabas.client.admin.types import BrokerDescription, ConfigEntry, ConfigResource
from barnabas.client.errors import UnsupportedVersionError
from barnabas.console.api.access import admin_of, body_of, text_in
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery
from barnabas.console.view import ClusterView

ALL = "all"
"""In an address: the settings that all brokers share."""


async def get_brokers(console: Console, request: Request) -> Any:
    view = console.collector.view
    known = {each.node.id: each for each in await _described(console, request)} if not view.error else {}
    held = _held(view)
    rows = []
    for broker in sorted({*view.brokers, *known, *held}):
        node = view.brokers.get(broker) or (known[broker].node if broker in known else None)
        dirs = view.log_dirs.get(broker, {}).values() if broker in view.brokers else ()
        rows.append(
            {
                "id": broker,
                "address": node.address if node else None,
                "rack": node.rack if node else None,
                "state": _state(view, known, broker),
                "isController": broker == view.controller,
                **held.get(broker, _nothing()),
                "sizeBytes": sum(replica.size for each in dirs for replica in each.replicas.values()),
                "usableBytes": min((each.usable_bytes for each in dirs if each.usable_bytes is not None), default=None),
                "totalBytes": max((each.total_bytes for each in dirs if each.total_bytes is not None), default=None),
                "directories": [
                    {
                        "path": each.path,
                        "error": each.error.message if each.error else None,
                        "replicas": len(each.replicas),
                        "sizeBytes": sum(replica.size for replica in each.replicas.values()),
                        "usableBytes": each.usable_bytes,
                        "totalBytes": each.total_bytes,
                    }
                    for each in dirs
                ],
            }
        )
    return {"items": rows, "error": view.error}


def _nothing() -> dict[str, Any]:
    return {"leaders": 0, "preferred": 0, "replicas": 0, "outOfSync": 0, "rate": 0.0, "byteRate": 0.0}


def _held(view: ClusterView) -> dict[int, dict[str, Any]]:
    """What every broker leads and holds. Bytes of a topic are shared out like its records."""
    found: dict[int, dict[str, Any]] = {}
    for topic in view.topics.values():
        for partition in topic.partitions:
            for broker in partition.replicas:
                of_broker = found.setdefault(broker, _nothing())
                of_broker["replicas"] += 1
                of_broker["outOfSync"] += broker not in partition.isr
            if partition.replicas:
                found[partition.replicas[0]]["preferred"] += 1
            leader = found.get(partition.leader)
            if leader is not None:
                rate = topic.rate_of(partition.partition)
                leader["leaders"] += 1
                leader["rate"] += rate
                leader["byteRate"] += topic.byte_rate * rate / topic.rate if topic.rate else 0.0
    return found


def _state(view: ClusterView, known: dict[int, BrokerDescription], broker: int) -> str:
    if broker in known and known[broker].is_fenced:
        return "fenced"
    return "running" if broker in view.brokers else "offline"


async def _described(console: Console, request: Request) -> Iterable[BrokerDescription]:
    """Those that are fenced too, where the cluster can name them."""
    admin = admin_of(console, request)
    try:
        return (await admin.describe_cluster(include_fenced_brokers=True)).brokers
    except UnsupportedVersionError:
        return (await admin.describe_cluster()).brokers


def resource_of(request: Request) -> ConfigResource:
    broker = request.path_params["broker"]
    if broker == ALL:
        return ConfigResource.broker()
    if not broker.isdecimal() or len(broker) > 10:
        raise BadQuery("a broker is a number")
    return ConfigResource.broker(int(broker))


async def get_settings(console: Console, request: Request) -> Any:
    admin = admin_of(console, request)
    entries = await admin.describe_config(resource_of(request), include_synonyms=True, include_documentation=True)
    return {"items": [setting_row(name, entries[name]) for name in sorted(entries)]}


async def change_setting(console: Console, request: Request) -> Any:
    """{"name", "value"}; without a value, back to the default."""
    resource, body = resource_of(request), await body_of(request)
    name, value = text_in(body, "name"), body.get("value")
    change: dict[str, Any] = {"delete": [name]} if value is None else {"set": {name: str(value)}}
    await admin_of(console, request).alter_config(resource, **change)
    console.audit("set", f"{resource} {name}")  # not the value: it may be a password
    return {"ok": True}


def setting_row(name: str, entry: ConfigEntry) -> dict[str, Any]:
    """A setting for a table: `source` is where its value comes from."""
    return {
        "name": name,
        "value": entry.value,
        "isDefault": entry.is_default,
        "isReadOnly": entry.is_read_only,
        "isSensitive": entry.is_sensitive,
        "source": entry.source.name,
        "type": entry.type.name,
        "default": entry.synonyms[-1].value if entry.synonyms else None,
        "documentation": entry.documentation,
    }


async def decommission(console: Console, request: Request) -> Any:
    """{"confirm": the id}. Only a broker that holds nothing and is stopped: a running one would register again."""
    broker = request.path_params["broker"]
    if text_in(await body_of(request), "confirm") != broker or not broker.isdecimal():
        raise BadQuery("the id does not match")
    view = console.collector.view
    replicas = _held(view).get(int(broker), _nothing())["replicas"]
    if replicas:
        raise BadQuery(f"broker {broker} still holds {replicas} replicas: drain it first")
    if int(broker) in view.brokers:
        raise BadQuery(f"broker {broker} is running: stop it first")
    await admin_of(console, request).unregister_broker(int(broker))
    console.audit("decommission", f"broker {broker}")
    await console.collector.refresh()
    return {"ok": True}


ROUTES = (
    ("GET", "/brokers", get_brokers),
    ("GET", "/brokers/{broker}/settings", get_settings),
    ("POST", "/brokers/{broker}/settings", change_setting),
    ("POST", "/brokers/{broker}/decommission", decommission),
)

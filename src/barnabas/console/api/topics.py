"""Topics: the list, one of them with its partitions and settings, and changes."""

from typing import Any

from starlette.requests import Request

from barnabas.client.admin.types import ConfigResource
from barnabas.console.api.access import admin_of
from barnabas.console.api.brokers import setting_row
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery, page_of
from barnabas.console.view import TopicView

SORTS = {
    "name": lambda topic: topic.name,
    "partitions": lambda topic: len(topic.partitions),
    "replicas": lambda topic: topic.replication_factor,
    "outOfSync": lambda topic: topic.out_of_sync,
    "records": lambda topic: topic.records,
    "sizeBytes": lambda topic: topic.size_bytes,
    "rate": lambda topic: topic.rate,
    "lag": lambda topic: topic.lag,
    "lagSeconds": lambda topic: topic.lag_seconds_at_least,
}


def summary(topic: TopicView) -> dict[str, Any]:
    return {
        "name": topic.name,
        "isInternal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replicas": topic.replication_factor,
        "outOfSync": topic.out_of_sync,
        "offline": topic.offline,
        "records": topic.records,
        "sizeBytes": topic.size_bytes,
        "rate": topic.rate,
        "byteRate": topic.byte_rate,
        "lag": topic.lag,
        "lagSeconds": topic.lag_seconds,
        "lagSecondsAtLeast": topic.lag_seconds_at_least,
        "groups": topic.groups,
    }


async def list_topics(console: Console, request: Request) -> Any:
    view = console.collector.view
    internal = request.query_params.get("internal") == "1"
    topics = [topic for topic in view.topics.values() if internal or not topic.is_internal]
    page = page_of(topics, request.query_params, lambda topic: topic.name, SORTS)
    return {**page, "items": [summary(topic) for topic in page["items"]], "error": view.error}


def find(console: Console, request: Request) -> TopicView:
    name = request.path_params["name"]
    topic = console.collector.view.topics.get(name)
    if topic is None:
        raise LookupError(f"there is no topic {name}")
    return topic


async def get_topic(console: Console, request: Request) -> Any:
    topic = find(console, request)
    view = console.collector.view
    if not view.error:
        await console.collector.ensure_topics([topic.name])
    target = None if view.error else await console.intakes.target(admin_of(console, request), topic.name)
    groups = [group for group in view.groups.values() if any(each.topic == topic.name for each in group.offsets)]
    return {
        **summary(topic),
        "topicId": topic.topic_id,
        "isIntake": target is not None,
        "partitionRows": [
            {
                "partition": each.partition,
                "leader": each.leader,
                "replicas": each.replicas,
                "isr": each.isr,
                "start": topic.starts[each.partition],
                "end": topic.ends[each.partition],
            }
            for each in topic.partitions
        ],
        "groupRows": [
            {
                "groupId": group.group_id,
                "state": group.state,
                "lag": sum(lag for each, lag in group.lags.items() if each.topic == topic.name),
                "lagSeconds": max(
                    (age for each, age in group.times.items() if each.topic == topic.name and age is not None),
                    default=None,
                ),
            }
            for group in groups
        ],
        "error": view.error,
    }


async def get_settings(console: Console, request: Request) -> Any:
    resource = ConfigResource.topic(find(console, request).name)
    entries = await console.clients.admin().describe_config(resource, include_synonyms=True, include_documentation=True)
    return {"items": [setting_row(name, entries[name]) for name in sorted(entries)]}


async def change_setting(console: Console, request: Request) -> Any:
    """{"name", "value"}; without a value, back to the default."""
    topic = find(console, request)
    body = await request.json()
    name, value = text_of(body, "name"), body.get("value")
    resource = ConfigResource.topic(topic.name)
    if value is None:
        await console.clients.admin().alter_config(resource, delete=[name])
    else:
        await console.clients.admin().alter_config(resource, {name: str(value)})
    console.audit("set", f"{topic.name} {name}={value}")
    return {"ok": True}


async def create_topic(console: Console, request: Request) -> Any:
    body = await request.json()
    name = text_of(body, "name")
    counts = {key: body[key] for key in ("partitions", "replicas") if isinstance(body.get(key), int)}
    await console.clients.admin().create_topic(name, counts.get("partitions"), counts.get("replicas"))
    console.audit("create topic", name)
    await console.collector.refresh()
    return {"ok": True}


async def delete_topic(console: Console, request: Request) -> Any:
    """{"confirm": the name again}: a click alone deletes nothing."""
    topic = find(console, request)
    if text_of(await request.json(), "confirm") != topic.name:
        raise BadQuery("the name does not match")
    await console.clients.admin().delete_topic(topic.name)
    console.audit("delete topic", topic.name)
    await console.collector.refresh()
    return {"ok": True}


def text_of(body: Any, name: str) -> str:
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, str) or not value:
        raise BadQuery(f"{name} is missing")
    return value


ROUTES = (
    ("GET", "/topics", list_topics),
    ("POST", "/topics", create_topic),
    ("GET", "/topics/{name}", get_topic),
    ("GET", "/topics/{name}/settings", get_settings),
    ("POST", "/topics/{name}/settings", change_setting),
    ("POST", "/topics/{name}/delete", delete_topic),
)

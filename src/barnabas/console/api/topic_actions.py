"""Changes to a topic beside its settings: clone, empty, and a record written by hand."""

from typing import Any

from starlette.requests import Request

from barnabas.client.admin.types import ConfigResource, ConfigSource, OffsetSpec
from barnabas.console.api.topics import find, text_of
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery
from barnabas.types import TopicPartition


async def clone_topic(console: Console, request: Request) -> Any:
    """{"name"}: a new topic with the same partitions, replicas and settings, without records."""
    topic = find(console, request)
    name = text_of(await request.json(), "name")
    admin = console.clients.admin()
    entries = await admin.describe_config(ConfigResource.topic(topic.name))
    own = {key: each.value for key, each in entries.items() if each.source is ConfigSource.DYNAMIC_TOPIC_CONFIG}
    await admin.create_topic(name, len(topic.partitions), topic.replication_factor, own)
    console.audit("clone topic", f"{topic.name} as {name}")
    await console.collector.refresh()
    return {"ok": True}


async def empty_topic(console: Console, request: Request) -> Any:
    """{"confirm": the name again}: deletes every record that is there now; offsets go on."""
    topic = find(console, request)
    if text_of(await request.json(), "confirm") != topic.name:
        raise BadQuery("the name does not match")
    admin = console.clients.admin()
    partitions = [TopicPartition(topic.name, each.partition) for each in topic.partitions]
    ends = await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    await admin.delete_records({partition: each.offset for partition, each in ends.items()})
    topic.starts = [ends[partition].offset for partition in partitions]
    console.audit("empty topic", topic.name)
    await console.collector.refresh()
    return {"ok": True}


async def produce(console: Console, request: Request) -> Any:
    """{"key", "value", "partition", "headers": [[name, text], ...]}; a key or value that is null is no text at all."""
    topic = find(console, request)
    body = await request.json()
    if not isinstance(body, dict):
        raise BadQuery("a record is an object")
    parts = {}
    for part in ("key", "value"):
        text = body.get(part)
        if text is not None and not isinstance(text, str):
            raise BadQuery(f"{part} is a text or null")
        parts[part] = None if text is None else text.encode()
    partition = body.get("partition")
    is_number = isinstance(partition, int) and not isinstance(partition, bool)
    if partition is not None and not (is_number and 0 <= partition < len(topic.partitions)):
        raise BadQuery(f"partition is a number below {len(topic.partitions)}")
    headers = body.get("headers") or []
    if not isinstance(headers, list) or not all(
        isinstance(each, list) and len(each) == 2 and all(isinstance(text, str) for text in each) for each in headers
    ):
        raise BadQuery("headers is a list of pairs of texts")
    async with console.clients.producer() as producer:
        delivery = await producer.send(
            topic.name,
            parts["value"],
            parts["key"],
            partition=partition,
            headers=[(name, text.encode()) for name, text in headers],
        )
        written = await delivery
    console.audit("produce", f"{topic.name}-{written.partition} offset {written.offset}")
    await console.collector.ensure_topics([topic.name], max_age=0)
    return {"partition": written.partition, "offset": written.offset}


ROUTES = (
    ("POST", "/topics/{name}/clone", clone_topic),
    ("POST", "/topics/{name}/empty", empty_topic),
    ("POST", "/topics/{name}/produce", produce),
)

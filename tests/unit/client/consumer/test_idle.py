"""batches(stop_when_idle=True) against a real broker; names that type checkers see; topics that are not created."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import barnabas
from barnabas import Admin, Consumer, Producer, aio
from barnabas.testing import Broker


def test_the_group_is_waited_for(barnabas_broker: Broker) -> None:
    with Producer(barnabas_broker.bootstrap) as producer:
        producer.send("t", b"v").result()
    barnabas_broker.fault("JoinGroup", delay_ms=300, count=2)
    with Consumer(barnabas_broker.bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["t"])
        found = [each.value for batch in consumer.batches(0.1, stop_when_idle=True) for each in batch]
    assert found == [b"v"]


def test_the_asyncio_twin_too(barnabas_broker: Broker) -> None:
    async def use() -> list[bytes | None]:
        async with aio.Producer(barnabas_broker.bootstrap) as producer:
            await (await producer.send("t", b"v"))
        barnabas_broker.fault("JoinGroup", delay_ms=300, count=2)
        async with aio.Consumer(barnabas_broker.bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["t"])
            return [each.value async for batch in consumer.batches(0.1, stop_when_idle=True) for each in batch]

    assert asyncio.run(use()) == [b"v"]


def test_a_missing_topic_is_not_created(barnabas_broker: Broker) -> None:
    with Consumer(barnabas_broker.bootstrap, group_id="g") as consumer, Admin(barnabas_broker.bootstrap) as admin:
        consumer.subscribe(["no-such"])
        assert list(consumer.batches(0.1, stop_when_idle=True)) == []
        assert "no-such" not in admin.list_topics()


def test_every_public_name_is_there() -> None:
    assert all(getattr(barnabas, name) is not None for name in barnabas.__all__)
    with Producer("127.0.0.1:1") as producer:
        assert barnabas.Delivery.__name__ == "Delivery" and producer is not None


def test_type_checkers_see_a_typo(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from barnabas import Prodcer\nfrom barnabas.aio import Consumr\nfrom barnabas import Delivery\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", str(tmp_path), str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'has no attribute "Prodcer"' in checked.stdout and 'has no attribute "Consumr"' in checked.stdout
    assert "Delivery" not in checked.stdout

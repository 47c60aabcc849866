"""A broker with several log directories, one of which is away for a while: only its partitions are."""

import asyncio
import shutil
from pathlib import Path

import pytest

from barnabas import Producer
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.server.broker import Broker as ServerBroker
from barnabas.server.broker import StartError, make_parts
from barnabas.testing import Broker

TOPICS = ("a", "b", "c", "d")


def leaders(broker: Broker) -> list[int]:
    image = broker._running().cluster.image
    return [image.topics[name].partitions[0].leader for name in TOPICS]


def served(broker: Broker) -> list[str]:
    """The topics whose log is open."""
    found = []
    for name in TOPICS:
        try:
            broker._running().replicas.find(name, 0)
        except KafkaError as error:
            assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
        else:
            found.append(name)
    return found


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_directory_is_away_and_comes_back(tmp_path: Path, end: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    broker = Broker({"log.dirs": f"{one},{two}"}, data_dir=tmp_path).start()
    for name in TOPICS:
        broker.create_topic(name)
    with Producer(broker.bootstrap) as producer:
        for name in TOPICS:
            producer.send(name, name.encode()).result(30)
    in_one = [name for name in TOPICS if (one / f"{name}-0").exists()]
    assert len(in_one) == 2
    getattr(broker, end)()
    shutil.move(two, tmp_path / "away")

    broker.start()
    assert served(broker) == in_one
    with Producer(broker.bootstrap) as producer:
        assert producer.send(in_one[0], b"more").result(30).offset == 1
    broker.create_topic("new")  # nobody can have had it before
    assert (one / "new-0").exists() and not two.exists()
    broker.stop()

    shutil.move(tmp_path / "away", two)
    broker.start()
    assert served(broker) == list(TOPICS) and leaders(broker) == [0, 0, 0, 0]
    assert [len(broker.records(name)) for name in TOPICS] == [2 if name == in_one[0] else 1 for name in TOPICS]
    broker.stop()


def test_a_broker_without_its_metadata_file_does_not_make_a_new_one(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "node.id": "0", "log.dirs": f"{one},{two}"}

    async def start_and_stop() -> None:
        broker = ServerBroker(make_parts(BrokerConfig.parse(settings)))
        await broker.start()
        await broker.stop()

    asyncio.run(start_and_stop())
    shutil.move(one, tmp_path / "away")
    with pytest.raises(StartError, match=r"the metadata file cannot be used: log directory .*one does not exist"):
        asyncio.run(start_and_stop())
    assert not one.exists()
    shutil.move(tmp_path / "away", one)
    asyncio.run(start_and_stop())

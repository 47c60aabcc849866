"""Which logs are set aside at the start, because their topic was deleted while the broker was away."""

from dataclasses import replace
from pathlib import Path

import pytest
from storage_logs import NOW

from barnabas.config.topic import TopicConfig
from barnabas.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from barnabas.server.stray_logs import StrayCheck
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import NO_TOPIC_ID, NodeId, TopicId, TopicPartition

NODE = NodeId(1)
OLD, NEW = TopicId(b"a" * 16), TopicId(b"b" * 16)
T0 = TopicPartition("t", 0)


def acquired(*paths: Path) -> LogDirectories:
    directories = LogDirectories([str(path) for path in paths])
    directories.acquire()
    directories.identify(NODE, "cluster")
    return directories


def written(path: Path, topic_id: TopicId) -> str:
    """Makes a directory with one log; returns the directory's id."""
    directories = acquired(path)
    directories.create_log(T0, topic_id, TopicConfig(), NOW)
    (directory_id,) = directories.epochs.ids
    directories.shutdown()
    return directory_id


def image(*directory_ids: str, adopted: bool = True, fenced: bool = False) -> ClusterImage:
    """Knows topic t by its new id."""
    brokers = {NODE: BrokerImage(NODE, (), directory_ids=directory_ids)}
    topic = TopicImage("t", NEW, ())
    return ClusterImage(
        brokers={} if fenced else brokers,
        fenced_brokers=brokers if fenced else {},
        topics={"t": topic},
        topic_names={NEW: "t"},
        folders_adopted=adopted,
    )


def loaded(known: ClusterImage, *paths: Path) -> list[TopicId]:
    directories = acquired(*paths)
    try:
        directories.load(lambda _: TopicConfig(), NOW, is_stray=StrayCheck(known, NODE).is_stray)
        directories.delete_due_files(NOW + 10**12)
        return [log.topic_id for log in directories]
    finally:
        directories.release()


@pytest.mark.parametrize("fenced", [False, True])
def test_a_log_of_a_deleted_topic_is_set_aside(tmp_path: Path, fenced: bool) -> None:
    directory_id = written(tmp_path, OLD)
    assert loaded(image(directory_id, fenced=fenced), tmp_path) == []
    assert not (tmp_path / "t-0").exists()
    (stray,) = tmp_path.glob("t-0.*-stray")
    assert (stray / "partition.metadata").exists(), "kept, as in Kafka"


@pytest.mark.parametrize(("replicas", "served"), [((2, 3), []), ((2, NODE), [NEW])])
def test_a_log_that_was_reassigned_to_others_is_set_aside(
    tmp_path: Path, replicas: tuple[int, ...], served: list[TopicId]
) -> None:
    known = image(written(tmp_path, NEW))
    topic = TopicImage("t", NEW, (PartitionImage(0, replicas, replicas[:1], replicas[0]),))
    assert loaded(replace(known, topics={"t": topic}), tmp_path) == served
    assert len(list(tmp_path.glob("t-0.*-stray"))) == 1 - len(served)


def test_a_log_of_a_known_topic_id_is_served(tmp_path: Path) -> None:
    assert loaded(image(written(tmp_path, NEW)), tmp_path) == [NEW]


def test_folders_that_the_store_has_not_adopted_are_left_alone(tmp_path: Path) -> None:
    directory_id = written(tmp_path, OLD)
    assert loaded(image(directory_id, adopted=False), tmp_path) == [OLD]
    assert loaded(image(), tmp_path) == [OLD], "the broker has never been in the cluster with this directory"
    assert loaded(ClusterImage(folders_adopted=True), tmp_path) == [OLD], "a broker that the cluster does not know"
    assert (tmp_path / "t-0").exists()


def test_a_folder_without_a_topic_id_is_left_alone(tmp_path: Path) -> None:
    assert loaded(image(written(tmp_path, NO_TOPIC_ID)), tmp_path) == [NO_TOPIC_ID]


def test_an_old_log_in_a_directory_that_was_offline_makes_room_for_the_new_one(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    known = image(written(one, OLD), written(two, NEW))
    assert loaded(known, one, two) == [NEW]

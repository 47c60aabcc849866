from barnabas.metadata.image import ClusterImage, Delta, PartitionImage, TopicImage
from barnabas.server.metrics.elections import ElectionCounter
from barnabas.types import TopicId

TOPIC_ID = TopicId(b"t" * 16)


def image_of(leader: int, in_sync: tuple[int, ...], eligible: tuple[int, ...] = ()) -> ClusterImage:
    partition = PartitionImage(0, (1, 2, 3), in_sync, leader, 0, 0, eligible_leader_replicas=eligible)
    topic = TopicImage("t", TOPIC_ID, (partition,))
    return ClusterImage(topics={"t": topic}, topic_names={TOPIC_ID: "t"})


def counted(before: ClusterImage, after: ClusterImage, *, is_controller: bool = True) -> tuple[int, int]:
    counter = ElectionCounter()
    topic = after.topics["t"]
    delta = Delta(before, after, partitions=((topic, topic.partitions[0]),))
    counter.on_delta(delta, is_controller=is_controller)
    return counter.elections, counter.unclean


def test_a_replica_in_sync_or_eligible_is_a_clean_choice() -> None:
    assert counted(image_of(1, (1, 2)), image_of(2, (2,))) == (1, 0)
    assert counted(image_of(-1, (), (3,)), image_of(3, (3,))) == (1, 0)


def test_any_other_replica_is_not() -> None:
    assert counted(image_of(1, (1,)), image_of(2, (2,))) == (1, 1)


def test_what_is_no_election_is_not_counted() -> None:
    assert counted(image_of(1, (1, 2)), image_of(1, (1,))) == (0, 0)
    assert counted(image_of(1, (1,)), image_of(-1, ())) == (0, 0)
    assert counted(ClusterImage(), image_of(1, (1,))) == (0, 0)


def test_only_the_controller_counts() -> None:
    assert counted(image_of(1, (1,)), image_of(2, (2,)), is_controller=False) == (0, 0)

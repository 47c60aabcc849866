"""The lag of each group. Also creates topics that are missing.

barnabas server &
python examples/group_lag.py localhost:9092 --create orders=6 --create bills=3
"""

import argparse

from barnabas import Admin, TopicPartition
from barnabas.client.admin.types import OffsetSpec


def create(admin: Admin, topics: dict[str, int]) -> None:
    """An existing topic is not changed."""
    for name, partitions in topics.items():
        created = admin.create_topic(name, partitions=partitions, if_not_exists=True)
        print(f"{name}: {'was there' if created.existed else 'created'}")


def lag(admin: Admin) -> dict[str, dict[TopicPartition, int]]:
    """Group -> partition -> records that the group has not committed yet."""
    groups = [group.group_id for group in admin.list_groups().values() if group.protocol_type in ("consumer", "")]
    committed = admin.list_groups_offsets(dict.fromkeys(groups))
    partitions = {partition for offsets in committed.values() for partition in offsets}
    ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST)) if partitions else {}
    return {
        group: {
            partition: max(0, ends[partition].offset - position.offset)
            for partition, position in offsets.items()
            if position is not None
        }
        for group, offsets in committed.items()
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("bootstrap")
    arguments.add_argument("--create", metavar="TOPIC=PARTITIONS", action="append", default=[])
    given = arguments.parse_args()
    topics = dict(each.split("=", 1) for each in given.create)
    with Admin(given.bootstrap) as admin:
        create(admin, {name: int(count) for name, count in topics.items()})
        for group, partitions in sorted(lag(admin).items()):
            print(f"{group}: {sum(partitions.values())} behind in {len(partitions)} partitions")


if __name__ == "__main__":
    main()

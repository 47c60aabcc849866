"""From topics to Parquet files, in columns all the way: without one Python object per record.

A file holds records of one partition and is named after the first of them. Offsets are committed when the files are
complete; after a crash the same records are read again from the same offset, so their file is replaced: each record is
in one file, once. One program reads all partitions, so that no rebalance happens between reading and committing; the
group only stores the offsets. Run it with a broker:

    barnabas server &
    python examples/arrow_to_parquet.py localhost:9092 orders files/
"""

import argparse
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from barnabas import Consumer


def export(
    bootstrap: str, topic: str, folder: Path, group: str, rows_a_file: int, until_idle: float | None = None
) -> int:
    """Runs forever, or until that many seconds pass without a record. Returns how many rows were written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.assign((topic, each.partition) for each in consumer.partitions_for(topic))
        while True:
            table = read(consumer, rows_a_file, until_idle or 2.0)
            if table.num_rows:
                write(table, topic, folder)
                consumer.commit()
                written += table.num_rows
            elif until_idle is not None:
                return written


def read(consumer: Consumer, rows_a_file: int, seconds: float) -> pa.Table:
    """As many rows as a file should have, fewer if no more arrive within that many seconds."""
    parts = [consumer.poll_arrow(timeout=seconds, max_records=rows_a_file)]
    rows = parts[0].num_rows
    while parts[-1].num_rows and rows < rows_a_file:
        parts.append(consumer.poll_arrow(timeout=seconds, max_records=rows_a_file - rows))
        rows += parts[-1].num_rows
    return pa.Table.from_batches(parts)


def write(table: pa.Table, topic: str, folder: Path) -> None:
    """One file per partition, visible only when it is complete."""
    for partition in pc.unique(table["partition"]).to_pylist():
        rows = table.filter(pc.equal(table["partition"], partition))
        name = f"{topic}-{partition}-{rows['offset'][0].as_py():020}.parquet"
        pq.write_table(rows, folder / f".{name}")
        os.replace(folder / f".{name}", folder / name)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("bootstrap")
    arguments.add_argument("topic")
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--group", default="arrow-to-parquet")
    arguments.add_argument("--rows", type=int, default=1_000_000, help="rows per file")
    arguments.add_argument("--until-idle", type=float, metavar="SECONDS", help="stop after this time without records")
    given = arguments.parse_args()
    try:
        rows = export(given.bootstrap, given.topic, given.folder, given.group, given.rows, given.until_idle)
        print(f"{rows} rows written")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()

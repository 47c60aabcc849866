"""Whether a pipeline with a new checkpoint would write its output again. Called once, before it starts.

The record of what was written belongs to a checkpoint. A new one has none: everything in ODS is split again, and
readers of the output see it twice. That may be intended, so it is a warning and not an error.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.types import OffsetSpec
from barnabas.errors import KafkaError
from barnabas.pipeline.routing import Routing
from barnabas.pipeline.warehouse import ODS_PARTITIONS, topics
from barnabas.types import TopicPartition

_NAMED: Final = 3
_PATIENCE_S: Final = 10.0
"""A partition without a leader must not keep the pipeline from starting."""


def earlier_output_warning(admin: Admin, checkpoint: str, routing: Routing) -> str | None:
    """For a new checkpoint that starts at the earliest offsets. None: nothing is written twice, or it is not known."""
    try:
        written = _with_records(admin, [plan.name for plan in topics(routing, with_sources=False)])
        if not written or not _with_records(admin, ODS_PARTITIONS):
            return None
    except KafkaError:
        return None
    more = f" and {len(written) - _NAMED} more" if len(written) > _NAMED else ""
    return (
        f"warning: the checkpoint {checkpoint} is new, but the output topics already hold records"
        f" ({', '.join(written[:_NAMED])}{more}): everything in ODS is written there again."
        " To continue an earlier run, use its --checkpoint; to process only new records,"
        " --starting-offsets latest; to rebuild the output, delete those topics first"
    )


def _with_records(admin: Admin, names: Iterable[str]) -> list[str]:
    """Those of the topics that have records."""
    known = admin.list_topics(timeout=_PATIENCE_S)
    there = [name for name in names if name in known]
    partitions = [TopicPartition(name, each) for name in there for each in range(known[name].partitions)]
    begins = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST), timeout=_PATIENCE_S)
    ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST), timeout=_PATIENCE_S)
    holding = {tp.topic for tp in partitions if begins[tp].offset < ends[tp].offset}
    return [name for name in there if name in holding]

"""The default warehouse: topics with their partitions, and the routing of its tables."""

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.pipeline.events import LOG_TOPICS
from barnabas.pipeline.ods_records import DIRTY_TOPIC
from barnabas.pipeline.routing import Kind, Routing
from barnabas.pipeline.split import CHANGE_TOPIC, LOG_TOPIC

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

ODS_PARTITIONS: Final = {LOG_TOPIC: 6, CHANGE_TOPIC: 3}
DWD_PARTITIONS: Final = 3
DIM_PARTITIONS: Final = 2
DIRTY_PARTITIONS: Final = 2
RETENTION_MS: Final = 3 * 24 * 3600 * 1000
LARGEST_ROW: Final = 4 * 1024 * 1024
"""In bytes. A record of 1 MiB, the maximum in ODS, makes rows of twice that if most of it is its key.

If a topic rejected a row, the query could never get past the record.
"""
_LARGE: Final = {"max.message.bytes": str(LARGEST_ROW)}

DEFAULT_ROUTING: Final = """\
# Which table is a fact or a dimension. A new table needs a section here and no code; see barnabas.pipeline.routing.
[tables.order_info]
kind = "fact"
[tables.order_detail]
kind = "fact"
[tables.payment_info]
kind = "fact"
[tables.order_refund_info]
kind = "fact"
[tables.user_info]
kind = "dimension"
[tables.sku_info]
kind = "dimension"
[tables.spu_info]
kind = "dimension"
[tables.base_province]
kind = "dimension"
[tables.base_region]
kind = "dimension"
[tables.base_trademark]
kind = "dimension"
[tables.base_category1]
kind = "dimension"
[tables.base_category2]
kind = "dimension"
[tables.base_category3]
kind = "dimension"
[tables.base_dic]
kind = "dimension"
[tables.activity_info]
kind = "dimension"
[tables.coupon_info]
kind = "dimension"
"""


class TopicPlan(NamedTuple):
    name: str
    partitions: int
    config: dict[str, str]


def topics(routing: Routing, *, with_sources: bool) -> list[TopicPlan]:
    """The topics that the pipeline writes to, and with `with_sources` those that it reads from."""
    kept = {"retention.ms": str(RETENTION_MS)}
    plans = [TopicPlan(name, count, kept) for name, count in ODS_PARTITIONS.items()] if with_sources else []
    plans += [TopicPlan(name, DWD_PARTITIONS, kept | _LARGE) for name in LOG_TOPICS]
    plans.append(TopicPlan(DIRTY_TOPIC, DIRTY_PARTITIONS, kept | _LARGE))
    return plans + [_routed(name, kind, kept) for name, kind in routing.topics.items()]


def create_missing_topics(admin: "Admin", routing: Routing, *, with_sources: bool) -> None:
    """Called before a pipeline starts, and before a new routing takes effect."""
    known = set(admin.list_topics())
    for plan in topics(routing, with_sources=with_sources):
        if plan.name not in known:
            admin.create_topic(plan.name, plan.partitions, config=plan.config, if_not_exists=True)


def _routed(name: str, kind: Kind, kept: dict[str, str]) -> TopicPlan:
    if kind == "dimension":
        return TopicPlan(name, DIM_PARTITIONS, {"cleanup.policy": "compact"} | _LARGE)
    return TopicPlan(name, DWD_PARTITIONS, kept | _LARGE)

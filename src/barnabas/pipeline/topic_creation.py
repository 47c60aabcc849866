"""Creates the warehouse's topics that are missing. Before a pipeline starts, and before a new routing holds."""

from barnabas.client.admin.admin import Admin
from barnabas.pipeline.routing import Routing
from barnabas.pipeline.warehouse import topics


def create_missing_topics(admin: Admin, routing: Routing, *, with_sources: bool) -> None:
    known = set(admin.list_topics())
    for plan in topics(routing, with_sources=with_sources):
        if plan.name not in known:
            admin.create_topic(plan.name, plan.partitions, config=plan.config, if_not_exists=True)

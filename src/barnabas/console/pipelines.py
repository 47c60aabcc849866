"""What a pipeline (ODS -> DWD and DIM) is doing: files beside its checkpoint, as `barnabas pipeline status` reads them.

Paths come from the console's own options, never from a browser.
"""

from dataclasses import dataclass, field
from typing import Any

from barnabas.pipeline.checkpoint import checkpoint_exists, checkpoint_owner
from barnabas.pipeline.progress import UnroutedChanges, last_batches, query_state
from barnabas.pipeline.routing import Routing
from barnabas.pipeline.routing_log import RoutingLog


@dataclass(frozen=True, slots=True)
class PipelineFiles:
    """One look at a checkpoint. `name` is that of the query, and of its group."""

    checkpoint: str
    name: str | None
    problem: str | None
    state: dict[str, Any] = field(default_factory=dict)
    batches: list[dict[str, Any]] = field(default_factory=list)
    unrouted: dict[str, int] = field(default_factory=dict)
    routing: Routing | None = None
    routing_since: int | None = None
    """The first batch that was routed by it."""


def read_pipeline(checkpoint: str) -> PipelineFiles:
    """Blocks: for a thread."""
    if not checkpoint_exists(checkpoint):
        return PipelineFiles(checkpoint, None, f"there is no checkpoint {checkpoint} yet")
    name = checkpoint_owner(checkpoint)
    state = query_state(checkpoint)
    log = RoutingLog(checkpoint)
    versions = log.versions()
    return PipelineFiles(
        checkpoint,
        name,
        {
            "silent": "the driver is dead: start the pipeline again with the same checkpoint, it goes on by itself",
            "failed": f"the query has failed: {state.failure}",
            "unknown": "no driver has written to this checkpoint",
        }.get(state.state),
        state._asdict(),
        last_batches(checkpoint),
        UnroutedChanges(checkpoint).read(),
        log.for_batch(versions[-1]) if versions else None,
        versions[-1] if versions else None,
    )

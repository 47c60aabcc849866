"""`barnabas pipeline status`: whether a pipeline runs, its rates, its lag and its last batches."""

import argparse
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.cli.command import UsageError, add_json_argument
from barnabas.cli.commands.pipeline_topics import DEFAULT_CHECKPOINT, DEFAULT_NAME, absolute
from barnabas.cli.exit_status import FAILED
from barnabas.cli.output import print_fields, print_json, print_table

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.types import TopicPartition

_CLEAR: Final = "\x1b[H\x1b[2J"
_NAMED: Final = 10
_STATES: Final = {
    "running": "running",
    "silent": "dead: its driver was killed, or cannot write to the checkpoint",
    "stopped": "stopped",
    "failed": "failed",
    "unknown": "unknown: no driver has written to this checkpoint",
}


def status_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=DEFAULT_NAME, help=f"of the query (default {DEFAULT_NAME})")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, metavar="DIR", help="of the query, for its batches")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="to measure for (default 1)")
    parser.add_argument("--watch", action="store_true", help="again and again, until Ctrl-C")
    add_json_argument(parser)


def status(options: argparse.Namespace) -> int | None:
    """FAILED if there is no such pipeline, or its driver is dead."""
    from barnabas.cli.connection import admin_client

    if options.interval <= 0:
        raise UsageError("--interval must be more than 0")
    with admin_client(options) as admin:
        before = _look(admin, options.name)
        while True:
            time.sleep(options.interval)
            now = _look(admin, options.name)
            report = report_of(before, now, absolute(options.checkpoint), options.name)
            _show(report, options)
            if not options.watch:
                return _report_problem(report)
            before = now


class Look(NamedTuple):
    """Where the query and its sources are at one moment."""

    moment: float
    done: "Mapping[TopicPartition, int]"
    ends: "Mapping[TopicPartition, int]"


def _look(admin: "Admin", name: str) -> Look:
    from barnabas.client.admin.types import OffsetSpec

    done = {tp: each.offset for tp, each in admin.list_group_offsets(name).items() if each is not None}
    ends = admin.list_offsets(dict.fromkeys(done, OffsetSpec.LATEST)) if done else {}
    return Look(time.monotonic(), done, {tp: each.offset for tp, each in ends.items()})


def report_of(before: Look, now: Look, checkpoint: str, name: str) -> dict[str, Any]:
    from barnabas.pipeline.progress import UnroutedChanges, last_batches, query_state

    batches = last_batches(checkpoint)
    state = query_state(checkpoint)
    partitions = [
        {"partition": str(tp), "offset": offset, "end": now.ends[tp], "lag": now.ends[tp] - offset}
        for tp, offset in sorted(now.done.items())
    ]
    return {
        "query": state._asdict(),
        "problem": problem_of(checkpoint, name, state.state, has_group=bool(now.done)),
        "now": {
            "seconds": now.moment - before.moment,
            "arriving_per_second": _growth(before.ends, now.ends) / (now.moment - before.moment),
            "taken_per_second": _growth(before.done, now.done) / (now.moment - before.moment),
            "lag": sum(each["lag"] for each in partitions),
        },
        "last_batches": averages(batches),
        "unrouted": UnroutedChanges(checkpoint).read(),
        "partitions": partitions,
        "batches": batches,
    }


def problem_of(checkpoint: str, name: str, state: str, *, has_group: bool) -> str | None:
    """Why there is nothing to report on, or nobody works; None if a driver runs, or was stopped on purpose."""
    from barnabas.pipeline.checkpoint import checkpoint_exists, checkpoint_owner

    how = "give the one of `pipeline run` as --checkpoint"
    if not checkpoint_exists(checkpoint):
        return f"there is no checkpoint {checkpoint}: {how}"
    owner = checkpoint_owner(checkpoint)
    if owner is not None and owner != name:
        return f"{checkpoint} is the checkpoint of pipeline {owner}, not of {name}: give --name {owner}"
    if owner is None and not has_group:
        return f"there is no pipeline {name}: neither a group nor the checkpoint {checkpoint} is known by that name"
    return {
        "silent": f"the driver of {name} is dead: start `pipeline run` with the same checkpoint, it goes on by itself",
        "failed": f"{name} has failed: start `pipeline run` with the same checkpoint when the cause is gone",
        "unknown": f"no driver has written to {checkpoint}: {how}",
    }.get(state)


def _report_problem(report: dict[str, Any]) -> int | None:
    if report["problem"] is None:
        return None
    print(f"barnabas pipeline status: {report['problem']}", file=sys.stderr)
    return FAILED


def _growth(before: "Mapping[TopicPartition, int]", after: "Mapping[TopicPartition, int]") -> int:
    """Of what is in both: a partition that came in between began somewhere else."""
    return sum(max(0, offset - before[tp]) for tp, offset in after.items() if tp in before)


def averages(batches: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Over the time from the beginning of the first to the end of the last, waiting for records included."""
    if not batches:
        return None
    first, last = (datetime.fromisoformat(each["at"]).timestamp() for each in (batches[0], batches[-1]))
    seconds = last + batches[-1]["seconds"] - first
    written = [each.get("rows_out") for each in batches]
    out = None if None in written or not seconds else sum(map(int, filter(None, written))) / seconds
    return {
        "count": len(batches),
        "in_per_second": sum(each["rows"] for each in batches) / seconds if seconds else 0.0,
        "out_per_second": out,
        "seconds_per_batch": sum(each["seconds"] for each in batches) / len(batches),
    }


def _show(report: dict[str, Any], options: argparse.Namespace) -> None:
    if options.json:
        print_json(report)
        return
    if options.watch and sys.stdout.isatty():
        print(_CLEAR, end="")
    print_fields({options.name: _state_text(report["query"]), **_rate_texts(report)})
    if report["partitions"]:
        print()
        print_table(
            ["PARTITION", "OFFSET", "END", "LAG"],
            [(each["partition"], each["offset"], each["end"], each["lag"]) for each in report["partitions"]],
        )
    if report["batches"]:
        print()
        print_table(["BATCH", "AT", "IN", "OUT", "SECONDS", "IN/S", "LAG"], map(_batch_row, report["batches"]))
    sys.stdout.flush()


def _batch_row(batch: dict[str, Any]) -> list[object]:
    rate = round(batch["rows_per_second"])
    return [*(batch.get(name) for name in ("batch", "at", "rows", "rows_out", "seconds")), rate, batch.get("lag")]


def _state_text(query: dict[str, Any]) -> str:
    text = _STATES[query["state"]]
    if query["failure"]:
        text += f": {query['failure']}"
    if query["pid"] is not None:
        text += f" (driver {query['pid']} on {query['host']}, last heard {query['seconds_ago']:.0f} s ago)"
    return text


def _rate_texts(report: dict[str, Any]) -> dict[str, str]:
    now, last = report["now"], report["last_batches"]
    texts = {
        "now": f"{now['arriving_per_second']:,.0f} records/s come in, {now['taken_per_second']:,.0f}/s are taken,"
        f" lag {now['lag']:,}"
    }
    if report["unrouted"]:
        tables = [
            f"{table} {count:,}" for table, count in sorted(report["unrouted"].items(), key=lambda each: -each[1])
        ]
        more = f" and {len(tables) - _NAMED} more tables" if len(tables) > _NAMED else ""
        texts["no route"] = f"changes of {', '.join(tables[:_NAMED])}{more}"
    if last is not None:
        out = "" if last["out_per_second"] is None else f", {last['out_per_second']:,.0f} records/s out"
        texts["last batch" if last["count"] == 1 else f"last {last['count']} batches"] = (
            f"{last['in_per_second']:,.0f} records/s in{out}, {last['seconds_per_batch']:.2f} s a batch"
        )
    return texts

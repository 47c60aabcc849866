"""`barnabas pipeline status`: whether a pipeline runs, its rates, its lag and its last batches."""

import argparse
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.cli.command import UsageError, add_json_argument
from barnabas.cli.commands.pipeline_topics import DEFAULT_CHECKPOINT, DEFAULT_NAME, absolute
from barnabas.cli.output import print_fields, print_json, print_table

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.types import TopicPartition

_CLEAR: Final = "\x1b[H\x1b[2J"
_STATES: Final = {
    "running": "running",
    "silent": "not heard of: its driver was killed, or cannot write to the checkpoint",
    "stopped": "stopped",
    "failed": "failed",
    "unknown": "unknown: no driver has written to this checkpoint (give the one of `pipeline run` as --checkpoint)",
}


def status_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=DEFAULT_NAME, help=f"of the query (default {DEFAULT_NAME})")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, metavar="DIR", help="of the query, for its batches")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="to measure for (default 1)")
    parser.add_argument("--watch", action="store_true", help="again and again, until Ctrl-C")
    add_json_argument(parser)


def status(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client

    if options.interval <= 0:
        raise UsageError("--interval must be more than 0")
    with admin_client(options) as admin:
        before = _look(admin, options.name)
        while True:
            time.sleep(options.interval)
            now = _look(admin, options.name)
            _show(report_of(before, now, absolute(options.checkpoint)), options)
            if not options.watch:
                return
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


def report_of(before: Look, now: Look, checkpoint: str) -> dict[str, Any]:
    from barnabas.pipeline.progress import last_batches, query_state

    batches = last_batches(checkpoint)
    partitions = [
        {"partition": str(tp), "offset": offset, "end": now.ends[tp], "lag": now.ends[tp] - offset}
        for tp, offset in sorted(now.done.items())
    ]
    return {
        "query": query_state(checkpoint)._asdict(),
        "now": {
            "seconds": now.moment - before.moment,
            "arriving_per_second": _growth(before.ends, now.ends) / (now.moment - before.moment),
            "taken_per_second": _growth(before.done, now.done) / (now.moment - before.moment),
            "lag": sum(each["lag"] for each in partitions),
        },
        "last_batches": averages(batches),
        "partitions": partitions,
        "batches": batches,
    }


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
    if last is not None:
        out = "" if last["out_per_second"] is None else f", {last['out_per_second']:,.0f} records/s out"
        texts["last batch" if last["count"] == 1 else f"last {last['count']} batches"] = (
            f"{last['in_per_second']:,.0f} records/s in{out}, {last['seconds_per_batch']:.2f} s a batch"
        )
    return texts

"""The dump itself: files by their kind, lines to stdout, faults to the exit status. Called by command.py."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from barnabas.cli.dump import decoders, files, text
from barnabas.cli.dump.faults import Faults
from barnabas.cli.dump.files import Row
from barnabas.cli.dump.indexes import offset_index_rows, time_index_rows
from barnabas.cli.dump.json_form import JsonForm
from barnabas.cli.dump.quorum import metadata_decoder
from barnabas.cli.dump.segments import DAMAGED, segment_lines
from barnabas.cli.exit_status import FAILED, USAGE_ERROR
from barnabas.storage.producer_snapshot import CorruptSnapshotError
from barnabas.storage.sparse_index import CorruptIndexError


def dump(options: argparse.Namespace, *, as_kafka: bool) -> int:
    if options.max_bytes is None:
        options.max_bytes = files.ALL
    try:
        decoder = _decoder(options)
    except KeyError as error:
        known = "StringDecoder, IntegerDecoder, LongDecoder, DefaultDecoder"
        print(f"There is no decoder {error.args[0]!r} here; there are {known}.", file=sys.stderr)
        return FAILED if as_kafka else USAGE_ERROR
    faults = Faults(as_kafka=as_kafka)
    for path in options.files:
        if not options.json:
            print(f"Dumping {path}")
        for line in _readable_lines(path, options, decoder, faults):
            print(line)
    faults.report()
    return faults.status


def _decoder(options: argparse.Namespace) -> decoders.Decoder | None:
    if options.offsets_decoder:
        return decoders.offsets_decoder
    if options.transaction_log_decoder:
        return decoders.transaction_decoder
    if options.cluster_metadata_decoder:
        return metadata_decoder
    if options.key_decoder_class or options.value_decoder_class or options.print_data_log:
        return decoders.by_class(options.key_decoder_class, options.value_decoder_class)
    return None


def _readable_lines(
    path: Path, options: argparse.Namespace, decoder: decoders.Decoder | None, faults: Faults
) -> Iterator[str]:
    """Ends where the file does, or where it cannot be read. Whether a line can be printed is no matter of the file."""
    try:
        yield from _lines(path, options, decoder, faults)
    except CorruptSnapshotError as error:
        if faults.as_kafka:
            print(error, file=sys.stderr)
        else:
            faults.unreadable_file(path, error)
    except (OSError, CorruptIndexError, files.UnreadableFileError, *DAMAGED) as error:
        faults.unreadable_file(path, error)


def _lines(path: Path, options: argparse.Namespace, decoder: decoders.Decoder | None, faults: Faults) -> Iterator[str]:
    if path.suffix in (".log", ".checkpoint"):
        form = JsonForm(decoder) if options.json else text.TextForm(decoder, options.skip_record_metadata)
        deep = options.deep_iteration or decoder is not None
        return segment_lines(path, form, faults, deep=deep, max_bytes=options.max_bytes)
    rows = _rows(path, options, faults)
    if options.json:
        return (json.dumps({"file": str(path), **row.fields}) for row in rows if row.fields is not None)
    return (row.text for row in rows)


def _rows(path: Path, options: argparse.Namespace, faults: Faults) -> Iterator[Row]:
    checks = {"sanity_only": options.index_sanity_check, "verify_only": options.verify_index_only}
    if path.suffix == ".index":
        return offset_index_rows(path, faults, **checks)
    if path.suffix == ".timeindex":
        return time_index_rows(path, faults, **checks)
    if path.suffix == ".txnindex":
        return text.transaction_index_rows(path)
    if path.suffix == ".snapshot":
        return text.producer_snapshot_rows(path)
    if faults.as_kafka:
        print(f"Ignoring unknown file {path}", file=sys.stderr)
        return iter(())
    path.open("rb").close()  # one that is not there, or that nobody may read, is called that
    raise files.UnreadableFileError("not a file of a log: expected .log .index .timeindex .txnindex or .snapshot")

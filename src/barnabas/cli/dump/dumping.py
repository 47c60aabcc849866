"""The dump itself: files by their kind, lines to stdout, faults to the exit status. Called by command.py."""

import argparse
import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from barnabas.cli.dump import decoders, files, text
from barnabas.cli.dump.indexes import IndexFaults, offset_index_lines, time_index_lines
from barnabas.cli.dump.quorum import metadata_decoder
from barnabas.storage.sparse_index import CorruptIndexError

FAULT_FOUND = 1
WRONG_USE = 2


def dump(options: argparse.Namespace) -> int:
    if options.max_bytes is None:
        options.max_bytes = files.ALL
    try:
        decoder = _decoder(options)
    except KeyError as error:
        known = "StringDecoder, IntegerDecoder, LongDecoder, DefaultDecoder"
        print(f"There is no decoder {error.args[0]!r} here; there are {known}.", file=sys.stderr)
        return WRONG_USE
    faults = IndexFaults()
    failed = False
    for path in options.files:
        if not options.json:
            print(f"Dumping {path}")
        try:
            for line in _lines(path, options, decoder, faults):
                print(line)
        except (OSError, CorruptIndexError, files.UnreadableFileError, ValueError) as error:
            print(f"{path} cannot be read: {error}", file=sys.stderr)
            failed = True
    faults.report()
    return FAULT_FOUND if failed or faults.any else 0


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


def _lines(
    path: Path, options: argparse.Namespace, decoder: decoders.Decoder | None, faults: IndexFaults
) -> Iterator[str]:
    checks = {"sanity_only": options.index_sanity_check, "verify_only": options.verify_index_only}
    if path.suffix in (".log", ".checkpoint"):
        return _segment_lines(path, options, decoder, faults)
    if path.suffix == ".index":
        return offset_index_lines(path, faults, **checks)
    if path.suffix == ".timeindex":
        return time_index_lines(path, faults, **checks)
    if path.suffix == ".txnindex":
        return text.transaction_index_lines(path)
    if path.suffix == ".snapshot":
        return text.producer_snapshot_lines(path)
    print(f"Ignoring unknown file {path}", file=sys.stderr)
    return iter(())


def _segment_lines(
    path: Path, options: argparse.Namespace, decoder: decoders.Decoder | None, faults: IndexFaults
) -> Iterator[str]:
    deep = options.deep_iteration or decoder is not None
    if options.json:
        yield from _json_lines(path, deep, decoder, options.max_bytes)
        return
    gaps: list[tuple[int, int]] = []
    yield from text.log_lines(
        path,
        deep=deep,
        decoder=decoder,
        skip_metadata=options.skip_record_metadata,
        max_bytes=options.max_bytes,
        gaps=gaps,
    )
    if gaps:
        faults.gaps[path] = gaps


def _json_lines(path: Path, deep: bool, decoder: decoders.Decoder | None, max_bytes: int) -> Iterator[str]:
    for batch in files.batches(files.read_content(path, max_bytes)):
        row = {
            "file": str(path),
            "position": batch.position,
            **batch.header._asdict(),
            "last_offset": batch.header.last_offset,
            "valid": batch.is_valid,
        }
        yield json.dumps(row)
        if not deep:
            continue
        for record in batch.records():
            key, payload = decoder(record) if decoder else (_base64(record.key), _base64(record.value))
            headers = [[name, _base64(value)] for name, value in record.headers]
            row = {"offset": record.offset, "timestamp": record.timestamp, "key": key, "value": payload}
            yield json.dumps({**row, "headers": headers})


def _base64(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()

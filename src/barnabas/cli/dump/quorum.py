"""Records of Kafka's own metadata log and control records of its quorum, as Kafka's dump tool shows them."""

from typing import Any, Final

from barnabas.cli.dump.message_json import compact, message_tree
from barnabas.errors import ProtocolError
from barnabas.metadata import kraft_other_records as kraft
from barnabas.metadata.kraft_records import TOPIC_RECORDS, read_kraft_frame
from barnabas.protocol.compiler import decode, schema_of
from barnabas.protocol.versioned import read_int16
from barnabas.records import ControlType, Record

_DAMAGED: Final = (ProtocolError, IndexError, ValueError)
_BY_TYPE: Final[dict[int | None, type[Any]]] = {
    schema_of(each).record_type: each for each in (*TOPIC_RECORDS, *kraft.OTHER_RECORDS)
}
_CONTROL: Final[dict[ControlType, tuple[str, type[Any]]]] = {
    ControlType.LEADER_CHANGE: ("LeaderChange:", kraft.LeaderChangeMessage),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", kraft.SnapshotHeaderRecord),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", kraft.SnapshotFooterRecord),
    ControlType.KRAFT_VERSION: ("KRaftVersion", kraft.KRaftVersionRecord),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", kraft.VotersRecord),
}


def metadata_decoder(record: Record) -> tuple[str | None, str | None]:
    """A record of `__cluster_metadata`, which has no key."""
    try:
        record_type, version, position = read_kraft_frame(record.value or b"")
        if record_type not in _BY_TYPE:
            return None, f"Error at {record.offset}, skipping. Unknown metadata id {record_type}"
        message = decode(_BY_TYPE[record_type], version, record.value or b"", position)[0]
    except _DAMAGED as error:
        return None, f"Error at {record.offset}, skipping. {error}"
    words = "".join(f"_{letter}" if letter.isupper() else letter for letter in schema_of(message).name)
    shown = {"type": words.lstrip("_").upper(), "version": version, "data": message_tree(message, version)}
    return None, compact(shown)


def control_words(kind: ControlType, record: Record) -> str:
    """What a control record of the quorum says; transaction markers are not among them."""
    if kind not in _CONTROL:
        return f"controlType: {kind.name}({kind.value})"
    title, declared = _CONTROL[kind]
    value = record.value or b""
    try:
        version = min(read_int16(value), schema_of(declared).max_version)
        message = decode(declared, version, value)[0]
    except _DAMAGED as error:
        return f"{title} cannot be read ({error})"
    return f"{title} {compact(message_tree(message, version))}"

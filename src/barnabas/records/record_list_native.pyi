from barnabas.records.record import Record

def read_list(
    payload: bytes, position: int, base_offset: int, base_timestamp: int, append_time: int | None, count: int
) -> tuple[list[Record], int] | None: ...

from barnabas.records.record import Record

def read_list(
    payload: bytes, base_offset: int, base_timestamp: int, append_time: int | None, count: int
) -> list[Record] | None: ...

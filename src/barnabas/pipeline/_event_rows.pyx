# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""`_event_rows_pure` in C for the events that apps send: the same rows, byte for byte, without an object for each field.

An event is read once; of each field only where it stands is kept, and rows are joined from these pieces. That gives what
reading and writing the JSON would give as long as a value is written as it was read: strings without escapes, whole
numbers, true, false, null. An event with anything else in its columns (or any fault, or a field that is there twice)
goes to the rules in `events`, which decide alone; nothing of it has been written or noted by then.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memset, strlen

import orjson
import pyarrow

from barnabas.pipeline.events import LOG_TOPICS, MOST_ROW_BYTES, EventSplitter

cdef enum:
    START
    PAGE
    DISPLAY
    ACTION
    ERROR
    TOPICS

cdef enum:
    MOST_DIGITS = 18
    DEEPEST = 16
    MOST_FIELDS = 9

cdef const char* NULL_TEXT = "null"
cdef Py_ssize_t MOST_REPEATED = MOST_ROW_BYTES
cdef Py_ssize_t MOST_BYTES = 1 << 30
"""Of one topic's values: offsets in Arrow's binary columns have 32 bits."""


cdef struct Piece:
    const uint8_t* start
    Py_ssize_t length


cdef struct Name:
    const char* text
    Py_ssize_t length


cdef struct Fields:
    Piece field[MOST_FIELDS]


cdef struct Buffer:
    uint8_t* data
    Py_ssize_t size
    Py_ssize_t capacity


cdef struct Rows:
    Buffer values
    Buffer value_ends
    Buffer keys
    Buffer key_ends
    Buffer has_key
    Py_ssize_t count
    Py_ssize_t nulls


cdef struct Reader:
    const uint8_t* at
    const uint8_t* end
    bint ascii


cdef inline Name named(const char* text) noexcept nogil:
    cdef Name name
    name.text = text
    name.length = <Py_ssize_t>strlen(text)
    return name


# What is read; the order is that of the pieces in Fields.
cdef enum:
    MID, UID, AR, CH, IS_NEW, MD, OS, VC, BA, COMMON_FIELDS
cdef enum:
    PAGE_ID, LAST_PAGE_ID, PAGE_ITEM, PAGE_ITEM_TYPE, DURING_TIME, SOURCE_TYPE, SOURCE_TYPE_TOO, PAGE_FIELDS
cdef enum:
    ENTRY, OPEN_AD_ID, LOADING_TIME, LOADING_TIME_TOO, OPEN_AD_MS, OPEN_AD_SKIP_MS, START_FIELDS
cdef enum:
    DISPLAY_TYPE, DISPLAY_TYPE_TOO, DISPLAY_ITEM, DISPLAY_ITEM_TYPE, DISPLAY_ORDER, DISPLAY_POS_ID, DISPLAY_FIELDS
cdef enum:
    ACTION_ID, ACTION_ITEM, ACTION_ITEM_TYPE, ACTION_TS, ACTION_FIELDS
cdef enum:
    E_COMMON, E_PAGE, E_START, E_DISPLAYS, E_ACTIONS, E_ERR, E_TS, EVENT_FIELDS

cdef Name[COMMON_FIELDS] COMMON_NAMES = [
    named("mid"), named("uid"), named("ar"), named("ch"), named("is_new"), named("md"),
    named("os"), named("vc"), named("ba"),
]
cdef Name[PAGE_FIELDS] PAGE_NAMES = [
    named("page_id"), named("last_page_id"), named("item"), named("item_type"), named("during_time"),
    named("source_type"), named("sourceType"),
]
cdef Name[START_FIELDS] START_NAMES = [
    named("entry"), named("open_ad_id"), named("loading_time"), named("loading_time_ms"),
    named("open_ad_ms"), named("open_ad_skip_ms"),
]
cdef Name[DISPLAY_FIELDS] DISPLAY_NAMES = [
    named("display_type"), named("displayType"), named("item"), named("item_type"), named("order"),
    named("pos_id"),
]
cdef Name[ACTION_FIELDS] ACTION_NAMES = [
    named("action_id"), named("item"), named("item_type"), named("ts"),
]
cdef Name[EVENT_FIELDS] EVENT_NAMES = [
    named("common"), named("page"), named("start"), named("displays"), named("actions"), named("err"),
    named("ts"),
]


cdef inline void skip_blanks(Reader* reader) noexcept nogil:
    while reader.at < reader.end and reader.at[0] in (32, 10, 13, 9):
        reader.at += 1


cdef inline bint take(Reader* reader, uint8_t wanted) noexcept nogil:
    """Whether the next that is no blank is `wanted`; it is passed then."""
    skip_blanks(reader)
    if reader.at < reader.end and reader.at[0] == wanted:
        reader.at += 1
        return True
    return False


cdef bint read_string(Reader* reader, Piece* piece, bint may_escape) noexcept nogil:
    """From its quote to its quote. Escapes (the short ones) only where the text is not used."""
    cdef const uint8_t* at = reader.at + 1
    cdef const uint8_t* end = reader.end
    cdef uint8_t seen = 0
    cdef uint8_t letter
    piece.start = reader.at
    while at < end:
        letter = at[0]
        if letter == 34:
            at += 1
            piece.length = at - piece.start
            reader.at = at
            reader.ascii = reader.ascii and seen < 0x80
            return True
        if letter < 32:
            return False
        if letter == 92:
            if not may_escape or at + 1 >= end or at[1] not in (34, 92, 47, 98, 102, 110, 114, 116):
                return False
            at += 1
        seen |= letter
        at += 1
    return False


cdef bint read_number(Reader* reader, Piece* piece) noexcept nogil:
    """A whole number, as it would be written again."""
    cdef const uint8_t* at = reader.at
    cdef const uint8_t* digits
    piece.start = at
    if at[0] == 45:
        at += 1
    digits = at
    while at < reader.end and 48 <= at[0] <= 57:
        at += 1
    if at == digits or at - digits > MOST_DIGITS:
        return False
    if digits[0] == 48 and (at - digits > 1 or digits != piece.start):
        return False
    if at < reader.end and at[0] in (46, 101, 69):
        return False
    piece.length = at - piece.start
    reader.at = at
    return True


cdef bint read_word(Reader* reader, Piece* piece, const char* word, Py_ssize_t length) noexcept nogil:
    if reader.end - reader.at < length or memcmp(reader.at, word, <size_t>length) != 0:
        return False
    piece.start = reader.at
    piece.length = length
    reader.at += length
    return True


cdef bint read_plain(Reader* reader, Piece* piece, bint may_escape) noexcept nogil:
    """A value that is written as it was read."""
    skip_blanks(reader)
    if reader.at >= reader.end:
        return False
    cdef uint8_t letter = reader.at[0]
    if letter == 34:
        return read_string(reader, piece, may_escape)
    if letter == 45 or 48 <= letter <= 57:
        return read_number(reader, piece)
    if letter == 110:
        return read_word(reader, piece, "null", 4)
    if letter == 116:
        return read_word(reader, piece, "true", 4)
    if letter == 102:
        return read_word(reader, piece, "false", 5)
    return False


cdef bint skip_value(Reader* reader, int depth) noexcept nogil:
    """Anything that is not used, as long as it is surely JSON."""
    cdef Piece unused
    if depth > DEEPEST:
        return False
    if take(reader, 123):
        if take(reader, 125):
            return True
        while True:
            skip_blanks(reader)
            if reader.at >= reader.end or reader.at[0] != 34 or not read_string(reader, &unused, True):
                return False
            if not take(reader, 58) or not skip_value(reader, depth + 1):
                return False
            if not take(reader, 44):
                return take(reader, 125)
    if take(reader, 91):
        if take(reader, 93):
            return True
        while True:
            if not skip_value(reader, depth + 1):
                return False
            if not take(reader, 44):
                return take(reader, 93)
    return read_plain(reader, &unused, True)


cdef inline int find(const Name* names, int count, const Piece* quoted) noexcept nogil:
    cdef int number
    for number in range(count):
        if names[number].length == quoted.length - 2 and not memcmp(
            names[number].text, quoted.start + 1, <size_t>names[number].length
        ):
            return number
    return -1


cdef bint read_fields(Reader* reader, const Name* names, int count, Fields* fields) noexcept nogil:
    """An object whose named fields are plain; others are passed over. The reader stands after its bracket."""
    cdef Piece name
    cdef int number
    memset(fields, 0, sizeof(Fields))
    if take(reader, 125):
        return True
    while True:
        skip_blanks(reader)
        # A name with an escape may be one of ours in disguise.
        if reader.at >= reader.end or reader.at[0] != 34 or not read_string(reader, &name, False):
            return False
        if not take(reader, 58):
            return False
        number = find(names, count, &name)
        if number < 0:
            if not skip_value(reader, 0):
                return False
        elif fields.field[number].start != NULL or not read_plain(reader, &fields.field[number], False):
            return False
        if not take(reader, 44):
            return take(reader, 125)


cdef inline bint is_null(const Piece* piece) noexcept nogil:
    return piece.start == NULL or piece.start[0] == 110


cdef inline const Piece* either(const Piece* first, const Piece* second) noexcept nogil:
    return second if is_null(first) else first


cdef uint8_t* room(Buffer* buffer, Py_ssize_t size) except NULL:
    """Where the next `size` bytes go; they count from now on."""
    cdef Py_ssize_t needed = buffer.size + size
    cdef uint8_t* larger
    if needed > buffer.capacity or buffer.data == NULL:
        larger = <uint8_t*>realloc(buffer.data, <size_t>(2 * needed + 4096))
        if larger == NULL:
            raise MemoryError
        buffer.data = larger
        buffer.capacity = 2 * needed + 4096
    larger = buffer.data + buffer.size
    buffer.size = needed
    return larger


cdef inline int put(Buffer* buffer, const void* data, Py_ssize_t size) except -1:
    memcpy(room(buffer, size), data, <size_t>size)
    return 0


cdef inline int put_column(Buffer* row, const char* name, const Piece* value) except -1:
    """`name` with its quotes, colon, and what comes before; a value that is missing is null."""
    cdef Py_ssize_t length = <Py_ssize_t>strlen(name)
    cdef Py_ssize_t value_length = value.length if value.start != NULL else 4
    cdef const void* text = value.start if value.start != NULL else <const uint8_t*>NULL_TEXT
    cdef uint8_t* at = room(row, length + value_length)
    memcpy(at, name, <size_t>length)
    memcpy(at + length, text, <size_t>value_length)
    return 0


cdef object column_of(Py_ssize_t count, Buffer* ends, Buffer* data, object validity, Py_ssize_t nulls):
    buffers = [validity, pyarrow.py_buffer(taken_offsets(ends)), pyarrow.py_buffer(taken(data))]
    return pyarrow.Array.from_buffers(pyarrow.binary(), count, buffers, nulls)


cdef object bits(bytes flags):
    """One bit for each byte, as Arrow wants it."""
    column = pyarrow.Array.from_buffers(pyarrow.uint8(), len(flags), [None, pyarrow.py_buffer(flags)])
    return column.cast(pyarrow.bool_()).buffers()[1]


cdef bytes taken_offsets(Buffer* ends):
    """With the 0 that Arrow's offsets begin with."""
    cdef bytes copy = PyBytes_FromStringAndSize(NULL, ends.size + 4)
    cdef char* at = PyBytes_AS_STRING(copy)
    memset(at, 0, 4)
    memcpy(at + 4, ends.data, <size_t>ends.size)
    ends.size = 0
    return copy


cdef bytes taken(Buffer* buffer):
    cdef bytes copy = PyBytes_FromStringAndSize(<const char*>buffer.data, buffer.size)
    buffer.size = 0
    return copy


cdef class EventRows:
    cdef object _repair, _split
    cdef bytes _repaired
    cdef Rows _rows[TOPICS]
    cdef Buffer _head, _displays, _actions
    cdef Fields _common, _page, _start
    cdef Piece _error, _ts
    cdef bint _has_page, _has_start
    cdef readonly Py_ssize_t row_count
    cdef readonly Py_ssize_t size_bytes

    def __init__(self, repair_is_new):
        self._repair = repair_is_new
        self._split = EventSplitter(repair_is_new).split

    def __dealloc__(self):
        cdef int number
        for number in range(TOPICS):
            free(self._rows[number].values.data)
            free(self._rows[number].value_ends.data)
            free(self._rows[number].keys.data)
            free(self._rows[number].key_ends.data)
            free(self._rows[number].has_key.data)
        free(self._head.data)
        free(self._displays.data)
        free(self._actions.data)

    def add(self, value):
        if type(value) is bytes and self._read(<bytes>value):
            self._add_read(<bytes>value)
            return
        for topic, key, row in self._split(value):
            self._add_row(LOG_TOPICS.index(topic), key, row)

    def take(self):
        cdef int number
        cdef Rows* rows
        found = []
        for number in range(TOPICS):
            rows = &self._rows[number]
            if rows.count:
                validity = bits(taken(&rows.has_key)) if rows.nulls else None
                rows.has_key.size = 0
                keys = column_of(rows.count, &rows.key_ends, &rows.keys, validity, rows.nulls)
                found.append((LOG_TOPICS[number], keys, column_of(rows.count, &rows.value_ends, &rows.values, None, 0)))
                rows.count = rows.nulls = 0
        self.row_count = self.size_bytes = 0
        return found

    cdef int _add_row(self, int topic, bytes key, bytes row) except -1:
        """One that the rules have made."""
        cdef Rows* rows = &self._rows[topic]
        put(&rows.values, PyBytes_AS_STRING(row), PyBytes_GET_SIZE(row))
        if key is None:
            rows.nulls += 1
            self._end_row(rows, NULL, 0, False)
        else:
            self._end_row(rows, <const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), True)
        self.size_bytes += PyBytes_GET_SIZE(row)
        return 0

    cdef int _end_row(self, Rows* rows, const uint8_t* key, Py_ssize_t length, bint has_key) except -1:
        """The value is in its place; its key and both ends follow."""
        if rows.values.size > MOST_BYTES:
            raise OverflowError("the rows of one event have more than 1 GiB")
        put(&rows.keys, key, length)
        (<int32_t*>room(&rows.value_ends, 4))[0] = <int32_t>rows.values.size
        (<int32_t*>room(&rows.key_ends, 4))[0] = <int32_t>rows.keys.size
        room(&rows.has_key, 1)[0] = has_key
        rows.count += 1
        self.row_count += 1
        return 0

    cdef bint _read(self, bytes value) except -1:
        """Whether all of the event is plain, and as the rules want it; then it can be added."""
        cdef Reader reader
        cdef const Piece* mid
        cdef Py_ssize_t elements
        reader.at = <const uint8_t*>PyBytes_AS_STRING(value)
        reader.end = reader.at + PyBytes_GET_SIZE(value)
        reader.ascii = True
        memset(&self._common, 0, sizeof(Fields))
        memset(&self._page, 0, sizeof(Fields))
        memset(&self._start, 0, sizeof(Fields))
        self._error.start = self._ts.start = NULL
        self._has_page = self._has_start = False
        self._displays.size = self._actions.size = 0
        if not self._read_event(&reader):
            return False
        mid = &self._common.field[MID]
        if mid.start == NULL or mid.start[0] != 34 or self._has_page == self._has_start:
            return False
        elements = (self._displays.size + self._actions.size) // <Py_ssize_t>sizeof(Fields)
        if elements * PyBytes_GET_SIZE(value) > MOST_REPEATED:
            return False
        if not reader.ascii:
            try:
                PyUnicode_DecodeUTF8(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), NULL)
            except UnicodeDecodeError:
                return False
        return True

    cdef bint _read_event(self, Reader* reader) except -1:
        cdef Piece name
        cdef int number
        cdef int seen = 0
        if not take(reader, 123):
            return False
        while True:
            skip_blanks(reader)
            if reader.at >= reader.end or reader.at[0] != 34 or not read_string(reader, &name, False):
                return False
            if not take(reader, 58):
                return False
            number = find(EVENT_NAMES, EVENT_FIELDS, &name)
            if number >= 0 and seen & (1 << number):
                return False
            seen |= 1 << number if number >= 0 else 0
            if not self._read_field(reader, number):
                return False
            if not take(reader, 44):
                break
        if not take(reader, 125):
            return False
        skip_blanks(reader)
        return reader.at == reader.end

    cdef bint _read_field(self, Reader* reader, int number) except -1:
        if number == E_COMMON:
            return take(reader, 123) and read_fields(reader, COMMON_NAMES, COMMON_FIELDS, &self._common)
        if number == E_PAGE:
            self._has_page = True
            return take(reader, 123) and read_fields(reader, PAGE_NAMES, PAGE_FIELDS, &self._page)
        if number == E_START:
            self._has_start = True
            return take(reader, 123) and read_fields(reader, START_NAMES, START_FIELDS, &self._start)
        if number == E_DISPLAYS:
            return self._read_list(reader, DISPLAY_NAMES, DISPLAY_FIELDS, &self._displays)
        if number == E_ACTIONS:
            return self._read_list(reader, ACTION_NAMES, ACTION_FIELDS, &self._actions)
        if number == E_TS:
            return read_plain(reader, &self._ts, False)
        if number == E_ERR:
            skip_blanks(reader)
            self._error.start = reader.at
        return skip_value(reader, 0)

    cdef bint _read_list(self, Reader* reader, const Name* names, int count, Buffer* elements) except -1:
        if not take(reader, 91):
            return False
        if take(reader, 93):
            return True
        while True:
            if not take(reader, 123):
                return False
            room(elements, sizeof(Fields))
            if not read_fields(reader, names, count, <Fields*>(elements.data + elements.size - sizeof(Fields))):
                return False
            if not take(reader, 44):
                return take(reader, 93)

    cdef int _add_read(self, bytes value) except -1:
        """The rows of the event whose pieces were read. From here on nothing can be wrong with it."""
        cdef Py_ssize_t position
        cdef const Piece* mid = &self._common.field[MID]
        cdef const uint8_t* key = mid.start + 1
        cdef Py_ssize_t key_length = mid.length - 2
        cdef Rows* rows
        if not is_null(&self._error):
            rows = &self._rows[ERROR]
            put(&rows.values, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
            self.size_bytes += PyBytes_GET_SIZE(value)
            self._end_row(rows, key, key_length, True)
        self._write_common()
        if self._has_start:
            self._write_start()
            self._add_head(START, key, key_length)
            return 0
        self._write_page()
        self._add_head(PAGE, key, key_length)
        for position in range(0, self._displays.size, sizeof(Fields)):
            self._add_display(<const Fields*>(self._displays.data + position), key, key_length)
        for position in range(0, self._actions.size, sizeof(Fields)):
            self._add_action(<const Fields*>(self._actions.data + position), key, key_length)
        return 0

    cdef int _write_common(self) except -1:
        cdef Fields* common = &self._common
        cdef Buffer* row = &self._head
        cdef Piece is_new = self._is_new()
        row.size = 0
        put_column(row, '{"mid":', &common.field[MID])
        put_column(row, ',"user_id":', &common.field[UID])
        put_column(row, ',"province_id":', &common.field[AR])
        put_column(row, ',"channel":', &common.field[CH])
        put_column(row, ',"is_new":', &is_new)
        put_column(row, ',"model":', &common.field[MD])
        put_column(row, ',"operate_system":', &common.field[OS])
        put_column(row, ',"version_code":', &common.field[VC])
        put_column(row, ',"brand":', &common.field[BA])
        return 0

    cdef Piece _is_new(self) except *:
        """What is true of the device; notes its visit if its id is text and its time a number, as the rules do."""
        cdef Piece given = self._common.field[IS_NEW]
        cdef const Piece* mid = &self._common.field[MID]
        cdef Piece answer
        if self._ts.start == NULL or not (self._ts.start[0] == 45 or 48 <= self._ts.start[0] <= 57):
            return given
        said = None
        if not is_null(&given):
            said = orjson.loads(PyBytes_FromStringAndSize(<const char*>given.start, given.length))
        name = PyUnicode_DecodeUTF8(<const char*>mid.start + 1, mid.length - 2, NULL)
        ts = int(PyBytes_FromStringAndSize(<const char*>self._ts.start, self._ts.length))
        repaired = self._repair(name, ts, said)
        if repaired is said:
            return given
        self._repaired = orjson.dumps(repaired)
        answer.start = <const uint8_t*>PyBytes_AS_STRING(self._repaired)
        answer.length = PyBytes_GET_SIZE(self._repaired)
        return answer

    cdef int _write_page(self) except -1:
        cdef Fields* page = &self._page
        cdef Buffer* row = &self._head
        put_column(row, ',"page_id":', &page.field[PAGE_ID])
        put_column(row, ',"last_page_id":', &page.field[LAST_PAGE_ID])
        put_column(row, ',"page_item":', &page.field[PAGE_ITEM])
        put_column(row, ',"page_item_type":', &page.field[PAGE_ITEM_TYPE])
        put_column(row, ',"during_time":', &page.field[DURING_TIME])
        put_column(row, ',"source_type":', either(&page.field[SOURCE_TYPE], &page.field[SOURCE_TYPE_TOO]))
        put_column(row, ',"ts":', &self._ts)
        return 0

    cdef int _write_start(self) except -1:
        cdef Fields* start = &self._start
        cdef Buffer* row = &self._head
        put_column(row, ',"entry":', &start.field[ENTRY])
        put_column(row, ',"open_ad_id":', &start.field[OPEN_AD_ID])
        put_column(row, ',"loading_time_ms":', either(&start.field[LOADING_TIME], &start.field[LOADING_TIME_TOO]))
        put_column(row, ',"open_ad_ms":', &start.field[OPEN_AD_MS])
        put_column(row, ',"open_ad_skip_ms":', &start.field[OPEN_AD_SKIP_MS])
        put_column(row, ',"ts":', &self._ts)
        return 0

    cdef int _add_head(self, int topic, const uint8_t* key, Py_ssize_t key_length) except -1:
        """The columns that were written are a row of their own."""
        cdef Rows* rows = &self._rows[topic]
        put(&rows.values, self._head.data, self._head.size)
        self.size_bytes += self._head.size + 1
        room(&rows.values, 1)[0] = 125
        return self._end_row(rows, key, key_length, True)

    cdef int _add_display(self, const Fields* display, const uint8_t* key, Py_ssize_t key_length) except -1:
        cdef Rows* rows = &self._rows[DISPLAY]
        cdef Buffer* row = &rows.values
        cdef Py_ssize_t before = row.size
        put(row, self._head.data, self._head.size)
        put_column(row, ',"display_type":', either(&display.field[DISPLAY_TYPE], &display.field[DISPLAY_TYPE_TOO]))
        put_column(row, ',"display_item":', &display.field[DISPLAY_ITEM])
        put_column(row, ',"display_item_type":', &display.field[DISPLAY_ITEM_TYPE])
        put_column(row, ',"display_order":', &display.field[DISPLAY_ORDER])
        put_column(row, ',"display_pos_id":', &display.field[DISPLAY_POS_ID])
        room(row, 1)[0] = 125
        self.size_bytes += row.size - before
        return self._end_row(rows, key, key_length, True)

    cdef int _add_action(self, const Fields* action, const uint8_t* key, Py_ssize_t key_length) except -1:
        cdef Rows* rows = &self._rows[ACTION]
        cdef Buffer* row = &rows.values
        cdef Py_ssize_t before = row.size
        put(row, self._head.data, self._head.size)
        put_column(row, ',"action_id":', &action.field[ACTION_ID])
        put_column(row, ',"action_item":', &action.field[ACTION_ITEM])
        put_column(row, ',"action_item_type":', &action.field[ACTION_ITEM_TYPE])
        put_column(row, ',"action_ts":', &action.field[ACTION_TS])
        room(row, 1)[0] = 125
        self.size_bytes += row.size - before
        return self._end_row(rows, key, key_length, True)

"""Fields of the coordinators' records in the classic encoding: big-endian, strings with an i16
length, bytes with an i32."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode

I16: Final = Struct(">h")
I32: Final = Struct(">i")
I64: Final = Struct(">q")


def string_field(text: str | None) -> bytes:
    """A string; None is the length -1."""
    if text is None:
        return I16.pack(-1)
    data = text.encode()
    return I16.pack(len(data)) + data


def bytes_field(data: bytes) -> bytes:
    """Bytes."""
    return I32.pack(len(data)) + data


class RecordReader:
    """Reads the fields of a record's key or value. Raises CORRUPT_MESSAGE for unreadable ones."""

    __slots__ = ("_data", "_position", "_topic")

    def __init__(self, data: bytes | memoryview, topic: str) -> None:
        self._data = bytes(data)
        self._position = 0
        self._topic = topic

    def version(self, highest: int) -> int:
        """Read the version of a value.

        Raises:
            ApiError: CORRUPT_MESSAGE for a version of a later Kafka.
        """
        version = self.i16()
        if not 0 <= version <= highest:
            raise self.corrupt(f"value version {version} is not known")
        return version

    def i8(self) -> int:
        return self._take(1)[0]

    def i16(self) -> int:
        return self._int(I16)

    def i32(self) -> int:
        return self._int(I32)

    def i64(self) -> int:
        return self._int(I64)

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise self.corrupt("a string is null")
        return text

    def nullable_string(self) -> str | None:
        size = self.i16()
        if size == -1:
            return None
        try:
            return self._take(size).decode()
        except UnicodeDecodeError as error:
            raise self.corrupt("a string is not UTF-8") from error

    def bytes_(self) -> bytes:
        return self._take(self.i32())

    def corrupt(self, problem: str) -> ApiError:
        """The error for this record."""
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"Malformed {self._topic} record: {problem}")

    def _int(self, form: Struct) -> int:
        try:
            (value,) = form.unpack_from(self._data, self._position)
        except StructError as error:
            raise self.corrupt("it ends too early") from error
        self._position += form.size
        return int(value)

    def _take(self, size: int) -> bytes:
        start, self._position = self._position, self._position + size
        if size < 0 or self._position > len(self._data):
            raise self.corrupt(f"a length of {size} does not fit")
        return self._data[start : self._position]

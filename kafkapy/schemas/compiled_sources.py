"""Keeps compiled Protobuf sources: to run protoc takes 0.1 s, and a request may need all versions
of a subject."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from kafkapy.schemas.protobuf_compiler import compile_source, compile_sources

Source = tuple[str, Mapping[str, str]]

_BYTES_MAX: Final = 64 << 20  # some ten thousand schemas
_ENTRY_BYTES: Final = 200  # the memory of a digest and its entry
_AT_ONCE: Final = 100
_AT_ONCE_LENGTH_MAX: Final = 4 << 20


class CompiledSources:
    """The descriptors of sources with their references. Those that were not used for the longest
    time are dropped when there are too many. Thread-safe."""

    def __init__(self, bytes_max: int = _BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._found: dict[bytes, bytes] = {}
        self._lock = Lock()

    def compile(self, source: str, references: Mapping[str, str]) -> FileDescriptorSet:
        """As `compile_source`."""
        key = _key(source, references)
        with self._lock:
            found = self._found.pop(key, None)
            if found is not None:
                self._found[key] = found
        if found is not None:
            return FileDescriptorSet.FromString(zlib.decompress(found))
        compiled = compile_source(source, references)
        self._keep(key, compiled)
        return compiled

    def prepare(self, sources: Iterable[Source]) -> None:
        """Compile those that are not known, many in one process."""
        left: list[Source] = []
        length = 0
        for source, references in sources:
            if _key(source, references) in self._found:
                continue
            left.append((source, references))
            length += len(source) + sum(map(len, references.values()))
            if len(left) == _AT_ONCE or length > _AT_ONCE_LENGTH_MAX:
                self._prepare(left)
                left, length = [], 0
        if len(left) > 1:  # one alone is compiled when it is needed
            self._prepare(left)

    def _prepare(self, sources: list[Source]) -> None:
        for source, compiled in zip(sources, compile_sources(sources), strict=True):
            if compiled is not None:
                self._keep(_key(*source), compiled)

    def _keep(self, key: bytes, compiled: FileDescriptorSet) -> None:
        packed = zlib.compress(compiled.SerializeToString())
        with self._lock:
            self._forget(key)
            self._found[key] = packed
            self._bytes += len(packed) + _ENTRY_BYTES
            while self._bytes > self._bytes_max:
                self._forget(next(iter(self._found)))

    def _forget(self, key: bytes) -> None:
        packed = self._found.pop(key, None)
        if packed is not None:
            self._bytes -= len(packed) + _ENTRY_BYTES


def _key(source: str, references: Mapping[str, str]) -> bytes:
    return hashlib.sha256(json.dumps([source, *references.items()]).encode()).digest()

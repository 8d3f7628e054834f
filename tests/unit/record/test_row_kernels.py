"""row_kernels: a key's partition is the one that Java's producer gives it (bytes: row_batches)."""

from __future__ import annotations

import numpy as np
import pytest

from kafkapy.record.row_kernels import partitions_of_keys
from tests.unit.record.test_row_batches import binary_column

# The hashes of Apache Kafka's own UtilsTest.testMurmur2.
MURMUR2 = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("key", MURMUR2)
def test_keys_are_hashed_as_kafka_does(key: bytes) -> None:
    partitions = np.full(1, -1, np.int32)
    partitions_of_keys(*binary_column([key]), 2**31 - 1, partitions)
    assert partitions[0] == (MURMUR2[key] & 0x7FFFFFFF) % (2**31 - 1)


def test_a_null_key_and_a_partition_that_was_given_stay() -> None:
    partitions = np.array([-1, 9, -1, -1], np.int32)
    partitions_of_keys(*binary_column([None, b"21", b"21", b""]), 10, partitions)
    assert partitions.tolist() == [-1, 9, (-973932308 & 0x7FFFFFFF) % 10, 0x106E08D9 % 10]

"""Sequences of operations: a seed draws the same ones each time, and all kinds are drawn."""

from __future__ import annotations

from typing import get_args

from dev.differential.batches import encode, observed
from dev.differential.operations import Batch, Operation, Produce, ReadAll, Row, sequence
from kafkapy.record.codec import Codec

ROW = Row(b"k", b"v" * 40, 1000, 5)


def test_a_seed_draws_the_same_operations_each_time() -> None:
    assert sequence(7) == sequence(7)
    assert sequence(7) != sequence(8)


def test_every_kind_of_operation_is_drawn() -> None:
    drawn = {type(operation) for seed in range(300) for operation in sequence(seed)}
    assert drawn == set(get_args(Operation)) - {ReadAll}  # the last two steps of every sequence


def test_a_request_with_two_faults_is_known() -> None:
    def faults(*batches: Batch, version: int = 9) -> int:
        return Produce(2, batches, version).faults

    good = Batch((ROW,))
    assert faults(good) == 0
    assert faults(good._replace(damage="crc")) == 1
    assert faults(good._replace(damage="crc", sequence_shift=1)) == 2
    assert faults(good._replace(codec=Codec.ZSTD), good, version=3) == 2


def test_what_is_the_brokers_own_is_not_observed() -> None:
    def seen(producer: tuple[int, int], codec: Codec) -> object:
        data = encode(Batch((ROW,), codec), 1_000_000, producer, 3)
        return observed(data, {4000: "first", 77: "first"}.__getitem__)

    assert seen((4000, 0), Codec.NONE) == seen((77, 0), Codec.NONE)
    assert seen((4000, 0), Codec.NONE) != seen((4000, 1), Codec.NONE)
    assert b"v" * 40 in str(seen((77, 0), Codec.GZIP)).encode()

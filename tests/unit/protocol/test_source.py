"""The builder of generated functions."""

from __future__ import annotations

import traceback

import pytest

from kafkapy.protocol.source import Source


def test_a_function_is_written_and_compiled() -> None:
    source = Source({"start": 1})
    limit = source.value("D", 10)
    source.open("def grow(by):")
    total = source.name("n")
    source.line(f"{total} = start")
    source.open(f"while {total} < {limit}:")
    source.line(f"{total} += by")
    source.close()
    source.line(f"return {total}")
    assert source.function("grow", "<grow>")(4) == 13


def test_names_never_repeat() -> None:
    source = Source({})
    assert len({source.name("n") for _ in range(5)} | {source.value("n", 0)}) == 6


def test_a_traceback_names_the_generated_function() -> None:
    source = Source({})
    source.open("def fail():")
    source.line("return 1 / 0")
    with pytest.raises(ZeroDivisionError) as raised:
        source.function("fail", "<encode X v1>")()
    assert "<encode X v1>" in "".join(traceback.format_exception(raised.value))


def test_layouts_are_big_endian_and_unpadded() -> None:
    assert Source({}).layout("bq").pack(1, 2).hex() == "01" + "00" * 7 + "02"

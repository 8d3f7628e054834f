"""Errors in hand-written JSON files, with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.tools.json_input import JsonInputError, parse_json, read_text


def test_values_by_kind() -> None:
    root = parse_json('\n {"a": [{"b": 1, "c": "x"}]} and more', "no")
    (row,) = root.field("a").items()
    assert (row.field("b").integer(), row.field("c").text(), row.optional("d")) == (1, "x", None)


def test_a_half_of_a_letter_is_no_text() -> None:
    with pytest.raises(JsonInputError, match=r"Expected `String` value, .* at t"):
        parse_json(r'{"t": "a\ud800"}', "no").field("t").text()


def test_of_equal_keys_the_last_counts() -> None:
    assert parse_json('{"a": 1, "a": 2}', "no").field("a").integer() == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no (line 1, column 1: Expecting value)"),
        ("Current\n{}", "no (line 1, column 1: Expecting value)"),
        ('{"a": 1,\n  "b" 2}', "no (line 2, column 7: Expecting ':' delimiter)"),
        ('\n\n{"a": [1 2]}', "no (line 3, column 10: Expecting ',' delimiter)"),
    ],
)
def test_text_that_is_no_json_has_a_place(text: str, said: str) -> None:
    with pytest.raises(JsonInputError) as wrong:
        parse_json(text, "no")
    assert str(wrong.value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{}", "No such field exists: `p`"),
        ("[]", "Expected JSON object, received array []"),
        ('{"p": 1}', "Expected JSON array, received integer 1 at p"),
        ('{"p": [{}]}', "No such field exists: `t` at p[0]"),
        ('{"p": [{"t": "0"}]}', 'Expected `Integer` value, received string "0" at p[0].t'),
        ('{"p": [{"t": true}]}', "Expected `Integer` value, received boolean true at p[0].t"),
        ('{"p": [{"t": 0.0}]}', "Expected `Integer` value, received number 0.0 at p[0].t"),
        (
            '{"p": [{"t": -2147483648}, {"t": 2147483648}]}',
            "Expected `Integer` value, received integer 2147483648 at p[1].t",
        ),
        (
            '{"p": [{"t": 1}, {"t": null}]}',
            "Expected `Integer` value, received null null at p[1].t",
        ),
    ],
)
def test_a_wrong_value_has_a_place(value: str, said: str) -> None:
    def read() -> list[int]:
        return [row.field("t").integer() for row in parse_json(value, "no").field("p").items()]

    with pytest.raises(JsonInputError) as wrong:
        read()
    assert str(wrong.value) == said


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 5000])
def test_text_that_python_cannot_hold(text: str) -> None:
    with pytest.raises(JsonInputError, match=r"^no \("):
        parse_json(text, "no")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(JsonInputError, match="nope: No such file or directory"):
        read_text(str(tmp_path / "nope"))
    (tmp_path / "latin").write_bytes(b'{"a": "\xe9"}')
    with pytest.raises(JsonInputError, match="latin is not UTF-8 \\(byte 7\\)"):
        read_text(str(tmp_path / "latin"))
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbf{}")
    assert read_text(str(tmp_path / "bom")) == "{}"

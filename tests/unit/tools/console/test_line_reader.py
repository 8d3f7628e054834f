"""Lines to records: separators, headers, nulls and what is wrong with a line."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.console.line_reader import Line, LineReader

KEYED = {"parse.key": "true"}
FULL = {"parse.key": "true", "parse.headers": "true"}


@pytest.mark.parametrize(
    ("properties", "line", "expected"),
    [
        ({}, b"a\tb", Line(None, b"a\tb", [])),
        ({}, b"", Line(None, b"", [])),
        ({}, b"\xff\xfe", Line(None, b"\xff\xfe", [])),
        (KEYED, b"k\tv\tw", Line(b"k", b"v\tw", [])),
        (KEYED, b"\t", Line(b"", b"", [])),
        # Java finds an empty text at the beginning.
        (KEYED | {"key.separator": ""}, b"ab", Line(b"", b"ab", [])),
        (
            {"parse.headers": "true", "headers.key.separator": ""},
            b"h\tv",
            Line(None, b"v", [("", b"h")]),
        ),
        (KEYED | {"key.separator": "::"}, b"k::v::w", Line(b"k", b"v::w", [])),
        (FULL, b"h:1,g:2:3\tk\tv", Line(b"k", b"v", [("h", b"1"), ("g", b"2:3")])),
        (FULL, b"h:\tk\t", Line(b"k", b"", [("h", b"")])),
        (
            {"parse.headers": "true", "headers.separator": "[|;]"},
            b"a:1|b:2;c:3\tv",
            Line(None, b"v", [("a", b"1"), ("b", b"2"), ("c", b"3")]),
        ),
        # Kafka splits with Java's String.split.
        (FULL, b"h:1,,\tk\tv", Line(b"k", b"v", [("h", b"1")])),
        (FULL, b",\tk\tv", Line(b"k", b"v", [])),
        (FULL | {"ignore.error": "true"}, b"\tk\tv", Line(b"k", b"v", [("", None)])),
        (
            FULL | {"ignore.error": "true"},
            b",a:1\tk\tv",
            Line(b"k", b"v", [("", None), ("a", b"1")]),
        ),
        (
            {"parse.headers": "true", "headers.separator": "(,|;)"},
            b"a:1,b:2;c:3\tv",
            Line(None, b"v", [("a", b"1"), ("b", b"2"), ("c", b"3")]),
        ),
        (
            {"parse.headers": "true", "headers.separator": "(?=b)"},
            b"b:1b:2\tv",
            Line(None, b"v", [("b", b"1"), ("b", b"2")]),
        ),
        (KEYED | {"null.marker": "N"}, b"N\tN", Line(None, None, [])),
        (KEYED | {"null.marker": "N"}, b"NN\tv", Line(b"NN", b"v", [])),
        (FULL | {"null.marker": "N"}, b"N\tk\tv", Line(b"k", b"v", [])),
        (FULL | {"null.marker": "N"}, b"h:N\tN\tv", Line(None, b"v", [("h", None)])),
        (KEYED | {"ignore.error": "true"}, b"whole", Line(None, b"whole", [])),
        (FULL | {"ignore.error": "true"}, b"odd\tk\tv", Line(b"k", b"v", [("odd", None)])),
    ],
)
def test_lines(properties: dict[str, str], line: bytes, expected: Line) -> None:
    assert LineReader(properties).read(line, 1) == expected


@pytest.mark.parametrize(
    ("properties", "line", "said"),
    [
        (KEYED, b"bad", "No key separator found on line number 7: 'bad'"),
        (FULL, b"bad", "No headers delimiter found on line number 7: 'bad'"),
        (FULL, b"h:1\tbad", "No key separator found on line number 7: 'h:1\tbad'"),
        (FULL, b"h\tk\tv", "No header key separator found in pair 'h' on line number 7"),
        (
            FULL | {"null.marker": "N"},
            b"N:1\tk\tv",
            "Header keys should not be equal to the null marker 'N' as they can't be null",
        ),
    ],
)
def test_bad_lines(properties: dict[str, str], line: bytes, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        LineReader(properties).read(line, 7)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"headers.separator": "\t"}, "headers.delimiter and headers.separator may not be equal"),
        ({"headers.key.separator": ","}, "headers.separator and headers.key.separator"),
        ({"null.marker": "\t"}, "headers.delimiter and null.marker may not be equal"),
        ({"parse.headers": "false", "null.marker": "\t"}, "key.separator and null.marker"),
        ({"headers.separator": "("}, r"headers.separator '\('"),
    ],
)
def test_separators_must_differ(extra: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LineReader(FULL | extra)


def test_separators_that_are_not_used_may_be_anything() -> None:
    LineReader({"headers.separator": "\t", "headers.key.separator": "\t"})

"""Property files and words."""

from pathlib import Path

import pytest

from kafkapy.client.properties import (
    int_property,
    load_properties,
    milliseconds,
    parse_assignments,
    parse_bootstrap_servers,
)
from kafkapy.common.errors import ConfigError


def test_files_are_utf8_or_latin1(tmp_path: Path) -> None:
    file = tmp_path / "p"
    file.write_bytes("a=é".encode())
    assert load_properties(str(file)) == {"a": "é"}
    file.write_bytes("a=é".encode("latin-1"))
    assert load_properties(str(file)) == {"a": "é"}


def test_the_first_property_counts_too_after_an_editor_wrote_a_mark(tmp_path: Path) -> None:
    """A client without its security.protocol connects without TLS."""
    file = tmp_path / "p"
    file.write_bytes("security.protocol=SSL\nacks=é\n".encode("utf-8-sig"))
    assert load_properties(str(file)) == {"security.protocol": "SSL", "acks": "é"}


def test_what_is_wrong_with_a_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Cannot read /nope: No such file"):
        load_properties("/nope")
    (tmp_path / "p").write_text("a=\\u1")
    with pytest.raises(ConfigError, match="p: line 1"):
        load_properties(str(tmp_path / "p"))


def test_words_are_split_at_the_first_equals_sign() -> None:
    assert parse_assignments(["a=b=c", "d", "e=", "a=last"]) == {"a": "last", "d": "", "e": ""}


def test_whole_numbers() -> None:
    assert int_property({"a": "5"}, "a", 1) == 5
    assert int_property({}, "a", 1) == 1
    with pytest.raises(ConfigError, match="Invalid value x for configuration a: Not a number"):
        int_property({"a": "x"}, "a", 1)


def test_times_are_those_of_javas_clients() -> None:
    assert milliseconds({"a": "0"}, "a", 1) == 0
    with pytest.raises(ConfigError, match="Invalid value -1 for configuration a: Value must be"):
        milliseconds({"a": "-1"}, "a", 1)
    with pytest.raises(ConfigError, match="2147483648 for configuration a: Not a number of type"):
        milliseconds({"a": "2147483648"}, "a", 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1", [("a", 1)]),
        (" a:1 , b:2,", [("a", 1), ("b", 2)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("PLAINTEXT://h:9092", [("h", 9092)]),
    ],
)
def test_bootstrap_servers(text: str, expected: list[tuple[str, int]]) -> None:
    assert parse_bootstrap_servers(text) == expected


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:x", "a:65536", "a:²", f"a:{'9' * 5000}"])
def test_bad_bootstrap_servers(text: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        parse_bootstrap_servers(text)

"""Declared classes: constructor, defaults, equality, and the rules that a declaration follows."""

from __future__ import annotations

import pytest

from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey
from kafkapy.protocol.schema import (
    BOOL,
    INT16,
    INT32,
    RECORDS,
    STRING,
    UUID,
    Message,
    Struct,
    Versions,
    array,
    field,
    struct,
)


class Node(Struct):
    id: int = field(INT32, default=-1)
    host: str = field(STRING)


class Example(Message, api=ApiKey.PRODUCE):
    count: int = field(INT16, "2+", default=7)
    flag: bool = field(BOOL)
    name: str = field(STRING)
    later_null: str | None = field(STRING, nullable="3+")
    always_null: str | None = field(STRING, "4+", nullable=True)
    empty: str | None = field(STRING, nullable=True, default="")
    topic_id: Uuid = field(UUID)
    records: object = field(RECORDS, nullable=True)
    numbers: list[int] = array(INT32)
    nodes: list[Node] | None = array(Node, nullable=True)
    node: Node = struct(Node, "9+", tag=0)
    cursor: Node | None = struct(Node, nullable=True)


class Bare(Message, api=ApiKey.LIST_CONFIG_RESOURCES):
    pass


def test_a_message_may_have_no_fields() -> None:
    assert Bare() == Bare()
    assert Bare.FIELDS == ()
    with pytest.raises(TypeError):
        Bare(nothing=1)  # type: ignore[call-arg]


def test_defaults() -> None:
    made = Example()
    assert {name: getattr(made, name) for name in Example.__slots__} == {
        "count": 7,
        "flag": False,
        "name": "",
        "later_null": "",
        "always_null": None,
        "empty": "",
        "topic_id": ZERO_UUID,
        "records": None,
        "numbers": [],
        "nodes": None,
        "node": Node(id=-1, host=""),
        "cursor": None,
    }


def test_arrays_are_not_shared_between_messages() -> None:
    first = Example()
    first.numbers.append(1)
    assert Example().numbers == []


def test_the_shared_default_of_a_struct_refuses_changes() -> None:
    made = Example()
    assert made.node is Example().node
    with pytest.raises(AttributeError, match="shared: assign a new one"):
        made.node.host = "elsewhere"
    made.node = Node(host="elsewhere")
    assert Example().node.host == ""


def test_only_declared_keywords() -> None:
    with pytest.raises(TypeError):
        Example(7)  # type: ignore[misc]
    with pytest.raises(TypeError):
        Example(nme="x")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Example().nme = "x"  # type: ignore[attr-defined]


def test_equality_and_repr() -> None:
    assert Node(id=1, host="a") == Node(id=1, host="a")
    assert Node(id=1, host="a") != Node(id=2, host="a")
    assert Node(id=1) != Example()
    assert repr(Node(id=1, host="a")) == "Node(id=1, host='a')"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Node())


def test_message_has_the_versions_of_its_api() -> None:
    assert Example.API_KEY is ApiKey.PRODUCE
    assert API_VERSIONS[ApiKey.PRODUCE][:2] == (Example.MIN_VERSION, Example.MAX_VERSION)
    assert Example.FIRST_FLEXIBLE_VERSION == 9


def test_fields_know_their_versions() -> None:
    fields = {each.name: each for each in Example.FIELDS}
    assert list(fields) == list(Example.__slots__)
    assert 1 not in fields["count"].versions
    assert 2 in fields["count"].versions
    assert not fields["later_null"].is_nullable(2)
    assert fields["later_null"].is_nullable(3)
    assert not fields["name"].is_nullable(3)
    assert fields["node"].tag == 0
    assert fields["numbers"].is_array


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3+", [3, 4, 30000], [-1, 2]), ("2-7", [2, 7], [1, 8]), ("0", [0], [-1, 1])],
)
def test_versions(text: str, inside: list[int], outside: list[int]) -> None:
    versions = Versions(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)

"""protobuf_json: JSON that is not of its message is refused, as by Java's JsonFormat."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import Descriptor

from kafkapy.schemas.protobuf_json import message_fields, message_of_json
from kafkapy.schemas.protobuf_schema import parse_protobuf_schema
from kafkapy.schemas.wire_format import CorruptValue

SOURCE = """
syntax = "proto3";
package shop;
import "google/protobuf/any.proto";
import "google/protobuf/struct.proto";
message Order {
  bytes raw = 1; repeated bytes parts = 2; map<string, bytes> named = 3;
  Order next = 4; repeated Order more = 5; map<int32, Order> by_id = 6;
  google.protobuf.Any any = 7; google.protobuf.ListValue list = 8; google.protobuf.Value free = 9;
}
message Note { string text = 1; }
"""


@pytest.fixture(scope="module")
def order() -> Descriptor:
    return parse_protobuf_schema(SOURCE, {}).messages()[0,]


@pytest.mark.parametrize(
    "text",
    [
        '{"raw":"AP8=","parts":["AP8"],"named":{"a":"_-+/"},"next":null}',
        '{"next":{"next":{}},"more":[{}],"byId":{"1":{}},"by_id":{"2":{"raw":""}}}',
        '{"list":[],"free":[]}',
    ],
)
def test_json_of_a_message(order: Descriptor, text: str) -> None:
    found = message_of_json(text, order)
    assert message_of_json(str(message_fields(found)).replace("'", '"'), order) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "expected an object for shop.Order, found []"),
        ('""', "expected an object for shop.Order, found ''"),
        ('{"next":[]}', "expected an object for shop.Order"),
        ('{"more":[""]}', "expected an object for shop.Order"),
        ('{"by_id":{"1":[]}}', "expected an object for shop.Order"),
        ('{"raw":"***"}', "shop.Order.raw is not in base64: '***'"),
        ('{"parts":["AA==","a b c"]}', "shop.Order.parts is not in base64"),
        ('{"next":{"named":{"a":"?"}}}', "is not in base64: '?'"),
        ('{"raw":1}', "raw"),
        ("null", "Failed to parse JSON"),
    ],
)
def test_json_that_is_of_no_message_is_refused(order: Descriptor, text: str, reason: str) -> None:
    """The library reads these as empty messages and shorter bytes: a record was written."""
    with pytest.raises(CorruptValue) as raised:
        message_of_json(text, order)
    assert reason in str(raised.value)


def test_any_has_a_message_of_the_same_schema(order: Descriptor) -> None:
    text = '{"any":{"@type":"type.googleapis.com/shop.Note","text":"x"}}'
    found = message_of_json(text, order)
    assert message_fields(found) == {"any": {"@type": "type.googleapis.com/shop.Note", "text": "x"}}

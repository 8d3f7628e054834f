"""Sources of Protobuf schemas for several tests."""

from __future__ import annotations

from typing import Final

PROTO2: Final = 'syntax = "proto2"; '

PROTO3: Final = 'syntax = "proto3"; '

ITEM: Final = PROTO3 + "package shop; message Item { int32 id = 1; message Part {} }"

USES_ITEM: Final = PROTO3 + 'import "item.proto"; message Order { shop.Item item = 1; }'

ROUND_TRIP: Final = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "item.proto";
option java_package = "org.example";
option optimize_for = CODE_SIZE;
message Order {
  option deprecated = true;
  reserved 20 to 29, 40;
  reserved "old", 'older';
  int32 id = 1 [deprecated = true, json_name = "ID"];
  repeated sint64 amounts = 2 [packed = false];
  map<string, Line> lines_by_name = 3;
  optional double price = 4;
  oneof payment { string card = 5; Line line = 6; }
  Status status = 7;
  google.protobuf.Timestamp time = 8;
  Item item = 9;
  message Line { bytes data = 1; Order order = 2; }
  enum Status { option allow_alias = true; NEW = 0; OPEN = 1; ALSO_OPEN = 1; reserved 9 to max; }
}
service Shop {
  rpc Buy (Order) returns (stream Order.Line) { option deprecated = true; }
  rpc Send (stream Order) returns (Order);
}
"""

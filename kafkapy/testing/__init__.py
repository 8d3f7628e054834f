"""A real Kafka broker for tests, `KafkaBroker`, and a schema registry, `SchemaRegistry`. pytest
loads fixtures from `kafkapy.pytest_plugin`.

with KafkaBroker() as broker:
    broker.create_topic("orders", partitions=3)
    ...                                             # any client, broker.bootstrap_servers
    assert [record.value for record in broker.records("orders")] == [b"1"]
"""

from kafkapy.testing.kafka_broker import KafkaBroker
from kafkapy.testing.schema_registry import SchemaRegistry
from kafkapy.testing.topic_records import Record

__all__ = ["KafkaBroker", "Record", "SchemaRegistry"]

"""A schema registry with the REST API and the `_schemas` topic of Confluent's."""

"""connection_names: the names of Java's clients, and mistyped ones."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.spark.source.connection_names import refuse_unknown_connection_names


def test_names_of_java_clients_and_of_other_properties() -> None:
    refuse_unknown_connection_names(
        ("ssl.truststore.location", "sasl.jaas.config", "sasl.login.refresh.window.jitter")
    )
    refuse_unknown_connection_names(("sasl.oauthbearer.client.credentials.client.id",))  # Kafka 4
    refuse_unknown_connection_names(("security.protocol", "kafkapy.ssl.allow.sha1", "acks"))


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("ssl.truststore.locaton", "ssl.truststore.location"),
        ("sasl.mechanisms", "sasl.mechanism"),
        ("ssl.endpoint.identification.algoritm", "ssl.endpoint.identification.algorithm"),
    ],
)
def test_a_mistyped_name_is_refused_with_a_similar_one(name: str, similar: str) -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_unknown_connection_names(("ssl.protocol", name))
    assert str(caught.value) == f"Unknown option 'kafka.{name}'. Did you mean 'kafka.{similar}'?"


def test_a_name_that_is_like_no_other() -> None:
    with pytest.raises(ConfigError, match=r"^Unknown option 'kafka\.sasl\.xyz'$"):
        refuse_unknown_connection_names(("sasl.xyz",))

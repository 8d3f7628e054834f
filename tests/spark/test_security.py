"""TLS with certificates of both sides and SCRAM, as options of source and sink.

Brokers are ours and, where its jars are there, Apache Kafka's; without openssl nothing is checked,
and the end of the run says so.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.harness.security.oauth_broker import OAuthBroker, fetching_client
from tests.harness.security.secure_broker import SecureBroker
from tests.harness.security.secure_kafka import SecureApacheBroker
from tests.harness.security.token_issuer import Issuer
from tests.harness.spark.spark_topics import Topic


def test_source_and_sink_over_tls_with_scram(
    spark: SparkSession, secured: SecureBroker | SecureApacheBroker | None, tmp_path: Path
) -> None:
    if secured is None:
        return
    source, target = Topic(secured.bootstrap_servers, 2), Topic(secured.bootstrap_servers, 2)
    expected = source.write(20)
    secure = secured.spark_options()
    stream = spark.readStream.format("kafkapy").options(
        **secure, subscribe=source.name, startingOffsets="earliest"
    )
    writer = stream.load().select("key", "value").writeStream.format("kafkapy")
    writer = writer.options(**secure, topic=target.name).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path)).start().awaitTermination()
    written = spark.read.format("kafkapy").options(**secure, subscribe=target.name).load()
    assert sorted(bytes(row["value"]).decode() for row in written.collect()) == sorted(expected)


def test_wrong_credentials_and_unknown_certificates_are_named(
    spark: SparkSession, secured: SecureBroker | SecureApacheBroker | None
) -> None:
    if secured is None:
        return
    topic = Topic(secured.bootstrap_servers)
    wrong = secured.spark_options(password="wrong")
    reader = spark.read.format("kafkapy").option("subscribe", topic.name)
    with pytest.raises(PySparkException, match="invalid credentials"):
        reader.options(**wrong).load().count()
    rows = spark.sql("SELECT 'v' AS value").write.format("kafkapy").mode("append")
    with pytest.raises(PySparkException, match=r"No rows can be written: .*invalid credentials"):
        rows.options(**wrong, topic=topic.name).save()  # at once: not by the delivery timeout
    own = wrong["kafka.ssl.keystore.location"]
    stranger = secured.spark_options() | {"kafka.ssl.truststore.location": own}
    with pytest.raises(PySparkException, match="certificate verify failed"):
        reader.options(**stranger).load().count()
    with pytest.raises(PySparkException, match=r"No rows can be written: .*certificate verify"):
        rows.options(**stranger, topic=topic.name).save()


def test_source_and_sink_with_bearer_tokens(spark: SparkSession, tmp_path: Path) -> None:
    """Every worker asks the issuer for a token of its own."""
    with Issuer() as issuer, OAuthBroker(tmp_path / "logs", issuer) as broker:
        source, target = Topic(broker.bootstrap_servers, 2), Topic(broker.bootstrap_servers, 2)
        expected = source.write(20)
        properties = fetching_client(issuer.token_url)
        options = {f"kafka.{name}": value for name, value in properties.items()}
        options["kafka.bootstrap.servers"] = broker.servers("SIGNED")
        read = spark.read.format("kafkapy").options(**options, subscribe=source.name).load()
        rows = read.select("key", "value").write.format("kafkapy").mode("append")
        rows.options(**options, topic=target.name).save()
        written = spark.read.format("kafkapy").options(**options, subscribe=target.name).load()
        assert sorted(bytes(row["value"]).decode() for row in written.collect()) == sorted(expected)
        options |= {"kafka.sasl.jaas.config": properties["sasl.jaas.config"].replace("of", "x")}
        with pytest.raises(PySparkException, match=r"No bearer token can be obtained: .*HTTP 401"):
            spark.read.format("kafkapy").options(**options, subscribe="t").load().count()

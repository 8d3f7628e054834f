"""The answers of Apache Kafka 3.9 about configs: `scripts/conformance --record-configs`.

A ZooKeeper-mode broker is started from Apache Kafka's jars. Its answers about its configs go to
tests/data/configs, and their documentation texts to
kafkapy/server/config/config_documentation.json.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kafkapy.client.cluster import Cluster
from kafkapy.server.config import config_documentation
from tests.harness.processes import apache_kafka
from tests.harness.protocol import config_answers

TEXTS: Final = config_documentation.FILE


def record(print_line: Callable[[str], None]) -> None:
    """Send the requests, and write all files."""
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkapy-record-")))
        zookeeper = apache_kafka.ZooKeeperProcess(scratch / "zookeeper").start()
        stack.callback(zookeeper.kill)
        broker = apache_kafka.ApacheBroker(scratch / "logs", config_answers.SETTINGS, zookeeper)
        stack.callback(broker.kill)
        broker.start()
        cluster = stack.enter_context(Cluster(broker.bootstrap_servers))
        config_answers.prepare(cluster)
        described = config_answers.describe_all(cluster)
        texts = config_answers.texts(cluster)
        values = config_answers.values_to_set(described)
        altered = config_answers.answers(cluster, values)
        places = {
            broker.bootstrap_servers: "BROKER",
            zookeeper.bootstrap_servers: "ZOOKEEPER",
            str(broker.log_dir): "LOGS",
        }
        described = config_answers.masked(described, places)
        altered = config_answers.masked(altered, places)
    TEXTS.write_text(json.dumps(texts, indent=0, ensure_ascii=False, sort_keys=True) + "\n")
    config_answers.write("described", described)
    config_answers.write("values", values)
    config_answers.write("altered", altered)
    keys = len(values["broker"])
    print_line(
        f"written: {config_answers.DATA}, {TEXTS}: {keys} keys of Kafka {apache_kafka.VERSION}"
    )

"""The two ZooKeeper servers that kafkapy can run."""

from __future__ import annotations

from enum import StrEnum


class Implementation(StrEnum):
    """kafkapy's own server, or Apache's on a JVM."""

    KAFKAPY = "kafkapy"
    APACHE = "apache"

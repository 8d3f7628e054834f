"""The broker's metadata cache: one reference to the current image (`ZkMetadataCache`)."""

from __future__ import annotations

from kafkapy.common.cluster_state import UpdateMetadataCommand
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.metadata.image import MetadataImage, apply_update


class MetadataCache:
    """Holds the image; only UpdateMetadata moves it. Readers take `image` once and keep it."""

    __slots__ = ("image",)

    def __init__(self) -> None:
        self.image = MetadataImage()

    def apply(self, command: UpdateMetadataCommand) -> tuple[MetadataImage, list[TopicPartition]]:
        """Swap in the image after `command`; it, and the partitions that are gone."""
        self.image, deleted = apply_update(self.image, command)
        return self.image, deleted

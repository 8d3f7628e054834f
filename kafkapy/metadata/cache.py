"""The broker's metadata cache: one reference to the current image (`ZkMetadataCache`)."""

from __future__ import annotations

from kafkapy.common.cluster_state import UpdateMetadataCommand
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.metadata.image import MetadataImage, apply_update


class MetadataCache:
    """Holds the image; only UpdateMetadata replaces it. Readers read `image` once and keep it."""

    __slots__ = ("image",)

    def __init__(self) -> None:
        self.image = MetadataImage()

    def apply(self, command: UpdateMetadataCommand) -> tuple[MetadataImage, list[TopicPartition]]:
        """Apply `command`. Returns the new image and the removed partitions."""
        self.image, deleted = apply_update(self.image, command)
        return self.image, deleted

"""The cache swaps images."""

from __future__ import annotations

from kafkapy.common.cluster_state import UpdateMetadataCommand
from kafkapy.metadata.cache import MetadataCache


def test_apply_swaps_one_reference() -> None:
    cache = MetadataCache()
    before = cache.image
    image, deleted = cache.apply(UpdateMetadataCommand(3, 1, 1, [], []))
    assert cache.image is image
    assert (image.controller_id, image.version, deleted) == (3, 1, [])
    assert before.controller_id == -1
